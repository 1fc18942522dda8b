"""The methods of the word-alignment tables: the plan of each for a sentence pair, and the settings it is tuned over.

Every method has the same number of settings, `TRIALS`; the threshold above which an entry of a plan is a link is tuned
in addition. Baselines run at the tolerances and iterations of their authors' code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import sparsetransport as st
from sparsetransport._checks import Floats
from sparsetransport.apps.word_alignment import Settings, align_costs, cosines, word_costs
from sparsetransport.baselines import require_pot

from .alignment_scores import Links

TRIALS = 12
THRESHOLDS = np.linspace(0.0, 0.975, 40)
RIDGE = 1e-10
_ITERATIONS, _TOLERANCE = 1000, 1e-6  # of Arase et al. (2023)
Trial = Mapping[str, Any]


class Pair:
    """A sentence pair for all methods: cosines between and within the sentences, after subtracting the mean vector."""

    def __init__(self, first: Any, second: Any, centre: Floats) -> None:
        self.between = cosines(first, second, centre)
        self.within = cosines(first, first, centre), cosines(second, second, centre)

    def cost(self, trial: Trial) -> Floats:
        """The costs between words, from 0 to 1."""
        return word_costs(self.between, trial["distortion"], trial.get("smoothing", 0.0))

    def problem(self, trial: Trial) -> st.Problem:
        """The paper's problem: mass one for each word, kernels on the cosine distances within the sentences."""
        cost = self.cost(trial)
        kernels: Any = st.Delta()
        if "kernel" in trial:
            kernels = tuple(_gram(1.0 - within, trial["kernel"], trial["bandwidth"]) for within in self.within)
        return st.Problem.from_matrices(
            cost, *map(np.ones, cost.shape), kernels=kernels, unbalanced=trial["unbalanced"], reg=trial.get("reg", 0.0)
        )


def _gram(distance: Floats, kernel: str, share: float) -> Floats:
    """The RBF or IMQ kernel of distances in place of squared ones, with a share of their mean as σ²."""
    square = np.maximum(distance, 0.0)
    sigma2 = max(share * float(square.mean()), 1e-9)
    gram = np.exp(-square / (2.0 * sigma2)) if kernel == "rbf" else (sigma2 + square) ** -0.5
    return np.asarray(0.5 * (gram + gram.T) + RIDGE * np.eye(len(gram)))


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes
    ----------
    name : str
    trials : list of dict
        The settings to choose from on dev.
    plan : callable
        The plan for a pair and a setting, as a matrix; None for ours, which computes links from costs directly.
    """

    name: str
    trials: Sequence[Trial]
    plan: Callable[[Pair, Trial], Floats] | None

    def plans(self, pairs: Sequence[Pair], trial: Trial) -> list[Floats]:
        """The scaled plans; for ours, the costs."""
        if self.plan is None:
            return [pair.cost(trial) for pair in pairs]
        return [_scaled(self.plan(pair, trial)) for pair in pairs]

    def links(self, plans: Sequence[Floats], trial: Trial, threshold: float) -> list[Links]:
        """The links at a threshold."""
        if self.plan is None:
            found = align_costs(plans, settings(trial, threshold))
            return [frozenset(links) for links, _ in found]
        return [frozenset((i, j) for i, j in np.argwhere(plan > threshold).tolist()) for plan in plans]


def settings(trial: Trial, threshold: float) -> Settings:
    """A trial of ours as settings of the aligner."""
    return Settings(**trial, threshold=threshold)


def _scaled(plan: Floats) -> Floats:
    """The plan scaled to values from 0 to 1; a plan without mass is not changed."""
    low, high = float(plan.min()), float(plan.max())
    return plan if high <= 0.0 else np.asarray((plan - low + 1e-10) / (high - low + 1e-10))


def mutual_argmax(pair: Pair, trial: Trial) -> Floats:
    """The similarity of words that are mutual nearest neighbours, and zero elsewhere."""
    cost = pair.cost(trial)
    nearest = (cost == cost.min(axis=0)) & (cost == cost.min(axis=1)[:, None])
    return np.where(nearest, 1.0 - cost, 0.0)


def bot(pair: Pair, trial: Trial) -> Floats:
    """Balanced entropic OT."""
    cost = pair.cost(trial)
    a, b = (np.full(size, 1.0 / size) for size in cost.shape)
    limits = {"numItermax": _ITERATIONS, "stopThr": _TOLERANCE, "warn": False}
    return np.asarray(require_pot().bregman.sinkhorn(a, b, cost, trial["epsilon"], **limits))


def partial(pair: Pair, trial: Trial) -> Floats:
    """Entropic partial OT."""
    cost = pair.cost(trial)
    a, b = map(np.ones, cost.shape)
    mass = trial["share"] * min(cost.shape)
    limits = {"numItermax": _ITERATIONS, "stopThr": _TOLERANCE}
    return np.asarray(
        require_pot().partial.entropic_partial_wasserstein(a, b, cost, trial["epsilon"], m=mass, **limits)
    )


def kl_uot(pair: Pair, trial: Trial) -> Floats:
    """Entropic OT with Kullback-Leibler marginals."""
    cost = pair.cost(trial)
    a, b = map(np.ones, cost.shape)
    limits = {"numItermax": _ITERATIONS, "stopThr": _TOLERANCE}
    found = require_pot().unbalanced.sinkhorn_stabilized_unbalanced(
        a, b, cost, trial["epsilon"], trial["rho"], **limits
    )
    return np.asarray(found)


def ssot(pair: Pair, trial: Trial) -> Floats:
    """Balanced OT with a quadratic term."""
    cost = pair.cost(trial)
    a, b = (np.full(size, 1.0 / size) for size in cost.shape)
    return np.asarray(require_pot().smooth.smooth_ot_dual(a, b, cost, trial["rho"], stopThr=_TOLERANCE, numItermax=200))


def mmd_uot(pair: Pair, trial: Trial) -> Floats:
    """The unbudgeted optimum of the paper's objective, solved exactly."""
    return np.asarray(st.solve(pair.problem(trial)).plan)


