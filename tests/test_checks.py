"""Bad input: a clear error, with the name of the argument and the value, before any work starts."""

import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import sparsetransport as st
from sparsetransport import _checks, strategy
from sparsetransport.engine.shell import Shell

C = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])
NAN, INF = float("nan"), float("inf")
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues 3 and -1
LOPSIDED = np.array([[1.0, 0.25], [0.5, 1.0]])


def with_entry(value):
    changed = C.copy()
    changed[1, 2] = value
    return changed


@pytest.fixture
def no_work(monkeypatch):
    """Any attempt at solving fails the test."""

    def refuse(*_, **__):
        raise AssertionError("work started before the input was checked")

    monkeypatch.setattr(Shell, "__init__", refuse)  # of every compiled solver
    monkeypatch.setattr(strategy, "maximise", refuse)


# (error, what the message must say, the call); every line of the section "Bad input".
ARRAYS = {
    "C with NaN": (ValueError, r"\bC\b.*nan.*\(1, 2\)", lambda: st.solve(with_entry(NAN))),
    "C with -inf": (ValueError, r"\bC\b.*-inf.*\(1, 2\)", lambda: st.solve(with_entry(-INF))),
    "C complex": (TypeError, r"\bC\b.*complex128", lambda: st.solve(C + 0j)),
    "C with text": (
        TypeError,
        r"\bC\b.*object with '3' at \(0, 1\): call \.astype\(float\)",
        lambda: st.solve(np.array([[1.5, "3"]], object)),
    ),
    "C with None": (
        TypeError,
        r"\bC\b.*object with None at \(0, 1\): fill missing numbers with \.fillna",
        lambda: st.solve(np.array([[1.5, None]], object)),
    ),
    "C with decimals": (
        TypeError,
        r"\bC\b.*Decimal\('0\.1'\) at \(0, 1\), which is no float: \.astype\(float\) rounds it",
        lambda: st.solve([[Decimal("0.5"), Decimal("0.1")]]),
    ),
    "C with large ints": (
        TypeError,
        r"\bC\b.*at \(0, 0\), which is no float",
        lambda: st.solve(np.array([[2**70 + 1, 1]], object)),
    ),
    "C of strings": (TypeError, r"\bC\b.*<U", lambda: st.solve([["a", "b"]])),
    "C ragged": (ValueError, r"\bC\b.*rectangular", lambda: st.solve([[1.0, 2.0], [1.0]])),
    "C empty": (ValueError, r"\bC\b.*empty.*\(0, 3\)", lambda: st.solve(np.zeros((0, 3)))),
    "C a vector": (ValueError, r"\bC\b.*2 dimensions.*\(3,\)", lambda: st.solve([1.0, 2.0, 3.0])),
    "C None": (TypeError, r"\bC\b.*object", lambda: st.solve(None)),
    "C masked": (
        ValueError,
        r"\bC\b.*masked.*\(1, 2\).*\.filled\(np\.inf\)",
        lambda: st.solve(np.ma.masked_equal(with_entry(9.0), 9.0)),
    ),
    "a masked": (ValueError, r"\ba\b.*masked.*\(1,\)", lambda: st.solve(C, np.ma.masked_equal([1.0, 9.0], 9.0))),
    "start masked": (
        ValueError,
        r"start.*masked.*\(1, 2\)",
        lambda: st.solve(C, start=np.ma.masked_equal(with_entry(9.0), 9.0)),
    ),
    "C sparse": (
        TypeError,
        r"\bC\b.*dense.*sparse csr_array.*\+inf",
        lambda: st.solve(scipy.sparse.csr_array(C)),
    ),
    "C a Problem, and masses": (
        TypeError,
        r"\ba\b.*Problem.*\[1\.0, 1\.0\]",
        lambda: st.solve(st.Problem.from_matrices(C), [1.0, 1.0]),
    ),
    "a Problem from arrays alone": (TypeError, r"Problem\.from_matrices\(C, a, b\)", lambda: st.Problem(C, None, None)),
    "guarantee of costs": (TypeError, r"problem must be a Problem, got list", lambda: st.guarantee([[1.0]])),
    "a of another length": (ValueError, r"\ba\b.*\b2\b.*\b3\b", lambda: st.solve(C, [1.0, 1.0, 1.0])),
    "b of another length": (ValueError, r"\bb\b.*\b3\b.*\b2\b", lambda: st.solve(C, None, [1.0, 1.0])),
    "a negative": (ValueError, r"\ba\b.*-0\.5.*\b1\b", lambda: st.solve(C, [1.0, -0.5])),
    "b negative": (ValueError, r"\bb\b.*-2\.0.*\b0\b", lambda: st.solve(C, None, [-2.0, 1.0, 1.0])),
    "a with NaN": (ValueError, r"\ba\b.*nan.*1", lambda: st.solve(C, [1.0, NAN])),
    "b with inf": (ValueError, r"\bb\b.*inf.*2", lambda: st.solve(C, None, [1.0, 1.0, INF])),
    "a complex": (TypeError, r"\ba\b.*complex128", lambda: st.solve(C, [1j, 1.0])),
    "a a matrix": (ValueError, r"\ba\b.*1 dimension.*\(1, 2\)", lambda: st.solve(C, [[1.0, 1.0]])),
    "points for costs": (ValueError, r"\ba\b.*\(2, 2\).*solve_sample", lambda: st.solve(np.eye(2), np.eye(2))),
    "a budget for masses": (ValueError, r"\ba\b.*1 dimension.*by name, as budget=", lambda: st.solve_sample(C, C, 50)),
    "masses for costs": (ValueError, r"\bC\b.*\(2,\).*costs come first", lambda: st.solve([1.0, 1.0], [1.0], C)),
    "many costs": (ValueError, r"\bC\b.*\(3, 2, 2\).*solve_batch", lambda: st.solve(np.ones((3, 2, 2)))),
    "X on a line": (ValueError, r"\bX\b.*\(2,\).*reshape\(-1, 1\)", lambda: st.solve_sample([1.0, 2.0], [1.0])),
    "another metric": (
        ValueError,
        r"metric.*'cosine', got 'cityblock': .*to solve",
        lambda: st.solve_sample(np.eye(2), np.eye(2), metric="cityblock"),
    ),
    "metric a list": (ValueError, r"metric.*\['l1'\]", lambda: st.cost_matrix(np.eye(2), np.eye(2), metric=["l1"])),
    "a kernel's class": (TypeError, r"kernels\[0\].*class RBF.*RBF\(\)", lambda: st.solve(C, kernels=st.RBF)),
    "POT's name": (
        TypeError,
        r"reg_m is called unbalanced",
        lambda: st.solve_sample(np.eye(2), np.eye(2), reg_m=1.0),
    ),
    "X with NaN": (ValueError, r"\bX\b.*nan", lambda: st.solve_sample([[NAN]], [[1.0]])),
    "X with inf": (ValueError, r"\bX\b.*inf", lambda: st.solve_sample([[INF]], [[1.0]])),
    "Y empty": (ValueError, r"\bY\b.*empty.*\(0, 2\)", lambda: st.solve_sample([[1.0, 1.0]], np.zeros((0, 2)))),
    "X and Y disagree": (ValueError, r"\bX\b.*\bY\b.*2.*3", lambda: st.solve_sample(np.ones((4, 2)), np.ones((4, 3)))),
    "zero vector, cosine": (
        ValueError,
        r"\bY\b.*zero vector.*\b1\b",
        lambda: st.solve_sample(np.eye(2), [[1.0, 0.0], [0.0, 0.0]], metric="cosine"),
    ),
}
BUDGETS = {
    "0": (ValueError, r"budget.*positive int.*0", lambda: st.solve(C, budget=0)),
    "-3": (ValueError, r"budget.*positive int.*-3", lambda: st.solve(C, budget=-3)),
    "True": (TypeError, r"budget.*positive int.*True", lambda: st.solve(C, budget=True)),
    "2.0": (TypeError, r"budget.*positive int.*2\.0", lambda: st.solve(C, budget=2.0)),
    "NaN": (TypeError, r"budget.*positive int.*nan", lambda: st.solve(C, budget=NAN)),
    "text": (TypeError, r"budget.*positive int.*'many'", lambda: st.solve(C, budget="many")),
    "a list": (TypeError, r"budget.*positive int.*\[1, 2\]", lambda: st.solve(C, budget=[1, 2])),
    "digits": (TypeError, r"budget.*positive int.*Matroid.*&.*None.*'5'", lambda: st.solve(C, budget="5")),
    "a tuple of budgets": (
        TypeError,
        r"budget.*Matroid.*joined by &.*None.*\(PerRow\(1\), PerColumn\(1\)\)",
        lambda: st.solve(C, budget=(st.PerRow(1), st.PerColumn(1))),
    ),
    "a class": (TypeError, r"budget.*PerRow\(2\).*the class PerRow$", lambda: st.solve(C, budget=st.PerRow)),
    "PerColumn 0": (ValueError, r"PerColumn.*positive int.*0", lambda: st.PerColumn(0)),
    "PerRow float": (TypeError, r"PerRow.*positive int.*1\.5", lambda: st.PerRow(1.5)),
    "PerColumn bool": (TypeError, r"PerColumn.*positive int.*False", lambda: st.PerColumn(False)),
    "PerColumn too short": (
        ValueError,
        r"PerColumn.*\b3 columns\b.*\b2\b",
        lambda: st.solve(C, budget=st.PerColumn([1, 1])),
    ),
    "PerRow too long": (ValueError, r"PerRow.*\b2 rows\b.*\b3\b", lambda: st.solve(C, budget=st.PerRow([1, 1, 1]))),
    "PerRow negative": (ValueError, r"PerRow.*-1", lambda: st.solve(C, budget=st.PerRow([1, -1]))),
    "PerRow of floats": (TypeError, r"PerRow.*1\.0", lambda: st.solve(C, budget=st.PerRow([1.0, 1.0]))),
    "PerRow with NaN": (TypeError, r"PerRow.*nan", lambda: st.solve(C, budget=st.PerRow([1, NAN]))),
    "labels of floats": (TypeError, r"labels.*float64", lambda: st.Partition(np.zeros((2, 3)), 1)),
    "labels of another shape": (
        ValueError,
        r"labels.*\(2, 3\).*\(3, 3\)",
        lambda: st.solve(C, budget=st.Partition(np.zeros((3, 3), int), 1)),
    ),
    "capacities too short": (
        ValueError,
        r"capacities.*\b2 groups\b.*\b1\b",
        lambda: st.Partition(np.array([[0, 1, 1], [0, 0, 1]]), [1]),
    ),
    "capacities 0": (ValueError, r"capacities.*0", lambda: st.Partition(np.zeros((2, 3), int), 0)),
    "crossing groups": (
        ValueError,
        r"overlap in part in Laminar\(PerRow\(1\), PerColumn\(1\)\)",
        lambda: st.solve(C, budget=st.Laminar(st.PerRow(1), st.PerColumn(1))),
    ),
    "an intersection with a float": (TypeError, r"Intersection.*2\.5", lambda: st.Intersection(st.PerRow(1), 2.5)),
}
NUMBERS = {
    "unbalanced 0": (ValueError, r"unbalanced.*positive.*0", lambda: st.solve(C, unbalanced=0.0)),
    "unbalanced -1": (ValueError, r"unbalanced.*positive.*-1", lambda: st.solve(C, unbalanced=-1.0)),
    "unbalanced NaN": (ValueError, r"unbalanced.*nan", lambda: st.solve(C, unbalanced=NAN)),
    "unbalanced inf": (ValueError, r"unbalanced.*finite.*Delta.*inf", lambda: st.solve_sample(C, C, unbalanced=INF)),
    "unbalanced -inf": (ValueError, r"unbalanced.*-inf", lambda: st.solve(C, unbalanced=-INF)),
    "unbalanced bool": (TypeError, r"unbalanced.*True", lambda: st.solve(C, unbalanced=True)),
    "unbalanced None": (TypeError, r"unbalanced.*None", lambda: st.solve(C, unbalanced=None)),
    "unbalanced text": (
        ValueError,
        r"unbalanced.*positive number.*'auto'.*'lots'",
        lambda: st.solve(C, unbalanced="lots"),
    ),
    "unbalanced second 0": (ValueError, r"unbalanced.*0\.0", lambda: st.solve(C, unbalanced=(1.0, 0.0))),
    "unbalanced of three": (ValueError, r"unbalanced.*pair.*3", lambda: st.solve(C, unbalanced=(1.0, 1.0, 1.0))),
    "unbalanced an array of bool": (TypeError, r"unbalanced.*True", lambda: st.solve(C, unbalanced=np.array(True))),
    "polish text": (TypeError, r"polish must be True or False, got 'no'", lambda: st.solve(C, polish="no")),
    "effort unknown": (
        ValueError,
        r"effort.*'quick'.*'default'.*'thorough'.*'much'",
        lambda: st.solve(C, effort="much"),
    ),
    "effort a number": (ValueError, r"effort.*3", lambda: st.solve(C, effort=3)),
    "effort and polish": (
        TypeError,
        r"polish must not be given together with effort",
        lambda: st.solve(C, effort="quick", polish=True),
    ),
    "effort of many": (
        ValueError,
        r"effort.*'much'",
        lambda: st.solve_shared([st.Problem.from_matrices(C)], effort="much"),
    ),
    "reclaim a number": (TypeError, r"reclaim must be True or False, got 0", lambda: st.solve(C, reclaim=0)),
    "normalize_cost text": (
        TypeError,
        r"normalize_cost must be True or False, got 'no'",
        lambda: st.solve_sample(np.eye(2), np.eye(2), normalize_cost="no"),
    ),
    "polish of many": (
        TypeError,
        r"polish must be True or False, got 'no'",
        lambda: st.solve_shared([st.Problem.from_matrices(C)], polish="no"),
    ),
    "reg negative": (ValueError, r"reg.*not negative.*-0\.1", lambda: st.solve(C, reg=-0.1)),
    "reg NaN": (ValueError, r"reg.*nan", lambda: st.solve(C, reg=NAN)),
    "reg text": (TypeError, r"reg.*'much'", lambda: st.solve(C, reg="much")),
    "tol 0": (ValueError, r"tol.*positive.*0", lambda: st.solve(C, tol=0.0)),
    "gap_tol negative": (ValueError, r"gap_tol.*positive.*-1", lambda: st.solve(C, gap_tol=-1.0)),
    "max_iter 0": (ValueError, r"max_iter.*positive int.*0", lambda: st.solve(C, inner="apgd", max_iter=0)),
    "eps 1": (ValueError, r"eps.*1", lambda: st.StochasticOMP(eps=1)),
    "eps 0": (ValueError, r"eps.*0", lambda: st.StochasticOMP(eps=0.0)),
    "sigma2 negative": (ValueError, r"sigma2.*positive.*-1", lambda: st.RBF(-1.0)),
    "sigma2 rule": (ValueError, r"sigma2.*'median'.*'mean'.*'mode'", lambda: st.IMQ("mode")),
}
GRAMS = {
    "not square": (
        ValueError,
        r"kernels\[0\].*\(2, 2\).*\(2, 3\)",
        lambda: st.solve(C, kernels=(np.ones((2, 3)), np.eye(3))),
    ),
    "of another size": (
        ValueError,
        r"kernels\[1\].*\(3, 3\).*\(2, 2\)",
        lambda: st.solve(C, kernels=(np.eye(2), np.eye(2))),
    ),
    "not symmetric": (
        ValueError,
        r"kernels\[0\].*symmetric.*0\.25",
        lambda: st.solve(C, kernels=(LOPSIDED, np.eye(3))),
    ),
    "indefinite": (
        ValueError,
        r"kernels\[0\].*smallest eigenvalue of -1",
        lambda: st.solve(C, kernels=(INDEFINITE, np.eye(3))),
    ),
    "with NaN": (ValueError, r"kernels\[1\].*nan", lambda: st.solve(C, kernels=(np.eye(2), np.diag([1.0, NAN, 1.0])))),
    "with inf": (ValueError, r"kernels\[1\].*inf", lambda: st.solve(C, kernels=(np.eye(2), np.diag([1.0, INF, 1.0])))),
    "complex": (TypeError, r"kernels\[0\].*complex", lambda: st.solve(C, kernels=(np.eye(2) + 0j, np.eye(3)))),
    "of three": (ValueError, r"kernels.*3", lambda: st.solve(C, kernels=(np.eye(2), np.eye(3), np.eye(3)))),
    "a number": (TypeError, r"kernels.*5", lambda: st.solve(C, kernels=5)),
    "without points": (ValueError, r"kernels\[0\].*solve_sample", lambda: st.solve(C, kernels=st.RBF(1.0))),
}
CHOICES = {
    "method": (
        ValueError,
        r"method.*'omp'.*'stochastic'.*'residual'.*'greedy'.*'residual-greedy'.*'fast'",
        lambda: st.solve(C, method="fast"),
    ),
    "method no rule": (TypeError, r"method.*'omp'.*7", lambda: st.solve(C, method=7)),
    "inner": (ValueError, r"inner.*'active_set'.*'apgd'.*'simplex'", lambda: st.solve(C, inner="simplex")),
    "metric of points": (
        ValueError,
        r"metric.*'sqeuclidean'.*'euclidean'.*'cosine'.*'manhattan'",
        lambda: st.solve_sample(np.eye(2), np.eye(2), metric="manhattan"),
    ),
    "kernel": (
        ValueError,
        r"kernels\[0\].*'rbf'.*'imq'.*'imq-v2'.*'laplace'.*'delta'.*'gauss'",
        lambda: st.solve_sample(np.eye(2), np.eye(2), kernels="gauss"),
    ),
    "metric": (ValueError, r"metric.*'cosine'.*'l1'", lambda: st.cost_matrix(np.eye(2), np.eye(2), "l1")),
    "guarantee": (ValueError, r"method.*'omp'.*'magic'", lambda: st.guarantee(st.Problem.from_matrices(C), "magic")),
    "method a class": (
        TypeError,
        r"method.*the class.*StochasticOMP\(\)",
        lambda: st.solve(C, method=st.StochasticOMP),
    ),
    "start of negative mass": (
        ValueError,
        r"start.*negative.*-1\.0 at \(1, 2\)",
        lambda: st.solve(C, start=with_entry(-1.0)),
    ),
    "start outside": (ValueError, r"start.*\(2, 3\).*\b9\b", lambda: st.solve(C, start=[(0, 9)])),
    "start negative": (ValueError, r"start.*\(2, 3\).*-1", lambda: st.solve(C, start=[(0, -1), (1, 2)])),
}


