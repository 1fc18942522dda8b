"""Labels of clusters that moved, in other proportions, with outliers: `TransportClassifier` and nearest neighbours."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import ot
from sklearn.neighbors import KNeighborsClassifier

from sparsetransport.estimators import TransportClassifier

from .table import Table, best_time, seconds

SEEDS = range(100, 120)  # the defaults were chosen on seeds below 100
EVEN, SKEWED = np.full(4, 0.25), np.array([0.55, 0.25, 0.15, 0.05])
SHIFTS, MIXES, DIRT = (0.0, 0.8, 1.5), (0.0, 0.5, 1.0), (False, True)


class _Balanced:
    """Exact transport with hard, uniform marginals; a new point takes the class that most of its mass comes from."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "_Balanced":
        self.X, self.y = X, y
        return self

    def predict(self, new: np.ndarray) -> np.ndarray:
        plan = ot.emd([], [], ot.dist(self.X, new))
        return np.array([plan[self.y == label].sum(axis=0) for label in range(4)]).argmax(axis=0)


SAME, HARD = "3 nearest neighbours", "balanced transport (`ot.emd`)"
OURS = "`TransportClassifier()`: 3 links, weights (1, 10)"
METHODS: dict[str, Callable[[], Any]] = {
    SAME: lambda: KNeighborsClassifier(3),
    "5 nearest neighbours": lambda: KNeighborsClassifier(5),
    "10 nearest neighbours": lambda: KNeighborsClassifier(10),
    HARD: _Balanced,
    OURS: TransportClassifier,
    "5 links": lambda: TransportClassifier(5),
    "3 links, weights (0.1, 10)": lambda: TransportClassifier(unbalanced=(0.1, 10.0)),
    "3 links, weights (10, 10)": lambda: TransportClassifier(unbalanced=(10.0, 10.0)),
}


def run() -> list[Table]:
    return [_accuracy(), _time()]


def _accuracy() -> Table:
    right: dict[tuple[Any, ...], list[float]] = {}
    for shift, mix, dirty, seed in product(SHIFTS, MIXES, DIRT, SEEDS):
        X, y, new, truth = clusters(seed, shift, mix, dirty=dirty)
        for name, make in METHODS.items():
            predicted = make().fit(X, y).predict(new)
            right.setdefault((name, shift, mix), []).append(np.mean((predicted == truth)[truth >= 0]))
    cases = list(product(SHIFTS, MIXES))
    mean = {key: float(np.mean(values)) for key, values in right.items()}
    overall = {name: float(np.mean([mean[name, *case] for case in cases])) for name in METHODS}
    table = Table(
        "Labels of 200 new points from 200 labelled ones: share that is right (shift of the new points; how far their "
        "proportions are from even to 55:25:15:5)",
        ["", *(f"{shift:g}; {mix:g}" for shift, mix in cases), "mean"],
        [[name, *(f"{mean[name, *case]:.3f}" for case in cases), f"{overall[name]:.3f}"] for name in METHODS],
        notes=[
            "Four Gaussian clusters in ten dimensions, centres with standard deviation 1.4, even proportions among the "
            f"labelled points; {len(SEEDS)} seeds, each without and with outliers (a tenth of the labelled points far "
            "out, a tenth with random labels, a twentieth of the new points far out, which are not counted)."
        ],
    )
    neighbours, balanced, ours = (overall[name] for name in (SAME, HARD, OURS))
    table.claim(f"better on average than as many neighbours ({ours:.3f} and {neighbours:.3f})", ours > neighbours)
    table.claim(f"better on average than balanced transport ({balanced:.3f})", ours > balanced)
    worst = min(mean[OURS, *case] - mean[SAME, *case] for case in cases)
    table.claim(f"never worse than as many neighbours (at worst {worst:+.3f})", worst >= 0.0)
    return table


def clusters(seed: int, shift: float, mix: float, *, dirty: bool, size: int = 200) -> tuple[np.ndarray, ...]:
    """Labelled points, their labels, new points, and theirs; −1 for outliers."""
    rng = np.random.default_rng(seed)
    centres = 1.4 * rng.normal(size=(4, 10))
    y, truth = rng.choice(4, size, p=EVEN), rng.choice(4, size, p=(1.0 - mix) * EVEN + mix * SKEWED)
    X = centres[y] + rng.normal(size=(size, 10))
    new = centres[truth] + rng.normal(size=(size, 10)) + shift * rng.normal(size=10)
    if dirty:
        far, wrong, lost = rng.random(size) < 0.1, rng.random(size) < 0.1, np.arange(size) < size // 20
        X[far] = rng.uniform(-6.0, 6.0, (int(far.sum()), 10))
        y[far | wrong] = rng.choice(4, int((far | wrong).sum()))
        new[lost] = rng.uniform(-6.0, 6.0, (int(lost.sum()), 10))
        truth[lost] = -1
    return X, y, new, truth


def _time() -> Table:
    rows = []
    for size, links in product((500, 1000, 2000), (1, 3)):
        X, y, new, _ = clusters(0, 0.8, 0.5, dirty=False, size=size)
        model = TransportClassifier(links).fit(X, y)
        time, _ = best_time(lambda model=model, new=new: model.predict(new), repeats=0 if size * links > 3000 else 2)
        rows.append([size, links, seconds(time)])
    return Table("Time to predict, as many labelled points as new ones", ["new points", "links of each", "time"], rows)