def gen_sparse_uot(pair: Pair, trial: Trial) -> Floats:
    """The paper's objective and budget."""
    m, n = pair.between.shape
    budget = {"min": min(m, n), "max": max(m, n), "sum": m + n}[trial["budget"]]
    return np.asarray(st.solve(pair.problem(trial), budget=min(budget, m * n)).plan)


def _grid(**choices: Sequence[Any]) -> list[Trial]:
    """Every combination."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


DISTORTIONS = (0.0, 0.1, 0.2)
OURS = Method(
    "ours",
    _grid(
        distortion=(0.1,),
        smoothing=(0.1, 0.2, 0.3),
        neighbours=(0.1, 0.2),
        unbalanced=(0.5,),
        phrases=(0.12, 0.15),
    ),
    None,
)
METHODS = [
    Method("mutual argmax", _grid(distortion=np.linspace(0.0, 0.55, TRIALS).round(2).tolist()), mutual_argmax),
    Method("BOT", _grid(distortion=DISTORTIONS, epsilon=(0.03, 0.05, 0.1, 0.2)), bot),
    Method(
        "POT",
        _grid(distortion=DISTORTIONS, epsilon=(0.05, 0.07, 0.1), share=(1.0,))
        + _grid(distortion=DISTORTIONS, epsilon=(0.07,), share=(0.98,)),
        partial,
    ),
    Method("KL-UOT", _grid(distortion=DISTORTIONS, epsilon=(0.05, 0.1), rho=(0.3, 1.0)), kl_uot),
    Method("SSOT", _grid(distortion=DISTORTIONS, rho=(0.3, 1.0, 3.0, 10.0)), ssot),
    Method(
        "MMD-UOT",
        _grid(distortion=(0.1,), kernel=("rbf", "imq"), bandwidth=(0.125, 1.0, 4.0), unbalanced=(1.0, 10.0)),
        mmd_uot,
    ),
    Method(
        "GenSparseUOT",
        _grid(
            distortion=(0.1,),
            kernel=("rbf", "imq"),
            bandwidth=(0.125, 4.0),
            unbalanced=(1.0,),
            reg=(0.1,),
            budget=("min", "max", "sum"),
        ),
        gen_sparse_uot,
    ),
    OURS,
]
"""The rows of the table, in its order."""
