"""Effort: every threshold that steers a search is one of its fields, explained, and can be changed."""

import ast
import pickle
from dataclasses import fields, is_dataclass, replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

import sparsetransport as st
from sparsetransport import effort
from sparsetransport.effort import Eliminate, Grow, Grown, Repeat, Swap, Tuning, as_effort
from sparsetransport.engine import batch_solver

ROOT = Path(st.__file__).parent
SOURCE = Path(effort.__file__).read_text(encoding="utf-8")
DATACLASSES = [thing for thing in vars(effort).values() if isinstance(thing, type) and is_dataclass(thing)]


def declared(source):
    """Every field of a dataclass, with the lines of the source that it is on."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list):
            for each in node.body:
                if isinstance(each, ast.AnnAssign):
                    yield f"{node.name}.{ast.unparse(each.target)}", lines[each.lineno - 1 : each.end_lineno]


def test_every_field_is_explained_beside_it():
    found = dict(declared(SOURCE))
    assert set(found) == {f"{one.__name__}.{each.name}" for one in DATACLASSES for each in fields(one)}
    assert [name for name, lines in found.items() if not any("#" in line for line in lines)] == []


@pytest.mark.parametrize("thing", DATACLASSES, ids=lambda thing: thing.__name__)
def test_what_an_effort_is_made_of_is_a_frozen_value(thing):
    """Explained, hashable, and equal if all of it is: it can be compared, kept in sets and sent to workers."""
    made = thing(*([()] if thing is Repeat else [st.QUICK] if thing is effort.Found else []))
    assert thing.__doc__
    assert made == pickle.loads(pickle.dumps(made))
    assert len({made, replace(made)}) == 1
    with pytest.raises(AttributeError):
        made.new = 1


def test_compiled_functions_read_the_fields_of_the_same_name():
    own = replace(st.DEFAULT, list_size=7, swap_width=3, patience=5.0)
    assert own.tuning == Tuning(*(getattr(own, name) for name in Tuning._fields))
    assert (own.tuning.list_size, own.tuning.swap_width, own.tuning.patience) == (7, 3, 5.0)
    assert st.DEFAULT.tuning.list_size == 256, "the one that it was made from is as it was"
    assert set(Tuning._fields) <= {each.name for each in fields(st.Effort)}


def test_the_program_is_the_improvers_as_numbers():
    codes = {Grow: batch_solver.GROW, Swap: batch_solver.SWAP, Eliminate: batch_solver.ELIMINATE}
    own = replace(st.QUICK, improvers=(Grow(), Swap(3.0, 2.0, 5.0), Eliminate(1, 9, 4.0, 6.0, 7.0)))
    assert own.program.tolist() == [[0, 0, 0, 0, 0, 0], [1, 3.0, 2.0, 5.0, 0, 0], [2, 4.0, 6.0, 7.0, 1, 9]]
    for each in (st.BARE, st.QUICK, st.DEFAULT):
        assert each.program[:, 0].tolist() == [codes[type(one)] for one in each.improvers]
    assert replace(own, improvers=()).program.shape == (0, 6)


@pytest.mark.parametrize("improvers", [st.THOROUGH.improvers, (Grow(), "anything"), (Repeat((Grow(),)),)])
def test_the_compiled_batch_gets_no_program_that_it_does_not_know(improvers):
    assert replace(st.QUICK, improvers=improvers).program.shape == (0, 6)


def test_what_the_four_of_them_are():
    assert [each.improves for each in (st.BARE, st.QUICK, st.DEFAULT, st.THOROUGH)] == [False, True, True, True]
    assert [each.is_quick for each in (st.BARE, st.QUICK, st.DEFAULT, st.THOROUGH)] == [True, True, False, False]
    assert replace(st.QUICK, starts=(Grown(),), improvers=(Grow(),)) == st.BARE
    assert st.Effort() == st.QUICK


def test_an_effort_by_its_name():
    assert [as_effort("effort", name) for name in ("quick", "default", "thorough")] == [
        st.QUICK,
        st.DEFAULT,
        st.THOROUGH,
    ]
    own = replace(st.DEFAULT, patience=1.0)
    assert as_effort("effort", own) is own


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("fast", ValueError, r"effort must be.*'quick'.*'default'.*'thorough'.*got 'fast'"),
        ("Quick", ValueError, "effort.*'Quick'"),
        (3, ValueError, "effort must be one of.*got 3"),
        (None, ValueError, "effort must be one of.*got None"),
        (True, ValueError, "effort must be one of.*got True"),
        (st.Effort, ValueError, "effort must be one of.*got <class"),
        ({"starts": ()}, ValueError, "effort must be one of.*got {'starts'"),
    ],
    ids=str,
)
def test_anything_else_is_an_error_that_says_what_there_is(value, error, message):
    with pytest.raises(error, match=message):
        as_effort("effort", value)


@pytest.mark.parametrize(
    "solve",
    [
        lambda C, **options: st.solve(C, **options).plan,
        lambda C, **options: st.solve_sample(C, C, **options).plan,
        lambda C, **options: st.solve(st.Problem.from_matrices(C), **options).plan,
        lambda C, **options: st.solve_batch([C], **options)[0].plan,
        lambda C, **options: st.solve_shared([st.Problem.from_matrices(C)], **options).plans[0].plan,
        lambda C, **options: (
            st.solve_sweep(st.Problem.from_matrices(C), budgets=[options.pop("budget")], **options)[0].plan
        ),
    ],
    ids=["solve", "solve_sample", "solve_problem", "solve_batch", "solve_shared", "solve_sweep"],
)
def test_polish_is_another_word_for_it(solve):
    C = np.random.default_rng(1).random((9, 9))
    for old, new in ((False, st.BARE), ("quick", "quick"), (True, "default")):
        np.testing.assert_array_equal(solve(C, budget=9, polish=old), solve(C, budget=9, effort=new))
    with pytest.raises(TypeError, match="must not be given together with effort"):
        solve(C, budget=9, polish=True, effort="quick")


def test_a_field_that_is_changed_changes_the_search():
    """Each of these must show in the plan, or it steers nothing."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 0.5
    problem = st.Problem.from_points(X, Y, rng.random(60), rng.random(50), kernels=st.RBF(0.3), reg=0.01)
    ways = {}
    for name, change in {
        "as it is": {},
        "growing alone": {"improvers": (Grow(),)},
        "a list": {"list_above": 0, "improvers": (Grow(),)},
        "a short list": {"list_above": 0, "list_size": 2, "list_depth": 1, "list_slack": 0.0, "improvers": (Grow(),)},
        "one pass": {"improvers": (Grow(), Swap(passes=1.0))},
        "narrow": {"swap_width": 1, "swap_few": 0, "improvers": (Grow(), Swap(share=inf))},
        "wide": {"swap_width": 64, "swap_few": 0, "improvers": (Grow(), Swap(share=inf))},
    }.items():
        found = st.solve(problem, budget=25, effort=replace(st.QUICK, **change))
        ways[name] = tuple(map(tuple, found.path.pairs.tolist()))
    assert len(set(ways.values())) == len(ways), ways.keys()


