"""Greedy choice of a support by a rule, for any quadratic and any matroid, independent of transport."""
