"""Local search on trees of links, for `Delta` kernels and no ``reg``.

What a link is worth, and what another would be, follows from its two trees alone (see `trees`). So every change that
could help is looked at, and those that seem to are tried:

- a new link where one is free; between two points of a tree, for the link on the way round that it leaves without mass,
- a link for another one, at either of its parts,
- two links ``(i, j)`` and ``(k, l)`` of two trees for ``(i, l)`` and ``(k, j)``.
"""

import numpy as np

from .._checks import Floats, Ints
from .._numba.codes import LOCAL, PAUSED
from .._numba.compiling import compiled, inlined_part, part, small_part
from ..engine.room import Room, has_capacity, is_free, put_back, questions, set_aside
from ..geometry._entries import cost_entry
from .sided import crossed, is_sided, joined_part, joined_trees
from .trees import (
    Forest,
    fee,
    insert,
    is_charged,
    joined_worth,
    other_end,
    remove,
    settle,
    way_round,
    wish,
)
from .undo_log import (
    ASLEEP,
    IN_USE,
    LINKS,
    NEAR,
    REACH,
    TURN,
    UndoLog,
    around,
    begin,
    is_tabu,
    keep,
    keep_whole,
    restore,
    value_of,
)

_CUT = -2  # in place of a row: a link is best cut, and none linked for it


@part
def settle_both(forest: Forest, row: int, col: int) -> int:
    """Settle the trees of both points, which may be one."""
    before = forest.counts[1]
    looked = settle(forest, row)
    if forest.tree[col] <= before:
        looked += settle(forest, col)
    return looked


@compiled
def improve(
    forest: Forest, log: UndoLog, whole: UndoLog, tol: float, least: float, effort: Floats, limit: float
) -> int:
    """Look at points, and change what lowers the objective by ``least``, until all are asleep.

    ``whole`` keeps all trees that change, if it is in use.
    """
    counts, points = log.counts, log.awake.size
    while counts[ASLEEP] < points:
        if effort[0] > limit:
            return PAUSED
        effort[0] += questions(forest.room)
        point = counts[TURN]
        counts[TURN], counts[ASLEEP] = (point + 1) % points, counts[ASLEEP] + 1
        if log.awake[point] > 0:
            log.awake[point] = 0
            while effort[0] <= limit and _improve_at(forest, log, whole, point, tol, least, effort):
                pass
    return LOCAL


