"""Options and starts, checked before any work."""

import numpy as np
import pytest
from scipy import sparse

import sparsetransport as st
from sparsetransport import options
from sparsetransport.effort import BARE, DEFAULT, QUICK, THOROUGH
from sparsetransport.inner.solvers import EXACT
from sparsetransport.options import Options, as_start, chosen_effort


@pytest.mark.parametrize(("theirs", "ours"), options._ELSEWHERE.items())
def test_names_from_elsewhere_are_answered_with_ours(theirs, ours):
    """And what they are called here, some function takes: the answer helps."""
    with pytest.raises(TypeError, match=rf"^unknown option {theirs} \({theirs} is called {ours} here\): help"):
        Options.checked(**{theirs: 1})
    parameters = st.solve_sample.__annotations__
    assert ours in parameters
    assert theirs not in parameters


def test_what_there_is_none_of_is_explained():
    """Several at once in one answer, in order of name."""
    with pytest.raises(
        TypeError, match=r"unknown option bugdet, reg_type, seed \(seed is called rng here, reg_type: the quad"
    ):
        Options.checked(seed=1, reg_type="kl", bugdet=3)


def test_an_effort_is_named_in_one_way():
    """By effort or by the older polish; together they are refused even where they mean the same."""
    with pytest.raises(TypeError, match="polish must not be given together with effort"):
        Options.checked(effort="quick", polish="quick")
    for polish, effort in ((False, BARE), ("quick", QUICK), (True, DEFAULT)):
        assert Options.checked(polish=polish).effort is effort
    for name, effort in (("quick", QUICK), ("default", DEFAULT), ("thorough", THOROUGH)):
        assert Options.checked(effort=name).effort is effort
    with pytest.raises(ValueError, match=r"effort.*'quick'.*'default'.*'thorough'.*'huge'"):
        Options.checked(effort="huge")
    with pytest.raises(TypeError, match="polish"):
        Options.checked(polish="slow")


def test_what_the_effort_is_unless_one_asks():
    """The default one; growing alone where the paper is followed; the thorough one for a gap."""
    assert Options.checked().effort is DEFAULT
    assert Options.checked(gap_tol=0.1).effort is THOROUGH
    assert Options.checked(reclaim=False).effort is BARE
    assert Options.checked(inner="apgd").effort is BARE
    assert chosen_effort(None, True, None, improves=False) is DEFAULT
    assert chosen_effort("quick", None, 0.1, improves=False) is QUICK


def test_tolerances_and_iterations_belong_to_a_solver():
    assert Options.checked().tol == EXACT
    assert Options.checked(inner="apgd").tol == 1e-6
    assert Options.checked(inner="apgd", max_iter=7).max_iter == 7
    with pytest.raises(ValueError, match='max_iter must be None unless inner="apgd"'):
        Options.checked(max_iter=7)


def test_only_plain_omp_is_compiled():
    """A rule derived from it, or another inner solver, takes the general way."""

    class Own(st.OMP):
        pass

    assert Options.checked().is_compiled
    for given in ({"method": Own()}, {"method": "greedy"}, {"inner": "apgd"}, {"reclaim": False}):
        assert not Options.checked(**given).is_compiled


def test_every_kind_of_start_means_the_same_pairs():
    """A plan, a sparse plan and a result bring masses and their shape; pairs bring neither, and count once."""
    plan = np.zeros((3, 4))
    plan[0, 1], plan[2, 3] = 0.5, 0.25
    pairs = [(0, 1), (2, 3)]
    for start in (as_start(plan), as_start(sparse.coo_array(plan)), as_start(plan.tolist())):
        assert (start.pairs, start.mass.tolist(), start.shape) == (pairs, [0.5, 0.25], (3, 4))
    for given in (pairs, np.array(pairs), [*pairs, (0, 1)]):
        assert as_start(given)[:3] == (pairs, None, None)
    result = st.solve_support(np.ones((3, 4)), links=pairs, unbalanced=10.0)
    start = as_start(result)
    assert set(start.pairs) == set(pairs)
    np.testing.assert_array_equal(start.mass, result.mass)
    assert start.shape == (3, 4)
    assert as_start(None).pairs == as_start([]).pairs == []


def test_a_start_with_negative_mass_is_refused():
    with pytest.raises(ValueError, match=r"start must not be negative, got -1.0 at \(1, 0\)"):
        as_start(np.array([[1.0, 0.0], [-1.0, 0.0]]))
