"""Codes of compiled functions: one number, one meaning."""

import ast
from pathlib import Path

import sparsetransport as st
from sparsetransport._numba import codes

CODES = {name: value for name, value in vars(codes).items() if name.isupper()}


def test_no_two_codes_are_the_same_number():
    assert len(CODES) > 10
    assert len(set(CODES.values())) == len(CODES)
    assert all(type(value) is int for value in CODES.values())


def test_every_code_is_returned_somewhere():
    """And looked at somewhere: a code that nothing uses has no meaning."""
    used = set()
    for path in Path(st.__file__).parent.rglob("*.py"):
        if path != Path(codes.__file__):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert CODES.keys() <= used


def test_ends_are_named_as_users_know_them():
    for name in ("BUDGET_USED", "LOCAL", "OPTIMAL"):
        assert name in CODES
        assert name in st.Status.__members__
