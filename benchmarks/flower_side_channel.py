"""What a SuperLink's operator can see, measured on a real SuperLink with real SuperNodes.

    python benchmarks/flower_side_channel.py FOLDER [--nodes 3] [--rounds 50] [--round-seconds 12]
        [--json FILE]

Needs the extras `flower`, `learning` and `service`. Every reply is logged where it comes in at the
SuperLink (size, the run time that the SuperNode reports, error), and labelled afterwards with what
the owners' ledgers say. Prints the verdict of `verify/flower_observations.py` and the least delay
it would have found; exit code 1 if something differs beyond chance. Takes rounds times seconds.

Each node has four clients; it counts as participating in a round when one of them reported.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from dpcheckin.deployment.options import DemoOptions
from dpcheckin.flower.fleet import FlowerFleet
from dpcheckin.service.storage.journal import Journal

sys.path.insert(0, str(Path(__file__).parents[1] / "verify"))

from flower_observations import Observation, detectable_shift, examine

CLIENTS = 4
APP = Path(__file__).parents[1] / "examples" / "flower"

_SUPERLINK = """
import json, sys
from flwr.superlink.servicer.fleet import fleet_handlers as handlers

plain = handlers.push_messages

def logged(request, state):
    for message, seconds in zip(request.messages_list, request.clientapp_runtime_list):
        with open({log!r}, "a") as out:
            print(json.dumps({{
                "node": message.metadata.src_node_id,
                "round": int(message.metadata.group_id),
                "size": request.ByteSize(),
                "seconds": seconds,
                "error": message.HasField("error"),
            }}), file=out)
    return plain(request=request, state=state)

handlers.push_messages = logged
from flwr.superlink.cli import flower_superlink
sys.exit(flower_superlink())
"""


class Watched(FlowerFleet):
    """A fleet whose SuperLink writes down what it sees."""

    def start_superlink(self, command: Any = ()) -> None:
        code = _SUPERLINK.format(log=str(self.folder / "seen.jsonl"))
        super().start_superlink([sys.executable, "-c", code])


def numbers_of(fleet: FlowerFleet) -> dict[int, int]:
    """Flower's number of each node, from the node's own log."""
    found = {}
    for index, party in enumerate(fleet.nodes):
        for line in party.log.read_text(errors="replace").splitlines():
            if "SuperNode ID:" in line:
                found[int(line.rpartition(":")[2].strip())] = index
    return found


def labelled(folder: Path, numbers: dict[int, int]) -> list[Observation]:
    """The operator's log with the owners' knowledge."""
    coins: dict[tuple[int, int], bool] = defaultdict(bool)
    for path in folder.glob("clients/client-*/client.ledger"):
        node = int(path.parent.name.removeprefix("client-")) // CLIENTS
        journal = Journal(path)
        for entry in journal:
            coins[node, entry.body["round"]] |= bool(entry.body["report"])
        journal.close()
    seen = []
    for line in (folder / "seen.jsonl").read_text().splitlines():
        one = json.loads(line)
        node = numbers[one["node"]]
        if (node, one["round"]) in coins:
            said = {name: one[name] for name in ("round", "size", "seconds", "error")}
            seen.append(Observation(str(node), checked_in=coins[node, one["round"]], **said))
    return seen


def main() -> None:
    """Run the fleet, then look at its SuperLink's log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--round-seconds", type=float, default=12.0)
    parser.add_argument("--json", default=None)
    given = parser.parse_args()
    options = DemoOptions(
        clients=CLIENTS * given.nodes,
        processes=given.nodes,
        rate=0.15,
        rounds=given.rounds,
        round_seconds=given.round_seconds,
        epsilon_budget=1000.0,
        delta=0.01,
        absent=0.34,
        minimum_batch=0,
        rotate_every=0,
    )
    with Watched(given.folder, options) as fleet:
        fleet.start()
        fleet.wait(fleet.submit(APP), patience=60 + 6 * given.rounds * given.round_seconds)
        numbers = numbers_of(fleet)
    seen = labelled(given.folder, numbers)
    verdict = examine(seen)
    delay = detectable_shift(seen)
    sizes = sorted({one.size for one in seen})
    found = verdict.to_json() | {"detectable_seconds": delay, "sizes": sizes}
    found["rounds"] = len({one.round for one in seen})
    found["median_seconds"] = sorted(one.seconds for one in seen)[len(seen) // 2]
    print(json.dumps(found, indent=1))
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1) + "\n")
    if verdict.leaks:
        raise SystemExit("participants differ from others beyond chance")


if __name__ == "__main__":
    main()
