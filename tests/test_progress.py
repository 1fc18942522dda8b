"""Long calls tell how far they are, on a terminal alone."""

import numpy as np
import pytest
from rich import console

import sparsetransport as st
from sparsetransport._progress import shown, tell
from sparsetransport.apps.network_design import design

RNG = np.random.default_rng(0)
C = RNG.random((8, 7))
PROBLEM = st.Problem.from_matrices(C)


@pytest.fixture
def told(monkeypatch):
    """What the line has said."""
    lines = []

    class Status:
        def __init__(self, text):
            lines.append(text)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            lines.append("end")

        update = staticmethod(lines.append)

    class Console:
        def __init__(self, *, stderr):
            assert stderr

        status = Status

    Console.status = lambda self, text: Status(text)
    monkeypatch.setattr(console, "Console", Console)
    return lines


CALLS = {
    "solve": lambda **options: st.solve(C, budget=5, gap_tol=1e-9, **options),
    "solve_sample": lambda **options: st.solve_sample(C, C, budget=5, **options),
    "solve_fewest": lambda **options: st.solve_fewest(C, within=0.5, **options),
    "solve_sweep": lambda **options: st.solve_sweep(C, budgets=[3, 5], **options),
    "solve_shared": lambda **options: st.solve_shared([PROBLEM, PROBLEM], budget=5, **options),
    "design": lambda **options: design(C, np.ones(8), RNG.uniform(0.5, 1.5, size=(3, 7)), links=9, **options),
    "certify": lambda **options: st.solve(C, budget=5).certify(effort="thorough", **options),
    "lower_bound": lambda **options: st.lower_bound(PROBLEM, 5, **options),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_long_call_shows_one_line(name, told):
    CALLS[name]()
    assert not told
    CALLS[name](progress=True)
    assert (told[0], told[-1], told.count("end")) == ("solving", "end", 1)
    assert len(told) > 2 or name == "certify"
    if name in ("solve_fewest", "solve_sweep"):
        assert any("budget" in text and "links, objective" in text for text in told)


def test_the_gap_is_told(told):
    CALLS["solve"](progress=True)
    assert any("links, objective" in text and "gap" in text for text in told)


def test_a_file_gets_nothing(capsys):
    CALLS["solve"](progress=True)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_an_outer_line_stays(told):
    with shown(True):
        with shown(True):
            tell(plan="3 links")
        tell(gap="gap 1 %")
    assert told == ["solving", "3 links", "3 links, gap 1 %", "end"]


def test_progress_is_a_flag():
    with pytest.raises(TypeError, match="progress must be"):
        st.solve(C, progress="yes")
