"""The Triton kernel behind `_fused`; imported on GPUs only."""

# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def route(
    values_at,  # (n, m)
    a_at,  # (m,)
    share_at,  # (n,)
    temperatures_at,  # (steps,)
    weights_at,  # (stages,)
    experts_at,  # (n, K), out
    prices_at,  # (m,), out
    n,
    m,
    weight,  # of squared loads
    rounds,
    STEPS: tl.constexpr,
    STAGES: tl.constexpr,
    LEAST: tl.constexpr,
    GENTLEST: tl.constexpr,
    THRESHOLD_STEPS: tl.constexpr,
    K: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
):
    """Prices, top k and repair by single tokens in one program; see `assignment` for the steps."""
    big: tl.constexpr = 1e30
    rows, cols = tl.arange(0, N), tl.arange(0, M)
    inside = (rows[:, None] < n) & (cols[None, :] < m)
    values = tl.load(values_at + rows[:, None] * m + cols[None, :], mask=inside, other=-big)
    share = tl.load(share_at + rows, mask=rows < n, other=0.0)
    a = tl.load(a_at + cols, mask=cols < m, other=1.0)
    prices = tl.zeros((M,), tl.float32)

    for step in range(STEPS):
        temperature = tl.load(temperatures_at + step)
        left = values - prices[None, :]
        work = left
        last, following = tl.max(work, 1), tl.max(work, 1)
        for _ in tl.static_range(K):
            best = tl.argmax(work, 1)
            last = tl.max(work, 1)
            work = tl.where(cols[None, :] == best[:, None], -big, work)
            following = tl.max(work, 1)
        scaled = (left - (0.5 * (last + following))[:, None]) / temperature
        chosen = tl.where(inside, tl.sigmoid(scaled), 0.0)
        for _ in tl.static_range(THRESHOLD_STEPS):
            slope = tl.maximum(tl.sum(chosen * (1.0 - chosen), 1), LEAST)
            scaled = scaled - ((tl.sum(chosen, 1) - K) / slope)[:, None]
            chosen = tl.where(inside, tl.sigmoid(scaled), 0.0)
        load = tl.maximum(tl.sum(share[:, None] * chosen, 0), LEAST * a)
        bend = tl.sum(share[:, None] * chosen * (1.0 - chosen), 0) / load
        bend = tl.minimum(tl.maximum(bend, GENTLEST), 1.0)
        wanted = tl.maximum(a + prices / weight, LEAST * a)
        rise = tl.log(load / wanted) / (bend / temperature + 1.0 / (weight * wanted))
        prices = tl.where(cols < m, prices + rise, 0.0)
    tl.store(prices_at + cols, prices, mask=cols < m)

    work = tl.where(inside, values - prices[None, :], -big)
    taken = tl.zeros((N, M), tl.float32)
    for _ in tl.static_range(K):
        here = cols[None, :] == tl.argmax(work, 1)[:, None]
        taken = tl.where(here & inside, 1.0, taken)
        work = tl.where(here, -big, work)

    # Moves of a round do not conflict: an expert that gains and loses a token stays closer to its load.
    left, stage = tl.full((), 0, tl.int32) + rounds, tl.full((), 0, tl.int32)
    while (left > 0) & (stage <= STAGES):
        present = tl.load(weights_at + stage, mask=stage < STAGES, other=0.0) + tl.where(stage < STAGES, 0.0, weight)
        excess = tl.sum(share[:, None] * taken, 0) - a
        price = values - present * excess[None, :]
        own = tl.where(taken > 0.5, price, big)
        other = tl.where((taken > 0.5) | (inside == 0), -big, price)
        leave, enter = tl.argmin(own, 1), tl.argmax(other, 1)
        leaving, entering = leave[:, None] == cols[None, :], enter[:, None] == cols[None, :]
        # Values and loads are kept apart: a large weight would lose the values in rounding.
        loss = tl.sum(tl.where(leaving, values, 0.0), 1) - tl.sum(tl.where(entering, values, 0.0), 1)
        room = tl.sum(tl.where(leaving, excess[None, :], 0.0), 1) - tl.sum(tl.where(entering, excess[None, :], 0.0), 1)
        change = tl.where(rows < n, share * (loss - present * (room - share)), big)
        table = tl.where(leaving, change[:, None], big)
        out, token = tl.min(table, 0), tl.argmin(table, 0)  # the best token of every expert that is left
        mine = rows[:, None] == token[None, :]
        target = tl.sum(tl.where(mine, enter[:, None], 0), 0)
        # The best of them for every expert that is entered: sources in rows, targets in columns.
        into = _column(target, M) == cols[None, :]
        rival = tl.where(into, _column(out, M), big)
        goes, source = tl.min(rival, 0) < 0.0, tl.argmin(rival, 0)
        pairs = (_column(cols, M) == source[None, :]) & goes[None, :]
        mover = tl.sum(tl.where(pairs, _column(token, M), 0), 0)
        gone = _row(tl.max(pairs.to(tl.int32), 1), M) > 0
        taken = tl.where(mine & gone, 0.0, taken)
        taken = tl.where((rows[:, None] == mover[None, :]) & goes[None, :], 1.0, taken)
        left, stage = left - 1, stage + 1 - tl.max(goes.to(tl.int32), 0)

    excess = tl.sum(share[:, None] * taken, 0) - a
    work = tl.where(taken > 0.5, values - weight * excess[None, :], -big)
    for slot in tl.static_range(K):
        best = tl.argmax(work, 1)
        tl.store(experts_at + rows * K + slot, best.to(tl.int64), mask=rows < n)
        work = tl.where(cols[None, :] == best[:, None], -big, work)


@triton.jit
def _column(vector, M: tl.constexpr):
    """A vector over experts as a column."""
    return tl.reshape(vector, (M, 1))


@triton.jit
def _row(vector, M: tl.constexpr):
    """A vector over experts as a row."""
    return tl.reshape(vector, (1, M))
