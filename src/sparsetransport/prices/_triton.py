"""The Triton kernels of pricing and ascent; imported on GPUs only."""

# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def lanes_of_differences(
    x_at,  # (m, D) float32
    y_at,  # (n, D)
    offset_at,  # (n,)
    least_at,  # (m, BN), out
    column_at,  # (m, BN), out
    m,
    n,
    D: tl.constexpr,  # 1 to 3
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """The least ``offset_j + |x_i - y_j|²`` of every row and residue class of columns, by squared differences.

    A tile of rows stays in registers while columns stream by.
    """
    rows, lanes = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    inside = rows < m
    x0 = tl.load(x_at + rows * D, mask=inside, other=0.0)
    x1 = tl.load(x_at + rows * D + (1 if D > 1 else 0), mask=inside, other=0.0)
    x2 = tl.load(x_at + rows * D + (2 if D > 2 else 0), mask=inside, other=0.0)
    best = tl.full([BM, BN], float("inf"), tl.float32)
    block = tl.zeros([BM, BN], tl.int32)
    for start in range(0, n, BN):
        cols = start + lanes
        known = cols < n
        reduced = tl.load(offset_at + cols, mask=known, other=float("inf"))[None, :]
        apart = x0[:, None] - tl.load(y_at + cols * D, mask=known, other=0.0)[None, :]
        reduced = reduced + apart * apart
        if D > 1:
            apart = x1[:, None] - tl.load(y_at + cols * D + 1, mask=known, other=0.0)[None, :]
            reduced = reduced + apart * apart
        if D > 2:
            apart = x2[:, None] - tl.load(y_at + cols * D + 2, mask=known, other=0.0)[None, :]
            reduced = reduced + apart * apart
        less = reduced < best
        best = tl.where(less, reduced, best)
        block = tl.where(less, start, block)
    out = rows[:, None].to(tl.int64) * BN + lanes[None, :]
    tl.store(least_at + out, best, mask=inside[:, None])
    tl.store(column_at + out, block + lanes[None, :], mask=inside[:, None])


@triton.jit
def lanes_of_products(
    x_at,  # (m, D) float32
    y_at,  # (n, D)
    offset_at,  # (n,)
    least_at,  # (m, BN), out
    column_at,  # (m, BN), out
    m,
    n,
    D: tl.constexpr,  # a power of two
    BM: tl.constexpr,
    BN: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The least ``offset_j - 2 x_i·y_j`` of every row and residue class of columns, by matrix products."""
    rows, lanes, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    inside = rows < m
    x = tl.load(x_at + rows[:, None] * D + depth[None, :], mask=inside[:, None], other=0.0)
    best = tl.full([BM, BN], float("inf"), tl.float32)
    block = tl.zeros([BM, BN], tl.int32)
    for start in range(0, n, BN):
        cols = start + lanes
        known = cols < n
        y = tl.load(y_at + cols[None, :] * D + depth[:, None], mask=known[None, :], other=0.0)
        offset = tl.load(offset_at + cols, mask=known, other=float("inf"))
        reduced = offset[None, :] - 2.0 * tl.dot(x, y, input_precision=PRECISION)
        less = reduced < best
        best = tl.where(less, reduced, best)
        block = tl.where(less, start, block)
    out = rows[:, None].to(tl.int64) * BN + lanes[None, :]
    tl.store(least_at + out, best, mask=inside[:, None])
    tl.store(column_at + out, block + lanes[None, :], mask=inside[:, None])


@triton.jit
def fill_rows(
    first_at,  # (m + 1,) where the candidates of a row begin
    rows_at,  # (rows,) the rows of this launch
    cols_at,  # (e,)
    cost_at,  # (e,)
    beta_at,  # (n,)
    a_at,  # (m,)
    weight_at,  # (2,) weight of the marginal errors of rows, smoothing
    load_at,  # (n,), added to
    count_at,  # (n,), added to
    theta_at,  # (m,), out
    value_at,  # (m,), out
    mass_at,  # (e,), out if KEEP
    rows_n,
    BM: tl.constexpr,
    WIDTH: tl.constexpr,
    STEPS: tl.constexpr,
    KEEP: tl.constexpr,
):
    """The masses of every row that are best at the prices of the columns, smoothed; see `ascent.fill`."""
    weight, rho = tl.load(weight_at), tl.load(weight_at + 1)
    slack, steep = 0.5 / weight, 1.0 / rho
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    inside = at < rows_n
    row = tl.load(rows_at + at, mask=inside, other=0)
    first = tl.load(first_at + row, mask=inside, other=0)
    last = tl.load(first_at + row + 1, mask=inside, other=0)
    a = tl.load(a_at + row, mask=inside, other=0.0)
    pair = first[:, None] + tl.arange(0, WIDTH)[None, :]
    known = pair < last[:, None]
    col = tl.load(cols_at + pair, mask=known, other=0)
    gain = tl.load(beta_at + col, mask=known, other=0.0) - tl.load(cost_at + pair, mask=known, other=0.0)
    gain = tl.where(known, gain, -1e300)
    theta = (tl.max(gain, 1) - rho * a) / (1.0 + rho * slack)
    for _ in range(STEPS):
        above = gain > theta[:, None]
        total = tl.sum(tl.where(above, gain - theta[:, None], 0.0), 1)
        number = tl.sum(tl.where(above, 1.0, 0.0).to(tl.float64), 1)
        theta += (total * steep - theta * slack - a) / (number * steep + slack)
    above = (gain > theta[:, None]) & known
    mass = tl.where(above, (gain - theta[:, None]) * steep, 0.0)
    tl.atomic_add(load_at + col, mass, mask=above, sem="relaxed")
    tl.atomic_add(count_at + col, tl.where(above, 1.0, 0.0).to(tl.float64), mask=above, sem="relaxed")
    off = tl.sum(mass, 1) - a
    value = tl.sum(tl.where(above, mass * (0.5 * rho * mass - gain), 0.0), 1) + weight * off * off
    tl.store(value_at + row, value, mask=inside)
    tl.store(theta_at + row, theta, mask=inside)
    if KEEP:
        tl.store(mass_at + pair, mass, mask=known)
