"""A Python function that compiled code calls by its address, for what only the user can tell."""
# mypy: disable-error-code="no-untyped-call, untyped-decorator"

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import types

SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Callback:
    """A function of two whole numbers that answers true or false, by the ``address`` that compiled code is given.

    An exception, Ctrl-C included, cannot pass through compiled code: it counts as false, so does every call after it,
    and `raise_error` raises it when the compiled function has returned.
    """

    def __init__(self, function: Callable[[int, int], bool]) -> None:
        self.error: BaseException | None = None
        self._function = function
        self._native = SIGNATURE(self._call)
        self.address = int(ctypes.cast(self._native, ctypes.c_void_p).value or 0)

    def _call(self, first: int, second: int) -> int:
        if self.error is not None:
            return 0
        try:
            return int(self._function(first, second))
        except BaseException as error:
            self.error = error
            return 0

    def raise_error(self) -> None:
        """Raise what went wrong in a call, if anything did."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error


def call_address(address: int, first: int, second: int) -> int:
    """Call the function at this address."""
    return int(SIGNATURE(int(address))(int(first), int(second)))


@extending.type_callable(call_address)
def _type_of_call(_: Any) -> Any:
    return lambda address, first, second: types.int64


@extending.lower_builtin(call_address, types.Integer, types.Integer, types.Integer)
def _call(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    number = ir.IntType(64)
    function = ir.FunctionType(number, [number, number])
    return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])
