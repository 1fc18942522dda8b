r"""Points that flow to a target along the gradient of the transport objective (a figure of the appendix).

At every step the value :math:`U(X) = \min_\gamma \langle C(X), \gamma\rangle + \lambda_1 \|\gamma 1 - a\|^2_{G(X)} +
\lambda_1 \|\gamma^\top 1 - b\|^2_G` is solved exactly, without a budget, from the support of the previous step. By the
envelope theorem its gradient needs no derivative of the plan; it is taken through the costs, with the Gram matrix held
fixed:

.. math:: \partial U / \partial x_i = 2 \sum_j \gamma_{ij} (x_i - y_j) / c,

where c is the largest cost, by which all are divided. The term of the Gram matrix is left out: the kernel varies over a
hundredth of the image's width, less than the steps of that term would be, and the points would oscillate. The gradient
is PyTorch's, through `sparsetransport.nn.sparse_transport`.
"""

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import sparsetransport as st
from sparsetransport import _checks

from .report import Progress, Report, Table, command

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE = 0.01  # times the number of points
REG = 5e-3  # of the Sinkhorn divergence
MMD, OURS, OURS_CLOSER = "MMD-UOT, as published", "ours, as published", "ours, λ1 = 1"
FRAMES = 32
_PIXELS = 100  # along a side of the densities drawn here


class Setting(NamedTuple):
    """A method and its parameters."""

    name: str
    sigma2: float
    unbalanced: float


SETTINGS = (Setting(MMD, 1e-3, 1e-2), Setting(OURS, 1e-4, 0.1), Setting(OURS_CLOSER, 1e-4, 1.0))


class Flow(NamedTuple):
    """The points of a flow."""

    setting: Setting
    steps: list[int]
    points: list[Any]  # after each of ``steps``
    links: int  # of the last plan
    left: int  # points without mass in the last plan
    seconds: float


def run(*, data: Path | None, full: bool, seed: int, progress: Progress) -> Report:
    """Run the flow with MMD-UOT and with ours, and measure the distance to the target at the end.

    Two images ``density_a.png`` and ``density_b.png`` in the ``data`` folder (dark is mass) replace the densities drawn
    here. ``full`` is the paper's size, 1,000 points and 2,450 steps, and takes three quarters of an hour.
    """
    count, steps = (1000, 2450) if full else (250, 300)
    report = Report("gradient-flow", command("gradient-flow", full=full, seed=seed), seed)
    rng = np.random.default_rng(seed)
    source, target, origin = densities(data)
    X, Y = sample(source, count, rng), sample(target, count, rng)
    st.solve(np.eye(4), budget=3)  # compiles, which is not timed
    flows = []
    for setting in SETTINGS:
        flows.append(flow(X, Y, setting, steps, progress=progress))
        report.times[setting.name] = flows[-1].seconds
    progress.step("gradient-flow: pictures")
    report.tables.append(_table(X, Y, flows))
    ends = {each.setting.name: sinkhorn_divergence(each.points[-1], Y) for each in flows}
    for name in (OURS, OURS_CLOSER):
        text = f"{name}: ends closer to the target than MMD-UOT ({ends[name]:.2g} against {ends[MMD]:.2g})"
        report.claim(text, ends[name] < ends[MMD])
    report.figures = {"flow.png": _stills(Y, flows), "flow.gif": _animation(Y, flows)}
    report.notes = [
        f"{count:,} points a side, {steps:,} steps of {RATE} times the number of points, densities {origin}. The "
        f"distance is the Sinkhorn divergence (POT, reg {REG:g}) between points and target; beside it the exact cost "
        "of moving one to the other (squared distances in widths of the picture).",
        "Gradients go through the costs; the plan (envelope theorem) and the Gram matrices are held fixed.",
        "Without a budget, ours and MMD-UOT minimise the same objective, and both are solved exactly here: what "
        "differs is the published σ² and λ1. Where λ1 is small, moving a point can cost more than leaving it out; such "
        "points get no mass, hence no gradient, and stay. λ1 = 1 makes leaving them out more expensive.",
    ]
    return report


