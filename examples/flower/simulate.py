"""The same app on Flower's simulation engine: virtual nodes, real shuffler, real agents.

    python simulate.py [FOLDER]

Needs the extras `flower`, `learning` and `service`. The engine takes the place of SuperLink and
SuperNodes; `python simulate.py` is therefore not a smaller version of the deployment, only a
quicker one: agents, shuffler, analyzer and ledgers are those of a fleet.
"""

import sys
from pathlib import Path

from dpcheckin.deployment.options import DemoOptions
from dpcheckin.flower.fleet import SimulatedFleet


def main() -> None:
    """Twenty-four nodes with one client each, thirty rounds."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "simulated-fleet")
    options = DemoOptions(
        clients=24,
        processes=24,
        rate=0.35,
        rounds=30,
        round_seconds=2.0,
        local_epsilon=8.0,
        epsilon_budget=400.0,
        absent=0.25,
        minimum_batch=2,
    )
    with SimulatedFleet(folder, options, quiet_seconds=0.5) as fleet:
        fleet.start()
        result = fleet.simulate()
    print(f"test accuracy {100 * result['metrics']['accuracy']:.1f} %")
    print(result["statement"])


if __name__ == "__main__":
    main()
