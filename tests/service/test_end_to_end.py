"""Shuffler, analyzer and agents as real processes train digits like the simulator does."""

import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from dpcheckin.cli.parties import deploy  # noqa: E402
from dpcheckin.deployment.demo import Deployment  # noqa: E402
from dpcheckin.deployment.options import DemoOptions, with_time_enough  # noqa: E402
from dpcheckin.deployment.progress import RoundsLost, check_arrivals, follow, summary  # noqa: E402
from dpcheckin.deployment.torch_tasks import make_module  # noqa: E402
from dpcheckin.learning import ClientWork, GroupedByOwner, Settings, Trainer, load_dataset  # noqa: E402
from dpcheckin.learning.models import cross_entropy  # noqa: E402
from dpcheckin.protocols import DistributedCheckIn, ShuffledCheckIn  # noqa: E402
from dpcheckin.randomizers import PrivUnit, SkellamVector  # noqa: E402
from dpcheckin.service.analyzer.daemon import LEDGER  # noqa: E402
from dpcheckin.service.pricing import Price  # noqa: E402
from dpcheckin.service.storage.journal import Journal  # noqa: E402

SMALL = DemoOptions(
    clients=24,
    processes=1,
    rounds=3,
    round_seconds=2.0,
    rate=0.5,
    absent=0.5,
    local_epsilon=4.0,
    epsilon_budget=100.0,
    rotate_every=1,
)
WHOLE = DemoOptions(
    clients=200,
    processes=2,
    rounds=8,
    round_seconds=8.0,
    rate=0.5,
    local_epsilon=6.0,
    epsilon_budget=60.0,
    learning={"learning_rate": 2.0, "averaging": 0.5},
)


