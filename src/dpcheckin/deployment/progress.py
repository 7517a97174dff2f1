"""Following a deployment to its end: the analyzer's own page, round by round, and the summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dpcheckin.deployment.demo import Deployment
from dpcheckin.deployment.options import DemoOptions, truth_of
from dpcheckin.errors import ServiceError


class RoundsLost(ServiceError):
    """Too many rounds were void: their envelopes do not arrive in time."""


def check_arrivals(options: DemoOptions, rows: list[dict[str, Any]], *, over: bool = False) -> None:
    """Raise `RoundsLost` when of the `rows` of the analyzer's log many more rounds are void by population than are not,
    or the run is `over` and most of them were. The analyzer has made them longer than `options` say by then, as long as
    it may, and it was not enough."""
    there = [row["present"] for row in rows if row["state"] == "void by population"]
    if there and 2 * len(there) > len(rows) + (0 if over else 5):
        raise RoundsLost(
            f"{len(there):,} of {len(rows):,} rounds lost reports and are void: {min(there)} to "
            f"{max(there):,} clients were there in time, the plan needs {options.population:,}. "
            f"Rounds of {options.round_seconds:g} seconds are too short for this machine now"
        )


class PartyDied(ServiceError):
    """A party ended before the run was over."""


def check_parties(deployment: Deployment) -> None:
    """Raise `PartyDied` for the first party whose process has ended; agents may end by themselves."""
    for party in (deployment.analyzer, deployment.shuffler, deployment.issuer, *deployment.agents):
        code = None if party is None else party.process.poll()
        if party is None or code is None or (code == 0 and party in deployment.agents):
            continue
        said = party.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise PartyDied(f"the {party.name} died with exit code {code}: {' '.join(said)[:300]}")


class Told:
    """Tells of rounds in words: of void ones always, with `every` also of those that went well."""

    def __init__(self, say: Callable[[str], None], *, every: bool) -> None:
        self._say, self._every, self._rounds = say, every, 0

    def hear(self, shot: dict[str, Any]) -> None:
        """A snapshot; the rounds that are new in it are told of."""
        for row in shot["rounds"][self._rounds :]:
            if row["state"] == "void by population":
                self._say(
                    f"round {row['round']}: only {row['present']} of the "
                    f"{shot['plan']['minimum_present']} clients that it needs were there in time, "
                    "so it is void and the next one takes longer"
                )
            elif self._every:
                right = f", accuracy {100 * row['accuracy']:.1f}%" if "accuracy" in row else ""
                self._say(f"round {row['round']}: {row['state']}{right}")
        self._rounds = len(shot["rounds"])


def follow(deployment: Deployment, watch: Callable[[dict[str, Any]], None], patience: float = 120.0) -> dict[str, Any]:
    """Let `watch` see a `deployment` until its analyzer is done, or settles no round for `patience` seconds; the last
    snapshot. A party that dies meanwhile raises `PartyDied`: what the page showed last is not the truth."""
    assert deployment.analyzer is not None
    last: dict[str, Any] = {}
    settled, moved = -1, time.monotonic()
    while True:
        snapshot = deployment.snapshot()
        if snapshot is not None:
            last = snapshot
            watch(snapshot)
            check_arrivals(deployment.options, snapshot["rounds"], over=snapshot["finished"] is not None)
            if snapshot["finished"] is not None:
                return last
        check_parties(deployment)
        if last and len(last["rounds"]) != settled:
            settled, moved = len(last["rounds"]), time.monotonic()
        if time.monotonic() - moved > patience:
            raise ServiceError(f"no round was settled for {patience:g} seconds")
        time.sleep(0.25)


def summary(options: DemoOptions, last: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The end of a run with these `options`, whose `last` snapshot this is, in figures for `--json`; it took so many
    `seconds`."""
    rows, asked = last["rounds"], last.get("survey")
    released = [row for row in rows if row["state"] == "released"]
    return {
        "options": asdict(options),
        "rounds": len(rows),
        "released": len(released),
        "void": sum(row["state"].startswith("void") for row in rows),
        "reports": sum(row["opened"] for row in released),
        "dropped": sum(row.get("dropped", 0) for row in rows),
        "outside_band": sum(
            not row["expected"]["low"] <= row["reports"] <= row["expected"]["high"]
            for row in released
            if "expected" in row
        ),
        "accuracy": last["metrics"].get("accuracy"),
        "survey": asked,
        "truth": truth_of(options.task, options.clients, asked) if asked else None,
        "epsilon": last["spent"]["epsilon"],
        "local_epsilon": last["spent"]["local_epsilon"],
        "delta": last["plan"]["delta"],
        "epsilon_budget": last["plan"]["epsilon_budget"],
        "tokens": last["plan"]["issuer"] is not None,
        "coalitions": last["coalitions"],
        "statement": last["statement"],
        "finished": last["finished"],
        "seconds": round(seconds, 1),
    }
