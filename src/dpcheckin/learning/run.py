"""A run from the call to its page: any torch model on anybody's data, watched to its end, with price and report.

A report is `report.json`, `accuracy.png` (accuracy against epsilon) and `report.html` in the run's folder, with
`certificate.json` where certificates cover the run. Its table of settings is read from the description of the options.
"""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpcheckin.accounting.proof.certificate import beside
from dpcheckin.console import waiting
from dpcheckin.display import told
from dpcheckin.document import Document, Table, versions
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.handover import CARD, card_beside
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.data.fleet import Bootstrapped, Fleet, GroupedByOwner
from dpcheckin.learning.data.own import OWN, client_data
from dpcheckin.learning.models import (
    ACCURACY,
    Loss,
    PerRecord,
    Score,
    count_parameters,
    cross_entropy,
    described,
    mean_loss,
    squared_error,
)
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.simulation.runs import build
from dpcheckin.learning.simulation.training import BASELINES, OnRound, Outcome, Trainer
from dpcheckin.numerals import rounded_up
from dpcheckin.options import changed, options_of


def summary(trainer: Trainer, outcome: Outcome, data_name: str | None = None) -> dict[str, Any]:
    """The figures of a finished run, a trainer with its outcome, as plain data.

    The options that it was built from, if it was, name the data unless `data_name` does.
    """
    options = trainer.options
    guarantee, score, work = outcome.guarantee, outcome.scored, trainer.work
    reached = [row[score.name] for row in outcome.log]
    best = outcome.log[reached.index(score.better(reached))]
    validated = options is not None and options.validate is not None
    name = data_name or (None if options is None else options.data)
    layers = described(work.module)
    if options is not None and options.model != "auto":
        layers = f"{options.model} ({layers})"
    return {
        "protocol": trainer.plan.describe(),
        "randomizer": trainer.plan.randomizer.describe(),
        "rounds": outcome.rounds,
        "stopped_by_budget": outcome.stopped_by_budget,
        score.name: outcome.score,
        f"best_{score.name}": best[score.name],
        "reached": f"{score.label} {score.text(outcome.score)}",
        "best_round": best["round"],
        "epsilon": None if guarantee is None else guarantee.epsilon.upper,
        "epsilon_lower": None if guarantee is None else guarantee.epsilon.lower,
        "delta": trainer.delta,
        "epsilon_budget": trainer.epsilon_budget,
        "baselines": dict(outcome.baselines),
        "beside": outcome.beside,
        "statement": None if guarantee is None else str(guarantee),
        "settings": trainer.settings.to_json(),
        "reports": work.reports.value,
        "clip": work.randomizer.clip,
        "per_tensor_clipping": work.per_tensor,
        "seconds": round(outcome.seconds, 1),
        "evaluated_on": "training records held out" if validated else "test records",
        "data": _dealt(work.fleet) if name is None else f"{name}: {_dealt(work.fleet)}",
        "model": f"{layers}; {count_parameters(work.module):,} parameters",
        "population": work.fleet.population,
        "records": _records(work.fleet),
    }


_ON_CARD = ("protocol", "randomizer", "population", "rounds", "clip", "data", "model")


def _records(fleet: Fleet) -> int:
    return len(getattr(fleet, "targets", ()))


def _dealt(fleet: Fleet) -> str:
    """Who holds which records; those that many clients share are said to be shared."""
    records, clients = f"{_records(fleet):,} records", f"{fleet.population:,} clients"
    if _records(fleet) == fleet.population:
        return f"{records}, one a client"
    if isinstance(fleet, GroupedByOwner):
        return f"{records} of {clients}, their owners"
    if not isinstance(fleet, Bootstrapped):
        return f"{records}, dealt to {clients}"
    share = fleet.population / _records(fleet)
    held = f"about {share:,.0f} of them hold" if share >= 2 else "several may hold"
    return f"{records}, dealt to {clients} with replacement: {held} the same one"


def write_report(folder: Path, trainer: Trainer, outcome: Outcome, data_name: str | None = None) -> dict[str, Any]:
    """Write all files to an existing folder and return the `summary` of trainer, outcome and data_name."""
    facts = summary(trainer, outcome, data_name)
    (folder / "report.json").write_text(json.dumps(facts, indent=1) + "\n")
    picture = folder / "accuracy.png"
    _plot(picture, outcome.log, outcome.scored)
    stated = outcome.guarantee
    proof = "none: no guarantee" if stated is None else beside(stated, folder)
    if stated is not None:
        card_beside(folder, "training run", stated, {name: facts[name] for name in _ON_CARD}, proof)
    page = _document(facts, outcome.scored, picture, trainer.options or trainer.settings, proof)
    page.write(folder / "report.html")
    return facts