def play(folder: Path, options: DemoOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run it, with longer rounds if too many lost reports; the last snapshot and the summary."""
    options = with_time_enough(options)
    try:
        return play_once(folder / "first", options)
    except RoundsLost as reason:
        print(reason)
        longer = dataclasses.replace(options, round_seconds=4 * options.round_seconds)
        return play_once(folder / "second", longer)


def play_once(folder: Path, options: DemoOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    with Deployment(folder, options) as deployment:
        deployment.start()
        last = follow(deployment, lambda shot: None, patience=600.0)
        metrics = httpx.get(deployment.page + "/metrics", trust_env=False).text
        assert httpx.get(deployment.page + "/healthz", trust_env=False).text == "ok\n"
        assert f"dpcheckin_analyzer_rounds_charged {last['spent']['charged']}" in metrics
    with Journal(folder / "analyzer" / LEDGER) as journal:
        charges = [entry.body for entry in journal][1:]
    assert len(charges) == last["spent"]["charged"]
    for row in last["rounds"]:
        print(row["round"], row["state"], row["present"], row["reports"], row.get("expected"))
    return last, summary(options, last, 0.0)


def simulated(options: DemoOptions, seeds: int) -> list[float]:
    """Accuracies of the same plan in the simulator: same data, model, steps; other chance."""
    data = load_dataset("digits")
    owners = np.arange(len(data.train_targets)) % options.clients
    found = []
    for seed in range(seeds):
        module = make_module(options.model, data, 0)
        size = sum(p.numel() for p in module.parameters())
        plan: Any
        if options.randomizer == "skellam":
            noise = SkellamVector(options.noise_multiplier, size)
            plan = DistributedCheckIn(options.clients, options.rate, options.rounds, noise)
        else:
            plan = ShuffledCheckIn(
                options.clients, options.rate, options.rounds, PrivUnit(options.local_epsilon, size, 1.0)
            )
        fleet = GroupedByOwner(data.train_inputs, data.train_targets, owners)
        work = ClientWork(module, cross_entropy, fleet, plan.randomizer)
        settings = Settings(**options.learning, seed=seed, evaluate_every=options.rounds)
        outcome = Trainer(plan, work, settings, data.test_inputs, data.test_targets).run()
        found.append(outcome.accuracy)
    return found


def assert_as_simulated(facts: dict[str, Any], options: DemoOptions) -> None:
    """All rounds were released, each with as many reports as coins predict, and taught as much."""
    assert facts["released"] == options.rounds, "rounds lost reports"
    # each of the rounds lies outside its band with probability 0.01: three of 8 with 5e-5
    assert facts["outside_band"] <= 2, "rounds lost reports"
    assert facts["dropped"] == 0
    accuracy, others = facts["accuracy"], simulated(options, 12)
    mean, spread = statistics.mean(others), statistics.stdev(others)
    print(f"deployed {accuracy:.3f}, simulated {mean:.3f} ± {spread:.3f}")
    assert abs(accuracy - mean) < 4 * max(spread, 0.01)


def test_a_small_deployment_trains_rotates_its_key_every_round_and_stops(tmp_path: Path) -> None:
    last, facts = play(tmp_path, SMALL)
    assert facts["released"] + facts["void"] == facts["rounds"]
    assert facts["released"] >= 1
    assert facts["dropped"] == 0
    assert facts["tokens"], "there is an issuer unless somebody says no"
    alone = {one["parties"]: one["epsilon"] for one in facts["coalitions"]}
    assert alone["analyzer"] == facts["epsilon"] <= alone["shuffler"] <= alone["all three"]
    assert "carried a token" in deploy._tokens_line(facts)
    assert last["finished"] == "all 3 rounds of the plan have been charged"
    json.dumps(facts)
    # the figures are the accounting's for this plan
    from dpcheckin.service.analyzer import state
    from dpcheckin.service.wire.documents import PlanDocument

    folder = sorted(tmp_path.glob("*/analyzer/checkpoint"))[-1].parent.parent
    kept = state.load(folder / "analyzer")
    assert kept is not None
    price = Price(PlanDocument.from_object(kept.plan))
    assert facts["epsilon"] == price.plan.guarantee(1e-5, 3).charge()
    # clients' ledgers: everybody has one
    ledgers = list(folder.glob("clients/*/client.ledger"))
    assert len(ledgers) == 24
    assert len(list((folder / "analyzer" / "keys").iterdir())) == 1


def test_a_run_whose_rounds_lose_their_reports_says_so_and_stops() -> None:
    void = [{"state": "void by population", "present": 3 + i} for i in range(8)]
    kept = [{"state": "released", "present": 24}] * 3
    check_arrivals(SMALL, void + kept)
    more = [*void, *kept, {"state": "void by population", "present": 1}]
    with pytest.raises(RoundsLost, match=r"9 of 12 rounds lost reports .* 1 to 10 clients"):
        check_arrivals(SMALL, more)


def test_the_demonstration_starts_again_with_longer_rounds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[float] = []

    def run(options: DemoOptions, stay: float) -> dict[str, Any]:
        tried.append(options.round_seconds)
        if len(tried) < 3:
            raise RoundsLost("too short")
        return {"released": 3}

    monkeypatch.setattr(deploy, "_run_nowhere", run)
    assert deploy._run_patiently(SMALL, 0.0) == {"released": 3}
    assert tried == [2.0, 6.0, 18.0]
    assert "too short; starting again with 6 seconds" in capsys.readouterr().err


@pytest.mark.slow
def test_200_agents_over_sqlite_learn_as_the_simulator_does(tmp_path: Path) -> None:
    _, facts = play(tmp_path, WHOLE)
    assert_as_simulated(facts, WHOLE)


@pytest.mark.slow
def test_200_agents_over_postgresql_learn_as_the_simulator_does(tmp_path: Path, postgres_address: str) -> None:
    options = dataclasses.replace(WHOLE, store=postgres_address)
    _, facts = play(tmp_path, options)
    assert_as_simulated(facts, WHOLE)


@pytest.mark.slow
def test_distributed_check_in_in_two_shares_learns_as_the_simulator_does(tmp_path: Path) -> None:
    options = dataclasses.replace(
        WHOLE,
        protocol="distributed-check-in",
        randomizer="skellam",
        noise_multiplier=0.3,
        local_epsilon=60.0,  # what the clients allow: the sum hides much, one share alone little
        epsilon_budget=20.0,
    )
    _, facts = play(tmp_path, options)
    assert_as_simulated(facts, options)


@pytest.mark.slow
@pytest.mark.parametrize("window", ["fixed", "averaged", "sliding"])
def test_random_check_ins_run_on_the_same_services(tmp_path: Path, window: str) -> None:
    options = dataclasses.replace(SMALL, protocol=f"random-check-in-{window}", rounds=4, absent=0.5, local_epsilon=1.0)
    last, facts = play(tmp_path, options)
    assert facts["released"] >= 1
    assert facts["epsilon"] <= 1.001  # one report a client: never more than its local epsilon
    if window != "averaged":
        assert all(row["reports"] is None for row in last["rounds"])
        assert all(row["opened"] == 1 for row in last["rounds"] if row["state"] == "released")
    else:
        assert sum(row["opened"] for row in last["rounds"] if "opened" in row) <= 24