@compiled
def perturb(
    forest: Forest,
    log: UndoLog,
    whole: UndoLog,
    tol: float,
    least: float,
    best_plan: UndoLog,
    worse: float,
    draws: Ints,
    targets: int,
    each: float,
    effort: Floats,
    limit: float,
) -> None:
    """Force a link in, see what becomes of it, and go back if the plan is no better, once a draw.

    With a positive ``worse`` a plan may be worse by that than the best one, which is kept. The value of ``best_plan``
    is by how much the present one is worse.
    The new link is the best of a point with one in ``targets`` of the others. It comes in place of one of the point's
    own, crosswise if the other point is linked already; once in four times in place of any link. The link that it
    replaces is tabu until the next draw: else the local search would mostly just bring it back.
    """
    m, n, charged = forest.rows, forest.first.size - forest.rows, is_charged(forest)
    for k in range(draws.size):
        if effort[0] > limit or forest.counts[0] == forest.spare.size:
            return
        draw, link = divmod(draws[k], forest.mass.size)
        while forest.mass[link] <= 0.0:
            link = (link + 1) % forest.mass.size
        draw, side = divmod(draw, 2)
        draw, own = divmod(draw, 4)
        point, partner = forest.ends[side, link], forest.ends[1 - side, link]
        if own == 0:
            point = draw % m if side == 0 else m + draw % n
        best, target = -np.inf, -1
        for other in range(m, m + n) if side == 0 else range(m):
            row, col = min(point, other), max(point, other)
            pull = wish(forest, row, col)
            if charged:
                pull = pull * forest.mass[link] - fee(forest, row, col)
            if (other + draw) % targets == 0 and (other != partner or own == 0) and pull > best:
                best, target = pull, other
        effort[0] += n if side == 0 else m
        if target < 0:
            continue
        begin(whole)
        keep(forest, whole, partner)
        keep(forest, whole, point)
        keep(forest, whole, target)
        is_crosswise = own > 0 and forest.tree[target] != forest.tree[point] and forest.first[target] >= 0
        second, end = forest.first[target], forest.ends[side, link]
        remove(forest, link)
        effort[0] += settle_both(forest, end, partner)
        if is_crosswise:
            left_over = other_end(forest, second, target)
            remove(forest, second)
            effort[0] += settle_both(forest, left_over, target)
            _force(forest, left_over, partner)
            _wake(forest, log, left_over)
        _force(forest, point, target)
        _wake(forest, log, end)
        _wake(forest, log, partner)
        _wake(forest, log, point)
        _wake(forest, log, target)
        whole.counts[IN_USE] = 1
        log.tabu[0], log.tabu[1] = min(end, partner), max(end, partner)
        improve(forest, log, whole, tol, least, effort, effort[0] + each)
        log.tabu[0], log.tabu[1] = -1, -1
        whole.counts[IN_USE] = 0
        change = best_plan.value[0] + value_of(forest, whole) - whole.value[0]
        if change >= (worse if worse > 0.0 else -least):
            restore(forest, whole)
        elif worse > 0.0:
            best_plan.value[0] = change
            if change < -least:
                best_plan.value[0] = 0.0
                _keep_all(forest, best_plan)


@part
def _keep_all(forest: Forest, log: UndoLog) -> None:
    """Keep all links as they are."""
    log.counts[LINKS] = 0
    for link in range(forest.mass.size):
        if forest.mass[link] > 0.0:
            k = log.counts[LINKS]
            log.ends[0, k], log.ends[1, k] = forest.ends[0, link], forest.ends[1, link]
            log.mass[k] = forest.mass[link]
            log.counts[LINKS] += 1


@compiled
def keep_all(forest: Forest, log: UndoLog) -> None:
    """Keep all links as they are."""
    _keep_all(forest, log)


@compiled
def back_to_all(forest: Forest, log: UndoLog) -> None:
    """Go back to the links that were kept."""
    for point in range(forest.first.size):
        while forest.first[point] >= 0:
            remove(forest, forest.first[point])
    for k in range(log.counts[LINKS]):
        insert(forest, log.ends[0, k], log.ends[1, k], log.mass[k])
    before = forest.counts[1]
    for point in range(forest.first.size):
        if forest.tree[point] <= before:
            settle(forest, point)


@small_part
def _joined(forest: Forest, row: int, col: int, pull: float, limited: bool) -> float:
    """What a new link between two trees is worth."""
    if is_sided(forest):
        return float(joined_trees(forest, row, col, pull, limited))
    return float(joined_worth(pull, forest.whole[row], forest.whole[col]))


@part
def _force(forest: Forest, point: int, other: int) -> None:
    """Link a pair, if it may be and is not linked by others."""
    row, col = min(point, other), max(point, other)
    if forest.tree[row] == forest.tree[col] or wish(forest, row, col) == -np.inf:
        return
    if is_free(forest.room, row, col - forest.rows):
        insert(forest, row, col, 0.0)
        settle(forest, row)


@inlined_part
def _improve_at(
    forest: Forest, log: UndoLog, whole: UndoLog, point: int, tol: float, least: float, effort: Floats
) -> bool:
    """One change at a point, if one helps."""
    if forest.first[point] < 0 and forest.room.left[0] <= 0:
        return False
    if _link_up(forest, log, whole, point, tol, least, effort):
        return True
    partners = _partners(forest, log, point)
    for k in range(partners):
        if log.awake[log.partners[k]] > 0:
            continue  # the link will be looked at from there
        link = _link_between(forest, point, log.partners[k])
        if link < 0:
            return True  # rounding has cut it off: look again
        row, col = _best_replacement(forest, log, link, least, effort)
        if row != -1 and _exchange(forest, log, whole, link, -1, row, col, tol, least, effort):
            return True
        link = _link_between(forest, point, log.partners[k])  # what was tried in vain has another number now
        if link < 0:
            return True
        other = _best_crossing(forest, log, link, least, effort)
        if other >= 0 and _exchange(forest, log, whole, link, other, -1, -1, tol, least, effort):
            return True
    return False


