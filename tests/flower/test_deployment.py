"""The whole thing on loopback: SuperLink, three SuperNodes, their agents, shuffler and analyzer.

One test with several checks, because the fleet takes longer to start than to check, and tests of
one file may run in several processes. Nothing is faked: `flwr run` ships the example app, Flower
starts a process per message, agents are woken through their mailboxes and reports go through the
shuffler.
"""

from __future__ import annotations

import json
import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed (extra: flower)")

from dpcheckin.deployment.options import DemoOptions
from dpcheckin.flower import OFF
from dpcheckin.flower.fleet import FlowerFleet, RunFailed, round_seconds
from dpcheckin.service.analyzer.core import Pacing
from dpcheckin.service.analyzer.ledger import Ledger
from dpcheckin.service.analyzer.settings import read_settings
from dpcheckin.service.pricing import Price

APP = Path(__file__).parents[2] / "examples" / "flower"
QUIET = 1.0
PATIENCE = 600.0


def play(folder):
    """Run the example; after the first release one SuperNode of three is killed."""
    options = DemoOptions(
        clients=180,
        processes=3,
        rate=0.5,
        rounds=4,
        round_seconds=round_seconds(QUIET),
        local_epsilon=8.0,  # a cap any smaller takes seconds to hit by secure draws
        epsilon_budget=100.0,
        absent=0.5,
        minimum_batch=0,
        rotate_every=2,
        learning={"learning_rate": 3.0, "averaging": 0.5},
    )
    facts = {}
    with FlowerFleet(folder, options, quiet_seconds=QUIET) as fleet:
        fleet.start()
        with pytest.raises(RunFailed) as refused:
            fleet.wait(fleet.submit(APP, {}), PATIENCE)
        facts["refusal"] = str(refused.value)
        run = fleet.submit(APP)
        victim = fleet.nodes[0].process

        def watch(released):
            if released >= 1 and victim.poll() is None:
                os.kill(victim.pid, signal.SIGKILL)
                victim.wait()
                facts["killed_after"] = fleet.settled()

        facts["result"] = fleet.wait(run, PATIENCE, watch)
        facts["environments"] = [
            Path(f"/proc/{party.process.pid}/environ").read_bytes().decode().split("\0")
            for party in (fleet.superlink, *fleet.nodes[1:], *fleet.agents)
        ]
    facts["options"], facts["folder"] = options, folder
    return facts


def check_digits_are_learned_through_flower(played):
    """All rounds of the plan were released, and the model is far better than guessing."""
    result = played["result"]
    released = [row for row in result["rounds"] if row["state"] == "released"]
    assert len(released) == 4
    assert all(row["opened"] > 0 and row["dropped"] == 0 for row in released)
    assert result["metrics"]["accuracy"] > 0.4


def check_every_report_carried_a_token(played):
    """The plan names the issuer, and the analyzer dropped nothing: all tokens were good."""
    result = played["result"]
    assert result["plan"]["issuer"] is not None
    assert "all three" in [one["parties"] for one in result["coalitions"]]
    wallets = list((played["folder"] / "clients").glob("*/tokens.json"))
    assert len(wallets) == played["options"].clients


def check_a_killed_node_neither_stalls_the_run_nor_voids_the_guarantee(played):
    """Rounds went on with the clients that were left, of whom there were enough for the plan."""
    before = {row["round"] for row in played["killed_after"] if row["state"] == "released"}
    rows = played["result"]["rounds"]
    after = [r for r in rows if r["state"] == "released" and r["round"] not in before]
    assert before and after, "nothing was released on one side of the kill: it proves nothing"
    floor = played["options"].population
    assert all(row["present"] >= floor for row in rows if row["state"] == "released")
    # the round in which the node died may still have been attended by its agents
    assert all(row["present"] <= 120 for row in after[1:])
    # rounds close by the clock: as long as planned, longer where clients were too slow before
    length, pacing = played["options"].round_seconds, Pacing()
    for place, (one, other) in enumerate(pairwise(rows), 1):
        planned = length * pacing.factor(rows[:place]) + pacing.pause(rows[:place], length)
        assert other["closed"] - one["closed"] < planned + 60


def check_the_ledger_holds_exactly_what_was_released(played):
    """Every released round was charged once, before its batch was claimed, within the budget."""
    folder = played["folder"] / "analyzer"
    checkpoint = played["result"]
    dimension = 2410
    plan = read_settings(folder).plan_document(dimension)
    from dpcheckin.service.analyzer import state
    from dpcheckin.service.wire.documents import PlanDocument

    kept = PlanDocument.from_object(state.load(folder).plan)
    assert kept.population == plan.population == played["options"].population
    with Ledger(folder / "privacy.ledger", Price(kept)) as ledger:
        charged = [body["round"] for body in ledger.history()]
        spent = ledger.spent
    paid = [r["round"] for r in checkpoint["rounds"] if r["state"] in ("released", "void by batch")]
    assert charged == paid
    assert spent.epsilon == checkpoint["spent"]["epsilon"] <= played["options"].epsilon_budget


def check_the_model_travelled_through_flower(played):
    """Every node that is alive was rung each round with the model of that round in the ring."""
    rings = played["result"]["rings"]
    assert max(outcome["nodes"] for outcome in rings) == 3 and sum(outcome["replies"] for outcome in rings) > 0
    assert all(ring["errors"] == 0 or ring["nodes"] == 3 for ring in rings)
    shuffled = (played["folder"] / "shuffler" / "shuffler.log").read_text()
    assert "round closed" in shuffled


def check_without_a_shuffler_the_run_is_refused_in_words(played):
    """What `flwr list` shows of the run says what is missing, and why it matters."""
    assert "finished:failed" in played["refusal"]
    assert "analyzer-folder is not set" in played["refusal"]
    assert "without a shuffler nothing is left of the guarantee" in played["refusal"]


def check_nothing_we_start_phones_home(played):
    for found in played["environments"]:
        assert {f"{name}={value}" for name, value in OFF.items()} <= set(found)


def check_the_result_is_in_the_analyzers_folder(played):
    stored = json.loads((played["folder"] / "analyzer" / "flower.json").read_text())
    assert stored == played["result"] and stored["statement"]
    assert time.time() > stored["rounds"][-1]["closed"]


def test_a_fleet_on_flower_trains_through_the_shuffler(tmp_path):
    """Refused without a shuffler, then four rounds, one SuperNode killed after the first."""
    played = play(tmp_path)
    check_digits_are_learned_through_flower(played)
    check_every_report_carried_a_token(played)
    check_a_killed_node_neither_stalls_the_run_nor_voids_the_guarantee(played)
    check_the_ledger_holds_exactly_what_was_released(played)
    check_the_model_travelled_through_flower(played)
    check_without_a_shuffler_the_run_is_refused_in_words(played)
    check_nothing_we_start_phones_home(played)
    check_the_result_is_in_the_analyzers_folder(played)
