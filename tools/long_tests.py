"""Which tests take most of a second: writes tests/long_tests.txt, which keeps them out of `./dev quick`.

    ./dev test --durations=0 -q > durations.txt
    python tools/long_tests.py durations.txt

The cases of a parametrized test count together. Services, browsers, clusters and documents have lanes of their own.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
SECONDS = 0.8
OTHER_LANES = ("service/", "deployment/", "flower/", "documentation/", "dashboard/")


def long_tests(durations: str) -> list[str]:
    """Those of pytest's table of durations that take most of a second, without their parameters."""
    seconds: Counter[str] = Counter()
    for time, name in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +tests/(\S+?::\w+)", durations, re.MULTILINE):
        seconds[name] += float(time)
    return sorted(name for name, total in seconds.items() if total > SECONDS and not name.startswith(OTHER_LANES))


if __name__ == "__main__":
    found = long_tests(Path(sys.argv[1]).read_text(encoding="utf-8"))
    (TESTS / "long_tests.txt").write_text("\n".join(found) + "\n", encoding="utf-8")
    print(f"{len(found)} tests")