def densities(data: Path | None) -> tuple[Any, Any, str]:
    """Two densities, as arrays with the bottom row first, and their origin."""
    names = ("density_a.png", "density_b.png")
    for folder in [] if data is None else [data, data / "gradflow"]:
        paths = [folder / name for name in names]
        if all(path.is_file() for path in paths):
            return read_density(paths[0]), read_density(paths[1]), "from the two pictures in the data folder"
    y, x = (np.mgrid[:_PIXELS, :_PIXELS] + 0.5) / _PIXELS
    return _ellipse(x, y), _crescent(x, y), "drawn in code"


def read_density(path: Path) -> Any:
    """The density of an image: dark is mass, and the bottom row comes first."""
    from matplotlib.image import imread

    picture = np.asarray(imread(path), float)
    if picture.ndim == 3:
        picture = picture[:, :, : 3 if picture.shape[2] >= 3 else 1].mean(axis=2)
    mass = np.clip(1.0 - picture / max(1.0, picture.max()), 0.0, None)[::-1]
    if mass.sum() <= 0.0:
        raise ValueError(f"{path.name} must have dark pixels, got a white image")
    return mass


def _ellipse(x: Any, y: Any) -> Any:
    """A tilted ellipse on the left."""
    right, up = x - 0.26, y - 0.6
    along, across = right + 0.35 * up, up - 0.35 * right
    return ((along / 0.2) ** 2 + (across / 0.11) ** 2 <= 1.0).astype(float)


def _crescent(x: Any, y: Any) -> Any:
    """A crescent on the right, with a disc in its opening."""
    moon = ((x - 0.66) ** 2 + (y - 0.42) ** 2 <= 0.3**2) & ((x - 0.58) ** 2 + (y - 0.5) ** 2 > 0.22**2)
    return (moon | ((x - 0.58) ** 2 + (y - 0.52) ** 2 <= 0.07**2)).astype(float)