def _document(facts: dict[str, Any], score: Score, picture: Path, options: object, proof: Path | str) -> Document:
    epsilon = facts["epsilon"]
    spent = "no guarantee" if epsilon is None else f"ε ≤ {rounded_up(epsilon)}"
    reached, best = score.text(facts[score.name], 1), score.text(facts[f"best_{score.name}"], 1)
    clipping = "per tensor" if facts["per_tensor_clipping"] else "whole gradient"
    rows: dict[str, object] = {
        "data": facts["data"],
        "evaluated on": facts["evaluated_on"],
        "model": facts["model"],
        "protocol": facts["protocol"],
        "randomizer": facts["randomizer"],
        f"best {score.label}": f"{best} after round {facts['best_round']:,}",
        "clip": f"{facts['clip']:g}, {clipping}",
        **{f"the same model {BASELINES[name]}": score.text(x, 1) for name, x in facts["baselines"].items()},
        "reports": facts["reports"],
        "budget": "none" if (most := facts["epsilon_budget"]) is None else f"ε ≤ {most:g}",
        "stopped by the budget": "yes" if facts["stopped_by_budget"] else "no",
        "certificate": proof,
        "privacy card": "none: no guarantee" if epsilon is None else Path(CARD),
    }
    title = f"{reached if score.percent else facts['reached']} at {spent}"
    return Document(
        kind="Training report",
        title=title.replace(" ≤ ", "\u00a0≤\u00a0"),
        chip="no guarantee" if epsilon is None else "certified",
        statement=str(facts["statement"]),
        figures={
            score.label: reached,
            "ε, certified": "–" if epsilon is None else f"≤ {rounded_up(epsilon)}",
            "δ": f"{facts['delta']:g}",
            "rounds": f"{facts['rounds']:,}",
            "clients": f"{facts['population']:,}",
            "seconds": f"{facts['seconds']:,.0f}",
        },
        pictures={picture: f"{score.label.capitalize()} against the certified ε that was spent for it"},
        tables=(Table("The run", list(rows.items())), *_settings(options), versions("torch")),
        bad=epsilon is None,
    )


def _settings(options: object) -> list[Table]:
    """What was chosen, and below it what was left as it is."""
    heads, every = ("option", "value", "meaning"), options_of(type(options))

    def rows(chosen: bool) -> list[tuple[str, str, str]]:
        some = [o for o in every if (o.value(options) != o.default) is chosen]
        return [(o.name.replace("_", " "), told(o.value(options)), o.help) for o in some]

    left = Table("Settings left as they are", rows(False), heads, folded=True)
    chosen = rows(True)
    return [Table("Settings that were chosen", chosen, heads), left] if chosen else [left]


def _plot(path: Path, log: list[dict[str, Any]], score: Score) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    unit = 100 if score.percent else 1
    epsilons, scores = [r["epsilon"] for r in log], [unit * r[score.name] for r in log]
    axes.plot(epsilons, scores, marker="." if len(log) < 60 else None, color="#0b7268")
    axes.set_xlabel(f"certified ε at δ = {log[-1]['delta']:g}")
    axes.set_ylabel(f"{score.label}, %" if score.percent else score.label)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def run_watched(trainer: Trainer, show: bool = True, data: Dataset | None = None) -> Outcome:
    """Run a trainer to the end, on standard error if `show`, and let the workers go.

    Baselines that its options ask for are trained on the same data, and told beside the outcome.
    """
    wanted = trainer.options is not None and trainer.options.baseline and data is not None
    start = deepcopy(trainer.work.module) if wanted else None
    try:
        outcome = _shown(trainer) if show else trainer.run()
        if data is None or start is None:
            return outcome
        from dpcheckin.learning.baselines import baselines

        with waiting("train") as say:
            say("baselines")
            return replace(outcome, baselines=baselines(trainer, outcome, data, start))
    finally:
        if trainer.backend is not None:
            trainer.backend.close()


def _shown(trainer: Trainer) -> Outcome:
    score, earlier, seen = trainer.score, trainer.on_round, dict[str, Any]()
    with waiting("train") as say:
        total = trainer.rounds_allowed()

        def show(row: dict[str, Any]) -> None:
            seen.update(row)
            text = f"round {seen['round']:,} of {total:,}, {seen['check_ins']:,} check-ins"
            if score.name in seen:
                reached = score.text(seen[score.name], 1)
                text += f", {score.label} {reached}, ε ≤ {rounded_up(seen['epsilon'])}"
            say(text, seen["round"] / total)
            if earlier is not None:
                earlier(row)

        trainer.on_round = show
        return trainer.run()


