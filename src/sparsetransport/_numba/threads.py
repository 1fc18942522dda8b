"""Parts of a loop in threads: compiled functions release the GIL."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba

_T = TypeVar("_T")


def in_parts(work: Callable[[slice], _T], size: int, part: int) -> list[_T]:
    """What ``work`` returns for one slice after the other of so many items, on all cores.

    The slices do not depend on the number of cores, so that sums do not either. Threads are made anew each time, since
    they do not outlive a fork.
    """
    slices = [slice(first, min(first + part, size)) for first in range(0, size, part)]
    cores = min(numba.get_num_threads(), len(slices))
    if cores <= 1:
        return [work(each) for each in slices]
    with ThreadPoolExecutor(cores) as pool:
        return list(pool.map(work, slices))
