"""Accuracy at a certified epsilon on fixed public features: docs/accuracy.md and its JSON.

    python benchmarks/accuracy.py RUNS_FOLDER [--only NAME ...] [--seeds 0 1 2] [--table FILE]
        [--cifar FILE.npz]
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
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpcheckin.accounting.statements import rounded_up
from dpcheckin.learning import RunOptions, Settings

HELD_OUT = 1 / 6
Changes = dict[str, Any]
TASKS: dict[str, Changes] = {
    "mnist": {
        "data": "mnist",
        "features": "scattering",
        "components": 600,
        "public": "fashion-mnist",
    },
    "fashion-mnist": {
        "data": "fashion-mnist",
        "features": "scattering",
        "components": 300,
        "public": "mnist",
    },
    "cifar10-scattering": {
        "data": "cifar10",
        "features": "scattering",
        "components": 600,
        "public": "dead-leaves",
    },
    "cifar10-imagenet": {
        "data": "cifar10",
        "features": "efficientnet-lite0",
        "components": 400,
        "public": "dead-leaves",
    },
}
COMMON: Changes = {
    "rate": 0.1,
    "schedule": "linear",
    "evaluate_every": 100_000,
    "threads": 1,
    "checkpoint_every": 500,
}


@dataclass(frozen=True)
class Goal:
    """One line of the table: what is wanted, and what is tried for it.

    Args:
        task: key of `TASKS`.
        epsilon: that must not be passed.
        accuracy: hoped for, in per cent.
        candidates: settings from which the held-out records choose.
        central: the same for central DP-SGD.
    """

    task: str
    epsilon: float
    accuracy: float
    candidates: tuple[Changes, ...]
    central: tuple[Changes, ...]

    @property
    def name(self) -> str:
        return f"{self.task}-{self.epsilon:g}"


def privunit(local_epsilon: float, rounds: int, **more: Any) -> Changes:
    """PrivUnit reports through the shuffler; rounds as `dpcheckin plan` affords them."""
    return {"local_epsilon": local_epsilon, "rounds": rounds, "averaging": 0.99, **more}


def central(noise: float, rounds: int, **more: Any) -> Changes:
    """Central DP-SGD at the same rate: a trusted server adds the noise once a round."""
    given = {"protocol": "central", "randomizer": "gaussian", "noise_multiplier": noise}
    return {**given, "rounds": rounds, "averaging": 0.9, **more}


GOALS = (
    Goal(
        "mnist",
        0.5,
        96.5,
        (privunit(2.0, 1638, learning_rate=2.0, clip=0.5, whitening=0.6),),
        (central(14.0, 391, learning_rate=10.0, clip=0.5, whitening=0.6),),
    ),
    Goal(
        "mnist",
        1.0,
        97.5,
        (privunit(2.0, 5820, learning_rate=0.9, clip=0.5, whitening=0.7),),
        (central(8.0, 448, learning_rate=20.0, clip=0.5, whitening=0.7),),
    ),
    Goal(
        "mnist",
        3.0,
        98.1,
        (privunit(4.0, 3728, learning_rate=3.5, clip=0.4, whitening=0.8),),
        (central(4.0, 781, learning_rate=20.0, clip=0.4, whitening=0.8),),
    ),
    Goal(
        "fashion-mnist",
        1.0,
        84.0,
        (privunit(2.5, 2974, learning_rate=4.0, clip=0.5, whitening=0.7),),
        (central(8.0, 448, learning_rate=20.0, clip=0.5, whitening=0.7),),
    ),
    Goal(
        "fashion-mnist",
        3.0,
        86.5,
        (privunit(4.0, 3728, learning_rate=4.0, clip=0.5, whitening=0.7, components=600),),
        (central(4.0, 781, learning_rate=20.0, clip=0.5, whitening=0.7, components=600),),
    ),
    Goal(
        "cifar10-scattering",
        3.0,
        55.0,
        (privunit(4.0, 3107, learning_rate=4.0, clip=0.5, whitening=0.5),),
        (central(4.0, 781, learning_rate=20.0, clip=0.5, whitening=0.5),),
    ),
    Goal(
        "cifar10-imagenet",
        1.0,
        76.0,
        (privunit(2.5, 2479, learning_rate=1.8, clip=0.5, whitening=0.7),),
        (central(8.0, 448, learning_rate=20.0, clip=0.5, whitening=0.7),),
    ),
    Goal(
        "cifar10-imagenet",
        3.0,
        80.0,
        (privunit(4.0, 3107, learning_rate=3.8, clip=0.5, whitening=0.7),),
        (central(4.0, 781, learning_rate=20.0, clip=0.5, whitening=0.7),),
    ),
)


def options_for(goal: Goal, changes: Changes, seed: int, held: bool) -> RunOptions:
    """The options of one run: task, settings, seed, and the budget unless it only chooses."""
    given = {**TASKS[goal.task], **COMMON, **changes, "seed": seed}
    given |= {"validate": HELD_OUT} if held else {"epsilon_budget": goal.epsilon}
    learning = {f.name for f in fields(Settings)}
    settings = Settings(**{k: v for k, v in given.items() if k in learning})
    return RunOptions(**{k: v for k, v in given.items() if k not in learning}, settings=settings)


def command(options: RunOptions) -> str:
    """The same run as a command line, naming what differs from the defaults."""
    plain = RunOptions()
    words = ["dpcheckin train"]
    for made, default in ((options, plain), (options.settings, plain.settings)):
        for field in fields(made):
            value = getattr(made, field.name)
            if field.name != "settings" and value != getattr(default, field.name):
                words.append(f"--{field.name.replace('_', '-')} {value}")
    return " ".join(words)


class Player:
    """Plays runs, each in a folder of its own, and keeps the data of one task in memory.

    Args:
        folder: of all runs.
        cifar: path of CIFAR-10 as .npz, None where it is among the data sets.
    """

    def __init__(self, folder: Path, cifar: str | None) -> None:
        self._folder, self._cifar = folder, cifar
        self._held: tuple[object, Any] | None = None

    def data(self, options: RunOptions) -> Any:
        """Records of these options, from memory if the run before had the same."""
        from dpcheckin.learning.simulation.runs import make_data

        options = self._placed(options)
        shape = (options.features, options.components, options.public, options.whitening)
        key = (options.data, *shape, options.validate)
        if self._held is None or self._held[0] != key:
            self._held = (key, make_data(options, lambda line: print(line, flush=True)))
        return self._held[1]

    def _placed(self, options: RunOptions) -> RunOptions:
        """The same options with the file that holds CIFAR-10, where one was given."""
        given = self._cifar is not None and options.data == "cifar10"
        return replace(options, data=self._cifar) if given else options

    def play(self, goal: Goal, options: RunOptions, name: str) -> dict[str, Any]:
        """The report of one run, played if it was not."""
        from dpcheckin.learning.report import write_report
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
        facts = write_report(folder, trainer, trainer.run(), options)
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


def played(row: dict[str, Any] | None) -> int:
    """Seeds that a row of the table has."""
    return 0 if row is None else len(row["shuffled"]["accuracies"])


def told(goal: Goal, row: dict[str, Any]) -> str:
    """A goal's figures in a line."""
    ours, trusted = row["shuffled"], row["central"]
    return (
        f"{goal.name}: {100 * ours['accuracy']:.2f}% at {rounded_up(ours['epsilon'])}, "
        f"{len(ours['accuracies'])} seeds; central {100 * trusted['accuracy']:.2f}%, without "
        f"privacy {100 * row['without_privacy']:.2f}%: {'met' if row['met'] else 'NOT MET'}"
    )


