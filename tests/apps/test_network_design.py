"""Networks for uncertain demand: what they earn, what they may not do, and how they compare with the classic ones."""

import itertools

import numpy as np
import pytest

from sparsetransport import PerRow, Uniform
from sparsetransport.apps.network_design import choose, dedicated, design, draw, evaluate, exchange, long_chain, task


def market(m=12, n=12, z=8, seed=0):
    """Profits around one, capacities of one, and demands around m/n."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(5.0, 8.0, n)
    demand = np.maximum(rng.normal(mean, 1.5, (3 * z, n)), 0.0)
    demand *= m / demand.sum(axis=1, keepdims=True)
    return rng.uniform(0.8, 1.2, (m, n)), np.ones(m), demand[:z], demand[z:]


def test_evaluate_is_the_linear_program():
    """Against the program written out for all pairs, with the missing ones fixed at zero."""
    from scipy.optimize import linprog

    profit, supply, demand, _ = market(5, 4)
    links = np.array([(0, 0), (0, 1), (1, 1), (2, 2), (3, 3), (4, 0), (4, 3)])
    found = evaluate(links, profit, supply, demand)
    rows = np.repeat(np.eye(5), 4, axis=1)
    cols = np.tile(np.eye(4), 5)
    allowed = np.zeros((5, 4), bool)
    allowed[links[:, 0], links[:, 1]] = True
    bounds = [(0.0, None if ok else 0.0) for ok in allowed.ravel()]
    for s, one in enumerate(demand):
        answer = linprog(-profit.ravel(), np.vstack([rows, cols]), np.concatenate([supply, one]), bounds=bounds)
        assert found.profits[s] == pytest.approx(-answer.fun)
        shipped = np.bincount(links[:, 1], found.flows[s], 4)
        np.testing.assert_allclose(shipped + found.unmet[s], one, atol=1e-9)
        used = np.bincount(links[:, 0], found.flows[s], 5)
        np.testing.assert_allclose(used + found.idle[s], supply, atol=1e-9)
        assert found.utilisation[s] == pytest.approx(used.sum() / supply.sum())
    assert found.expected == pytest.approx(found.profits.mean())
    assert found.expected_unmet == pytest.approx(found.unmet.sum(axis=1).mean())
    assert found.expected_idle == pytest.approx(found.idle.sum(axis=1).mean())


@pytest.mark.parametrize("mass", [1e-12, 1e-7, 1.0, 1e9])
@pytest.mark.parametrize("price", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(mass, price):
    """Profits and flows are those of the same market in other units, whatever tolerances the solver has."""
    profit, supply, demand, _ = market(5, 4)
    profit[4] = -1e6
    links = np.array([(0, 0), (0, 1), (1, 1), (2, 2), (3, 3), (4, 0), (4, 3)])
    plain, other = (
        evaluate(links, profit, supply, demand),
        evaluate(links, price * profit, mass * supply, mass * demand),
    )
    np.testing.assert_allclose(other.profits, price * mass * plain.profits, rtol=1e-9)
    np.testing.assert_allclose(other.flows, mass * plain.flows, rtol=1e-9, atol=1e-12 * mass)


def test_products_may_have_units_far_apart():
    """Tons and milligrams of a plant: by profit, as far as the capacity goes; and a case with the answer by hand."""
    found = evaluate(None, [[8.0, 6e-8], [5.0, 3e-8]], [1e8, 1e8], [[2.0, 1e8]]).profits
    np.testing.assert_allclose(found, 22.0, rtol=1e-8)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        units = 10.0 ** rng.uniform(0.0, 10.0, 6)
        rates, demand = rng.uniform(1.0, 9.0, 6) * units, rng.uniform(0.5, 1.5, 6) / units
        supply, best, left = 0.5 * demand.sum(), 0.0, 0.5 * demand.sum()
        for j in np.argsort(-rates):
            best += rates[j] * min(demand[j], left)
            left -= min(demand[j], left)
        assert evaluate(None, [rates], [supply], [demand]).expected == pytest.approx(best, rel=1e-6)


def test_supply_without_end_does_not_blur_demand():
    assert evaluate([(0, 0)], [[1.0]], [1e300], [[0.5e-7]]).profits == pytest.approx(0.5e-7, rel=1e-12)


def test_no_links_earn_nothing():
    profit, supply, demand, _ = market(3, 3)
    found = evaluate([], profit, supply, demand)
    assert found.expected == 0.0
    np.testing.assert_allclose(found.unmet, demand)


def test_a_design_beats_the_classic_networks_with_as_many_links():
    """On the scenarios it is chosen for, and it comes close to full flexibility on others."""
    profit, supply, demand, test = market()
    for links, classic in ((12, dedicated), (24, long_chain)):
        network = design(profit, supply, demand, links, held_out=test)
        assert len(network.links) <= links
        assert len(set(map(tuple, network.links.tolist()))) == len(network.links)
        theirs = evaluate(classic(profit, supply, demand), profit, supply, demand)
        assert network.expected_profit >= theirs.expected - 1e-9
    assert network.held_out.expected > 0.97 * network.full[1].expected
    rows = {row.name: row for row in network.comparison}
    assert [rows[name].links for name in ("full flexibility", "dedicated", "long chain")] == [144, 12, 24]
    assert rows["full flexibility"].ours is None
    assert rows["long chain"].ours == pytest.approx(network.expected_profit)
    assert rows["full flexibility"].held_out == pytest.approx(network.full[1].expected)
    assert rows["dedicated"].ours <= network.expected_profit


def test_more_links_than_are_of_use_serve_scenarios_that_vary_more():
    """The scenarios at hand need few links; others gain from the rest."""
    profit, supply, demand, test = market(z=2)
    few, many = (design(profit, supply, demand, links, held_out=test) for links in (24, 60))
    assert len(many.links) > len(few.links)
    assert many.held_out.expected > few.held_out.expected


def test_scenarios_that_vary_more_choose_better_links(monkeypatch):
    """Than the same ones would, for demand that nobody has seen yet."""
    better = []
    for seed in range(4):
        profit, supply, demand, test = market(z=2, seed=seed)
        wide = design(profit, supply, demand, 60, held_out=test).held_out.expected
        with monkeypatch.context() as patch:
            patch.setattr(choose, "STRETCH", 1.0)
            better.append(wide / design(profit, supply, demand, 60, held_out=test).held_out.expected)
    assert min(better) >= 1.0 - 1e-9
    assert np.mean(better) > 1.001


def test_limits_of_plants_and_products_are_kept():
    profit, supply, demand, _ = market()
    network = design(profit, supply, demand, 24, max_per_plant=2, max_per_product=[3] * 12)
    assert np.bincount(network.links[:, 0]).max() <= 2
    assert np.bincount(network.links[:, 1]).max() <= 3
    assert len(network.links) >= 20


def test_forbidden_links_are_not_built():
    profit, supply, demand, _ = market()
    free = design(profit, supply, demand, 20)
    out = free.links[:6]
    mask = np.zeros(profit.shape, bool)
    mask[out[:, 0], out[:, 1]] = True
    for forbidden in (out, mask):
        links = set(map(tuple, design(profit, supply, demand, 20, forbidden=forbidden).links.tolist()))
        assert not links & set(map(tuple, out.tolist()))
    assert len(design(profit, supply, demand, 20, forbidden=mask).full[0].links) == 144 - 6


def test_links_that_lose_money_are_not_built():
    profit, supply, demand, _ = market()
    profit[:, 3] = -0.1
    network = design(profit, supply, demand, 30)
    assert 3 not in network.links[:, 1]
    np.testing.assert_allclose(network.training.unmet[:, 3], demand[:, 3])


@pytest.mark.parametrize("count", [True, False])
def test_fixed_links_stay_counted_or_free(count):
    profit, supply, demand, _ = market()
    fixed = [(0, 5), (7, 7), (11, 2)]
    network = design(profit, supply, demand, 14, fixed, count_fixed=count)
    assert network.fixed == 3
    assert list(map(tuple, network.links[:3].tolist())) == fixed
    assert len(network.links) == (14 if count else 17)


def test_capacity_and_demand_need_not_agree():
    """Half the capacity idle, or half the demand unmet: the design says so, and earns what it can."""
    profit, supply, demand, _ = market()
    for scale in (0.5, 2.0):
        network = design(profit, supply, scale * demand, 24)
        assert network.expected_profit > 0.93 * network.full[0].expected
        served = float(network.training.weights @ (network.training.flows.sum(axis=1)))
        assert network.training.expected_unmet == pytest.approx(scale * 12.0 - served)
        assert network.training.expected_idle == pytest.approx(12.0 - served)


def test_masses_scaled_to_the_smaller_side_help(monkeypatch):
    """Where capacity and demand are far apart: on average, over markets, before links are exchanged."""
    better = []
    for seed, scale in itertools.product(range(6), (0.3, 3.0)):
        rng = np.random.default_rng(seed)
        profit, supply = rng.uniform(0.5, 1.5, (6, 6)), rng.uniform(0.2, 2.0, 6)
        demand = scale * rng.uniform(0.0, 2.0, (5, 6))
        both = design(profit, supply, demand, 12, polish=False).expected_profit
        with monkeypatch.context() as patch:
            patch.setattr(task.Task, "lopsided", False)
            better.append(both / design(profit, supply, demand, 12, polish=False).expected_profit)
    assert np.mean(better) > 1.002


def test_plants_and_products_need_not_be_as_many():
    profit, supply, demand, _ = market(6, 9)
    assert len(dedicated(profit, supply, demand)) == 9
    assert set(dedicated(profit, supply, demand)[:, 1].tolist()) == set(range(9))
    assert set(dedicated(profit.T, np.ones(9), np.ones((2, 6)))[:, 0].tolist()) == set(range(9))
    network = design(profit, supply, demand, 14)
    assert network.expected_profit > 0.95 * network.full[0].expected


def test_weights_of_scenarios():
    """A scenario that counts for all decides alone."""
    profit, supply, demand, _ = market(z=3)
    heavy = design(profit, supply, demand, 13, weights=[1.0, 1e-9, 1e-9])
    equal = design(profit, supply, demand, 13)
    assert heavy.training.profits[0] >= equal.training.profits[0] - 1e-9
    assert heavy.expected_profit == pytest.approx(heavy.training.profits[0], rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_dedicated_networks_are_the_best_matchings_of_their_market(seed):
    """Scenario weights count, and forbidden links are not matched to begin with: against all permutations."""
    rng = np.random.default_rng(seed)
    profit, supply, demand = rng.random((4, 4)), rng.random(4), rng.random((3, 4))
    weights, allowed = np.array([0.01, 0.09, 0.9]), rng.random((4, 4)) < 0.6
    worth = np.where(allowed, profit * np.minimum(supply[:, None], weights @ demand), 0.0)
    best = max(sum(worth[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(4)))
    links = dedicated(profit, supply, demand, weights=weights, allowed=allowed)
    assert allowed[tuple(links.T)].all()
    assert worth[tuple(links.T)].sum() == pytest.approx(best)
    chain = long_chain(profit, supply, demand, weights=weights, allowed=allowed)
    assert allowed[tuple(chain.T)].all()
    assert set(map(tuple, links.tolist())) <= set(map(tuple, chain.tolist()))


def test_the_comparison_is_with_networks_that_may_be_built():
    best = np.array([[3.0, 1.0], [1.0, 3.0]])
    network = design(best, np.ones(2), np.ones((2, 2)), 2, forbidden=[(0, 0), (1, 1)])
    rows = {row.name: row for row in network.comparison}
    assert rows["dedicated"].expected == pytest.approx(2.0)


def test_who_stops_a_design_stops_all_of_it():
    profit, supply, demand, _ = market()
    calls = []
    network = design(profit, supply, demand, 20, callback=lambda step: calls.append(step) or len(calls) == 3)
    assert len(calls) == 3
    assert 1 <= len(network.links) < 20


def test_the_curve_rises_to_the_design():
    profit, supply, demand, test = market()
    network = design(profit, supply, demand, 20, held_out=test)
    counts, train, held = network.curve(6)
    assert counts[0] == 1
    assert counts[-1] == len(network.links)
    assert (np.diff(train) >= -1e-9).all()
    assert train[-1] == pytest.approx(network.expected_profit)
    assert held[-1] == pytest.approx(network.held_out.expected)


@pytest.mark.parametrize("points", [0, -1, 2.5])
def test_a_curve_has_points(points):
    network = design([[1.0]], [1.0], [[1.0]], 1)
    with pytest.raises((ValueError, TypeError), match=f"points must be a positive int, got {points}"):
        network.curve(points)


def test_the_picture_has_a_line_for_every_link():
    pytest.importorskip("matplotlib")
    profit, supply, demand, test = market(6, 5)
    network = design(profit, supply, demand, 9, [(0, 0)], held_out=test)
    figure = draw(network, plants=list("abcdef"), points=3)
    left, right = figure.axes
    assert len(left.lines) == len(network.links)
    widths = [line.get_linewidth() for line in left.lines]
    assert int(np.argmax(widths)) == int(network.training.expected_flows.argmax())
    assert "there already" in left.get_title(loc="left")
    heights = [line.get_ydata()[0] for line in right.lines]
    assert any(height == pytest.approx(network.full[0].expected) for height in heights)


def test_pictures_take_names_as_they_are():
    """Dollars are no mathematics, and numbers of names are checked."""
    pytest.importorskip("matplotlib")
    profit, supply, demand, _ = market(3, 2, z=2)
    network = design(profit, supply, demand, 3)
    figure = draw(network, plants=["A$#B$", "$10 {$", "$5-$10 card"], points=2)
    figure.draw_without_rendering()
    texts = {text.get_text(): text for text in figure.axes[0].texts}
    assert not any(texts[name].get_parse_math() for name in ("A$#B$", "$10 {$", "$5-$10 card"))
    with pytest.raises(ValueError, match="plants must have one name for each of the 3 plants, got 1"):
        draw(network, plants=["a"])
    with pytest.raises(ValueError, match="products must have one name for each of the 2 products, got 3"):
        draw(network, products=["a", "b", "c"])


def test_titles_of_pictures_of_little():
    pytest.importorskip("matplotlib")
    left, right = draw(design([[1.0]], [1.0], [[1.0]], 1)).axes
    assert left.get_title(loc="left").startswith("1 link from 1 plant to 1 product\n")
    assert right.get_title(loc="left") == "100.0 % of the profit of 1 link"
    left, right = draw(design([[-1.0, -2.0]], [1.0], [[1.0, 1.0]], 1)).axes
    assert left.get_title(loc="left").startswith("0 links from 1 plant to 2 products\n")
    assert right.get_title(loc="left") == "no link that may be built earns anything"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"supply": [1.0] * 3}, "supply must have one number for each of the 4 plants of profit, got 3"),
        ({"supply": [1.0, 1.0, -2.0, 1.0]}, "supply must not be negative, got -2.0 at 2"),
        ({"demand_scenarios": np.zeros((0, 4))}, "at least one scenario, got none"),
        ({"demand_scenarios": [[1.0, 1.0, np.nan, 1.0]]}, r"demand_scenarios must be finite, got nan at \(0, 2\)"),
        ({"demand_scenarios": [[1.0, 1.0, -1.0, 1.0]]}, r"demand_scenarios must not be negative, got -1.0 at \(0, 2\)"),
        ({"demand_scenarios": [[1.0, 1.0]]}, "one column for each of the 4 products of profit, got 2"),
        ({"links": 0}, "links must be a positive int, got 0"),
        ({"links": 2, "fixed": [(0, 0), (1, 1), (2, 2)]}, "at least the number of fixed links, 3, got 2"),
        ({"fixed": [(0, 9)]}, r"fixed must hold pairs of one of 4 plants and one of 4 products, got \(0, 9\)"),
        (
            {"fixed": [(0, 0), (0, 1)], "max_per_plant": 1},
            "max_per_plant must allow the fixed links, got 1 at 0",
        ),
        ({"forbidden": np.ones((2, 2), bool)}, r"forbidden must have shape \(4, 4\), got \(2, 2\)"),
        ({"fixed": [(1, 2)], "forbidden": [(0, 0), (1, 2)]}, r"fixed and forbidden must not share.*\(1, 2\) in both"),
        ({"fixed": [(1, 2)], "forbidden": np.eye(4, k=1, dtype=bool)}, r"must not share a link, got \(1, 2\) in both"),
        ({"max_per_plant": [1, -1, 1, 1]}, "max_per_plant must not be negative, got -1 at 1"),
        ({"polish": "no"}, "polish must be True or False, got 'no'"),
        ({"count_fixed": "no"}, "count_fixed must be True or False, got 'no'"),
        ({"n_jobs": 0}, "n_jobs must be a number of workers, -1 for all cores, or None, got 0"),
        ({"max_per_product": [1, 2]}, "max_per_product must be a positive int or a list of 4 ints"),
        ({"held_out": [[1.0, 1.0]]}, "held_out must have one column for each of the 4 products, got 2"),
        ({"held_out": [[1.0, 1.0, -1.0, 1.0]]}, r"held_out must not be negative, got -1.0 at \(0, 2\)"),
        ({"weights": [1.0, 2.0]}, "weights must have one number for each of the 1 scenarios, got 2"),
        ({"weights": [-1.0]}, "weights must be positive, got -1.0 at 0"),
    ],
)
def test_errors_name_the_argument(change, message):
    arguments = {"profit": np.ones((4, 4)), "supply": np.ones(4), "demand_scenarios": np.ones((1, 4)), "links": 5}
    with pytest.raises((ValueError, TypeError), match=message):
        design(**(arguments | change))


def test_a_fixed_link_may_lose_money():
    network = design([[-10.0, 1.0], [1.0, -10.0]], [1.0, 1.0], [[1.0, 1.0]], 3, fixed=[(0, 0)])
    assert network.links[0].tolist() == [0, 0]
    assert network.expected_profit == pytest.approx(2.0)


def test_a_design_prints_in_one_line():
    profit, supply, demand, test = market(5, 5)
    network = design(profit, supply, demand, 7, held_out=test)
    earned, other = f"{network.expected_profit:.4g}", f"{network.held_out.expected:.4g}"
    assert repr(network) == f"Design(7 of 5x5 links, expected profit {earned}, {other} held out)"
    assert repr(network.training) == f"Evaluation(7 links, 8 scenarios, expected profit {earned})"


def written_out(links, profit, supply, demand, weights):
    """The expected profit by one linear program over all scenarios."""
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, csr_array

    rows, cols = np.array(sorted(links)).T
    ends = np.vstack([np.arange(len(supply))[:, None] == rows, np.arange(demand.shape[1])[:, None] == cols])
    limits = np.concatenate([np.concatenate([supply, one]) for one in demand])
    shares = np.asarray(weights) / np.sum(weights)
    costs = np.concatenate([-share * profit[rows, cols] for share in shares])
    return -linprog(costs, block_diag([csr_array(ends, dtype=float)] * len(demand), format="csr"), limits).fun


EXCHANGES = [
    {},
    {"weights": True},
    {"fixed": [(0, 1), (2, 2)]},
    {"fixed": [(1, 1)], "count_fixed": False, "weights": True},
    {"forbidden": [(0, 0), (1, 2), (2, 3), (3, 1)]},
    {"max_per_plant": 2, "max_per_product": [2, 1, 2, 3, 2]},
]


@pytest.mark.parametrize("options", EXCHANGES, ids=lambda options: "+".join(options) or "plain")
@pytest.mark.parametrize("seed", [0, 1])
def test_no_exchange_of_one_link_earns_more(options, seed):
    rng = np.random.default_rng(seed)
    profit, supply = rng.uniform(1.0, 9.0, (4, 5)), rng.uniform(50.0, 150.0, 4)
    demand, weights = rng.uniform(10.0, 120.0, (4, 5)), np.ones(4)
    if "weights" in options:
        weights = rng.random(4) + 0.1
        options = options | {"weights": weights}
    network = design(profit, supply, demand, 7, **options)
    ours = list(map(tuple, network.links.tolist()))
    earned = written_out(ours, profit, supply, demand, weights)
    assert network.expected_profit == pytest.approx(earned, rel=1e-9)
    fixed = options.get("fixed", [])
    assert ours[: len(fixed)] == fixed
    assert len(ours) == 7 + len(fixed) * (not options.get("count_fixed", True))
    banned = set(options.get("forbidden", []))
    assert not banned & set(ours)
    rows, cols = options.get("max_per_plant", 5), np.broadcast_to(options.get("max_per_product", 4), 5)
    checked = 0
    for out in ours[len(fixed) :]:
        for pair in np.ndindex(4, 5):
            new = [link for link in ours if link != out] + [pair]
            if pair in ours or pair in banned or np.bincount([i for i, _ in new]).max() > rows:
                continue
            if (np.bincount([j for _, j in new], minlength=5) > cols).any():
                continue
            checked += 1
            assert written_out(new, profit, supply, demand, weights) <= earned * (1.0 + 1e-9), (out, pair)
    assert checked >= 20


def greedy(links, fixed, profit, supply, demand):
    """The links, each time the one of the rest that adds most, by linear programs."""
    order, rest = links[:fixed], links[fixed:]
    while rest:
        best = max(rest, key=lambda link: written_out([*order, link], profit, supply, demand, np.ones(len(demand))))
        order, rest = [*order, best], [link for link in rest if link != best]
    return order


@pytest.mark.parametrize("fixed", [[], [(9, 9), (0, 0)]])
def test_each_link_adds_most_to_those_before_it(fixed):
    rng = np.random.default_rng(0)
    profit, demand, supply = rng.random((10, 10)), rng.random((4, 10)), np.full(10, 0.5)
    network = design(profit, supply, demand, 14, fixed)
    ours = list(map(tuple, network.links.tolist()))
    best = greedy(ours, len(fixed), profit, supply, demand)
    assert ours[: len(fixed)] == fixed
    for count in range(1, 15):
        mine, theirs = (written_out(links[:count], profit, supply, demand, np.ones(4)) for links in (ours, best))
        assert mine == pytest.approx(theirs, rel=1e-9), count
    np.testing.assert_allclose(network.training.profits, network.evaluate(network.links)[0].profits)


@pytest.mark.parametrize("seed", range(10))
def test_no_later_link_would_add_more(seed):
    """In small markets, where links often only pay together; and the curve is what each first so many earn."""
    rng = np.random.default_rng(seed)
    profit, supply, demand = rng.random((6, 6)), rng.random(6), rng.random((4, 6))
    network = design(profit, supply, demand, 12)
    ours = list(map(tuple, network.links.tolist()))
    earned = lambda links: written_out(links, profit, supply, demand, np.ones(4))  # noqa: E731
    for count in range(1, len(ours) + 1):
        reached = earned(ours[:count])
        for later in ours[count:]:
            assert reached >= earned([*ours[: count - 1], later]) - 1e-9 * network.expected_profit, (count, later)
    counts, train, _ = network.curve(len(ours))
    assert counts.tolist() == list(range(1, len(ours) + 1))
    for count, value in zip(counts.tolist(), train, strict=True):
        assert value == pytest.approx(evaluate(network.links[:count], profit, supply, demand).expected, rel=1e-9)
        assert value == pytest.approx(earned(ours[:count]), rel=1e-9)


def test_many_links_are_nearly_in_that_order(monkeypatch):
    """Until there is one for each plant; the rest are in order of what they carry."""
    profit, supply, demand, _ = market(z=4)
    exact = design(profit, supply, demand, 24)
    monkeypatch.setattr(exchange, "ORDERED", 0)
    quick = design(profit, supply, demand, 24)
    assert set(map(tuple, quick.links.tolist())) == set(map(tuple, exact.links.tolist()))
    for count in (3, 6, 9, 12):
        mine, theirs = (evaluate(one.links[:count], profit, supply, demand).expected for one in (quick, exact))
        assert mine == pytest.approx(theirs, rel=0.01)
    carried = quick.training.expected_flows * profit[tuple(quick.links.T)]
    assert (np.diff(carried[12:]) <= 1e-12).all()
    assert (np.diff(carried[:12]) > 1e-12).any()


def test_the_comparison_is_with_designs_of_as_many_links():
    """Which no prefix of a larger design need be."""
    profit, supply, demand, test = market(z=4)
    network = design(profit, supply, demand, 24, held_out=test, max_per_plant=3)
    row = {row.name: row for row in network.comparison}["dedicated"]
    alone = design(profit, supply, demand, 12, held_out=test, max_per_plant=3)
    assert row.links == 12
    assert row.ours == pytest.approx(alone.expected_profit, rel=1e-9)
    assert row.ours_held_out == pytest.approx(alone.held_out.expected, rel=1e-9)
    assert row.ours >= row.expected * (1.0 - 1e-9)
    fixed = design(profit, supply, demand, 1, fixed=np.argwhere(np.eye(12, k=1) + np.eye(12, k=2)), count_fixed=False)
    assert {row.name: row for row in fixed.comparison}["dedicated"].ours is None


def test_small_designs_are_nearly_the_best_of_all():
    """Against all networks with as many links."""
    from itertools import combinations

    shares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        profit, supply = rng.uniform(1.0, 9.0, (3, 3)), rng.uniform(50.0, 150.0, 3)
        demand, weights = rng.uniform(10.0, 120.0, (3, 3)), rng.random(3) + 0.1
        network = design(profit, supply, demand, 4, weights=weights)
        every = combinations(np.ndindex(3, 3), 4)
        best = max(written_out(links, profit, supply, demand, weights) for links in every)
        shares.append(network.expected_profit / best)
    assert max(shares) <= 1.0 + 1e-9
    assert sum(share > 0.99 for share in shares) >= 5
    assert min(shares) > 0.95


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_exchanges_do_not_depend_on_units(scale):
    profit, supply, demand, _ = market(6, 7, z=4)
    plain = design(profit, supply, demand, 11)
    other = design(profit / scale, scale * supply, scale * demand, 11)
    assert other.expected_profit == pytest.approx(plain.expected_profit, rel=1e-9)


@pytest.mark.parametrize("few", [True, False])
def test_rerouted_flows_are_those_of_the_linear_program(monkeypatch, few):
    """The search's own flows after exchanges and additions, begun with flows of HiGHS or, ``few``, with none."""
    rng = np.random.default_rng(3)
    profit, supply = rng.uniform(0.5, 1.5, (8, 9)), rng.uniform(0.0, 2.0, 8).round(1)
    demand = rng.uniform(0.0, 2.0, (5, 9)).round(1)
    supply[0] = demand[2, 3] = 0.0
    links = np.array([(i, i) for i in range(8)] + [(0, 8), (1, 8), (4, 3)])
    limits = (Uniform(14) & PerRow(3)).limits((8, 9))
    if few:
        monkeypatch.setattr(exchange, "price", refuses_first(exchange.price))
    earned = evaluate(links, profit, supply, demand)
    search = exchange._Search(earned, exchange.Choice(profit, supply, demand, profit > 0.6, limits, 2))
    assert search.flows @ profit[links[:, 0], links[:, 1]] == pytest.approx(earned.profits)
    found = search.run()
    assert search.left > 0
    assert len(found) == 14
    assert found[:2].tolist() == links[:2].tolist()
    assert np.bincount(found[:, 0]).max() <= 3
    truth = evaluate(found, profit, supply, demand)
    assert truth.expected > earned.expected
    np.testing.assert_allclose(search.flows @ profit[found[:, 0], found[:, 1]], truth.profits, rtol=1e-9)
    for mass, axis, most in ((search.used, 0, supply), (search.served, 1, demand)):
        sums = np.array([np.bincount(found[:, axis], flow, mass.shape[1]) for flow in search.flows])
        np.testing.assert_allclose(sums, mass, atol=1e-9)
        assert (sums <= most + 1e-9).all()


