"""Accuracy at a certified epsilon on fixed public features: docs/accuracy.md and its JSON.

    python benchmarks/accuracy.py RUNS_FOLDER [--only NAME ...] [--seeds 0 1 2] [--table FILE]
        [--cifar FILE.npz]
    python benchmarks/accuracy.py RUNS_FOLDER --only few-10-60000 few-50-60000 few-200-60000
    python benchmarks/accuracy.py --page docs/accuracy.md --table docs/results/accuracy.json

Where a goal has several candidates they are first played on a sixth of the *training* records that
is held out (`--validate`, seed 0, the same rounds; fewer clients, so its own epsilon is larger and
is not quoted); `head_trials.py` narrows them down before. The best is then played on all training
records with every seed, against the test records, and so is the same head under central DP-SGD and
without privacy.
Every run is what its command says, has a folder of its own, resumes and is only read when it is
finished. The table holds nothing but figures of the runs' own reports.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from _accuracy_goals import FEW, GOALS, Changes, Goal, command, options_for
from _accuracy_page import write_page

from dpcheckin.learning import RunOptions
from dpcheckin.numerals import rounded_up


class Player:
    """Plays runs, each in a folder of its own, and keeps the data of one task in memory.

    Args:
        folder: of all runs.
        cifar: path of CIFAR-10 as .npz, None where it is among the data sets.
    """

    def __init__(self, folder: Path, cifar: str | None) -> None:
        self._folder, self._cifar = folder, cifar
        self._held: tuple[object, dict[float | None, Any]] = ((), {})

    def data(self, options: RunOptions) -> Any:
        """Records of these options, from memory if the run before had the same."""
        from dpcheckin.learning.simulation.runs import make_data

        options = self._placed(options)
        shape = (options.features, options.components, options.public, options.whitening)
        if self._held[0] != (options.data, *shape):
            self._held = ((options.data, *shape), {})
        kept = self._held[1]
        if options.validate not in kept:
            kept[options.validate] = make_data(options, lambda line: print(line, flush=True))
        return kept[options.validate]

    def _placed(self, options: RunOptions) -> RunOptions:
        """The same options with the file that holds CIFAR-10, where one was given."""
        given = self._cifar is not None and options.data == "cifar10"
        return replace(options, data=self._cifar) if given else options

    def play(self, goal: Goal, options: RunOptions, name: str) -> dict[str, Any]:
        """The report of one run, played if it was not."""
        from dpcheckin.learning.run import write_report
        from dpcheckin.learning.simulation.runs import build

        told = command(options)
        mark = hashlib.sha256(told.encode()).hexdigest()[:8]
        folder = self._folder / goal.name / f"{name}-{mark}"
        report = folder / "report.json"
        if report.is_file():
            return dict(json.loads(report.read_text()), command=told)
        options = self._placed(options)
        folder.mkdir(parents=True, exist_ok=True)
        trainer = build(options, folder, data=self.data(options))
        facts = write_report(folder, trainer, trainer.run())
        (folder / "command.txt").write_text(told)
        print(f"{goal.name}/{name}: {100 * facts['accuracy']:.2f}% at {facts['epsilon']:.4f}, "
              f"{facts['seconds']} s", flush=True)  # fmt: skip
        return dict(facts, command=told)


def chosen(player: Player, goal: Goal, label: str, candidates: tuple[Changes, ...]) -> Changes:
    """What does best on the held-out records, with what each candidate did."""
    tried: list[Changes] = []
    if len(candidates) == 1:
        return {"changes": candidates[0], "held_out": tried}
    for index, changes in enumerate(candidates):
        options = options_for(goal, changes, 0, held=True)
        facts = player.play(goal, options, f"{label}-held-out-{index}")
        tried.append({"accuracy": facts["accuracy"], "command": facts["command"]})
    best = max(range(len(tried)), key=lambda index: float(tried[index]["accuracy"]))
    return {"changes": candidates[best], "held_out": tried}


def measured(player: Player, goal: Goal, label: str, pick: Changes, seeds: Iterable[int]) -> Any:
    """The chosen settings on the test records, every seed."""
    facts = []
    for seed in seeds:
        options = options_for(goal, pick["changes"], seed, held=False)
        facts.append(player.play(goal, options, f"{label}-seed{seed}"))
    scores = [f["accuracy"] for f in facts]
    return {
        "accuracy": statistics.fmean(scores),
        "accuracies": scores,
        "epsilon": max(f["epsilon"] for f in facts),
        "delta": facts[0]["delta"],
        "rounds": facts[0]["rounds"],
        "population": facts[0]["population"],
        "randomizer": facts[0]["randomizer"],
        "statement": facts[0]["statement"],
        "command": facts[0]["command"],
        "held_out": pick["held_out"],
    }


def without_privacy(player: Player, goal: Goal, changes: Changes) -> float:
    """Test accuracy of the same head on the same features, fitted without clip or noise."""
    import torch
    from torch.nn import functional

    kept = player._folder / goal.name / "without-privacy.json"
    if kept.is_file():
        return float(json.loads(kept.read_text())["accuracy"])
    options = options_for(goal, changes, 0, held=False)
    data = player.data(options)
    head = torch.nn.Linear(data.train_inputs.shape[1], data.classes)
    solver = torch.optim.LBFGS(head.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> Any:
        solver.zero_grad()
        found = functional.cross_entropy(head(data.train_inputs), data.train_targets)
        found.backward()
        return found

    solver.step(loss)
    with torch.no_grad():
        right = (head(data.test_inputs).argmax(1) == data.test_targets).double().mean()
    kept.write_text(json.dumps({"accuracy": float(right)}))
    return float(right)


def table_row(player: Player, goal: Goal, seeds: list[int]) -> dict[str, Any]:
    """All figures of one goal."""
    pick = chosen(player, goal, "shuffled", goal.candidates)
    ours = measured(player, goal, "shuffled", pick, seeds)
    if goal.passes:
        few = {"passes": goal.passes, "population": goal.population}
        return {"task": goal.task, "epsilon_allowed": goal.epsilon, **few, "shuffled": ours}
    trusted = chosen(player, goal, "central", goal.central)
    return {
        "task": goal.task,
        "epsilon_allowed": goal.epsilon,
        "goal": goal.accuracy / 100,
        "met": ours["accuracy"] >= goal.accuracy / 100 and ours["epsilon"] <= goal.epsilon,
        "shuffled": ours,
        "central": measured(player, goal, "central", trusted, seeds),
        "without_privacy": without_privacy(player, goal, pick["changes"]),
    }


def current(goal: Goal, row: dict[str, Any] | None, count: int) -> bool:
    """Whether a row of the table has so many seeds, played with the settings of today."""
    if row is None or len(row["shuffled"]["accuracies"]) < count:
        return False
    today = [command(options_for(goal, c, 0, held=False)) for c in goal.candidates]
    return row["shuffled"]["command"] in today


def told(goal: Goal, row: dict[str, Any]) -> str:
    """A goal's figures in a line."""
    ours = row["shuffled"]
    if goal.passes:
        return f"{goal.name}: {100 * ours['accuracy']:.2f}% at {rounded_up(ours['epsilon'])}"
    trusted = row["central"]
    return (
        f"{goal.name}: {100 * ours['accuracy']:.2f}% at {rounded_up(ours['epsilon'])}, "
        f"{len(ours['accuracies'])} seeds; central {100 * trusted['accuracy']:.2f}%, without "
        f"privacy {100 * row['without_privacy']:.2f}%: {'met' if row['met'] else 'NOT MET'}"
    )


