"""A fleet answers a histogram, then trains (or is asked again), in one budget; all are killed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.deployment.demo import BUDGET, Deployment
from dpcheckin.deployment.options import DemoOptions, truth_of, with_time_enough
from dpcheckin.deployment.processes import Party
from dpcheckin.deployment.progress import RoundsLost, follow
from dpcheckin.service.analyzer.daemon import LEDGER
from dpcheckin.service.client.daemon import LEDGER as CLIENT_LEDGER
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.storage.identity import IDENTITY
from dpcheckin.service.storage.journal import Journal
from dpcheckin.survey import Survey

SMALL = DemoOptions(
    clients=16,
    processes=1,
    rounds=2,
    round_seconds=2.0,
    rate=0.5,
    absent=0.5,
    local_epsilon=2.0,
    epsilon_budget=6.0,
    minimum_batch=0,
    task="histogram",
    questions=("mean",),
    total_epsilon=7.0,
)
WHOLE = replace(
    SMALL,
    clients=200,
    processes=2,
    rounds=4,
    round_seconds=8.0,
    absent=0.1,
    local_epsilon=4.0,
    trains=True,
    total_epsilon=8.0,
)


def killed(party: Party | None) -> Party:
    assert party is not None
    party.kill()
    return party


def kill_everybody(deployment: Deployment) -> None:
    """kill -9 of shuffler, analyzer and agents, and a new life for each, one after another."""
    port = int(deployment.address.rpartition(":")[2])
    killed(deployment.shuffler)
    deployment.start_shuffler(port)
    killed(deployment.analyzer)
    deployment.start_analyzer()
    for party in deployment.agents:
        killed(party)
    deployment.agents.clear()
    deployment.start_agents()


def next_plan(deployment: Deployment, options: DemoOptions) -> None:
    """Another plan for the same shuffler and agents, with their limits, by an analyzer of the same identity."""
    assert deployment.analyzer is not None
    deployment.analyzer.stop()
    last, deployment.analyzer_folder = deployment.analyzer_folder, deployment.folder / "analyzer-2"
    deployment.analyzer_folder.mkdir()
    shutil.copy(last / IDENTITY, deployment.analyzer_folder)
    deployment.options = options
    deployment.configure_analyzer()
    deployment.start_analyzer()


def play(folder: Path, options: DemoOptions, then: str, twice: bool) -> dict[str, Any]:
    options = with_time_enough(options)
    try:
        return play_once(folder / "first", options, then, twice)
    except RoundsLost as reason:
        print(reason)
        longer = replace(options, round_seconds=30.0)
        return play_once(folder / "second", longer, then, twice)


def play_once(folder: Path, options: DemoOptions, then: str, twice: bool) -> dict[str, Any]:
    """Both plans to their ends, with a strike in the first or both; what the parties wrote down."""
    struck = False

    def strike(shot: dict[str, Any]) -> None:
        nonlocal struck
        if not struck and shot["spent"]["charged"] >= 1:
            struck = True
            kill_everybody(deployment)

    with Deployment(folder, options) as deployment:
        deployment.start()
        asked = follow(deployment, strike, patience=600.0)
        assert struck
        struck = False
        budget = float(options.total_epsilon or 0)
        second = replace(options, task=then, rounds=60, epsilon_budget=budget)
        next_plan(deployment, second)
        after = follow(deployment, strike if twice else lambda _: None, patience=600.0)
        assert struck == twice
    return {"asked": asked, "trained": after, "folder": folder, "options": options}


def check_estimate(found: dict[str, Any]) -> None:
    """The estimate is the simulator's for the same reports, and near the truth."""
    folder, options = found["folder"], found["options"]
    told = json.loads((folder / "analyzer" / "estimate.json").read_text())
    kept = sorted((folder / "analyzer" / "rounds").glob("round-*.npy"))
    reports = [np.load(file) for file in kept]
    released = [row for row in found["asked"]["rounds"] if row["state"] == "released"]
    assert [len(rows) for rows in reports] == [row["opened"] for row in released]
    assert len(reports) == options.rounds
    survey = Survey.from_document(told["survey"])
    assert survey.population == max(row["present"] for row in released)
    again = survey.estimate(reports)
    assert told["estimate"]["values"] == again.values.tolist()
    assert told["estimate"]["lower"] == again.lower.tolist()
    assert told["estimate"]["upper"] == again.upper.tolist()
    assert told["estimate"]["dropped"] == 0
    shown = found["asked"]["survey"]
    assert [row["value"] for row in shown["rows"]] == told["estimate"]["values"]
    truth = truth_of("histogram", options.clients, shown)
    far = [abs(v - truth[n]) for n, v in zip(again.names, again.values, strict=True)]
    print("estimate", again.values.round(1).tolist(), "truth", list(truth.values()))
    assert np.all(np.array(far) < 6 * again.deviation + 1e-9)


def check_ledgers(found: dict[str, Any]) -> None:
    """Sums over both plans: what analyzer and clients wrote, and that nothing passes its total."""
    folder, options = found["folder"], found["options"]
    with Journal(folder / BUDGET) as journal:
        total = [entry.body for entry in journal][1:]
    own = []
    for name in ("analyzer", "analyzer-2"):
        with Journal(folder / name / LEDGER) as journal:
            charges = [entry.body for entry in journal][1:]
        numbers = [one["round"] for one in charges]
        assert len(set(numbers)) == len(numbers), "a round was charged twice"
        own.append(charges)
    assert len(total) == len(own[0]) + len(own[1])
    spent = own[0][-1]["epsilon"] + own[1][-1]["epsilon"]
    assert spent <= options.total_epsilon
    assert found["trained"]["total"]["epsilon"] == pytest.approx(spent, rel=1e-12)
    assert found["trained"]["total"]["plans"] == 2
    assert "over all plans, more than the total budget" in found["trained"]["finished"]
    assert len(own[0]) == options.rounds
    print("spent", own[0][-1]["epsilon"], "+", own[1][-1]["epsilon"], "of", options.total_epsilon)
    state = Path(options.client_state or folder / "clients")
    ledgers = sorted(state.glob(f"*/{CLIENT_LEDGER}"))
    assert len(ledgers) == options.clients
    both = 0
    for path in ledgers:
        ledger = ClientLedger(path)
        totals = ledger.totals()
        both += len({plan for plan, _ in ledger._seen}) == 2
        ledger.close()
        assert totals.epsilon <= 2 * options.total_epsilon  # the limit in each agent's settings
        assert totals.delta <= 2 * options.delta
    assert both > options.clients / 2, "most clients answered and trained"


@pytest.mark.slow
def test_a_small_fleet_is_asked_twice_in_one_budget_and_loses_nothing(tmp_path: Path) -> None:
    found = play(tmp_path, SMALL, "mean", False)
    check_estimate(found)
    check_ledgers(found)


@pytest.mark.slow
def test_200_agents_answer_and_train_in_one_budget_over_sqlite(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    found = play(tmp_path, WHOLE, "training", True)
    check_estimate(found)
    check_ledgers(found)


@pytest.mark.slow
def test_200_agents_answer_and_train_in_one_budget_over_postgresql(tmp_path: Path, postgres_address: str) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    found = play(tmp_path, replace(WHOLE, store=postgres_address), "training", True)
    check_estimate(found)
    check_ledgers(found)
