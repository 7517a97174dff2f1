"""A shuffler that copies an envelope, or hides a victim among 99 fakes, against real parties.

Shuffler, analyzer and (with tokens) issuer are processes; the clients run here. The shuffler is the
real one with a release of its own (`malicious_shuffler`). Without tokens it reads the victim's
report off what is published; with them the round is void and nothing is published.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from dpcheckin.deployment.processes import Party, start, start_issuer
from dpcheckin.service import reports
from dpcheckin.service.analyzer import state
from dpcheckin.service.analyzer.batches import COPY, FORGED
from dpcheckin.service.client.config import ClientConfig, Limits
from dpcheckin.service.client.daemon import Daemon
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.pricing import Price, randomizer_of
from dpcheckin.service.settings import IssuerAccess
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage.identity import analyzer_token, load_identity
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.signing import public_identity
from service.malicious_shuffler import ATTACKS, fake_report
from service.plans import PRIVUNIT, plan_object
from service.shuffler_process import ShufflerProcess

CLIENTS, MINIMUM = 6, 4
VICTIM = 2
_PATIENCE = 900.0  # on a busy machine; half a minute otherwise


@lru_cache(maxsize=4)
def _price(plan: bytes) -> Price:
    return Price(PlanDocument.from_object(json.loads(plan)))


class Owner:
    """What every client computes: its own unit vector."""

    def __init__(self, number: int) -> None:
        self._value = np.eye(PRIVUNIT["dimension"])[number]

    def value(self, model: bytes) -> Any:
        return self._value


class Attacked:
    """The parties of one run, with a shuffler that attacks."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, tokens: bool) -> None:
        self.folder = folder
        self._victims: dict[int, Any] = {}
        self._last = threading.local()
        self.parties: list[Party] = []
        for name in ("shuffler", "analyzer", "clients", "issuer"):
            (folder / name).mkdir()
        access = [new_token() for _ in range(CLIENTS)]
        store = open_store(f"sqlite:{folder / 'shuffler' / 'shuffler.db'}")
        clients = store.enroll([token_digest(token) for token in access])
        store.close()
        patch.setenv("VICTIM", clients[VICTIM].hex())
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
        analyzer_token(folder / "shuffler")
        program = [sys.executable, "-m", "service.malicious_shuffler"]
        self.shuffler = ShufflerProcess(folder / "shuffler", program=program).start()
        settings: dict[str, Any] = {
            "shuffler": self.shuffler.address,
            "analyzer_token": (folder / "shuffler" / "analyzer.token").read_text().strip(),
            "task": "sum",
        }
        issuers: list[IssuerAccess | None] = [None] * CLIENTS
        if tokens:
            issuers = self._start_issuer(settings)
        self.plan = PlanDocument.from_object(
            plan_object(
                population=CLIENTS - 1,
                minimum_batch=MINIMUM,
                rate=0.999,
                rounds=60,
                epsilon_budget=1e5,
                round_seconds=2.0,
                **({"issuer": settings["issuer_identity"]} if tokens else {}),
            )
        )
        settings["plan"] = self.plan.to_object()
        (folder / "parties.json").write_text(json.dumps(settings))
        self._spy(patch)
        self.configs = [
            ClientConfig(
                self.shuffler.address,
                access[number],
                public_identity(load_identity(folder / "analyzer")),
                Limits(1.0, 1.0, 50.0, 1e6, 1e6, 0.5),
                folder / "clients" / str(number),
                poll_seconds=0.1,
                issuer=issuers[number],
            )
            for number in range(CLIENTS)
        ]
        command = [sys.executable, "-m", "service.minimal_parties", "analyzer", folder]
        self.parties.append(start("analyzer", command, folder / "analyzer.log"))

    def _start_issuer(self, settings: dict[str, Any]) -> list[IssuerAccess | None]:
        place = self.folder / "issuer"
        tokens = [new_token() for _ in range(CLIENTS)]
        store = IssuerStore(place / "issuer.db")
        store.enroll([token_digest(token) for token in tokens])
        store.close()
        issuer = start_issuer(place, rounds_ahead=4)
        self.parties.append(issuer)
        where = issuer.listening
        settings["issuer"], settings["issuer_identity"] = where["address"], where["identity"]
        settings["issuer_analyzer_token"] = (place / "analyzer.token").read_text().strip()
        identity = bytes.fromhex(where["identity"])
        return [IssuerAccess(where["address"], token, identity) for token in tokens]

    def _spy(self, patch: pytest.MonkeyPatch) -> None:
        """Remember the randomized report of the thread that makes one."""
        real = reports.vector_payload

        def watched(values: Any) -> bytes:
            self._last.report = np.array(values, np.float64)
            return real(values)

        patch.setattr(reports, "vector_payload", watched)

    def play(self) -> dict[str, dict[str, Any]]:
        """Run until every attack has been played; the analyzer's line of one round of each."""
        return asyncio.run(self._play())

    async def _play(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        async with httpx.AsyncClient(timeout=20.0, trust_env=False) as http:
            made = [
                Daemon(config, Owner(number), http, price=lambda plan: _price(plan.to_bytes()))
                for number, config in enumerate(self.configs)
            ]
            self._watch(made[VICTIM])
            tasks = [asyncio.create_task(one.run()) for one in made]
            limit = time.monotonic() + _PATIENCE
            while len(found) < len(ATTACKS) and time.monotonic() < limit:
                await asyncio.sleep(0.3)
                for task in tasks:
                    if task.done():
                        task.result()
                found = self._settled()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for one in made:
                one.close()
        assert len(found) == len(ATTACKS), "not every attack was played in time"
        return found

    def _settled(self) -> dict[str, dict[str, Any]]:
        kept = state.load(self.folder / "analyzer")
        lines = () if kept is None else kept.log
        # the victim may have been late in a round: then the shuffler had nothing to attack with,
        # or only a cover
        return {
            ATTACKS[line["round"] % len(ATTACKS)]: line
            for line in lines
            if "opened" in line and line["round"] in self._victims
        }

    def _watch(self, victim: Daemon) -> None:
        """Remember the victim's reports that the shuffler has taken."""
        real, send = victim.agent._report, victim._send
        made: dict[bytes, Any] = {}

        def watched(joined: Any, found: Any, *more: Any) -> bytes:
            sealed = real(joined, found, *more)
            made[sealed] = self._last.report
            return sealed

        async def sent(parcel: Any) -> bool:
            taken = await send(parcel)
            if taken and parcel.envelope in made:
                self._victims[parcel.round] = made[parcel.envelope]
            return taken

        victim.agent._report = watched  # type: ignore[method-assign]
        victim._send = sent  # type: ignore[method-assign]

    def recovered(self, line: dict[str, Any], attack: str) -> tuple[Any, Any]:
        """The victim's report as read off what was published, and as it was."""
        size = self.plan.dimension
        published = np.array([line[f"total_{i}"] for i in range(size)])
        one = randomizer_of(self.plan).sum_estimates(np.eye(size)[:1])[0]  # type: ignore[union-attr]
        own = fake_report(size) * (line["reports"] - 1) if attack == "fakes" else 0.0
        return published / one - own, self._victims[line["round"]]

    def stop(self) -> None:
        for party in reversed(self.parties):
            party.stop()
        with contextlib.suppress(AssertionError):
            self.shuffler.stop()


@pytest.fixture
def runs() -> Iterator[list[Attacked]]:
    made: list[Attacked] = []
    yield made
    for one in made:
        one.stop()


def test_with_tokens_a_shuffler_can_neither_copy_nor_invent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[Attacked]
) -> None:
    runs.append(Attacked(tmp_path, monkeypatch, tokens=True))
    lines = runs[0].play()
    honest, copies, fakes = (lines[attack] for attack in ATTACKS)
    assert honest["state"] == "released"
    assert honest["opened"] == honest["reports"] >= MINIMUM
    assert honest["dropped"] == 0
    for line, reason in ((copies, COPY), (fakes, FORGED)):
        assert line["state"] == "void by checks"
        assert line["opened"] == 1, "the victim's own report, and nothing else"
        assert line["reasons"] == {reason: line["reports"] - 1}


def test_without_tokens_copies_are_noticed_and_fakes_give_the_victim_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[Attacked]
) -> None:
    """What docs/trust.md prices: the shuffler alone reads a randomized report off the result."""
    runs.append(Attacked(tmp_path, monkeypatch, tokens=False))
    lines = runs[0].play()
    assert lines["nothing"]["state"] == "released"
    copies, fakes = lines["copies"], lines["fakes"]
    assert copies["state"] == "void by checks"
    assert copies["reasons"] == {COPY: copies["reports"] - 1}
    assert fakes["state"] == "released"
    assert fakes["opened"] == fakes["reports"] >= MINIMUM
    read, sent = runs[0].recovered(fakes, "fakes")
    assert np.abs(read - sent).max() < 1e-5
    price = Price(runs[0].plan)
    (alone,) = [one for one in price.coalitions(1) if one.parties == "shuffler"]
    assert alone.epsilon == price.spent(1).local_epsilon, "the price says no less than was lost"
    assert "invent" in alone.basis
