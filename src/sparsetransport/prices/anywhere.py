"""Prices and pricing on the CPU or on a device, by the same functions."""

import time
from typing import Any

import numpy as np

from .. import _checks
from ..effort import Prices as Effort
from ..geometry.matrices import Cost
from ..geometry.pricing import Pricing
from ..problem import Problem
from . import levels
from .levels import Prices, Tell


def pricing_on(device: Any, cost: Cost) -> Pricing:
    """Rows and columns of a cost, priced on a device, or on the CPU where that is None."""
    if device is None:
        return Pricing(cost)
    _require_torch()
    from .device_pricing import DevicePricing

    return DevicePricing(cost, device)


def prices_on(
    device: Any,
    problem: Problem,
    how: Effort,
    pricing: Pricing,
    *,
    tell: Tell | None = None,
    gap_tol: float | None = None,
    deadline: float = np.inf,
) -> Prices:
    """Prices found on a device, or on the CPU where that is None, whose costs are priced by ``pricing``.

    A device stops after the deadline, of `time.monotonic`, or goes on where a gap is asked for.
    """
    if device is None:
        return levels.prices(problem, how, pricing, tell=tell)
    _require_torch()
    from .device import prices as on_device

    limit = None if deadline == np.inf else deadline - time.monotonic()
    found = on_device(problem, how.on_device, device, gap_tol=gap_tol, time_limit=limit, tell=tell)
    alpha, beta, rows, cols, mass = (
        each.cpu().numpy() for each in (found.alpha, found.beta, found.rows, found.cols, found.mass)
    )
    return Prices(alpha, beta, found.bound, rows, cols, mass)


def _require_torch() -> None:
    try:
        import torch  # noqa: F401  # takes long
    except ImportError as err:
        raise _checks.missing("device needs PyTorch", "torch") from err
