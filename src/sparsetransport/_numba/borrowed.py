"""Named tuples of arrays by address, in compiled functions.

Numba hands a tuple on by value: seven arguments for every array in it, copied in every call and counted, atomically, in
every function. For a state of forty arrays that is most of what the compiler has to do, and takes longer than a small
step does. A `Borrowed` tuple is one address. Whoever handed it out holds the arrays, so nothing is counted.
"""
# mypy: disable-error-code="no-untyped-call, untyped-decorator, override"

import hashlib
from typing import Any, TypeVar

from numba import extending
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import make_array

_T = TypeVar("_T")


def by_address(record: type[_T]) -> type[_T]:
    """Have named tuples of this class go from Python to compiled functions, and on to parts, by address.

    Arrays in it belong to the caller: a compiled function must not return one of them, or a view of one.
    """

    def type_of(value: Any, context: Any) -> Borrowed:
        fields = [_by_value(extending.typeof_impl(each, context)) for each in value]
        return Borrowed(types.BaseTuple.from_types(fields, record))

    extending.typeof_impl.register(record)(type_of)
    return record


def borrowed(value: _T) -> _T:
    """The address of a named tuple that compiled code has made, to hand it on: in the same block, up to `keep`.

    It has one place on the stack: the next pass of a loop writes over what this one borrowed.
    """
    return value


def keep(value: object) -> None:
    """Keep a tuple until here: Numba lets go of it after its last use, and does not see use by address."""


class Borrowed(types.Type):
    """The address of a named tuple that somebody else holds."""

    def __init__(self, tuple_type: Any) -> None:
        self.tuple_type = tuple_type
        digest = hashlib.blake2s(str(tuple_type).encode(), digest_size=8).hexdigest()  # the name itself is very long
        super().__init__(f"Borrowed[{tuple_type.instance_class.__name__} {digest}]")

    @property
    def key(self) -> Any:
        """What makes two of them the same: class and fields, which the name does not tell."""
        return self.tuple_type


def _by_value(kind: Any) -> Any:
    """The type of a field: tuples within tuples lie there by value."""
    if isinstance(kind, Borrowed):
        return kind.tuple_type
    if isinstance(kind, types.BaseTuple):
        fields: Any = kind
        return types.BaseTuple.from_types([_by_value(each) for each in fields], getattr(kind, "instance_class", tuple))
    return kind


@extending.register_model(Borrowed)
class _Address(extending.models.OpaqueModel):
    """A pointer."""


def _address(builder: Any, value: Any) -> Any:
    """Put the value on the stack of the function that is being compiled."""
    return builder.bitcast(cgutils.alloca_once_value(builder, value), cgutils.voidptr_t)


@extending.unbox(Borrowed)
def _unbox(kind: Any, value: Any, wrapper: Any) -> Any:
    """What Python calls holds the tuple until the compiled function has returned."""
    native = wrapper.unbox(kind.tuple_type, value)

    def release() -> None:
        wrapper.context.nrt.decref(wrapper.builder, kind.tuple_type, native.value)

    return extending.NativeValue(_address(wrapper.builder, native.value), native.is_error, release)


@extending.type_callable(borrowed)
def _type_borrowed(_: Any) -> Any:
    def type_of(value: Any) -> Any:
        return Borrowed(value) if isinstance(value, types.BaseNamedTuple) else None

    return type_of


@extending.lower_builtin(borrowed, types.BaseNamedTuple)
def _borrow(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return _address(builder, arguments[0])


@extending.type_callable(keep)
def _type_keep(_: Any) -> Any:
    def type_of(value: Any) -> Any:
        return types.none if isinstance(value, types.BaseNamedTuple) else None

    return type_of


@extending.lower_builtin(keep, types.BaseNamedTuple)
def _keep(context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
    return context.get_dummy_value()


@extending.infer_getattr
class _Fields(AttributeTemplate):
    """Fields are read by name, tuples among them by address again."""

    key = Borrowed

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """The type of a field."""
        fields = dict(zip(kind.tuple_type.fields, kind.tuple_type, strict=True))
        field = fields.get(name)
        return Borrowed(field) if isinstance(field, types.BaseNamedTuple) else field


@extending.lower_getattr_generic(Borrowed)
def _load(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """A field; an array without its owner, so that nothing is counted."""
    index = kind.tuple_type.fields.index(name)
    field = kind.tuple_type[index]
    whole = builder.bitcast(value, context.get_value_type(kind.tuple_type).as_pointer())
    place = cgutils.gep_inbounds(builder, whole, 0, index)
    if isinstance(field, types.BaseNamedTuple):
        return builder.bitcast(place, cgutils.voidptr_t)
    loaded = builder.load(place)
    if not isinstance(field, types.Array):
        return impl_ret_borrowed(context, builder, field, loaded)
    array = make_array(field)(context, builder, loaded)
    array.meminfo, array.parent = array.meminfo.type(None), array.parent.type(None)
    return array._getvalue()