TYPOS = {
    "solve_sample": lambda: st.solve_sample(np.eye(2), np.eye(2), bugdet=5),
    "solve": lambda: st.solve(st.Problem.from_matrices(C), bugdet=5),
    "solve_batch": lambda: st.solve_batch([C], bugdet=5),
}


def _table(cases):
    return pytest.mark.parametrize(("error", "message", "call"), cases.values(), ids=cases.keys())


@pytest.mark.usefixtures("no_work")
@_table(ARRAYS)
def test_bad_arrays_are_refused(error, message, call):
    """NaN, -inf, complex, object or empty arrays and shapes that disagree: the error names argument and value."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("no_work")
@_table(BUDGETS)
def test_bad_budgets_are_refused(error, message, call):
    """Budgets that are 0, negative, bool, float or NaN, and capacities of the wrong length, are errors that say so."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("no_work")
@_table(NUMBERS)
def test_bad_numbers_are_refused(error, message, call):
    """λ₁ must be positive, λ₂ not negative, and neither NaN; the same care for every other number."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("no_work")
@_table(GRAMS)
def test_bad_gram_matrices_are_refused(error, message, call):
    """A Gram matrix is square, of the right size, symmetric and positive semi-definite; else the error says how not."""
    with pytest.raises(error, match=message):
        call()


def _single_precision_gram(count=300):
    """An RBF by the usual formula in float32: neither symmetric nor positive semi-definite to the last bit."""
    x = np.random.default_rng(0).normal(size=(count, 2)).astype(np.float32)
    gram = np.exp(-((x[:, None] - x) ** 2).sum(-1) / 2)
    return gram * (1.0 + np.triu(np.full_like(gram, 1.2e-7)))


def test_rounding_in_single_precision_is_no_error_of_the_user():
    """A float32 Gram matrix may be off by float32 rounding; the same numbers in float64 are refused as they were."""
    gram = _single_precision_gram()
    assert gram.dtype == np.float32
    assert 0.0 < np.abs(gram - gram.T).max() < 1e-6
    assert np.linalg.eigvalsh(gram.astype(float))[0] < -1e-7
    costs = np.random.default_rng(1).random(gram.shape)
    result = st.solve(costs, kernels=gram, budget=30, reg=0.1)
    assert result.certify().lower_bound <= result.value
    made = st.Problem.from_matrices(costs, kernels=gram).gram_a.matrix
    np.testing.assert_array_equal(made, made.T)
    np.testing.assert_allclose(made, gram, atol=1e-5)
    assert np.linalg.eigvalsh(made)[0] > -1e-8
    for bad, words in ((gram, "symmetric.*float64"), (0.5 * (gram + gram.T), "semi-definite.*float64.*diagonal")):
        with pytest.raises(ValueError, match=rf"kernels\[0\].*{words}"):
            st.solve(costs, kernels=bad.astype(np.float64))


@pytest.mark.parametrize("gram", [LOPSIDED, INDEFINITE])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_precision_is_no_excuse_for_a_matrix_that_is_none(gram, dtype):
    with pytest.raises(ValueError, match=r"kernels\[0\] must be (symmetric|positive semi-definite)"):
        st.solve(C, kernels=(gram.astype(dtype), np.eye(3)))


@pytest.mark.usefixtures("no_work")
@_table(CHOICES)
def test_unknown_choices_list_the_known_ones(error, message, call):
    """An unknown method, solver, cost or kernel is answered with the known ones, a bad start with the shape."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("call", TYPOS.values(), ids=TYPOS.keys())