@part
def _partners(forest: Forest, log: UndoLog, point: int) -> int:
    """The points that one is linked with into ``log.partners``; how many."""
    side, link, found = 0 if point < forest.rows else 1, forest.first[point], 0
    while link >= 0:
        log.partners[found] = forest.ends[1 - side, link]
        link, found = forest.after[side, link], found + 1
    return found


@part
def _link_between(forest: Forest, point: int, partner: int) -> int:
    """The link of two points; -1: none."""
    side, link = 0 if point < forest.rows else 1, forest.first[point]
    while link >= 0 and forest.ends[1 - side, link] != partner:
        link = forest.after[side, link]
    return int(link)


@inlined_part
def _link_up(
    forest: Forest, log: UndoLog, whole: UndoLog, point: int, tol: float, least: float, effort: Floats
) -> bool:
    """Add the best new link at a point."""
    m, n = forest.rows, forest.first.size - forest.rows
    first, last = (m, m + n) if point < m else (0, m)
    tree_here, has_room = forest.tree[point], forest.room.left[0] > 0 and forest.room.left[1 + point] > 0
    asks, charged = False, is_charged(forest)
    while True:
        best, partner = least, -1
        for other in range(first, last):
            if forest.tree[other] != tree_here and not has_room:
                continue
            row, col = min(point, other), max(point, other)
            pull = wish(forest, row, col)
            joins = forest.tree[other] != tree_here
            if (pull <= tol and (joins or not charged or pull == -np.inf)) or is_tabu(log, row, col):
                continue
            if joins:
                gain = _joined(forest, row, col, pull, True)
                gain -= fee(forest, row, col)
                if gain > best and _may_be(forest.room, row, col - m, asks):
                    best, partner = gain, other
            else:
                moved, blocking = way_round(forest, row, col, 0.0)
                gain = moved * pull
                if charged:
                    i, j = forest.ends[0, blocking], forest.ends[1, blocking]
                    if i == row and j == col:
                        continue
                    gain += fee(forest, i, j) - fee(forest, row, col) - moved * tol
                if gain > best and _frees(forest, blocking, row, col, asks):
                    best, partner = gain, other
        effort[0] += last - first
        if asks or partner < 0 or _is_allowed(forest, min(point, partner), max(point, partner)):
            break
        asks = True
    if partner < 0:
        return False
    row, col = min(point, partner), max(point, partner)
    if charged and forest.tree[row] != forest.tree[col]:  # other links that it leaves without mass make it worth less
        return _exchange(forest, log, whole, -1, -1, row, col, tol, least, effort)
    keep_whole(forest, whole, row)
    keep_whole(forest, whole, col)
    moved = 0.0
    if forest.tree[row] == forest.tree[col]:
        moved, blocking = way_round(forest, row, col, 0.0)
        way_round(forest, row, col, moved)
        _wake(forest, log, forest.ends[0, blocking])
        _wake(forest, log, forest.ends[1, blocking])
        remove(forest, blocking)
    insert(forest, row, col, moved)
    effort[0] += settle(forest, row)
    _wake(forest, log, row)
    _wake(forest, log, col)
    return True


@small_part
def _may_be(room: Room, i: int, j: int, asks: bool) -> bool:
    """True if there is room for the pair; an oracle is asked only if it ``asks``."""
    return has_capacity(room, i, j) and (not asks or is_free(room, i, j))


