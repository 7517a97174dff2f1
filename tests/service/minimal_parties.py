"""An analyzer and agents without torch, as processes: they start fast, so they can be killed often.

`python -m service.minimal_parties analyzer FOLDER` reads `parties.json` in the folder, and so does
`… agents FOLDER`. The parties are the real ones; only what is learned is a toy.
"""

import asyncio
import json
import logging
import sys
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from dpcheckin.service.analyzer.core import Schedule
from dpcheckin.service.analyzer.daemon import Analyzer
from dpcheckin.service.analyzer.parties import IssuerClient, ShufflerClient
from dpcheckin.service.client.config import ClientConfig, Limits
from dpcheckin.service.client.daemon import Daemon
from dpcheckin.service.logs import JsonLines
from dpcheckin.service.pricing import Price
from dpcheckin.service.settings import IssuerAccess
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.signing import public_identity


class Toy:
    """The model is a counter, the clients' value a constant."""

    def start(self) -> TaskState:
        return TaskState(b"0", b"", {"accuracy": 0.0})

    def step(self, state: TaskState, total: Any, reports: int, index: int, steps: int) -> TaskState:
        return TaskState(str(index + 1).encode(), b"", {"accuracy": (index + 1) / steps})

    def value(self, model: bytes) -> Any:
        return np.ones(20)


def issuer_access(settings: dict[str, Any], token: str) -> IssuerAccess | None:
    if "issuer" not in settings:
        return None
    return IssuerAccess(settings["issuer"], token, bytes.fromhex(settings["issuer_identity"]))


class Sum(Toy):
    """What is published is the sum of the reports itself."""

    def start(self) -> TaskState:
        return TaskState(b"0", b"", {f"total_{i}": 0.0 for i in range(20)})

    def step(self, state: TaskState, total: Any, reports: int, index: int, steps: int) -> TaskState:
        figures = {f"total_{i}": float(value) for i, value in enumerate(total)}
        return TaskState(np.asarray(total).tobytes(), b"", figures)


@lru_cache(maxsize=1)
def _price(content: bytes) -> Price:
    return Price(PlanDocument.from_object(json.loads(content)))


def analyzer(folder: Path, settings: dict[str, Any]) -> None:
    stop = threading.Event()
    shuffler = ShufflerClient(settings["shuffler"], settings["analyzer_token"], stop=stop)
    plan = PlanDocument.from_object(settings["plan"])
    place = folder / "analyzer"
    found = issuer_access(settings, settings.get("issuer_analyzer_token", ""))
    issuer = None if found is None else IssuerClient(found.address, found.token, stop=stop)
    task = Sum() if settings.get("task") == "sum" else Toy()
    schedule = Schedule(rotate_every=settings.get("rotate_every", 0))
    made = Analyzer(place, plan, load_identity(place), task, shuffler, schedule, stop, issuer)
    logging.getLogger("dpcheckin.analyzer").info("listening")
    print(made.run(), flush=True)


async def agents(folder: Path, settings: dict[str, Any]) -> None:
    identity = public_identity(load_identity(folder / "analyzer"))
    limits = Limits(0.9, 1.0, 50.0, 1e6, 1e6, 0.5)
    async with httpx.AsyncClient(timeout=20.0, trust_env=False) as http:
        made = []
        for number, token in enumerate(settings["tokens"]):
            state = folder / "clients" / str(number)
            config = ClientConfig(
                settings["shuffler"],
                token,
                identity,
                limits,
                state,
                poll_seconds=0.1,
                arrival=number,
                issuer=issuer_access(settings, settings.get("issuer_tokens", [""] * 1000)[number]),
            )
            made.append(Daemon(config, Toy(), http, price=lambda plan: _price(plan.to_bytes())))
        logging.getLogger("dpcheckin.client").info("ready")
        await asyncio.gather(*(one.run() for one in made))


def main() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("dpcheckin.analyzer", "dpcheckin.client"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel("INFO")
    folder = Path(sys.argv[2])
    settings = json.loads((folder / "parties.json").read_text())
    if sys.argv[1] == "analyzer":
        analyzer(folder, settings)
    else:
        asyncio.run(agents(folder, settings))


if __name__ == "__main__":
    main()
