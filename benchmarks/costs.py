"""What a round costs each party, per client and per report: bytes, CPU time, storage.

    python benchmarks/costs.py [--reports 1000] [--json FILE]

Every figure is measured here, on one core, with the code that runs in a deployment (the shuffler's
rules over its SQLite store, real sealing, real ledgers), without the network; HTTP and TLS come on
top (`service_load.py` measures the shuffler with them). CPU time is that of this process, so a busy
machine disturbs it little. The second table multiplies: what fleets of a thousand to a billion
clients ask of each party in a round, at the rate that gives the wanted number of check-ins.
"""

from __future__ import annotations

import _timing

# isort: split
import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.flower.mailbox import Mailbox, Ring
from dpcheckin.randomizers import SecureSource
from dpcheckin.service.analyzer.batches import BatchReader
from dpcheckin.service.analyzer.ledger import ChargeReason, Ledger
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.pricing import Price, randomizer_of
from dpcheckin.service.reports import make_envelope
from dpcheckin.service.shuffler.chance import SecureChance
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.sqlite import SqliteStore
from dpcheckin.service.wire import envelope, signing
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument

FLEETS = (10**3, 10**5, 10**7, 10**9)
CHECK_INS = 6000
MODELS = {"small network, 2,410 parameters": 2410, "papers' CNN, 26,010 parameters": 26_010}
_GROUP = 250


def cpu(run: Callable[[], Any], repeats: int) -> float:
    """CPU seconds of one call, the average over many after one that does not count."""
    run()
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats


def plan_of(dimension: int, population: int, **changes: Any) -> PlanDocument:
    """A plan as `analyzer serve` would announce it."""
    said = {
        "type": "plan",
        "format": 1,
        "protocol": "shuffled-check-in",
        "population": population,
        "minimum_present": population,
        "colluding": 0.0,
        "dropout": 0.0,
        "minimum_batch": 0,
        "rate": min(0.5, CHECK_INS / population),
        "rounds": 200,
        "randomizer": {"name": "privunit", "local_epsilon": 4.0, "clip": 1.0} | {"dimension": dimension, "encoding": 1},
        "delta": 1e-9,
        "epsilon_budget": 50.0,
        "round_seconds": 60.0,
        "compute_seconds": 18.0,
        "suite": 1,
        "cover": False,
        "task": {"data": "digits", "model": "small"},
        "nonce": "00" * 16,
        **changes,
    }
    return PlanDocument.from_object(said)


class World:
    """One plan with its key, model and first round, signed."""

    def __init__(self, plan: PlanDocument, model: bytes) -> None:
        self.plan, self.model = plan, model
        self.identity = signing.identity_from_seed(bytes(32))
        self.identity_bytes = signing.public_identity(self.identity)
        self.key = envelope.OpeningKey(plan.suite, envelope.new_private_key(plan.suite))
        self.key_document = KeyDocument(plan.id.hex(), plan.suite, self.key.public_key.hex(), from_round=0)
        now = time.time()
        self.round = RoundDocument(plan.id.hex(), 0, digest(model).hex(), self.key.key_id.hex(), now - 1, now + 3600)

    def signed(self, document: Any) -> bytes:
        return signing.signed_bytes(document, self.identity)

    def plan_page(self) -> bytes:
        parts = [json.loads(self.signed(d)) for d in (self.plan, self.key_document)]
        return canonical({"plan": parts[0], "keys": parts[1:]})