def sample(density: Any, count: int, rng: np.random.Generator) -> Any:
    """Points of the unit square, drawn from a density."""
    height, width = density.shape
    pixel = rng.choice(density.size, count, p=density.ravel() / density.sum())
    centre = np.stack([(pixel % width + 0.5) / width, (pixel // width + 0.5) / height], axis=1)
    return centre + rng.normal(size=centre.shape) * 0.5 / max(height, width)


def flow(X: Any, Y: Any, setting: Setting, steps: int, *, progress: Progress) -> Flow:
    """Follow the gradient for so many steps, each solved from the plan of the previous one."""
    import torch

    from .. import nn

    keep = sorted({round(steps * (k / FRAMES) ** 2) for k in range(FRAMES + 1)})  # the flow is fast at first
    kernel = st.IMQ(setting.sigma2)
    points, target = torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64)
    gram = nn.gram_matrix(kernel, target)
    kept, plan = [X.copy()], torch.zeros(len(X), len(Y), dtype=torch.float64)
    begin = time.perf_counter()
    for step in range(1, steps + 1):
        if step % max(1, steps // 20) == 1:
            progress.step(f"gradient-flow: {setting.name}, step {step} of {steps}")
        points.requires_grad_()
        cost = nn.cost_matrix(points, target)
        kernels = nn.gram_matrix(kernel, points.detach()), gram
        plan, value = nn.sparse_transport(
            cost / cost.detach().max(), kernels=kernels, unbalanced=setting.unbalanced, start=plan.detach()
        )
        (gradient,) = torch.autograd.grad(value, points)
        points = points.detach() - RATE * len(points) * gradient
        if step in keep:
            kept.append(points.numpy().copy())
    seconds = time.perf_counter() - begin
    return Flow(setting, keep, kept, int((plan > 0.0).sum()), int((plan.sum(1) <= 0.0).sum()), seconds)


def sinkhorn_divergence(x: Any, y: Any) -> float:
    """The Sinkhorn divergence of POT between two clouds of points."""
    try:
        import ot
    except ImportError:
        raise _checks.missing("the Sinkhorn divergence needs POT", "pot") from None
    cost = [st.cost_matrix(one, other) for one, other in ((x, y), (x, x), (y, y))]
    values = [
        float(ot.sinkhorn2([], [], each, REG, method="sinkhorn_log", numIterMax=2000, warn=False)) for each in cost
    ]
    return max(values[0] - 0.5 * values[1] - 0.5 * values[2], 0.0)  # negative only by rounding


def _exact_cost(x: Any, y: Any) -> float:
    import ot

    return float(ot.emd2([], [], st.cost_matrix(x, y)))


def _table(X: Any, Y: Any, flows: list[Flow]) -> Table:
    columns = ["method", "σ²", "λ1", "Sinkhorn divergence", "exact OT cost", "links", "points left behind", "seconds"]
    formats = {columns[3]: ".6f", columns[4]: ".6f", "seconds": ".1f"}
    table = Table("Distance to the target at the end", columns, [], formats)
    table.rows.append(["start", None, None, sinkhorn_divergence(X, Y), _exact_cost(X, Y), None, None, None])
    for each in flows:
        end = each.points[-1]
        measured = [sinkhorn_divergence(end, Y), _exact_cost(end, Y)]
        settings = [each.setting.name, each.setting.sigma2, each.setting.unbalanced]
        table.rows.append([*settings, *measured, each.links, each.left, each.seconds])
    return table


def _draw(ax: Any, Y: Any, each: Flow, frame: int, limits: Any) -> None:
    """Draw the points of a frame over the target; shades show where they started."""
    start, points = each.points[0], each.points[frame]
    size = float(np.clip(2500.0 / len(points), 3.0, 14.0))
    ax.scatter(*Y.T, s=2.0 * size, marker="o", facecolors="none", edgecolors="0.75", linewidths=0.6)
    ax.scatter(*points.T, s=size, c=start[:, 0], cmap="viridis", linewidths=0.2, edgecolors="black")
    ax.set(xlim=limits[0], ylim=limits[1], aspect="equal", xticks=[], yticks=[])


def _limits(Y: Any, flows: list[Flow]) -> Any:
    """Limits of the axes that show the start and the target."""
    seen = np.concatenate([Y, flows[0].points[0]])
    return np.stack([seen.min(axis=0) - 0.05, seen.max(axis=0) + 0.05], axis=1)


def _stills(Y: Any, flows: list[Flow]) -> "Figure":
    """The start, steps between and the end, one row for each method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 8.0), dpi=80, layout="constrained")
    limits = _limits(Y, flows)
    last = len(flows[0].points) - 1
    frames = [0, last // 4, last // 2, last]
    for axes, each in zip(figure.subplots(len(flows), 4, squeeze=False), flows, strict=True):
        for ax, frame in zip(axes, frames, strict=True):
            _draw(ax, Y, each, frame, limits)
            ax.set_title(f"step {each.steps[frame]:,}", fontsize=9)
        axes[0].set_ylabel(each.setting.name)
        axes[3].set_title(
            f"step {each.steps[last]:,}: {sinkhorn_divergence(each.points[last], Y):.5f} from the target", fontsize=9
        )
    return figure


def _animation(Y: Any, flows: list[Flow]) -> bytes:
    """The flows side by side, as a GIF."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    limits = _limits(Y, flows)
    pictures = []
    for frame in range(len(flows[0].points)):
        figure = Figure(figsize=(3.0 * len(flows), 2.8), dpi=64, layout="constrained")
        canvas: Any = FigureCanvasAgg(figure)
        for ax, each in zip(figure.subplots(1, len(flows), squeeze=False)[0], flows, strict=True):
            _draw(ax, Y, each, frame, limits)
            ax.set_title(f"{each.setting.name}: step {each.steps[frame]:,}", fontsize=9)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]
        pictures.append(Image.fromarray(np.ascontiguousarray(pixels)).quantize(32, dither=Image.Dither.NONE))
    file = io.BytesIO()
    durations = [100] * (len(pictures) - 1) + [2000]
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True)
    return file.getvalue()
