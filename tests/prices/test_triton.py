"""What Triton compiles gives what PyTorch gives; needs a GPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sparsetransport.effort import DevicePrices  # noqa: E402
from sparsetransport.prices import device_ascent, device_pricing  # noqa: E402

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("d", [1, 2, 3, 5, 64])
def test_lanes_have_the_least_of_all_columns(d):
    rng = np.random.default_rng(d)
    given = rng.normal(size=(2000, d)), rng.normal(size=(30_000, d)) + 1.0, rng.normal(size=30_000)
    x, y, beta = (torch.from_numpy(each).cuda() for each in given)
    x, y = device_pricing.Cloud.of(x), device_pricing.Cloud.of(y)
    exact = device_pricing._by_blocks(x, y, beta, 1, False).least
    found = device_pricing.price(x, y, beta, 8)
    proven = device_pricing.price(x, y, beta, proven=True).least
    size = float(x.squares.max() + y.squares.max() + beta.abs().max())
    assert float((found.least - exact).abs().max()) < 1e-5 * size
    assert float((proven - exact).max()) <= 1e-13 * size
    assert float((exact - proven).max()) < 1e-4 * size
    costs = ((x.points[:, None] - y.points[found.cols]) ** 2).sum(2) - beta[found.cols]
    assert float((costs.min(1).values - exact).max()) < 1e-5 * size


def test_rows_are_filled_as_by_pytorch():
    rng = np.random.default_rng(0)
    cost, beta, a = rng.random((300, 80)), rng.random(80), rng.random(300)
    filled = []
    for where in ("cpu", "cuda"):
        costs = torch.from_numpy(cost).to(where)
        key = torch.arange(cost.size, device=where)
        pairs = device_ascent.Pairs.of(key, lambda rows, cols, costs=costs: costs[rows, cols], *cost.shape)
        given = [torch.from_numpy(each).to(where) for each in (beta, a)]
        filled.append(device_ascent.fill(pairs, pairs.cost, *given, 0.7, 0.05, DevicePrices(newton_long=7), keep=True))
    for here, there in zip(*filled, strict=True):
        np.testing.assert_allclose(there.cpu(), here, rtol=1e-9, atol=1e-9)
