"""Orthogonal matching pursuit, compiled: for one problem, for many at once, for one support that scenarios share."""
