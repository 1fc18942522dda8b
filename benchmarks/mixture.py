"""Training of the image mixture under several routers, turn by turn in one process, on an idle GPU.

    python -m benchmarks.mixture --data DIR [--own] [--epochs]

Routers take turns, so that a temporary slowdown of the machine affects all of them.
"""

import argparse
import statistics
import time
from pathlib import Path

import torch

from sparsetransport.experiments import Quiet, cifar, moe_cifar, moe_images
from sparsetransport.experiments.moe_training import BATCH, SETTINGS, Training

ROUTERS = ("top-1-default", "top-1-balanced", "ours-0.1")
WARM_STEPS = 20


def main() -> None:
    """Print how long a turn takes under each router, and ours over the others'."""
    parser = argparse.ArgumentParser(description="Time the training of moe-cifar under several routers.")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--steps", type=int, default=20, help="of a turn")
    parser.add_argument("--epochs", action="store_true", help="a turn is a whole epoch")
    parser.add_argument("--own", action="store_true", help="every expert sees its own images alone")
    given = parser.parse_args()
    full = torch.cuda.is_available()
    device = torch.device("cuda" if full else "cpu")
    size = moe_cifar.size_of(full, not given.own)
    # The test images are enough to take steps on.
    images = moe_images.prepare(cifar.load(given.data, train=given.epochs, count=size.images).images, device)
    steps = None if given.epochs else given.steps
    trainings = {name: Training(SETTINGS[name], 0, size, device) for name in ROUTERS}
    for training in trainings.values():
        # Kernels compile for a whole batch and for the last one, which is smaller.
        few = (WARM_STEPS if full else 1) * BATCH + len(images) % BATCH
        training.epoch(moe_images.Images(*(each[:few] for each in images)), Quiet())
    taken: dict[str, list[float]] = {name: [] for name in ROUTERS}
    for turn in range(given.turns):
        for name, training in trainings.items():
            begin = time.perf_counter()
            training.epoch(images, Quiet(), steps=steps)  # it waits for the device before and after
            taken[name].append(time.perf_counter() - begin)
            if given.epochs:
                print(f"{name:15s} epoch {turn + 1}: {taken[name][-1]:.2f} s", flush=True)
    unit, factor = ("s an epoch", 1.0) if steps is None else ("ms a step", 1e3 / steps)
    for name, values in taken.items():
        shown = ", ".join(f"{factor * value:.1f}" for value in values)
        print(f"{name:15s} {unit}: median {factor * statistics.median(values):.2f} of {shown}")
    ours = ROUTERS[-1]
    for name in ROUTERS[:-1]:
        turns = statistics.median(a / b for a, b in zip(taken[ours], taken[name], strict=True))
        medians = statistics.median(taken[ours]) / statistics.median(taken[name])
        print(f"{ours} / {name}: median of the turns' ratios {turns:.3f}, ratio of the medians {medians:.3f}")


if __name__ == "__main__":
    main()
