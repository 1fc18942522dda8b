"""Functions that only compiled functions call, each with one dispatcher, which the public way does not give.

`numba.extending.register_jitable` compiles a function again for callers that are compiled with other options. This
needs ``builtin_registry`` and ``types.Dispatcher``, the same in all versions of Numba that pyproject.toml allows.
"""
# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable
from typing import Any

import numba
import numba.extending

try:
    from numba.core import types
    from numba.core.typing.templates import builtin_registry

    _missing = not (hasattr(types, "Dispatcher") and hasattr(builtin_registry, "register_global"))
except ImportError:
    _missing = True

_held: list[Any] = []  # a dispatcher's type does not hold it


def register_part(function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Have compiled functions call the compiled form of a Python function."""
    if _missing:
        numba.extending.register_jitable(**options)(function)
        return
    dispatcher = numba.njit(**options)(function)
    if dispatcher is function:  # with NUMBA_DISABLE_JIT
        return
    template = dispatcher.get_call_template

    def template_of_types(arguments: Any, named: Any) -> Any:
        """Numbers in a call have types of their own, and would have the function compiled for each of them."""
        plain = [types.unliteral(each) for each in arguments]
        return template(plain, {name: types.unliteral(each) for name, each in named.items()})

    dispatcher.get_call_template = template_of_types
    builtin_registry.register_global(function, types.Dispatcher(dispatcher))
    _held.append(dispatcher)
