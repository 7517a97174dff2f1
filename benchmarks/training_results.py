"""The MNIST results of docs/training.md: the commands, and one table written from their reports.

    python benchmarks/training_results.py RUNS_FOLDER [--only NAME ...] [--seeds 0 1 2]
        [--workers 2] [--table FILE]

Each run is `dpcheckin train` with the arguments below, in a folder of its own (NAME for seed 0,
NAME-seed1, … for others): interrupted runs resume, finished ones are only read. The table
(docs/results/mnist.json) holds nothing but figures from the runs' own reports; with several seeds
`accuracy` is their mean and `accuracies` has each. One seed of all runs takes about two hours on
two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMON = ["--data", "mnist", "--threads", "1", "--schedule", "linear", "--json"]
RUNS: dict[str, list[str]] = {
    # P3's run: 2,000 of 60,000 clients, local epsilon 2 (the paper: 89.7% at epsilon 5.8)
    "p3": [
        *("--protocol", "subsampled-shuffle", "--local-epsilon", "2", "--rounds", "6000"),
        *("--rate", "0.03333333333333333", "--learning-rate", "0.1", "--averaging", "0.99"),
        *("--evaluate-every", "100", "--checkpoint-every", "50"),
    ],
    # epsilon at most 1
    "eps1": [
        *("--local-epsilon", "4", "--rate", "0.1", "--rounds", "515", "--clip", "3"),
        *("--learning-rate", "0.9", "--averaging", "0.95"),
        *("--evaluate-every", "50", "--checkpoint-every", "25"),
    ],
    # epsilon at most 3 (the paper: 81.15%)
    "eps3": [
        *("--local-epsilon", "5", "--rate", "0.1", "--rounds", "1276", "--clip", "2"),
        *("--learning-rate", "0.6", "--averaging", "0.95"),
        *("--evaluate-every", "50", "--checkpoint-every", "25"),
    ],
    # the same with Gaussian reports, under the theorem's guarantee
    "eps3-gaussian": [
        *("--randomizer", "gaussian", "--noise-multiplier", "1", "--rate", "0.1"),
        *("--rounds", "1500", "--clip", "2", "--learning-rate", "0.5", "--averaging", "0.95"),
        *("--evaluate-every", "250", "--checkpoint-every", "25"),
    ],
}
KEPT = ("protocol", "randomizer", "rounds", "planned_rounds", "accuracy", "epsilon", "delta", "clip")


def play(name: str, seed: int, folder: Path, workers: int, stop_after: int | None) -> dict[str, object]:
    """Run (or take up, or just read) one run and return the figures of its report."""
    out = folder / (name if seed == 0 else f"{name}-seed{seed}")
    command = ["train", *COMMON, "--seed", str(seed), *RUNS[name], "--out", str(out)]
    if workers > 1:
        command += ["--backend", "processes", "--workers", str(workers)]
    if stop_after is not None:
        command += ["--stop-after", str(stop_after)]
    done = subprocess.run(
        [sys.executable, "-c", "from dpcheckin.cli import main; main()", *command],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    facts = json.loads(done.stdout)
    facts["planned_rounds"] = int(RUNS[name][RUNS[name].index("--rounds") + 1])
    return {key: facts[key] for key in KEPT}


def summed_up(name: str, seeds: list[int], found: list[dict[str, Any]]) -> dict[str, object]:
    """One row: the mean accuracy over the seeds, everything else alike for all of them."""
    accuracies = [one.pop("accuracy") for one in found]
    if any(one != found[0] for one in found):
        raise SystemExit(f"{name}: the runs of different seeds differ in more than accuracy")
    return {
        **found[0],
        "seeds": seeds,
        "accuracies": accuracies,
        "accuracy": sum(accuracies) / len(accuracies),
        "command": "dpcheckin " + " ".join(["train", *COMMON, *RUNS[name], "--seed", "SEED"]),
    }


def main() -> None:
    """Play the runs and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=list(RUNS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--stop-after", type=int, default=None)
    parser.add_argument("--table", type=Path, default=Path("docs/results/mnist.json"))
    options = parser.parse_args()
    table = json.loads(options.table.read_text()) if options.table.exists() else {}
    for name in options.only:
        found = [play(name, seed, options.folder, options.workers, options.stop_after) for seed in options.seeds]
        table[name] = summed_up(name, options.seeds, found)
        print(name, json.dumps(table[name]), flush=True)
        options.table.parent.mkdir(parents=True, exist_ok=True)
        options.table.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
