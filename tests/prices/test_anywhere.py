"""Prices and pricing on the CPU and on a device: the same functions, and nearly the same answers."""

import builtins

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.effort import Prices
from sparsetransport.prices.anywhere import prices_on, pricing_on


def some_problem():
    rng = np.random.default_rng(0)
    x, y = rng.random((80, 2)), rng.random((70, 2)) ** 2
    return st.Problem.from_points(x, y, kernels=st.Delta(), lazy=True, unbalanced=5.0)


def test_prices_of_the_cpu_and_of_a_device_prove_nearly_the_same():
    """PyTorch's CPU stands for a GPU."""
    pytest.importorskip("torch")
    problem, how = some_problem(), Prices(coarsest=30)
    optimum = st.solve(problem).value
    for device in (None, "cpu"):
        found = prices_on(device, problem, how, pricing_on(device, problem.cost))
        assert (1 - 0.02) * optimum <= found.bound <= optimum * (1 + 1e-12)
        least, _ = pricing_on(device, problem.cost).rows(found.beta)
        assert (found.alpha <= least[:, 0] + 1e-12).all()


def test_a_device_without_pytorch_is_refused(monkeypatch):
    whole = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "torch":
            raise ImportError(name)
        return whole(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="device needs PyTorch"):
        pricing_on("cuda", some_problem().cost)
