"""The cheapest star of a column, against all sets of links and the definition of what they cost."""

import itertools

import numpy as np
import pytest

from sparsetransport.certify import stars_pricing as pricing

NONE = np.zeros((0, 6), bool), np.zeros(0)


def column(seed):
    """Random links of one column; every other column has links that take all or nothing at their price."""
    rng = np.random.default_rng(seed)
    begin, bend = rng.random(6) - 2.0 * rng.random(6), np.full(6, 0.1 + 2.0 * rng.random())
    room, price = np.full(6, np.inf), rng.random(6) ** 2 * rng.random()
    if seed % 2:
        bend[3:], room[3:], price[4] = 0.0, rng.random(3), 0.0
    if seed % 3 == 0:
        begin[0] = np.inf
    return (begin, bend, room), price, 2.0 * rng.random() * (seed % 5 > 0), 0.1 + 2.0 * rng.random()


def every_star(links, price, b, weight):
    """The cost of every set of links with its prices, which is what the definition says of its masses."""
    work, mass, found = pricing.new_work(6), np.zeros(6), {}
    begin, bend, room = links
    for chosen in itertools.product([False, True], repeat=6):
        own = np.array(chosen)
        if np.isinf(begin[own]).any():
            continue
        cost = pricing.cost_of_star(work, *links, own, b, weight, mass)
        used = mass[own]
        defined = weight * (used.sum() - b) ** 2 + begin[own] @ used + 0.5 * bend[own] @ used**2
        assert cost == pytest.approx(defined, abs=1e-7)
        assert (mass >= 0.0).all()
        assert (mass <= room).all()
        assert not mass[~own].any()
        found[chosen] = cost + price[own].sum(), used.min(initial=1.0)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_the_cheapest_star_of_a_column(seed):
    """It costs no more than any other set of links, and a search that is cut short bounds it from below."""
    links, price, b, weight = column(seed)
    every = every_star(links, price, b, weight)
    best = min(cost for cost, _ in every.values())
    chosen, out, work = np.zeros(6, bool), np.zeros(6), pricing.new_work(6)
    pricing.cheapest_star(work, *links, price, b, weight, np.inf, 1e9, chosen, *NONE, out)
    assert out[pricing.LOW] == pytest.approx(best, abs=1e-10)
    assert out[pricing.VALUE] == pytest.approx(every[tuple(chosen)][0], abs=1e-10)
    pricing.cheapest_star(work, *links, price, b, weight, np.inf, 2.0, chosen, *NONE, out)
    assert out[pricing.LOW] <= best + 1e-10


@pytest.mark.parametrize("seed", range(60))
def test_all_stars_up_to_a_cost(seed):
    """All of them are listed but those with a link that takes no mass; or it says that there is no room for them."""
    links, price, b, weight = column(seed)
    every = every_star(links, price, b, weight)
    cut = min(cost for cost, _ in every.values()) + 0.2
    sets, values, out, work = np.zeros((64, 6), bool), np.zeros(64), np.zeros(6), pricing.new_work(6)
    pricing.cheapest_star(work, *links, price, b, weight, cut, 1e9, np.zeros(6, bool), sets, values, out)
    found = int(out[pricing.FOUND])
    listed = {tuple(each.tolist()): value for each, value in zip(sets[:found], values[:found], strict=True)}
    assert len(listed) == found
    assert all(value == pytest.approx(every[each][0], abs=1e-10) for each, value in listed.items())
    assert all(value <= cut + 1e-10 for value in listed.values())
    assert {each for each, (cost, least) in every.items() if cost < cut - 1e-10 and least > 1e-9} <= set(listed)
    room = max(found - 1, 0)
    pricing.cheapest_star(work, *links, price, b, weight, cut, 1e9, np.zeros(6, bool), sets[:room], values[:room], out)
    assert out[pricing.FOUND] == -1.0
