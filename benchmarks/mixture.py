"""Steps of the image mixture's training under several routers, turn by turn in one process, on an idle GPU.

    python -m benchmarks.mixture --data DIR [--masked]

Turns alternate so that what slows the machine down for a while slows all of them.
"""

import argparse
import statistics
import time
from pathlib import Path

import torch

from sparsetransport.experiments import Quiet, cifar, moe_cifar, moe_images
from sparsetransport.experiments.moe_training import SETTINGS, Training

ROUTERS = ("top-1-default", "top-1-balanced", "ours-0.1")


def main() -> None:
    """Print the milliseconds of a step, and ours over the others'."""
    parser = argparse.ArgumentParser(description="Time steps of moe-cifar under several routers.")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--steps", type=int, default=20, help="of a turn")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--masked", action="store_true", help="all experts see all images, as published")
    given = parser.parse_args()
    full = torch.cuda.is_available()
    device = torch.device("cuda" if full else "cpu")
    size = moe_cifar.size_of(full, given.masked)
    # The test images are enough to take steps on.
    images = moe_images.prepare(cifar.load(given.data, train=False, count=size.images).images, device)
    trainings = {name: Training(SETTINGS[name], 0, size, device) for name in ROUTERS}
    for training in trainings.values():
        training.epoch(images, Quiet(), steps=20 if full else 1)
    taken: dict[str, list[float]] = {name: [] for name in ROUTERS}
    for _ in range(given.turns):
        for name, training in trainings.items():
            begin = time.perf_counter()
            training.epoch(images, Quiet(), steps=given.steps)  # it waits for the device before and after
            taken[name].append(1e3 * (time.perf_counter() - begin) / given.steps)
    for name, values in taken.items():
        shown = ", ".join(f"{value:.1f}" for value in values)
        print(f"{name:15s} ms a step: median {statistics.median(values):.2f} of {shown}")
    ours = ROUTERS[-1]
    for name in ROUTERS[:-1]:
        turns = statistics.median(a / b for a, b in zip(taken[ours], taken[name], strict=True))
        medians = statistics.median(taken[ours]) / statistics.median(taken[name])
        print(f"{ours} / {name}: median of the turns' ratios {turns:.3f}, ratio of the medians {medians:.3f}")


if __name__ == "__main__":
    main()