def main() -> None:
    """Play what is missing, and write the table after every goal."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=None)
    parser.add_argument("--page", type=Path, default=None, help="write the table into this page")
    parser.add_argument("--only", nargs="+", choices=[g.name for g in (*GOALS, *FEW)], default=None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--table", type=Path, default=None)
    parser.add_argument("--cifar", default=None, help="cifar10.npz")
    asked = parser.parse_args()
    rows: dict[str, Any] = {}
    if asked.table is not None and asked.table.is_file():
        rows = json.loads(asked.table.read_text())
    if asked.page is not None:
        write_page(asked.page, rows)
        return
    if asked.folder is None:
        parser.error("a folder for the runs is needed")
    torch.set_num_threads(1)
    player = Player(asked.folder, asked.cifar)
    goals = [g for g in (*GOALS, *FEW) if asked.only is None or g.name in asked.only]
    # one seed of everything before the next: a table that was interrupted has every line
    for count in range(1, len(asked.seeds) + 1):
        for goal in goals:
            if not current(goal, rows.get(goal.name), count):
                rows[goal.name] = table_row(player, goal, asked.seeds[:count])
                print(told(goal, rows[goal.name]), flush=True)
                rows = {g.name: rows[g.name] for g in (*GOALS, *FEW) if g.name in rows}
                if asked.table is not None:
                    asked.table.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
