"""A few links of ours reach more of the points than as many of SSOT or MMD-UOT."""

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport.experiments import Quiet

pytest.importorskip("ot")
pytest.importorskip("matplotlib")

from sparsetransport.experiments import diversity
from sparsetransport.experiments.diversity import CIRCLES, MMD, OURS, POINTS, SSOT, SSOT_TOP


@pytest.fixture(scope="module")
def report():
    return diversity.run(data=None, full=False, seed=0, progress=Quiet())


@pytest.mark.parametrize("setting", [CIRCLES, POINTS], ids=lambda setting: setting.name)
def test_ours_links_one_to_one_and_uses_its_links_best(setting):
    problem, plans = diversity.solve_all(setting, *diversity.draw(setting, 3))
    ours = plans[OURS]
    assert len(ours.mass) == setting.budget
    assert diversity.reached(ours) == (setting.budget, setting.budget)
    assert diversity.unshared(ours) == 1.0
    assert diversity.unshared(plans[SSOT]) < 0.1, "SSOT links many to many"
    objective = {name: problem.value(plan.rows, plan.cols, plan.mass) for name, plan in plans.items()}
    assert objective[OURS] < min(objective[SSOT_TOP], objective[MMD])


def test_over_many_draws_ours_reaches_more(report):
    """Where the two sides are far apart. Where they overlap, it is no better than SSOT's heaviest links."""
    supports, draws = report.tables
    assert len(supports.rows) == 8
    assert len(draws.rows) == 12
    lines = {(row[0], row[1]): dict(zip(draws.columns, row, strict=True)) for row in draws.rows}
    for other in (SSOT_TOP, "MMD-UOT, K heaviest"):
        for figure in ("two circles", "10 + 10 points"):
            line = lines[figure, other]
            assert line["draws where ours reaches more"] > 4 * line["draws where ours reaches fewer"]
        assert lines["two circles", other]["draws where ours reaches fewer"] == 0
    assert lines["two circles", "ours, K = 4"]["draws with one-to-one links (%)"] == 100.0
    assert lines["10 + 10 points", "ours, K = 3"]["draws with one-to-one links (%)"] > 80.0
    assert all(claim.holds for claim in report.claims)


def test_claims_say_what_the_table_says(report):
    lines = {(row[0], row[1]): row[3] + row[4] for row in report.tables[1].rows}
    for figure, ours in (("two circles", "ours, K = 4"), ("10 + 10 points", "ours, K = 3")):
        said = [claim.holds for claim in report.claims if claim.text.startswith(f"{figure}:")]
        others = (SSOT_TOP, "MMD-UOT, K heaviest")
        assert said[1:] == [lines[figure, ours] > lines[figure, other] + 1e-12 for other in others]


def test_the_picture_is_not_empty(report, tmp_path):
    from matplotlib.image import imread

    report.write(tmp_path)
    assert np.ptp(imread(tmp_path / "supports.png")[..., :3]) > 0.9


def test_circles_are_those_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    theirs = datasets.make_circles(35, factor=0.4, shuffle=False)[0]
    np.testing.assert_allclose(diversity._circles(35, 0.4, 0.0, 0), theirs, atol=1e-12)


def test_shared_ends_are_counted():
    problem = st.Problem.from_matrices(np.zeros((3, 3)), unbalanced=1.0)
    plan = st.solve_support(problem, links=[(0, 0), (0, 1), (2, 2)])
    assert len(plan.mass) == 3
    assert diversity.reached(plan) == (2, 3)
    assert diversity.unshared(plan) == pytest.approx(1 / 3)
