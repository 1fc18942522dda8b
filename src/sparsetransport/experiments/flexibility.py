"""The data of the network-design experiment: plants, products, profits and demand scenarios."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import cost_matrix
from .._checks import Floats
from .data_files import VARIABLE, MissingDataError, find_file, folder_of

REAL = "real_process_flexibility.csv"
SCENARIOS = 20  # the first half for training, the second half held out


class Market(NamedTuple):
    """Profits, capacities, and training and test scenarios of demand; points if there are any."""

    profit: Floats  # (m, n)
    supply: Floats  # (m,)
    train: Floats  # (z, n)
    test: Floats  # (z, n)
    points: tuple[Floats, Floats] | None

    def as_published(self) -> "Market":
        """The same market with the test scenarios for training too, as published."""
        return self._replace(train=self.test)


def synthetic(seed: int, *, size: int = 100, normalised: bool = True) -> Market:
    """Plants on one side of a square and products on the other, profits their distances.

    As published, points are normalised to unit length, which makes all plants the same point.
    """
    rng = np.random.default_rng(seed)
    place = (np.arange(size) + 0.5) / size
    plants, products = np.stack([np.zeros(size), place], axis=1), np.stack([np.ones(size), place], axis=1)
    if normalised:
        plants /= np.linalg.norm(plants, axis=1, keepdims=True)
        products /= np.linalg.norm(products, axis=1, keepdims=True)
    mean = rng.uniform(5.0, 8.0, size)
    demand = rng.normal(mean[:, None], 0.5, (size, SCENARIOS)).T
    demand /= demand.sum(axis=1, keepdims=True)
    profit = cost_matrix(plants, products, "euclidean")
    supply = np.full(size, 1.0 / size)
    return Market(profit, supply, demand[: SCENARIOS // 2], demand[SCENARIOS // 2 :], (plants, products))


def find(data: Path | None) -> Path:
    """The file of the real data, in the folder given or in ``$SPARSETRANSPORT_DATA``, at any depth."""
    help_ = f"put {REAL} (price, demand_mean, demand_std) into a folder and name it with --data or ${VARIABLE}"
    folder = folder_of(data, "the real data", help_)
    found = find_file(folder, REAL)
    if found is None:
        raise MissingDataError(f"{REAL} is not under {folder}: {help_}")
    return found


def real(path: Path, seed: int) -> Market:
    """Ten products with a price and a normal demand each; plant i has the mean demand of product i as its capacity."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    price, mean, deviation = (np.array([row[name] for row in rows]) for name in ("price", "demand_mean", "demand_std"))
    rng = np.random.default_rng(seed)
    demand = np.maximum(rng.normal(mean, deviation, (SCENARIOS, len(mean))), 0.0) / mean.sum()
    profit = np.tile(price / price.max(), (len(mean), 1))
    return Market(profit, mean / mean.sum(), demand[: SCENARIOS // 2], demand[SCENARIOS // 2 :], None)