@part
def _frees(forest: Forest, link: int, row: int, col: int, asks: bool) -> bool:
    """True if there is room for the pair without the link."""
    m = forest.rows
    set_aside(forest.room, forest.ends[0, link], forest.ends[1, link] - m)
    free = _may_be(forest.room, row, col - m, asks)
    put_back(forest.room)
    return free


@part
def _is_allowed(forest: Forest, row: int, col: int) -> bool:
    """True if a new link is allowed by an oracle, where there is one."""
    if forest.room.oracle[0] == 0:
        return True
    if forest.tree[row] != forest.tree[col]:
        return is_free(forest.room, row, col - forest.rows)
    return _frees(forest, way_round(forest, row, col, 0.0)[1], row, col, True)


@part
def _wake(forest: Forest, log: UndoLog, point: int) -> None:
    """What is around a point is to be looked at again."""
    for k in range(around(forest, log, point, -1, log.counts[REACH])):
        log.awake[log.nearby[k]] = 1
    log.counts[ASLEEP] = 0


@inlined_part
def _best_replacement(forest: Forest, log: UndoLog, link: int, least: float, effort: Floats) -> tuple[int, int]:
    """The pair that is best linked in place of a link; -1 if none seems to help, `_CUT` if the link is best cut alone.

    One of its points is near the link, in the smaller of the two parts, or is the link's own in the larger one.
    """
    m, n = forest.rows, forest.first.size - forest.rows
    cut, place, last, tree = forest.cut, forest.place, forest.last, forest.tree
    i, j = forest.ends[0, link], forest.ends[1, link]
    hanging = i if forest.above[i] == link else j
    tree_here, low, high = tree[i], place[hanging], last[hanging]
    # were the link cut, potentials of rows would rise by this in the part of its row, and fall by that in the other one
    rises = forest.mass[link] / cut[2, link], -forest.mass[link] / cut[3, link]
    if is_sided(forest):
        rises = cut[0, link] - forest.potential[i], forest.potential[j] - cut[1, link]
    small = 0 if cut[2, link] <= cut[3, link] else 1
    found = around(forest, log, forest.ends[small, link], link, log.counts[NEAR])
    log.nearby[found] = forest.ends[1 - small, link]
    set_aside(forest.room, i, j - m)
    asks = False  # one question is enough if the best pair is allowed
    saved = fee(forest, i, j)
    while True:
        best, best_row, best_col = forest.worth[link] + least - saved, -1, -1
        if best < 0.0:
            best, best_row = 0.0, _CUT
        for k in range(found + 1):
            point = log.nearby[k]
            part_of = small if k < found else 1 - small
            spread, hangs = cut[2 + part_of, link], (low <= place[point] <= high)
            from_row = point < m
            base = forest.potential[point] + (rises[part_of] if from_row else -rises[part_of])
            across = -rises[1 - part_of] if from_row else rises[1 - part_of]
            if forest.room.left[1 + point] <= 0:
                continue
            for other in range(m, m + n) if from_row else range(m):
                pull = base + forest.potential[other]
                pull -= (
                    cost_entry(forest.cost, point, other - m) if from_row else cost_entry(forest.cost, other, point - m)
                )
                others_spread = forest.whole[other]
                if tree[other] == tree_here:
                    if (low <= place[other] <= high) == hangs:
                        continue
                    pull += across
                    others_spread = cut[3 - part_of, link]
                if pull <= 0.0:
                    continue
                if is_sided(forest):
                    gain = joined_part(forest, link, part_of, point, other, pull)
                else:
                    gain = joined_worth(pull, spread, others_spread)
                row, col = (point, other) if from_row else (other, point)
                gain -= fee(forest, row, col)
                if gain <= best or (row == i and col == j) or is_tabu(log, row, col):
                    continue
                if _may_be(forest.room, row, col - m, asks):
                    best, best_row, best_col = gain, row, col
        effort[0] += (found + 1) * 0.5 * (m + n)
        if asks or best_row < 0 or is_free(forest.room, best_row, best_col - m):
            break
        asks = True
    put_back(forest.room)
    return best_row, best_col