def test_an_option_that_does_not_exist_is_named(call):
    """A typo in an option is answered in the words of the caller, whatever function it was given to."""
    with pytest.raises(TypeError, match=r"^unknown option bugdet: help\(sparsetransport.solve\) lists the options$"):
        call()


def test_a_masked_array_without_masked_entries_is_an_array():
    """Only a mask that hides something is refused; the cure in the message is one."""
    masked = np.ma.masked_equal(with_entry(9.0), 9.0)
    assert st.solve(np.ma.masked_array(C), budget=2).value == st.solve(C, budget=2).value
    assert (1, 2) not in set(zip(*np.nonzero(st.solve(masked.filled(np.inf)).plan), strict=True))


def test_a_sparse_tensor_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"\bC\b.*dense.*sparse Tensor"):
        st.solve(torch.tensor(C).to_sparse())


def test_an_error_about_infinities_comes_without_numpy_warnings():
    """A matrix with +inf and -inf gets our error and nothing else on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"C must be finite or \+inf, got -inf at \(0, 1\)"):
            st.solve([[np.inf, -np.inf]])


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (7, r"budget = 7.*clamped to 6"),
        (st.PerColumn(3), r"PerColumn = 3.*clamped to 2"),
        (st.PerRow([4, 1]), r"PerRow = 4.*clamped to 3"),
    ],
)
def test_a_budget_larger_than_the_plan_is_clamped_with_a_warning(budget, words):
    """More capacity than there are pairs means no limit, says a warning, and gives the plan without one."""
    with pytest.warns(st.SparseTransportWarning, match=words):
        clamped = st.solve(C, budget=budget, unbalanced=10.0)
    free = st.PerRow([3, 1]) if isinstance(budget, st.PerRow) else None
    assert clamped.value == st.solve(C, budget=free, unbalanced=10.0).value


@pytest.mark.parametrize("method", ["omp", "greedy"])
def test_the_clamp_is_warned_about_once(method):
    """One mistake, one warning."""
    with pytest.warns(st.SparseTransportWarning) as caught:
        st.solve(C, budget=7, method=method)
    assert len(caught) == 1


def test_numbers_of_numpy_are_numbers():
    """np.float32, np.int64 and a plain int are as good as a float; np.int64 as good as an int."""
    with_numpy = st.solve(C, unbalanced=np.float32(2.0), reg=np.int64(1), budget=np.int64(2))
    assert with_numpy.value == st.solve(C, unbalanced=2, reg=1.0, budget=2).value


@pytest.mark.parametrize("module", ["numpy", "torch"])
def test_arrays_without_dimensions_are_numbers(module):
    """What a sum or a median gives back may be passed on as it is."""
    array = pytest.importorskip(module).asarray
    given = st.solve(C, unbalanced=array(2.0), reg=array(0.5), budget=2)
    assert given.log["unbalanced"] == (2.0, 2.0)
    assert given.log["reg"] == 0.5
    assert st.solve(C, unbalanced=array([2.0, 3.0])).log["unbalanced"] == (2.0, 3.0)
    assert st.RBF(array(0.5)) == st.RBF(0.5)


@pytest.mark.parametrize("value", [np.bool_(True), True])
def test_a_numpy_bool_is_no_number(value):
    """A bool is refused as a number and as an int, NumPy's too."""
    with pytest.raises(TypeError, match=re.escape(f"reg must be a number that is not negative, got {value!r}")):
        _checks.number("reg", value, positive=False)
    with pytest.raises(TypeError, match=re.escape(f"k must be a positive int, got {value!r}")):
        _checks.positive_int("k", value)


def test_arrays_become_contiguous_doubles_without_a_needless_copy():
    """A contiguous float64 array is used as it is; everything else is converted; read-only memory is copied."""
    given = np.ones((2, 2))
    assert _checks.real_array("x", given, ndim=2) is given
    turned = _checks.real_array("x", np.asfortranarray(np.arange(4.0).reshape(2, 2)), ndim=2)
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, [[0.0, 1.0], [2.0, 3.0]])
    fixed = np.ones(3)
    fixed.flags.writeable = False
    assert _checks.real_array("x", fixed, ndim=1).flags.writeable


def test_masses_are_uniform_by_default():
    """No masses means one in all, in equal shares."""
    np.testing.assert_allclose(_checks.masses("a", None, 4), [0.25] * 4)


@pytest.mark.parametrize("kind", [object, Fraction, bool])
def test_objects_and_bools_that_are_numbers(kind):
    """They are taken where a float holds them exactly."""
    costs = C if kind is object else C.clip(0.0, 1.0)
    given = (
        np.vectorize(kind, otypes=[bool if kind is bool else object])(costs) if kind is not object else C.astype(kind)
    )
    np.testing.assert_array_equal(st.solve(given, budget=2).plan, st.solve(costs, budget=2).plan)
