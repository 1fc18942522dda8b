"""Rounding margins: a bound told is below the exact sum."""

from fractions import Fraction

import numpy as np

from sparsetransport.certify.rounding import below


def test_a_sum_of_floats_is_above_what_is_told():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        terms = rng.normal(size=int(rng.integers(1, 300))) * 10.0 ** rng.integers(-6, 6)
        exact = sum(map(Fraction, terms.tolist()), Fraction(0))
        told = below(float(terms.sum()), float(np.abs(terms).sum()), terms.size)
        assert Fraction(told) < exact
        assert float(exact) - told <= 1e-13 * np.abs(terms).sum()