def client_costs(world: World, folder: Path, reports: int) -> dict[str, float]:
    """The owner's side: what a client downloads, computes, sends and keeps."""
    plan, source = world.plan, SecureSource()
    randomizer, public = randomizer_of(plan), world.key.public_key
    value = np.random.default_rng(0).normal(size=plan.dimension)
    price = Price(plan)
    path = folder / f"client-{plan.dimension}.ledger"
    ledger = ClientLedger(path)
    few = min(50, reports)
    start = time.process_time()
    for number in range(few):
        ledger.take_part(plan.id.hex(), number, price, report=False)
    kept = (time.process_time() - start) / few
    size = path.stat().st_size / few
    ledger.close()
    checks = cpu(
        lambda: signing.read_signed(RoundDocument, json.loads(world.signed(world.round)), world.identity_bytes), few
    )
    return {
        "round_bytes_down": len(world.signed(world.round)),
        "model_bytes_down": len(world.model),
        "plan_bytes_once": len(world.plan_page()),
        "report_bytes_up": envelope.sizes(plan).envelope,
        "check_round_cpu": checks,
        "report_cpu": cpu(
            lambda: make_envelope(plan, randomizer, 0, world.round.model_digest, public, value, source), few
        ),
        "cover_cpu": cpu(lambda: envelope.cover(plan, public, 0), few),
        "ledger_cpu": kept,
        "ledger_bytes": size,
    }


def shuffler_costs(world: World, folder: Path, reports: int) -> dict[str, float]:
    """The shuffler's rules over its SQLite store, in groups as its committer makes them."""
    file = folder / f"shuffler-{world.plan.dimension}.db"
    store = SqliteStore(file, reserve=0)
    core = Shuffler(store, clock=time.time, chance=SecureChance())
    core.publish_plan(world.signed(world.plan))
    core.publish_key(world.key.key_id, world.signed(world.key_document))
    core.publish_model(digest(world.model), world.model)
    core.open_round(0, world.signed(world.round))
    clients = [digest(b"client %d" % i)[:16] for i in range(reports)]
    groups = [clients[i : i + _GROUP] for i in range(0, reports, _GROUP)]
    serial = core.current().serial

    def size() -> int:
        return sum(path.stat().st_size for path in folder.glob(file.name + "*"))

    empty, start = size(), time.process_time()
    for group in groups:
        core.mark_present(serial, group)
    present, after = time.process_time() - start, size()
    body = make_envelope(
        world.plan,
        randomizer_of(world.plan),
        0,
        world.round.model_digest,
        world.key.public_key,
        np.ones(world.plan.dimension),
        SecureSource(),
    )
    start = time.process_time()
    for group in groups:
        core.accept([core.examine(client, 0, body) for client in group])
    taken, full = time.process_time() - start, size()
    core.clock = lambda: world.round.closes + 1
    core.close_due()
    start = time.process_time()
    core.claim(0, canonical({"charge": "ab" * 32}))
    length = sum(len(chunk) for chunk in core.batch(0).chunks)
    released = time.process_time() - start
    start = time.process_time()
    core.finish(0)
    destroyed = time.process_time() - start
    store.close()
    return {
        "presence_cpu": present / reports,
        "presence_bytes": (after - empty) / reports,
        "accept_cpu": taken / reports,
        "stored_bytes": (full - after) / reports,
        "release_cpu": released / reports,
        "released_bytes": length / reports,
        "destroy_cpu": destroyed / reports,
    }


def analyzer_costs(world: World, folder: Path, reports: int) -> dict[str, float]:
    """Opening, checking and adding up reports; and the ledger, which the fleet does not grow."""
    plan = world.plan
    bodies = [
        make_envelope(
            plan,
            randomizer_of(plan),
            0,
            world.round.model_digest,
            world.key.public_key,
            np.ones(plan.dimension),
            SecureSource(),
        )
        for _ in range(8)
    ]
    reader = BatchReader(plan, world.round, world.key)
    start = time.process_time()
    for index in range(reports):
        reader.add(bodies[index % len(bodies)])
    if reader.result().reports != reports:
        raise SystemExit("reports were dropped")
    opened = (time.process_time() - start) / reports
    path = folder / f"analyzer-{plan.dimension}.ledger"
    with Ledger(path, Price(plan)) as ledger:
        ledger.charge(0, ChargeReason.RELEASE)
        before, start = path.stat().st_size, time.process_time()
        ledger.charge(1, ChargeReason.RELEASE)
        charged = time.process_time() - start
        size = path.stat().st_size - before
    return {"open_cpu": opened, "charge_cpu": charged, "ledger_bytes_a_round": size}


