"""What holds for every kernel, read from the source, since optional packages may be missing."""

import ast
from pathlib import Path

import sparsetransport
from sparsetransport._numba import compiling
from sparsetransport.engine.grow import grow
from sparsetransport.engine.swaps import swap_pass
from sparsetransport.geometry._entries import gram_block

ROOT = Path(sparsetransport.__file__).parent
NUMBERS = {"bool", "int", "float"}
ARRAYS = {"Floats", "Ints", "NDArray[np.bool_]"}


def functions():
    """File and tree of every function."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(ROOT).as_posix(), node


def kernels():
    """File, tree and annotated result of every function that is compiled for Python to call."""
    for file, function in functions():
        if "compiled" in map(ast.unparse, function.decorator_list):
            yield file, function, ast.unparse(function.returns)


def is_safe(result):
    """Nothing, numbers, or one array."""
    inside = result.removeprefix("tuple[").removesuffix("]").split(", ") if result.startswith("tuple[") else [result]
    return result in ARRAYS | {"None"} or NUMBERS.issuperset(inside)


def test_no_kernel_gives_python_several_arrays():
    """A signal that arrives during a kernel is handled while Numba makes objects of what the kernel returns.

    For one array it looks for the exception. For a tuple of arrays it does not, and Ctrl-C becomes a SystemError; for a
    named tuple it crashes. So kernels write into arrays that Python made, and tuples that they return are of numbers.
    """
    found = list(kernels())
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


def test_no_kernel_gives_python_an_array_of_its_arguments():
    """Arrays that come by address have no owner: Python must not get one of them, or a view of one."""
    makers = ("np.empty(", "np.zeros(", "np.dot(", "_bounds(")
    for file, function, result in kernels():
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


def test_kernels_are_compiled_in_one_place():
    """Whoever compiles by Numba's own decorators would not be seen above."""
    users = [path.name for path in ROOT.rglob("*.py") if "njit" in path.read_text(encoding="utf-8")]
    assert users == ["compiling.py"]


def test_machine_code_is_kept_by_all_files_of_the_package():
    """A kernel is made of parts of other files too."""
    stamps = {kernel._cache._cache_file._source_stamp for kernel in (grow, swap_pass, gram_block)}
    assert stamps == {compiling._STAMP}
