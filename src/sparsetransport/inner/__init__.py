"""Solvers on a given support: non-negative quadratic programs."""
