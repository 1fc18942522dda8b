"""What holds for every kernel, read from the source, since optional packages may be missing."""

import ast
from pathlib import Path

import sparsetransport

ROOT = Path(sparsetransport.__file__).parent
NUMBERS = {"bool", "int", "float"}
ARRAYS = {"Floats", "Ints", "NDArray[np.int64]", "NDArray[np.bool_]"}


def kernels():
    """File, name and annotated result of every function that is compiled for Python to call."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "kernel" in map(ast.unparse, node.decorator_list):
                yield path.relative_to(ROOT).as_posix(), node.name, ast.unparse(node.returns)


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
    assert [each for each in found if not is_safe(each[2])] == []


def test_kernels_are_compiled_in_one_place():
    """Whoever compiles by Numba's own decorators would not be seen above."""
    users = [path.name for path in ROOT.rglob("*.py") if "njit" in path.read_text(encoding="utf-8")]
    assert users == ["_jit.py"]
