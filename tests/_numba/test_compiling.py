"""What holds for every compiled function, read from the source, since optional packages may be missing."""

import ast
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sparsetransport
from sparsetransport._numba import compiling

ROOT = Path(sparsetransport.__file__).parent
NUMBERS = {"bool", "int", "float"}
ARRAYS = {"Floats", "Ints", "Flags", "NDArray[np.bool_]"}


def functions():
    """File and tree of every function."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(ROOT).as_posix(), node


def compiled_functions():
    """File, tree and annotated result of every function that is compiled for Python to call."""
    for file, function in functions():
        if "compiled" in map(ast.unparse, function.decorator_list):
            yield file, function, ast.unparse(function.returns)


def is_safe(result):
    """Nothing, numbers, or one array."""
    inside = result.removeprefix("tuple[").removesuffix("]").split(", ") if result.startswith("tuple[") else [result]
    return result in ARRAYS | {"None"} or NUMBERS.issuperset(inside)


def test_no_compiled_function_gives_python_several_arrays():
    """A signal that arrives during a compiled function is handled while Numba makes objects of what it returns.

    For one array it looks for the exception. For a tuple of arrays it does not, and Ctrl-C becomes a SystemError; for a
    named tuple it crashes. So they write into arrays that Python made, and return tuples of numbers alone.
    """
    found = list(compiled_functions())
    assert len(found) > 40
    assert [(file, function.name) for file, function, result in found if not is_safe(result)] == []


def calls(tree, name):
    """The arguments of all calls of a function by its name."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == name]
    return [ast.unparse(node.args[0]) for node in found]


def lent_and_kept(block):
    """Of the statements in a block: what is borrowed in them, what is kept, and whether any of them leaves it."""
    for statement in block:
        leaves = any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(statement))
        yield calls(statement, "borrowed"), calls(statement, "keep"), leaves


def test_what_is_borrowed_is_kept():
    """Numba lets go of a tuple after its last use, and reads through its address would find other things there.

    So in the block that borrows a tuple it is kept, later, with no way out in between.
    """
    count = 0
    for file, function in functions():
        if file == "_numba/borrowed.py":
            continue
        for node in ast.walk(function):
            for block in (getattr(node, name, None) for name in ("body", "orelse")):
                lent = set()
                for borrowed, kept, leaves in lent_and_kept(block if isinstance(block, list) else []):
                    assert not (lent and leaves), f"{file}: {function.name} leaves with {lent} borrowed"
                    lent = (lent | set(borrowed)) - set(kept)
                    count += len(kept)
                assert not lent, f"{file}: {function.name} does not keep {lent}"
    assert count >= 3


def test_no_compiled_function_gives_python_an_array_of_its_arguments():
    """Arrays that come by address have no owner: Python must not get one of them, or a view of one."""
    makers = ("np.empty(", "np.zeros(", "np.dot(", "_bounds(")
    for file, function, result in compiled_functions():
        by_itself = all(ast.unparse(each.annotation) in NUMBERS | ARRAYS for each in function.args.args)
        if result not in ARRAYS or by_itself:  # single arrays come with their owners
            continue
        made = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                targets, values = ast.unparse(node.targets[0]).strip("()"), node.value
                values = values.elts if isinstance(values, ast.Tuple) else [values]
                pairs = zip(targets.split(", "), map(ast.unparse, values), strict=False)
                made |= {target for target, value in pairs if value.startswith(makers)}
        results = {ast.unparse(node.value) for node in ast.walk(function) if isinstance(node, ast.Return)}
        assert results <= made, f"{file}: {function.name} returns {results - made}"


def test_functions_are_compiled_in_one_place():
    """Whoever compiles by Numba's own decorators would not be seen above."""
    users = [path.name for path in sorted(ROOT.rglob("*.py")) if "njit" in path.read_text(encoding="utf-8")]
    assert users == ["compiling.py", "parts.py"]


def test_numba_is_used_in_one_folder():
    for path in ROOT.rglob("*.py"):
        if path.parent.name != "_numba":
            assert not re.search(r"^\s*(import|from) numba", path.read_text(encoding="utf-8"), re.MULTILINE), path


ALONE = """
import os, signal, sys, threading
import numpy as np
import sparsetransport.cli
from sparsetransport.geometry._entries import summarise
"""
COMPILED = """
ours = [vars(module) for name, module in sys.modules.items() if name.startswith("sparsetransport")]
print([name for names in ours for name, value in names.items() if getattr(value, "signatures", None)])
"""
INTERRUPTED = """
begin = summarise.compile


def compile_and_interrupt(*types):
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
    return begin(*types)


summarise.compile = compile_and_interrupt
try:
    summarise(np.ones((2, 2)))
except KeyboardInterrupt:
    print("interrupted", len(summarise.signatures))
print(summarise(np.ones((2, 2)))[0])
"""


def python(script, folder):
    """What a new process prints, with an empty cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ALONE + script]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def test_an_import_compiles_nothing(tmp_path):
    """It writes no file either."""
    assert python(COMPILED, tmp_path) == "[]\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_numba_compiles_arrives_when_it_is_done(tmp_path):
    """In the midst of it Numba may swallow the exception, or never compile again."""
    assert python(INTERRUPTED, tmp_path) == "interrupted 1\n4\n"


def test_ctrl_c_goes_to_the_handler_that_was_there():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("handler"))
    try:
        with compiling._interrupts_deferred(), compiling._interrupts_deferred():
            signal.raise_signal(signal.SIGINT)
            seen.append("end of block")
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == ["end of block", "handler"]


def test_another_thread_leaves_signals_alone():
    """Python lets only the main thread set handlers."""
    with ThreadPoolExecutor(1) as pool:
        handler = pool.submit(_handler_within).result()
    assert handler is signal.getsignal(signal.SIGINT)


def _handler_within():
    with compiling._interrupts_deferred():
        return signal.getsignal(signal.SIGINT)
