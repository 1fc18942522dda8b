"""Bounds, cheap and tight."""

import pytest
from cases import instance

import sparsetransport as st
from sparsetransport.certify import certifier

METHODS = ["omp", "stochastic", "residual", "greedy", "residual-greedy"]
BUDGETS = [9, st.PerColumn(1), st.PerRow(2), st.PerRow(1) & st.PerColumn(2)]


@pytest.fixture
def case():
    return instance(1, 8, 7, "rbf", 0.1, (5.0, 2.0))


def test_the_cheap_bound_comes_first_and_the_tight_one_stays(case):
    """``lower_bound`` is the cheap bound until ``certify`` was called; from then on the better one."""
    result = case.solve(budget=st.PerColumn(1))
    cheap = result.lower_bound
    assert result.gap == result.value - cheap
    assert result.relative_gap == pytest.approx(result.gap / result.value)
    proof = result.certify()
    assert isinstance(proof, st.Certificate)
    assert proof.lower_bound > cheap
    assert result.lower_bound == proof.lower_bound
    assert result.certify() is proof
    assert proof.value == result.value


def test_nobody_pays_for_a_bound_who_does_not_ask(case, monkeypatch):
    """Bounds are computed on first use, once."""
    calls = []
    original = certifier.Certifier.__call__
    monkeypatch.setattr(certifier.Certifier, "__call__", lambda *args: calls.append(1) or original(*args))
    result = case.solve(budget=4)
    assert not calls
    assert result.lower_bound == result.lower_bound
    assert len(calls) == 1