PAGE_HEAD = (
    "| data | ε, certified | test accuracy | goal | central DP-SGD | loss in points "
    "| without privacy |",
    "|---|---|---|---|---|---|---|",
)
NAMES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10-scattering": "CIFAR-10, scattering",
    "cifar10-imagenet": "CIFAR-10, ImageNet features",
}


def page_row(row: dict[str, Any]) -> str:
    """A goal as a line of the page: ours rounded down, the loss against central up."""
    ours, trusted = row["shuffled"], row["central"]
    scores = [math.floor(1e4 * score + 1e-6) / 100 for score in ours["accuracies"]]
    spread = f"{len(scores)} seeds, {min(scores):.2f}–{max(scores):.2f}"
    spread = "one seed" if len(scores) == 1 else spread
    loss = math.ceil(1e4 * (trusted["accuracy"] - ours["accuracy"]) - 1e-6) / 100
    accuracy = math.floor(1e4 * ours["accuracy"] + 1e-6) / 100
    return (
        f"| {NAMES[row['task']]} | {rounded_up(ours['epsilon'])} | {accuracy:.2f}% ({spread}) "
        f"| {100 * row['goal']:g}%: {'met' if row['met'] else 'missed'} "
        f"| {100 * trusted['accuracy']:.2f}% at {rounded_up(trusted['epsilon'])} | {loss:.2f} "
        f"| {100 * row['without_privacy']:.2f}% |"
    )


