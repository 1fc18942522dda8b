"""Dual prices of large problems with `Delta` kernels and no ``reg``: a bound for every budget, and where links pay."""