_TAKEN = (
    *("data", "model", "features", "components", "public", "public_epochs", "data_dir"),
    *("target", "owner", "columns", "bounds", "task", "test_share", "table", "settings"),
)
"""Options whose place is taken by the model and the data themselves."""


def train(
    model: nn.Module,
    data: Any,
    loss: Loss | None = None,
    *,
    score: str | None = None,
    out: Path | str | None = None,
    progress: bool = True,
    on_round: OnRound | None = None,
    **options: Any,
) -> Outcome:
    """Train a model over a simulated fleet; `print` the outcome for score and guarantee.

    Args:
        model: takes a batch of records, each by itself; it is trained in place, all of it.
        data: of `client_data`, or whatever that takes without further words: a torch Dataset, a pair of arrays.
        loss: (outputs, targets) -> one number for each record; None is cross-entropy for classes, squared error for
            numbers.
        score: "accuracy" or "loss" on the records held out; None is accuracy for classes.
        out: folder for checkpoint, log, model and report; a run found there goes on.
        progress: show a bar on stderr.
        on_round: called after every round with its number, check-ins and seconds, and again with score and epsilon
            where the model is evaluated; see `TensorBoard`.
        **options: what `dpcheckin train --help` lists, such as rounds, rate, local_epsilon, clip, learning_rate, seed,
            protocol, randomizer or epsilon_budget.
    """
    for name in _TAKEN:
        if name in options:
            raise Superfluous(name, options[name], "leave it out: train takes a model and the data of client_data")
    chosen = changed(RunOptions(data=OWN), options)
    data = data if isinstance(data, Dataset) else client_data(data)
    numbers = data.train_targets.is_floating_point()
    used = (squared_error if numbers else cross_entropy) if loss is None else PerRecord(loss)
    measured = _score(score, used, numbers)
    _try(model, data, used, measured)
    if chosen.backend != "local":
        _refuse_unpicklable(model=model, loss=used)
    folder = None if out is None else Path(out)
    threads = torch.get_num_threads()
    try:
        trainer = build(chosen, folder, data=data, module=model, loss=used, score=measured)
        trainer.on_round = on_round
        outcome = run_watched(trainer, progress, data)
    finally:
        torch.set_num_threads(threads)  # the program's own
    if folder is not None:
        torch.save(model.state_dict(), folder / "model.pt")
        write_report(folder, trainer, outcome, data.name)
    return outcome


def _score(score: str | None, loss: Loss, numbers: bool) -> Score:
    if score not in (None, "accuracy", "loss"):
        raise InvalidParameter("score", score, "accuracy or loss")
    if score == "accuracy" and numbers:
        raise InvalidParameter("score", score, "loss: the targets are numbers")
    return mean_loss(loss) if numbers or score == "loss" else ACCURACY


def _try(model: nn.Module, data: Dataset, loss: Loss, score: Score) -> None:
    """Let two records through, so that what does not fit is one line and not a stack of them."""
    if not isinstance(model, nn.Module):
        raise InvalidParameter("model", model, "a torch.nn.Module")
    inputs, targets = data.train_inputs[:2], data.train_targets[:2]
    try:
        with torch.no_grad():
            outputs = model(inputs)
            if len(outputs) == 2:
                loss(outputs, targets)
    except InvalidParameter:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise InvalidParameter(
            "model", reason, f"a module for records of shape {data.shape}, and a loss that fits"
        ) from None
    if not count_parameters(model):
        raise InvalidParameter("model", type(model).__name__, "a module with parameters")
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            allowed = "only parameters to train: compute fixed features before, in the data"
            raise InvalidParameter("model", f"a frozen parameter {name!r}", allowed)
    shape, wanted = tuple(outputs.shape), data.outputs
    if shape[:1] != (2,):
        raise InvalidParameter("model", f"outputs {shape} for 2 records", "one row for each record")
    if score.name == "accuracy" and (len(shape) != 2 or shape[1] < wanted):
        raise InvalidParameter("model", f"{shape[1:]} outputs for a record", f"({wanted},): one for each class")


def _refuse_unpicklable(**parts: object) -> None:
    for name, part in parts.items():
        try:
            pickle.dumps(part)
        except Exception as problem:  # pickle raises what it likes
            raise InvalidParameter(
                name, str(problem), "something that other processes can import (no lambda)"
            ) from None
