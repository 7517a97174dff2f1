"""One run on Flower's simulation engine, with everything its operator could log.

    python tests/flower/simulated_run.py FOLDER ROUNDS ROUND_SECONDS

24 virtual nodes with one client each. The engine measures every call of a ClientApp; this script
writes each measured time, the size of the reply and whether it was an error to FOLDER/seen.json,
and the analyzer's snapshot to FOLDER/result.json.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from flwr.server.superlink.fleet.vce.backend.raybackend import RayBackend
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from dpcheckin.deployment.options import DemoOptions
from dpcheckin.flower.fleet import SimulatedFleet

SEEN: list[dict[str, Any]] = []
_lock = threading.Lock()


def logged(process: Any) -> Any:
    """What the engine's operator sees of every message."""

    def measured(self: Any, message: Any, context: Any) -> Any:
        began = time.perf_counter()
        reply, after = process(self, message, context)
        seconds = time.perf_counter() - began
        parts = get_all_nested_objects(reply.content) if not reply.has_error() else {}
        with _lock:
            SEEN.append(
                {
                    "node": int(context.node_config["partition-id"]),
                    "round": int(message.metadata.group_id),
                    "seconds": seconds,
                    "size": sum(len(part.deflate()) for part in parts.values()),
                    "error": reply.has_error(),
                }
            )
        return reply, after

    return measured


def main() -> None:
    """Play it."""
    folder = Path(sys.argv[1])
    rounds, seconds = int(sys.argv[2]), float(sys.argv[3])
    options = DemoOptions(
        clients=24,
        processes=24,
        rate=0.35,
        rounds=rounds,
        round_seconds=seconds,
        local_epsilon=8.0,
        epsilon_budget=400.0,
        absent=0.25,
        minimum_batch=2,
        rotate_every=20,
        learning={"learning_rate": 1.5, "averaging": 0.9},
    )
    RayBackend.process_message = logged(RayBackend.process_message)
    with SimulatedFleet(folder, options, quiet_seconds=seconds / 4) as fleet:
        fleet.start()
        result = fleet.simulate()
    (folder / "seen.json").write_text(json.dumps(SEEN))
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