def refuses_first(price):
    """Prices that say of every scenario's first flow that it is not the best."""
    seen = set()

    def refusing(arcs, state, market, s):
        best, work = price(arcs, state, market, s)
        first = s not in seen
        seen.add(s)
        return best and not first, work

    return refusing


def test_flows_that_are_not_the_best_are_built_anew():
    """HiGHS leaves what its tolerances let it where profits are far apart, and what is left here is none of that."""
    rebuilt = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        profit, supply, demand = 10.0 ** rng.uniform(-9.0, 0.0, (6, 6)), rng.random(6), rng.random((4, 6))
        earned = evaluate(None, profit, supply, demand)
        choice = exchange.Choice(profit, supply, demand, profit > 0.0, Uniform(36).limits((6, 6)), 0)
        search = exchange._Search(earned, choice)
        for s in range(4):
            assert exchange.price(search.arcs, search._state, search.market, s)[0]
        rates = profit[tuple(earned.links.T)]
        assert (search.flows @ rates >= earned.profits * (1.0 - 1e-12)).all()
        rebuilt += int((search.flows @ rates > earned.profits * (1.0 + 1e-12)).sum())
    assert rebuilt > 0


def test_without_work_left_nothing_is_exchanged(monkeypatch):
    profit, supply, demand, _ = market(6, 6, z=4)
    earned = evaluate([(i, j) for i in range(2) for j in range(3)], profit, supply, demand)
    limits = Uniform(6).limits((6, 6))
    choice = exchange.Choice(profit, supply, demand, np.ones((6, 6), bool), limits, 0)
    assert evaluate(exchange.exchange_links(earned, choice), profit, supply, demand).expected > earned.expected
    monkeypatch.setattr(exchange, "PATIENT", 1)
    assert exchange.exchange_links(earned, choice).tolist() == earned.links.tolist()