@part
def _best_crossing(forest: Forest, log: UndoLog, link: int, least: float, effort: Floats) -> int:
    """The link of another tree with which one is best exchanged crosswise; -1 if none seems to help."""
    m, cut = forest.rows, forest.cut
    i, j = forest.ends[0, link], forest.ends[1, link] - m
    tree_here, row_pull, col_pull = forest.tree[i], cut[0, link], cut[1, link]
    row_spread, col_spread, worth = cut[2, link], cut[3, link], forest.worth[link]
    best, partner = least, -1
    for other in range(forest.mass.size):
        if forest.mass[other] <= 0.0:
            continue
        k, l = forest.ends[0, other], forest.ends[1, other] - m
        first = row_pull + cut[1, other] - cost_entry(forest.cost, i, l)
        second = col_pull + cut[0, other] - cost_entry(forest.cost, k, j)
        if first <= 0.0 or second <= 0.0 or forest.tree[k] == tree_here:
            continue
        if is_sided(forest):
            gain = crossed(forest, link, other, first) + crossed(forest, other, link, second)
        else:
            gain = joined_worth(first, row_spread, cut[3, other]) + joined_worth(second, col_spread, cut[2, other])
        gain -= worth + forest.worth[other]
        if is_charged(forest):
            gain += fee(forest, i, m + j) + fee(forest, k, m + l) - fee(forest, i, m + l) - fee(forest, k, m + j)
        if gain > best and not is_tabu(log, i, m + l) and not is_tabu(log, k, m + j):
            best, partner = gain, other
    effort[0] += forest.mass.size
    return partner


@part
def _exchange(
    forest: Forest,
    log: UndoLog,
    whole: UndoLog,
    link: int,
    other: int,
    row: int,
    col: int,
    tol: float,
    least: float,
    effort: Floats,
) -> bool:
    """Cut a link and link a pair, or, with another link, cut both and link them crosswise; back, if that is no better.

    What a new link leaves without mass makes it worth less than it seemed. A link of -1 is none; nor is a row below 0.
    """
    begin(log)
    i, j = row, col
    if link >= 0:
        i, j = forest.ends[0, link], forest.ends[1, link]
        keep(forest, log, i)
        keep_whole(forest, whole, i)
    k, l = row, col
    if row < 0 and other < 0:
        k, l = i, j
        remove(forest, link)
        effort[0] += settle_both(forest, i, j)
    elif other >= 0:
        k, l = forest.ends[0, other], forest.ends[1, other]
        keep(forest, log, k)
        keep_whole(forest, whole, k)
        remove(forest, link)
        remove(forest, other)
        effort[0] += settle_both(forest, i, j) + settle_both(forest, k, l)
        effort[0] += _link(forest, i, l, tol) + _link(forest, k, j, tol)
    else:
        keep(forest, log, row)
        keep(forest, log, col)
        keep_whole(forest, whole, row)
        keep_whole(forest, whole, col)
        if link >= 0:
            remove(forest, link)
            effort[0] += settle_both(forest, i, j)
        gain = _joined(forest, row, col, max(wish(forest, row, col), 0.0), False) - fee(forest, row, col)
        if value_of(forest, log) - gain < log.value[0] - least:  # else links lost with the cut rule it out already
            effort[0] += _link(forest, row, col, tol)
    if value_of(forest, log) < log.value[0] - least:
        for point in (i, j, k, l):
            _wake(forest, log, point)
        return True
    restore(forest, log)
    return False


@small_part
def _link(forest: Forest, row: int, col: int, tol: float) -> int:
    """Link a pair, if it still wants to be."""
    free = is_free(forest.room, row, col - forest.rows)
    if not free or forest.tree[row] == forest.tree[col] or wish(forest, row, col) <= tol:
        return 0
    insert(forest, row, col, 0.0)
    return int(settle(forest, row))
