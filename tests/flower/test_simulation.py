"""On Flower's simulation engine: it learns, and its operator cannot tell who checked in.

Fifty rounds of 24 virtual nodes give about 1,200 observations of reply size, measured run time and
error, of which about a third belong to clients that checked in (their own ledgers say which).
Test: permutation of these labels within nodes, rank sums, four features, level 0.01 in all
(`verify/flower_observations.py`). Power: the smallest delay that it would find with probability 0.9
is computed from the observed times, must be well within their own spread, and is found when it is
put in.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed (extra: flower)")
pytest.importorskip("ray", reason="Ray is not installed (extra: flower)")

from dpcheckin.flower import environment
from dpcheckin.flower.fleet import starting_seconds
from dpcheckin.service.storage.journal import Journal
from flower_observations import Observation, detectable_shift, examine

SCRIPT = Path(__file__).with_name("simulated_run.py")
ROUNDS = 50
PATIENCE = 1500.0


def play(folder):
    """Run the script; its result, and what the operator saw with the owners' labels."""
    seconds = max(1.5, 0.5 * starting_seconds())
    with open(folder / "run.log", "wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder), str(ROUNDS), str(seconds)],
            env=environment(OMP_NUM_THREADS="1"),
            stdout=out,
            stderr=out,
        )
        try:
            code = process.wait(PATIENCE)
        finally:
            if process.poll() is None:  # let it stop what it started
                process.send_signal(signal.SIGINT)
                process.wait(60)
    assert code == 0, (folder / "run.log").read_text(errors="replace")[-2000:]
    result = json.loads((folder / "result.json").read_text())
    seen = json.loads((folder / "seen.json").read_text())
    return result, observations(folder, seen)


def observations(folder, seen):
    """The operator's log, with what only the owners know: how their coins fell."""
    coins = {}
    for path in folder.glob("clients/client-*/client.ledger"):
        node = int(path.parent.name.removeprefix("client-"))
        journal = Journal(path)
        for entry in journal:
            coins[node, entry.body["round"]] = bool(entry.body["report"])
        journal.close()
    return [
        Observation(
            str(one["node"]), one["round"], one["size"], one["seconds"], one["error"], coins[one["node"], one["round"]]
        )
        for one in seen
        if (one["node"], one["round"]) in coins
    ]


def check_digits_are_learned_on_the_engine(played):
    result, _ = played
    released = [row for row in result["rounds"] if row["state"] == "released"]
    assert len(released) == ROUNDS and result["metrics"]["accuracy"] > 0.5
    assert result["spent"]["epsilon"] <= 400.0


def check_the_operator_cannot_tell_who_checked_in(played):
    """Reply sizes, run times, their spread and errors differ no more than chance has it."""
    _, seen = played
    assert len({one.round for one in seen}) >= 50 and len(seen) >= 900
    verdict = examine(seen, level=0.01)
    assert not verdict.leaks, verdict
    assert len({one.size for one in seen}) == 1 and not any(one.error for one in seen)


def check_a_delay_well_within_the_noise_would_have_been_found(played):
    """Power 0.9: the smallest delay found is a fraction of how much times vary anyway."""
    _, seen = played
    delay = detectable_shift(seen, power=0.9, level=0.01)
    low, high = np.quantile([one.seconds for one in seen], [0.25, 0.75])
    print(f"delays above {1000 * delay:.1f} ms are found with probability 0.9")
    assert delay < 0.5 * (high - low)
    leaky = [replace(o, seconds=o.seconds + 2 * delay * o.checked_in) for o in seen]
    assert examine(leaky, level=0.01).leaks


@pytest.mark.slow
def test_fifty_rounds_on_the_engine_tell_its_operator_nothing(tmp_path):
    """One run, three checks: it learns, nothing differs beyond chance, and that says something."""
    played = play(tmp_path)
    check_digits_are_learned_on_the_engine(played)
    check_the_operator_cannot_tell_who_checked_in(played)
    check_a_delay_well_within_the_noise_would_have_been_found(played)
