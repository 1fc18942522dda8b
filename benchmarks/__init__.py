"""Figures that the project claims, each printed by a command: ``make bench``, or ``python -m benchmarks.run NAME``."""
