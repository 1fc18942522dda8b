"""Colour transfer: recolour an image with the colours of another, by a sparse plan between their palettes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._checks import Floats, Ints
from ..api import solve
from ..geometry.kernels import RBF
from ..problem import Problem
from ..result import Result

Image = NDArray[np.uint8]
_SAMPLE = 10_000  # pixels sampled for k-means
_LEAST = 0.1  # a colour of which the plan moves less than this share follows its neighbours


class Palette(NamedTuple):
    """The palette of an image."""

    colours: Floats  # (k, 3), from 0 to 1
    weight: Floats  # (k,), the share of the pixels
    labels: Ints  # (height, width), the colour of every pixel


class Transfer(NamedTuple):
    """A recoloured image, the palettes and the plan behind it."""

    image: Image  # (height, width, 3), integers up to 255, whatever the dtype of the input
    result: Result
    source: Palette
    reference: Palette


def colour_transfer(
    image: Any,
    reference: Any,
    colours: int = 128,
    *,
    budget: int | None = None,
    unbalanced: Any = 100.0,
    kernel: Any = None,
    rng: Any = None,
) -> Transfer:
    """Recolour an image with the colours of another.

    Both images are reduced to palettes by k-means; a sparse plan maps one palette to the other.

    Parameters
    ----------
    image, reference : arrays of shape (height, width, 3), or (height, width) for shades of grey
        The images: integers up to 255, or floats up to 1.
    colours : int
        The number of colours of each palette.
    budget : int, optional
        The most links of the plan; no limit by default, which gives about two links for each colour. One link for each
        colour is enough with 256 colours, and too few with less than a hundred.
    unbalanced : float
        λ, the weight of the marginal errors: how closely the plan keeps the shares of the colours.
    kernel : kernel, optional
        The kernel between colours; ``RBF(0.01)`` by default, with a bandwidth of a tenth of the range of a channel.
    rng : seed or numpy Generator, optional
        The randomness of k-means.

    Returns
    -------
    Transfer
        Its ``image`` has integers up to 255 in three channels, whatever the dtype of the input.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.colour_transfer import colour_transfer
    >>> red = np.zeros((8, 8, 3), np.uint8) + np.array([200, 30, 30], np.uint8)
    >>> blue = np.zeros((8, 8, 3), np.uint8) + np.array([30, 30, 200], np.uint8)
    >>> colour_transfer(red, blue, colours=1).image[0, 0].tolist()
    [30, 30, 200]
    """
    colours = _checks.positive_int("colours", colours)
    image, reference = _unit("image", image), _unit("reference", reference)
    rng = _checks.generator("rng", rng)
    source, target = palette(image, colours, rng=rng), palette(reference, colours, rng=rng)
    problem = palette_problem(source, target, unbalanced=unbalanced, kernel=kernel)
    result = solve(problem, budget=budget)
    return Transfer(recolour(image, source, target, result), result, source, target)


def palette(image: Any, colours: int, *, rng: Any = None) -> Palette:
    """The palette of an image, by k-means on a sample of its pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.colour_transfer import palette
    >>> stripes = np.repeat(np.array([[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]]), 5, axis=0)
    >>> palette(stripes, 2, rng=0).weight.round(2).tolist()
    [0.67, 0.33]
    """
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise _checks.missing("colour transfer needs scikit-learn", "sklearn") from None
    pixels = _unit("image", image).reshape(-1, 3)
    rng = np.random.default_rng(rng)
    sample = rng.choice(pixels, min(len(pixels), _SAMPLE), replace=False, axis=0)
    found = len(np.unique(sample, axis=0))
    state = int(rng.integers(2**31))
    means = KMeans(min(_checks.positive_int("colours", colours), found), n_init=1, max_iter=30, random_state=state)
    labels = np.asarray(means.fit(sample).predict(pixels), np.int64)
    count = len(means.cluster_centers_)
    weight = np.bincount(labels, minlength=count) / len(labels)
    order = np.argsort(-weight, kind="stable")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    centres = np.asarray(means.cluster_centers_, np.float64)[order]
    return Palette(centres, weight[order], place[labels].reshape(np.shape(image)[:2]))


def palette_problem(source: Palette, reference: Palette, *, unbalanced: Any = 100.0, kernel: Any = None) -> Problem:
    """The transport problem between two palettes: costs are squared distances, divided by the largest one.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsetransport.apps.colour_transfer import palette, palette_problem
    >>> rng = np.random.default_rng(0)
    >>> palette_problem(palette(rng.random((9, 9, 3)), 5, rng=0), palette(rng.random((9, 9, 3)), 4, rng=0)).shape
    (5, 4)
    """
    return Problem.from_points(
        source.colours,
        reference.colours,
        source.weight,
        reference.weight,
        normalize_cost=True,
        kernels=RBF(0.01) if kernel is None else kernel,
        unbalanced=unbalanced,
    )


def recolour(image: Any, source: Palette, reference: Palette, plan: Result) -> Image:
    """Recolour an image by a plan between its palette and another one.

    A colour moves to the mean of the colours that its mass goes to. A colour of which the plan, whose marginals are
    soft, moves hardly any mass is shifted by the same vector as its nearest neighbour that moves. Every pixel keeps its
    difference to its palette colour.

    Examples
    --------
    >>> import numpy as np, sparsetransport as st
    >>> from sparsetransport.apps.colour_transfer import palette, palette_problem, recolour
    >>> grey = np.full((4, 4, 3), 0.5)
    >>> one, other = palette(grey, 1), palette(0.5 * grey, 1)
    >>> recolour(grey, one, other, st.solve(palette_problem(one, other)))[0, 0].tolist()
    [64, 64, 64]
    """
    moved = source.colours[source.labels] if plan.mass.size == 0 else move(source, reference, plan)[source.labels]
    detail = _unit("image", image) - source.colours[source.labels]
    return np.asarray((255.0 * np.clip(moved + detail, 0.0, 1.0)).round(), np.uint8)


def move(source: Palette, reference: Palette, plan: Result) -> Floats:
    """The new colours of a palette, including the colours that the plan leaves out."""
    sums = np.asarray(plan.marginal_a)
    total = plan.sparse_plan @ reference.colours
    led = sums > min(_LEAST, 0.5 * float((sums / source.weight).max())) * source.weight
    shift = np.zeros_like(source.colours)
    shift[led] = total[led] / sums[led, None] - source.colours[led]
    square = ((source.colours[:, None] - source.colours[led]) ** 2).sum(axis=2)
    nearest = np.flatnonzero(led)[square.argmin(axis=1)]
    moved: Floats = np.clip(source.colours + shift[nearest], 0.0, 1.0)
    return moved


def _unit(name: str, image: Any) -> Floats:
    """A colour image with channels from 0 to 1."""
    array = np.asarray(image)
    if array.ndim == 2:  # shades of grey
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3 or not array.size:
        cure = ": drop the alpha channel with [:, :, :3]" if array.ndim == 3 and array.shape[2] == 4 else ""
        raise ValueError(f"{name} must have shape (height, width, 3) or (height, width), got {array.shape}{cure}")
    scale = 255.0 if np.issubdtype(array.dtype, np.integer) else 1.0
    unit = array.astype(np.float64) / scale
    if not np.isfinite(unit).all() or unit.min() < 0.0 or unit.max() > 1.0:
        got = f"numbers from {array.min()} to {array.max()}"
        raise ValueError(f"{name} must hold integers from 0 to 255 or floats from 0 to 1, got {got}")
    return unit