def write_page(page: Path, rows: dict[str, Any]) -> None:
    """Put the table between the page's marks, and the picture beside the page."""
    from matplotlib.figure import Figure

    lines = [*PAGE_HEAD, *(page_row(rows[g.name]) for g in GOALS if g.name in rows)]
    before, _, rest = page.read_text().partition("<!-- table -->\n")
    _, _, after = rest.partition("<!-- end of table -->\n")
    block = "\n".join(["<!-- table -->", *lines, "", "<!-- end of table -->", ""])
    page.write_text(before + block + after)
    figure = Figure(figsize=(9, 4), layout="constrained")
    tasks = [t for t in TASKS if any(row["task"] == t for row in rows.values())]
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        some = sorted((r for r in rows.values() if r["task"] == task), key=lambda r: r["goal"])
        for label, colour in (("shuffled", "#0b7268"), ("central", "#8a5a00")):
            points = [(r[label]["epsilon"], s) for r in some for s in r[label]["accuracies"]]
            axes.plot([p[0] for p in points], [100 * p[1] for p in points], "o", color=colour,
                      label={"shuffled": "shuffled, nobody trusted with data"}.get(
                          label, "central DP-SGD (add or remove)"))  # fmt: skip
        best = max(100 * r["without_privacy"] for r in some)
        axes.axhline(best, color="#555", linestyle=":", label="without privacy")
        axes.set_title(NAMES[task].replace(", ", "\n"), fontsize=10)
        axes.set_xscale("log")
        axes.set_xlim(0.3, 5.0)
        axes.set_xticks([0.5, 1.0, 3.0], ["0.5", "1", "3"])
        axes.minorticks_off()
        axes.set_xlabel("certified ε at δ = 1e-5")
        axes.set_ylabel("test accuracy, %")
        axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(page.parent / "images" / "accuracy.png", dpi=110)


def main() -> None:
    """Play what is missing, and write the table after every goal."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=None)
    parser.add_argument("--page", type=Path, default=None, help="write the table into this page")
    parser.add_argument("--only", nargs="+", choices=[g.name for g in GOALS], default=None)
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
    goals = [g for g in GOALS if asked.only is None or g.name in asked.only]
    # one seed of everything before the next: a table that was interrupted has every line
    for count in range(1, len(asked.seeds) + 1):
        for goal in goals:
            if played(rows.get(goal.name)) < count:
                rows[goal.name] = table_row(player, goal, asked.seeds[:count])
                print(told(goal, rows[goal.name]), flush=True)
                if asked.table is not None:
                    asked.table.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
