"""kill -9 of issuer, agents and analyzer at random moments: no token twice, nothing released twice.

The fleet is that of `test_killed_parties`, with an issuer beside it. A dropped report would
mean a token that was lost or used twice.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dpcheckin.deployment.processes import start_issuer
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.wire.credentials import new_token, token_digest
from service.kill_points import kill_a_backup
from service.test_killed_parties import CLIENTS, Fleet


class IssuedFleet(Fleet):
    """Ten agents with tokens."""

    def __init__(self, folder: Path) -> None:
        place = folder / "issuer"
        place.mkdir(mode=0o700)
        tokens = [new_token() for _ in range(CLIENTS)]
        store = IssuerStore(place / "issuer.db")
        store.enroll([token_digest(token) for token in tokens])
        store.close()
        issuer = start_issuer(place, rounds_ahead=6)
        where = issuer.listening
        self._issuer_port = urlsplit(where["address"]).port or 0
        self._place = place
        self._more = {
            "issuer": where["address"],
            "issuer_identity": where["identity"],
            "issuer_tokens": tokens,
            "issuer_analyzer_token": (place / "analyzer.token").read_text().strip(),
        }
        self._issuer = issuer
        super().__init__(folder, None, issuer=where["identity"], minimum_batch=2)

    def start(self, name: str) -> None:
        if "issuer" not in self.parties:
            self.parties["issuer"] = self._issuer
            file = self.folder / "parties.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), **self._more}))
        if name == "issuer":
            self.parties[name] = start_issuer(self._place, self._issuer_port, rounds_ahead=6)
        else:
            super().start(name)


@pytest.fixture
def fleets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Fleet]]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
    made: list[Fleet] = []
    yield made
    for one in made:
        one.stop()


KILLS = int(os.environ.get("DPCHECKIN_KILLS", "12"))


@pytest.mark.slow
def test_kills_lose_no_token_and_spend_none_twice(tmp_path: Path, fleets: list[Fleet]) -> None:
    fleet = IssuedFleet(tmp_path)
    fleets.append(fleet)
    fleet.wait_for_a_release()
    chance = random.Random(7)
    killed: Counter[str] = Counter()
    for turn in range(KILLS):
        time.sleep(chance.uniform(0.0, 3.0))
        victim = chance.choices(["issuer", "agents", "analyzer", "shuffler"], [5, 4, 2, 1])[0]
        fleet.kill(victim)
        if victim == "analyzer":
            fleet.check()
        fleet.start(victim)
        place = fleet.folder / "issuer"
        kill_a_backup("issuer", place, "", tmp_path / f"backup-{turn}", chance.uniform(0.0, 0.1))
        killed += Counter([victim, "issuer's backup"])
    print(f"killed {sum(killed.values())} times: {dict(killed)}")
    fleet.wait_for_a_release()
    fleet.kill("agents")
    fleet.kill("analyzer")
    assert fleet.check() >= 2, "released before and after"  # and no report was ever dropped
    fleet.check_clients()