def test_classic_networks_beyond_the_limits_say_so():
    """They need not keep them, and a design that does may earn less."""
    rng = np.random.default_rng(0)
    args = rng.uniform(1.0, 2.0, (3, 9)), np.full(3, 3.0), rng.uniform(0.5, 1.5, (4, 9))
    names = [row.name for row in design(*args, 6, max_per_plant=2).comparison]
    assert names == ["full flexibility", "dedicated, beyond the limits", "long chain, beyond the limits"]
    assert "dedicated" in [row.name for row in design(*args, 12).comparison]


def test_with_more_products_than_plants_each_has_the_plant_of_its_largest_flow():
    """The plant that pays best for everything has room for one of three products only."""
    profit, supply, demand = np.array([[3.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), np.array([1.0, 2.0]), np.ones((2, 3))
    links = dedicated(profit, supply, demand)
    assert np.bincount(links[:, 0]).tolist() == [1, 2]
    assert sorted(links[:, 1].tolist()) == [0, 1, 2]


def test_links_that_cost_more_than_they_earn_are_not_built():
    """The net profit is at least that of every design with a fixed number of links, and no link is worth dropping."""
    rng = np.random.default_rng(0)
    profit, demand = rng.uniform(0.5, 1.5, (5, 5)), rng.uniform(0.5, 1.5, (6, 5))
    cost = rng.uniform(0.05, 0.3, (5, 5))
    supply = np.full(5, 1.3)
    network = design(profit, supply, demand, link_cost=cost)
    assert network.net_profit == pytest.approx(network.expected_profit - cost[tuple(network.links.T)].sum())
    for count in (4, 6, 8):
        other = design(profit, supply, demand, links=count)
        assert network.net_profit >= other.expected_profit - cost[tuple(other.links.T)].sum()
    for k in range(len(network.links)):
        rest = np.delete(network.links, k, axis=0)
        loss = network.expected_profit - network.evaluate(rest)[0].expected
        assert loss >= cost[tuple(network.links[k])] - 1e-9
    fixed = [(0, 4), (1, 3)]
    kept = design(profit, supply, demand, link_cost=9.0, fixed=fixed)
    assert kept.links.tolist() == [list(pair) for pair in fixed]
    assert kept.cost_of_links == 0.0


def test_all_demand_is_served_where_it_can_be():
    """Even where that loses money; else a warning names the products."""
    rng = np.random.default_rng(1)
    profit, demand = rng.uniform(0.5, 1.5, (5, 5)), rng.uniform(0.5, 1.5, (6, 5))
    profit[:, 3] -= 2.0
    supply = np.full(5, 1.6)
    most = design(profit, supply, demand, links=12)
    served = design(profit, supply, demand, links=12, demand="exact")
    assert most.training.unmet[:, 3].min() > 0.0
    assert served.training.unmet.max() < 1e-9
    assert served.expected_profit == pytest.approx(
        float(served.training.weights @ (served.training.flows @ profit[tuple(served.links.T)]))
    )
    assert served.expected_profit < most.expected_profit
    with pytest.warns(UserWarning, match="demand='exact' cannot be met in all scenarios: products"):
        design(profit, supply, demand, links=3, demand="exact")