# --- no steering constant elsewhere ----------------------------------------------------------------------------------

PLACES = ["select", "engine", "forest", "inner", "batch", "prices"]
PLACES += [
    f"{name}.py"
    for name in ("optimum", "large", "strategy", "api", "shared", "plan", "fewest", "sweep", "options", "build_result")
]

ROUNDING = "rounding: what counts as zero, as equal or as solved"
LAYOUT = "array layout: how much memory there is at one time or at first; results do not depend on it"
PAUSES = "interrupt interval: how often Ctrl-C is heard; results do not depend on it"
CODES = "numbers that stand for a name"
WORKERS = "how work is handed to workers; results do not depend on it"
WARNINGS = "when a result gets a warning"
COUNTING = "how operations are counted, not how many are allowed"

ALLOWED = {
    "select/generic_greedy.py": {"BLOCK": LAYOUT},
    "select/greedy.py": {"_CHUNK": LAYOUT},
    "engine/batch_solver.py": {"GROW": CODES, "SWAP": CODES, "ELIMINATE": CODES},
    "engine/elimination.py": {"_ENOUGH": ROUNDING, "_LIFT": CODES, "_CANCELLED": ROUNDING},
    "engine/newton.py": {"_STEPS": ROUNDING, "_HALVINGS": ROUNDING, "_SOLVED": ROUNDING, "_GOOD_ENOUGH": ROUNDING},
    "engine/omp_solver.py": {"_ENTRIES": LAYOUT, "_NONE": LAYOUT, "_SPARE_COLUMNS": LAYOUT, "_SOUND": ROUNDING},
    "engine/pricer.py": {"_COLUMNS": LAYOUT, "_SLACK": ROUNDING},
    "engine/room.py": {"_ASIDE": LAYOUT, "CHANGES": CODES, "ASKED": CODES, "ASIDE": CODES, "ASKING": COUNTING},
    "engine/shared_scan.py": {"BLOCK": LAYOUT},
    "engine/shared_solver.py": {"STEPS": PAUSES},
    "engine/shell.py": {"OPERATIONS": PAUSES, "STEPS": PAUSES},
    "engine/slack.py": {"_ANY": CODES},
    "engine/state.py": {"CLOSE": ROUNDING, "HUGE": ROUNDING},
    "engine/swaps.py": {"NONE": CODES},
    "forest/assignment.py": {
        **dict.fromkeys(["_BIDS", "_SWEEPS"], "the way to an optimum"),
        **dict.fromkeys(["_NEW", "_REACHED", "_DONE"], CODES),
    },
    "forest/crossover.py": {"_LEAST": ROUNDING},
    "forest/listed_simplex.py": {"_CHUNK": PAUSES},
    "forest/listed_solver.py": {"_OPERATIONS": PAUSES},
    "forest/local_search.py": {"_CUT": CODES},
    "forest/tree_solver.py": {"_OPERATIONS": PAUSES, "_LEAST": ROUNDING, "_EXACT_ENOUGH": ROUNDING, "_DRAWS": LAYOUT},
    "forest/simplex.py": {"_CHUNK": PAUSES, "_RUN": LAYOUT, "_PIVOTS": ROUNDING},
    "forest/sided.py": dict.fromkeys(
        ["UP", "DOWN", "FLOW", "FREE", "FREE_UP", "FREE_DOWN", "MOST_UP", "MOST_DOWN"]
        + ["ON_FREE", "ON_MOST", "BACK_FREE", "BACK_MOST"],
        CODES,
    ),
    "forest/trees.py": {"_TINY": ROUNDING},
    "forest/undo_log.py": dict.fromkeys(
        ["POINTS", "LINKS", "MARK", "TURN", "ASLEEP", "IN_USE", "NEAR", "REACH"], CODES
    ),
    "inner/active_set.py": {"DEPENDENT": ROUNDING},
    "inner/solvers.py": {"EXACT": ROUNDING, "_BLOCK": LAYOUT, "ROUNDING": ROUNDING},
    "prices/ascent.py": {"_PART": WORKERS, "_STEPS": ROUNDING},
    "prices/device_ascent.py": {"_WIDTHS": LAYOUT, "_PAIRS": LAYOUT, "_NONE": CODES},
    "prices/device_pricing.py": {
        **dict.fromkeys(["SINGLE", "_DOUBLE"], ROUNDING),
        **dict.fromkeys(
            ["_MOST_DIMENSIONS", "_BLOCK", "_ROWS", "_BASE", "_A_POINT", "_A_COORDINATE", "_CURVE"], LAYOUT
        ),
        **dict.fromkeys(["_BY_DIFFERENCES", "_LANES_FROM"], "the way to a minimum, which is the same"),
    },
    "prices/levels.py": {"_NOTHING": LAYOUT, "_ROUNDING": ROUNDING},
    "large.py": {"_EXACT": ROUNDING},
    "batch/__init__.py": dict.fromkeys(["CHUNK", "CHUNK_PAIRS", "AHEAD", "THREADS"], WORKERS),
    "api.py": {"_MISSED": WARNINGS, "_LIGHT": WARNINGS, "_ROUNDING": ROUNDING},
    "fewest.py": {"_NOTHING": ROUNDING},
    "build_result.py": {"SMALL_RESIDUAL": ROUNDING},
}