def price_costs() -> dict[str, float]:
    """The accountant's work does not grow with the fleet."""
    found = {}
    for fleet in FLEETS:
        document = plan_of(2410, fleet, rounds=1000, nonce=f"{fleet:032x}")
        start = time.process_time()
        price = Price(document)
        price.spent(1000)
        found[f"price_cpu_{fleet:.0e}"] = time.process_time() - start
    return found


def flower_costs(world: World, folder: Path) -> dict[str, float]:
    """What Flower carries for one node, and what dropping it into the box costs."""
    ring = Ring(world.signed(world.round), world.model)
    box = Mailbox(folder / f"box-{world.plan.dimension}")
    box.make()
    return {"ring_bytes": len(ring.to_bytes()), "drop_cpu": cpu(lambda: box.drop(ring), 50)}


def measure(reports: int) -> dict[str, Any]:
    """Everything, for both models."""
    found: dict[str, Any] = {"machine": _timing.machine(), "reports": reports, "models": {}}
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        for title, dimension in MODELS.items():
            model = b"\0" * (4 * dimension)
            world = World(plan_of(dimension, 60_000), model)
            crowd = World(plan_of(dimension, reports), model)  # all of it comes in this benchmark
            found["models"][title] = {
                "client": client_costs(world, folder, reports),
                "shuffler": shuffler_costs(crowd, folder, reports),
                "analyzer": analyzer_costs(world, folder, reports),
                "flower": flower_costs(world, folder),
            }
    found["accountant"] = price_costs()
    return found


def shown(value: float, name: str) -> str:
    """Seconds as ms or µs, bytes as they are."""
    if "bytes" in name:
        return f"{value:,.0f} B"
    return f"{1e3 * value:.2f} ms" if value >= 1e-3 else f"{1e6 * value:.0f} µs"


def size_of(value: float) -> str:
    """Bytes in a readable unit."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} PB"


def duration(value: float) -> str:
    """Seconds of one core, in a readable unit."""
    for limit, size, unit in ((1, 1e-3, "ms"), (120, 1, "s"), (7200, 60, "min")):
        if value < limit:
            return f"{value / size:.3g} {unit}"
    return f"{value / 3600:.3g} h"


def fleet_rows(costs: dict[str, Any]) -> list[list[str]]:
    """What fleets ask of each party in one round with about the same number of check-ins."""
    client, shuffler, analyzer = costs["client"], costs["shuffler"], costs["analyzer"]
    rows = []
    for fleet in FLEETS:
        check_ins = min(CHECK_INS, fleet // 2)
        down = fleet * (client["round_bytes_down"] + client["model_bytes_down"])
        rows.append(
            [
                f"{fleet:,}",
                f"{check_ins:,}",
                size_of(down),
                duration(fleet * shuffler["presence_cpu"] + check_ins * shuffler["accept_cpu"]),
                size_of(fleet * shuffler["presence_bytes"] + check_ins * shuffler["stored_bytes"]),
                size_of(check_ins * shuffler["released_bytes"]),
                duration(check_ins * analyzer["open_cpu"]),
                size_of(fleet * client["report_bytes_up"]),
            ]
        )
    return rows


def main() -> None:
    """Measure and print two tables for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=1000)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    found = measure(options.reports)
    for title, costs in found["models"].items():
        print(f"\n{title}\n")
        print("| party | what | cost |\n|---|---|---|")
        for party, values in costs.items():
            for name, value in values.items():
                print(f"| {party} | {name.replace('_', ' ')} | {shown(value, name)} |")
        head = ["clients", "check-ins", "model and round to all", "shuffler's CPU"]
        head += ["shuffler's disk", "to the analyzer", "analyzer's CPU", "with cover, to shuffler"]
        print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        for row in fleet_rows(costs):
            print("| " + " | ".join(row) + " |")
    print()
    for name, value in found["accountant"].items():
        print(f"{name.replace('_', ' ')}: {shown(value, name)}")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
