"""Comparison of published means with the means of our runs.

They are compared within a standard deviation and, since both are means of few runs, by Welch's test in every cell of a
table, with Holm's correction for multiple tests.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._checks import Floats
from .report import Report, Table

LEVEL = 0.05
ROUNDED = 5e-4  # published numbers have three digits


class Place(NamedTuple):
    """A cell of a published table, mean and standard deviation of so many runs, and our runs of the same."""

    name: str
    mean: float
    deviation: float
    runs: int
    ours: Sequence[float]


class Welch(NamedTuple):
    """Our mean minus the published one, its standard error, and Welch's test of the difference."""

    difference: float
    error: float
    t: float
    freedom: float
    p: float


def welch(place: Place) -> Welch:
    """Welch's t, which lets the two variances differ.

    Examples
    --------
    >>> from sparsetransport.experiments.replication import Place, welch
    >>> found = welch(Place("a", 10.0, 2.0, 5, [11.0, 13.0, 12.0, 10.0, 14.0]))
    >>> round(found.t, 3), round(found.freedom, 2), round(found.p, 3)
    (1.754, 7.6, 0.119)
    """
    from scipy.stats import ttest_ind_from_stats

    count, mean, deviation = len(place.ours), float(np.mean(place.ours)), float(np.std(place.ours, ddof=1))
    shares = deviation**2 / count, place.deviation**2 / place.runs
    error = float(np.sqrt(sum(shares)))
    if error == 0.0:
        raise ValueError(f"{place.name} must vary in our runs or in the published ones, got no deviation in either")
    freedom = error**4 / (shares[0] ** 2 / (count - 1) + shares[1] ** 2 / (place.runs - 1))
    test = ttest_ind_from_stats(mean, deviation, count, place.mean, place.deviation, place.runs, equal_var=False)
    return Welch(mean - place.mean, error, float(test.statistic), freedom, float(test.pvalue))


def holm(p: Sequence[float]) -> Floats:
    """Holm's adjusted p-values, which control the family-wise error rate.

    They are valid for any dependence between the tests.

    Examples
    --------
    >>> from sparsetransport.experiments.replication import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def compare(title: str, places: Sequence[Place]) -> tuple[Table, list[str]]:
    """A table of all places with their tests, and the names of those that differ at the 5 % level after correction."""
    formats = {"difference": "+.4f", "standard error": ".4f", "t": ".2f", "degrees of freedom": ".1f"}
    columns = ["place", "paper", "ours", "runs", *formats, "p", "p, corrected"]
    table = Table(title, columns, formats=formats | {"p": ".3f", "p, corrected": ".3f"})
    tests = [welch(place) for place in places]
    corrected = holm([test.p for test in tests])
    for place, test, p in zip(places, tests, corrected.tolist(), strict=True):
        ours = f"{np.mean(place.ours):.4f} ± {np.std(place.ours, ddof=1):.4f}"
        paper = f"{place.mean:.3f} ± {place.deviation:.3f}"
        table.rows.append([place.name, paper, ours, len(place.ours), *test, p])
    return table, [place.name for place, p in zip(places, corrected, strict=True) if p < LEVEL]


def judge(report: Report, what: str, places: Sequence[Place]) -> None:
    """Add the comparison to a report: a table, claims and notes."""
    theirs, ours = places[0].runs, len(places[0].ours)
    outside, beyond = [], []
    for place in places:
        mean, deviation = float(np.mean(place.ours)), float(np.std(place.ours, ddof=1))
        if abs(mean - place.mean) > place.deviation + ROUNDED:
            outside.append(f"{place.name}: {mean:.4f} for {place.mean:.3f} ± {place.deviation:.3f}")
        if abs(mean - place.mean) > max(place.deviation, deviation) + ROUNDED:
            beyond.append(place.name)
    report.claim(
        f"{what} gives the paper's numbers within one standard deviation in all {len(places)} places "
        f"({ours} seeds: in {len(places) - len(outside)} within the paper's, in {len(places) - len(beyond)} within the "
        "larger of its and ours)",
        not outside,
    )
    if outside:
        report.notes.append(f"Outside the paper's own standard deviation: {'; '.join(outside)}.")
    table, differing = compare(f"{what[0].upper()}{what[1:]}, {ours} seeds, against the paper", places)
    report.tables.append(table)
    report.claim(
        f"{what}: in none of the {len(places)} places do the means of the paper's {theirs} runs and of our {ours} "
        f"differ significantly (Welch's t, Holm-Bonferroni, {100 * LEVEL:g} %)"
        + (f"; they do in {'; '.join(differing)}" if differing else ""),
        not differing,
    )
    report.notes.append(
        f"The paper's numbers are means and standard deviations of {theirs} runs, so they are not exact themselves: a "
        f"mean has a standard error of its deviation over √{theirs}, and the difference of two means that of both "
        "together. p is the chance that Welch's t is as large as this if the means are the same; corrected (Holm and "
        "Bonferroni), that it is so in any of the places. The paper's digits are taken as they are. That no difference "
        "is significant does not prove that there is none: with so few runs and so many places one of four standard "
        "errors is missed more often than found."
    )
    if ours > 2 * theirs:
        report.notes.append(
            f"With {theirs} runs against {ours} Welch's approximation is eager far out in its tail: simulated, 5 "
            "against 25 find a difference in one of ten tables of 15 places that have none, not in one of 20."
        )
