"""Tables are matched by their labels at every function that takes arrays, or refused; never read in another order."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import sparsetransport as st
from sparsetransport import _tables
from sparsetransport.apps.network_design import dedicated, design, evaluate

pd = pytest.importorskip("pandas")

ROWS, COLS = list("pqr"), list("wxyz")
BACK, TURNED = ROWS[::-1], ["y", "w", "z", "x"]
RNG = np.random.default_rng(0)
COSTS = pd.DataFrame(RNG.random((3, 4)), index=ROWS, columns=COLS)
A, B = pd.Series([0.2, 0.3, 0.5], ROWS), pd.Series([0.1, 0.2, 0.3, 0.4], COLS)
X, Y = (pd.DataFrame(RNG.normal(size=(len(names), 2)), names, ["u", "v"]) for names in (ROWS, COLS))
GRAMS = tuple(pd.DataFrame(st.RBF(1.0).gram(points.to_numpy()), points.index, points.index) for points in (X, Y))
FORBIDDEN = pd.DataFrame(RNG.random((3, 4)) < 0.3, ROWS, COLS)
PROFIT = 1.0 + COSTS
DEMAND = pd.DataFrame(RNG.random((5, 4)), columns=COLS, index=list("abcde"))


def same(first, second):
    np.testing.assert_array_equal(first.plan, second.plan)


@pytest.fixture
def expected():
    return st.solve(COSTS.to_numpy(), A.to_numpy(), B.to_numpy(), budget=4)


class TestSolve:
    def test_masses(self, expected):
        same(st.solve(COSTS, A[BACK], B[TURNED], budget=4), expected)

    def test_masses_in_a_frame_of_one_column(self, expected):
        same(st.solve(COSTS, A[BACK].to_frame(), B[TURNED].to_frame(), budget=4), expected)

    def test_masses_whose_costs_have_no_labels_keep_their_own_order(self, expected):
        same(st.solve(COSTS.to_numpy(), A, B, budget=4), expected)

    def test_gram_matrices(self):
        grams = tuple(gram.to_numpy() for gram in GRAMS)
        turned = GRAMS[0].loc[BACK, ["q", "r", "p"]], GRAMS[1].loc[TURNED]
        same(st.solve(COSTS, A, B, kernels=turned, budget=4), st.solve(COSTS, A, B, kernels=grams, budget=4))

    def test_gram_matrices_of_points_and_their_directions(self):
        turned = GRAMS[0].loc[BACK, BACK], GRAMS[1].loc[TURNED, TURNED]
        for metric in ("sqeuclidean", "cosine"):
            same(
                st.solve_sample(X, Y, kernels=turned, budget=4, metric=metric),
                st.solve_sample(X, Y, kernels=GRAMS, budget=4, metric=metric),
            )

    @pytest.mark.parametrize(
        ("masses", "message"),
        [
            (A.rename({"p": "s"}), "a must have the same labels as the rows, got none for 'p'"),
            (A.rename(str.upper), "a must have the same labels as the rows, got none for 'p'"),
            (A.rename({"q": "p"}), "a must have different labels to be matched with the rows, got 'p' twice"),
        ],
    )
    def test_labels_that_differ_are_refused(self, masses, message):
        with pytest.raises(ValueError, match=message):
            st.solve(COSTS, masses, B)

    def test_labels_of_costs_that_are_there_twice(self):
        twice = COSTS.rename({"q": "p", "r": "p"})
        with pytest.raises(ValueError, match="a must have the same labels as the rows, which have one twice"):
            st.solve(twice, A.rename({"q": "y", "r": "z"}), B)
        assert st.solve(twice, A.rename({"q": "p", "r": "p"}), B).plan.shape == (3, 4)

    def test_a_count_from_zero_is_no_label(self, expected):
        same(st.solve(COSTS, A.reset_index(drop=True), B.reset_index(drop=True), budget=4), expected)

    def test_a_count_in_another_order_is_one(self, expected):
        plain = COSTS.reset_index(drop=True)
        same(st.solve(plain, A.reset_index(drop=True)[[2, 0, 1]], B, budget=4), expected)
        with pytest.raises(ValueError, match="got none for 0"):
            st.solve(plain, pd.Series(A.to_numpy(), [1, 2, 3]), B)

    def test_a_plan_to_begin_with(self, expected):
        start = pd.DataFrame(expected.plan, ROWS, COLS)
        assert st.solve(COSTS, A, B, budget=4, start=start).value == pytest.approx(expected.value)
        with pytest.raises(ValueError, match="start must have its labels in the order of the columns"):
            st.solve(COSTS, A, B, budget=4, start=start[TURNED])

    def test_replaced_parts_of_a_problem(self, expected):
        problem = st.Problem.from_matrices(COSTS, A, np.ones(4), unbalanced=3.0)
        other = st.Problem.from_matrices(COSTS, A, B, unbalanced=3.0)
        same(st.solve(replace(problem, b=B[TURNED]), budget=4), st.solve(other, budget=4))
        same(st.solve(replace(problem, b=B, cost=COSTS.loc[BACK, TURNED]), budget=4), st.solve(other, budget=4))


class TestBudgets:
    """They do not know the labels of a problem, and refuse any."""

    GROUPS = pd.DataFrame([[0, 0, 1, 1]] * 3, ROWS, COLS)

    @pytest.mark.parametrize(
        ("name", "make"),
        [
            ("PerRow", lambda: st.PerRow(pd.Series([1, 2, 0], BACK))),
            ("PerColumn", lambda: st.PerColumn(pd.Series([1, 2, 0, 1], TURNED))),
            ("labels", lambda: st.Partition(TestBudgets.GROUPS, 1)),
            ("labels", lambda: st.Partition(TestBudgets.GROUPS.reset_index(drop=True), 1)),
            ("capacities", lambda: st.Partition(TestBudgets.GROUPS.to_numpy(), pd.Series([1, 2], [1, 0]))),
            ("rows", lambda: st.Partition.between(pd.Series([0, 0, 1], ROWS), [0, 0, 1, 1], 1)),
            ("cols", lambda: st.Partition.between([0, 0, 1], pd.Series([0, 0, 1, 1], COLS), 1)),
        ],
    )
    def test_labels_are_refused(self, name, make):
        with pytest.raises(ValueError, match=f"{name} must go by position, .* and call .to_numpy"):
            make()

    def test_a_count_from_zero_is_no_label(self):
        groups = self.GROUPS.to_numpy()
        assert st.Partition(pd.DataFrame(groups), pd.Series([1, 2])) == st.Partition(groups, [1, 2])
        assert st.PerRow(pd.Series([1, 2, 0])) == st.PerRow([1, 2, 0])

    def test_polars(self):
        pl = pytest.importorskip("polars")
        groups = self.GROUPS.to_numpy()
        assert st.PerRow(pl.Series([1, 2, 0])) == st.PerRow([1, 2, 0])
        assert st.Partition(pl.DataFrame(groups, ["column_0", "column_1", "column_2", "column_3"]), 1) == st.Partition(
            groups, 1
        )
        with pytest.raises(ValueError, match="labels must go by position"):
            st.Partition(pl.DataFrame(groups, COLS), 1)


class TestPoints:
    def test_coordinates_and_masses(self):
        expected = st.solve_sample(X.to_numpy(), Y.to_numpy(), A.to_numpy(), B.to_numpy(), budget=4)
        same(st.solve_sample(X, Y[["v", "u"]], A[BACK], B[TURNED], budget=4), expected)
        np.testing.assert_array_equal(st.cost_matrix(X, Y[["v", "u"]]), st.cost_matrix(X.to_numpy(), Y.to_numpy()))

    def test_other_coordinates_are_refused(self):
        with pytest.raises(ValueError, match="Y must have the same labels as the columns of X, got none for 'u'"):
            st.solve_sample(X, Y.rename(columns={"u": "t"}))

    def test_new_points(self, tmp_path):
        """By the names of their coordinates, from a file of the result as well."""
        new = pd.DataFrame(RNG.normal(size=(3, 2)), columns=["u", "v"])
        found = st.solve_sample(X, Y, budget=4)
        found.save(tmp_path / "result.npz")
        for result in (found, st.load(tmp_path / "result.npz")):
            for move in (result.transport, result.inverse_transport):
                np.testing.assert_array_equal(move(new[["v", "u"]]), move(new.to_numpy()))
                with pytest.raises(ValueError, match="must have the same labels as the columns of the points"):
                    move(new.rename(columns={"u": "t"}))

    def test_forbidden_pairs(self):
        expected = st.solve_sample(X, Y, forbidden=FORBIDDEN.to_numpy(), budget=4)
        same(st.solve_sample(X, Y, forbidden=FORBIDDEN.loc[BACK, TURNED], budget=4), expected)
        plain = X.to_numpy(), Y.to_numpy(), A, B
        same(
            st.solve_sample(*plain, forbidden=FORBIDDEN.loc[BACK, TURNED], budget=4),
            st.solve_sample(*plain, forbidden=FORBIDDEN.to_numpy(), budget=4),
        )


class TestManyProblems:
    def test_a_batch(self, expected):
        (found,) = st.solve_batch([(COSTS, A[BACK], B[TURNED])], budget=4)
        same(found, st.solve_batch([(COSTS.to_numpy(), A.to_numpy(), B.to_numpy())], budget=4)[0])

    def test_scenarios_have_the_order_of_the_first(self):
        scenarios = [(COSTS, A, B), (2.0 * COSTS, A, B[::-1].set_axis(COLS))]
        turned = [scenarios[0], (scenarios[1][0].loc[BACK, TURNED], A, scenarios[1][2])]
        expected, found = st.solve_shared(scenarios, budget=4), st.solve_shared(turned, budget=4)
        np.testing.assert_array_equal(found.links, expected.links)
        np.testing.assert_array_equal(found.mass, expected.mass)

    def test_scenarios_of_masses_alone_have_labels(self):
        plain = COSTS.to_numpy()
        expected = st.solve_shared([(plain, A, B), (plain, A, B)], budget=4)
        np.testing.assert_array_equal(
            st.solve_shared([(plain, A, B), (plain, A[BACK], B[TURNED])], budget=4).mass, expected.mass
        )

    def test_problems_in_another_order_are_refused(self):
        problems = [st.Problem.from_matrices(costs, A, B) for costs in (COSTS, COSTS[TURNED])]
        with pytest.raises(ValueError, match=r"problems\[1\]: its labels of the columns must be in the order"):
            st.solve_shared(problems, budget=4)


class TestDesign:
    def test_everything_in_another_order(self):
        weights, most = pd.Series(np.arange(1.0, 6.0), DEMAND.index), pd.Series([2, 1, 3], ROWS)
        tables = {"forbidden": FORBIDDEN, "max_per_plant": most, "weights": weights, "held_out": DEMAND + 0.5}
        expected = design(PROFIT, A, DEMAND, 4, **{name: table.to_numpy() for name, table in tables.items()})
        found = design(
            PROFIT,
            A[BACK],
            DEMAND[TURNED],
            4,
            forbidden=FORBIDDEN.loc[BACK, TURNED],
            max_per_plant=most[BACK],
            weights=weights[::-1],
            held_out=tables["held_out"][TURNED],
        )
        np.testing.assert_array_equal(found.links, expected.links)
        assert (found.training.expected, found.held_out.expected) == (
            expected.training.expected,
            expected.held_out.expected,
        )

    def test_evaluation_and_classic_networks(self):
        turned = PROFIT, A[BACK], DEMAND[TURNED]
        plain = PROFIT.to_numpy(), A.to_numpy(), DEMAND.to_numpy()
        assert evaluate(None, *turned).expected == evaluate(None, *plain).expected
        allowed = ~FORBIDDEN
        np.testing.assert_array_equal(
            dedicated(*turned, allowed=allowed.loc[BACK, TURNED]), dedicated(*plain, allowed=allowed.to_numpy())
        )

    @pytest.mark.parametrize(
        ("name", "table"),
        [
            ("supply", A.rename({"p": "s"})),
            ("demand_scenarios", DEMAND.rename(columns={"w": "s"})),
            ("forbidden", FORBIDDEN.rename({"p": "s"})),
            ("held_out", DEMAND.rename(columns={"w": "s"})),
            ("max_per_product", pd.Series([1, 1, 1, 1], ["s", "x", "y", "z"])),
            ("weights", pd.Series(np.ones(5), list("abcdf"))),
        ],
    )
    def test_labels_that_differ_are_refused(self, name, table):
        arguments = {"profit": PROFIT, "supply": A, "demand_scenarios": DEMAND, "links": 4} | {name: table}
        with pytest.raises(ValueError, match=f"{name} must have the same labels as the "):
            design(**arguments)


class TestPolars:
    """It has names of columns only: rows go by position."""

    @pytest.fixture
    def pl(self):
        return pytest.importorskip("polars")

    def test_coordinates(self, pl):
        first, second = pl.from_dict(X.to_dict("list")), pl.from_dict(Y.to_dict("list"))
        expected = st.solve_sample(X.to_numpy(), Y.to_numpy(), budget=4)
        same(st.solve_sample(first, second.select("v", "u"), budget=4), expected)
        with pytest.raises(ValueError, match="Y must have the same labels as the columns of X"):
            st.solve_sample(first, second.rename({"u": "t"}))

    def test_columns_of_costs_and_masses(self, pl, expected):
        costs = pl.from_dict(COSTS.to_dict("list"))
        same(st.solve(costs, A, B[TURNED], budget=4), expected)
        same(st.solve(costs, pl.Series(A.to_list()), pl.Series(B.to_list()), budget=4), expected)

    def test_demand(self, pl):
        expected = design(PROFIT, A, DEMAND, 4, forbidden=FORBIDDEN)
        found = design(
            PROFIT,
            A,
            pl.from_dict(DEMAND.to_dict("list")).select(TURNED),
            4,
            forbidden=pl.from_dict(FORBIDDEN.to_dict("list")).select(TURNED),
        )
        np.testing.assert_array_equal(found.links, expected.links)

    def test_names_that_polars_makes_up_are_none(self, pl):
        assert _tables.labels(pl.DataFrame(np.eye(2), schema=["column_0", "column_1"]), "columns") is None


class TestDtypes:
    """Whatever holds numbers is taken, if a float holds them exactly."""

    def test_nullable_tables(self, expected):
        tables = COSTS.convert_dtypes(), A.convert_dtypes(), B.convert_dtypes()
        same(st.solve(*tables, budget=4), expected)

    def test_tables_of_ints_bools_and_floats(self):
        table = pd.DataFrame({"u": [1, 2, 3], "v": [True, False, True], "w": [0.5, 1.5, 2.5]})
        expected = st.solve(table.to_numpy(np.float64), budget=3)
        same(st.solve(table, budget=3), expected)
        same(st.solve(table.convert_dtypes(), budget=3), expected)

    def test_missing_numbers_name_the_cure(self):
        with pytest.raises(TypeError, match=r"C must hold real numbers, .*<NA> at \(1, 0\): fill missing .*\.fillna"):
            st.solve(pd.DataFrame({"u": pd.array([1, None], "Int64"), "v": pd.array([True, False], "boolean")}))

    def test_texts_name_the_cure(self):
        with pytest.raises(TypeError, match=r"C must hold real numbers, got dtype <U1: call \.astype\(float\) if"):
            st.solve([["1", "2"], ["2", "1"]])

    def test_forbidden_pairs_and_links(self):
        expected = st.solve_sample(X, Y, forbidden=FORBIDDEN, budget=4)
        same(st.solve_sample(X, Y, forbidden=FORBIDDEN.astype("boolean"), budget=4), expected)
        links = pd.DataFrame(expected.links).convert_dtypes()
        assert st.solve_support(COSTS, links=links).links.shape == (4, 2)


CELLS, POINTS = [f"cell {k}" for k in range(7)], np.random.default_rng(1).normal(size=(7, 4))


class Cells:
    """What we use of AnnData, which need not be installed."""

    def __init__(self, X, obs, obsm=None, obsp=None):
        self.X, self.obs_names, self.obs = X, pd.Index(obs), pd.DataFrame(index=obs)
        self.obsm, self.obsp = obsm or {}, obsp or {}

    def to_df(self):
        return pd.DataFrame(self.X, self.obs_names)


def real(X, obs, obsm=None, obsp=None):
    """The same as an AnnData."""
    anndata = pytest.importorskip("anndata")
    return anndata.AnnData(X, pd.DataFrame(index=obs), obsm=obsm, obsp=obsp)


@pytest.mark.parametrize("make", [Cells, real])
class TestAnnData:
    """Keys of ``obsm`` and ``obsp`` in, names kept, a CSR array out."""

    def sides(self, make):
        return (make(POINTS[part], CELLS[part], {"X_pca": POINTS[part, :2]}) for part in (slice(0, 4), slice(4, 7)))

    def test_points(self, make):
        first, second = self.sides(make)
        found = st.solve_sample(first, second, obsm="X_pca", budget=3)
        expected = st.solve_sample(POINTS[:4, :2], POINTS[4:, :2], budget=3)
        np.testing.assert_array_equal(found.plan, expected.plan)
        assert set(found.to_frame()["target"]) <= set(CELLS[4:])
        whole = st.solve_sample(first, second, budget=3)
        np.testing.assert_array_equal(whole.plan, st.solve_sample(POINTS[:4], POINTS[4:], budget=3).plan)
        together = make(POINTS[::-1], CELLS[::-1])
        plan = found.to_obsp(together, "sent")
        assert (together.obsp["sent"] != plan).nnz == 0
        np.testing.assert_array_equal(plan.toarray()[::-1, ::-1][:4, 4:], found.plan)
        assert plan.format == "csr"
        with pytest.raises(ValueError, match=r"all rows of the plan in obs_names, once each, got none for \['cell 0'"):
            found.to_obsp(second)
        np.testing.assert_array_equal(found.transport(first, obsm="X_pca"), found.transport(POINTS[:4, :2]))
        np.testing.assert_array_equal(
            found.inverse_transport(second, obsm="X_pca"), found.inverse_transport(POINTS[4:, :2])
        )
        np.testing.assert_array_equal(whole.transport(first), whole.transport(POINTS[:4]))
        with pytest.raises(ValueError, match="obsm must be one of"):
            st.solve_sample(first, second, obsm="X_umap")
        with pytest.raises(TypeError, match="Y must be an AnnData where obsm is given, got ndarray"):
            st.solve_sample(first, POINTS, obsm="X_pca")

    def test_masses_by_name(self, make):
        first, second = self.sides(make)
        first.obs["weight"], second.obs["weight"] = [1.0, 2.0, 3.0, 4.0], [2.0, 5.0, 3.0]
        expected = st.solve_sample(POINTS[:4], POINTS[4:], [1.0, 2.0, 3.0, 4.0], [2.0, 5.0, 3.0], budget=3)
        for found in (
            st.solve_sample(first, second, "weight", b="weight", budget=3),
            st.solve(st.Problem.from_points(first, second, "weight", "weight"), budget=3),
        ):
            np.testing.assert_array_equal(found.plan, expected.plan)
        between = make(POINTS, CELLS, obsp={"cost": np.ones((7, 7)) - np.eye(7)})
        between.obs["size"] = np.arange(7.0)
        assert st.solve(between, "size", "size", obsp="cost").problem.b.tolist() == list(range(7))
        with pytest.raises(ValueError, match=r"a must hold masses or be one of \['weight'\] in obs, got 'weigt'"):
            st.solve_sample(first, second, "weigt")
        with pytest.raises(TypeError, match="b must hold masses, got 'weight': names are those of columns in obs"):
            st.solve_sample(first, POINTS, "weight", "weight")

    def test_costs(self, make):
        costs = np.random.default_rng(2).random((7, 7))
        near = costs < 0.5
        graph = scipy.sparse.csr_array(np.where(near, costs, 0.0))
        data = make(POINTS, CELLS, obsp={"cost": costs, "near": graph})
        np.testing.assert_array_equal(st.solve(data, obsp="cost", budget=5).plan, st.solve(costs, budget=5).plan)
        found = st.solve(data, obsp="near", budget=5)
        np.testing.assert_array_equal(found.plan, st.solve(np.where(near, costs, np.inf), budget=5).plan)
        assert found.to_obsp(data).shape == (7, 7)
        with pytest.raises(TypeError, match="C must be an AnnData where obsp is given, got ndarray"):
            st.solve(costs, obsp="cost")