def sources():
    for place in PLACES:
        path = ROOT / place
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def constants(source):
    """Names in capitals that a module or a class binds to something with a number in it."""
    for node in ast.walk(ast.parse(source)):
        for each in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
            if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
                has_number = any(
                    isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in ast.walk(each.value)
                )
                yield from (name for name in names if name.isupper() and has_number)


def test_no_steering_constant_is_anywhere_else():
    """What is left has one of the reasons above; what steers a search belongs to `Effort`."""
    found = {}
    for path in sources():
        names = list(constants(path.read_text(encoding="utf-8")))
        if names:
            found[path.relative_to(ROOT).as_posix()] = names
    beyond = {(file, name) for file, names in found.items() for name in names if name not in ALLOWED.get(file, {})}
    assert beyond == set()
    gone = {(file, name) for file, names in ALLOWED.items() for name in names if name not in found.get(file, [])}
    assert gone == set(), "the list above names what is not there any more"


def test_the_walk_finds_what_it_should():
    """Or the test above could not fail."""
    lines = ["LIMIT = 4", "FIRST, _SECOND = 1.5, 2", "NAMES = ('a',)", "lower = 3"]
    source = "\n".join([*lines, "class A:", "    MOST: int = 7", "    DICT = {'a': 1}"])
    assert list(constants(source)) == ["LIMIT", "FIRST", "_SECOND", "MOST", "DICT"]
    assert len(list(constants(SOURCE))) > 0, "those of effort.py itself"
