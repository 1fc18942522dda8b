"""CUDA graphs: many small launches recorded once and replayed as one."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor

_KEPT = 8  # graphs; the least recently used one is dropped for a new one


class _Recorded(NamedTuple):
    graph: Any
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class GraphCache:
    """Runs a function of tensors as a CUDA graph, one for each kind of input.

    The function must not wait for the device, and its operations must depend on the shapes alone. On a CPU, inside
    another capture, and under ``torch.compile`` it is called directly. Copies of the cache start empty.
    """

    def __init__(self) -> None:
        self._recorded: OrderedDict[Hashable, _Recorded] = OrderedDict()

    def __reduce__(self) -> Any:
        return GraphCache, ()

    def __call__(
        self, what: Hashable, function: Callable[..., tuple[Tensor, ...]], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        """``function(*inputs)``; ``what`` is everything else that the operations depend on."""
        if not all(each.is_cuda for each in inputs):
            return function(*inputs)
        if torch.compiler.is_compiling() or torch.cuda.is_current_stream_capturing():
            return function(*inputs)
        kinds = tuple((each.shape, each.dtype, each.device) for each in inputs)
        recorded = self._recorded.get((what, kinds))
        if recorded is None:
            recorded = self._recorded[what, kinds] = _record(function, inputs)
            if len(self._recorded) > _KEPT:
                self._recorded.popitem(last=False)
        self._recorded.move_to_end((what, kinds))
        for static, each in zip(recorded.inputs, inputs, strict=True):
            static.copy_(each)
        recorded.graph.replay()
        return tuple(each.clone() for each in recorded.outputs)


def _record(function: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...]) -> _Recorded:
    """Run the function to compile everything, then record it."""
    static = tuple(each.detach().clone() for each in inputs)
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function(*static)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = function(*static)
    return _Recorded(graph, static, outputs)
