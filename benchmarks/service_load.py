"""Load on the shuffler, beside the bare floors, in one run.

    python benchmarks/service_load.py [--reports 1500] [--repeats 15] [--connections 64]
        [--small 100000] [--check] [--json FILE]

Durable accepted reports a second against a bare Starlette handler with a SQLite group commit, and
in memory against a bare uvicorn sink (one that forgets the body at once, and one that keeps it),
100 KB each; then one round of many small reports. Short runs of ours and of the floor alternate, so
that a busy neighbour hurts both; the ratio is the median of those of neighbouring runs. The ratio
of CPU times is shown beside it: it depends less on who else uses the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from _load_client import Outcome, send_all
from _load_servers import token
from _timing import machine

BODY = 100_000
TARGETS = {"sqlite": 0.88, "memory": 0.85}
"""Least ratio to the bare floor, on a machine that does nothing else."""
SMALL = 500


@dataclass
class Served:
    """A server that runs in a folder of its own."""

    kind: str
    size: int
    clients: int
    folder: Path = field(init=False)
    port: int = field(init=False)

    def __enter__(self) -> Served:
        self.folder = Path(tempfile.mkdtemp(prefix=f"load-{self.kind}-", dir="."))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        script = Path(__file__).with_name("_load_servers.py")
        arguments = [self.kind, self.folder, self.port, self.size, self.clients]
        self.process = subprocess.Popen(
            [sys.executable, str(script), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=(self.folder / "errors").open("wb"),
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError((self.folder / "errors").read_text())
        while not self._listens():
            time.sleep(0.05)
        return self

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(self, *problem: object) -> None:
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    def run(self, first: int, count: int, connections: int) -> Outcome:
        """Clients first, …, first + count - 1 send one report each."""
        body = (self.folder / "envelope").read_bytes()

        def requests() -> Iterator[tuple[bytes, bytes]]:
            for number in range(first, first + count):
                yield head(number, len(body)), body

        outcome = send_all(requests, self.port, connections)
        if set(outcome.statuses) != {202}:
            raise RuntimeError(f"{self.kind}: {dict(outcome.statuses)}")
        return outcome

    def cpu(self) -> float:
        """CPU seconds of the server so far, all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Largest resident size of the server so far, in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
        return 0


def head(number: int, length: int) -> bytes:
    """The head of a report's request."""
    return (
        f"PUT /v1/rounds/1/report HTTP/1.1\r\nhost: localhost\r\n"
        f"authorization: Bearer {token(number)}\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


def side_by_side(ours: str, floor: str, reports: int, repeats: int, connections: int) -> dict[str, object]:
    """Alternating runs of both, each on a fresh server: nothing piles up, nothing is cached."""
    rates: dict[str, list[float]] = {ours: [], floor: []}
    costs: dict[str, list[float]] = {ours: [], floor: []}
    for turn in range(repeats + 1):
        for kind in (ours, floor) if turn % 2 else (floor, ours):
            with Served(kind, BODY, reports) as server:
                before = server.cpu()
                rate = server.run(0, reports, connections).per_second
                cost = (server.cpu() - before) / reports
            if turn:  # the first of each only warms the machine up
                rates[kind].append(rate)
                costs[kind].append(cost)
    paired = [a / b for a, b in zip(rates[ours], rates[floor], strict=True)]
    ratio = statistics.median(paired)
    return {
        "ours": ours,
        "floor": floor,
        "reports_per_second": rates[ours],
        "floor_per_second": rates[floor],
        "ratio": ratio,
        "paired_ratios": paired,
        "cpu_seconds_per_report": statistics.median(costs[ours]),
        "floor_cpu_seconds_per_report": statistics.median(costs[floor]),
        "cpu_ratio": statistics.median(b / a for a, b in zip(costs[ours], costs[floor], strict=True)),
        "target": TARGETS[ours],
        "met": ratio >= TARGETS[ours],
    }


def many_small(kind: str, count: int, connections: int) -> dict[str, object]:
    """One round of many small reports, without a single error."""
    with Served(kind, SMALL, count) as server:
        outcome = server.run(0, count, connections)
        return {
            "store": kind,
            "reports": count,
            "bytes": SMALL,
            "errors": 0,
            "seconds": outcome.seconds,
            "reports_per_second": outcome.per_second,
            "peak_memory_mb": server.memory() / 2**20,
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reports", type=int, default=1500, help="of 100 KB, in each run")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--small", type=int, default=100_000, help="small reports; 0: none")
    parser.add_argument("--only", choices=["sqlite", "memory", "small"], help="one part only")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, object] = {"machine": machine(), "body_bytes": BODY}
    print(f"machine: {found['machine']}")
    rows = []
    pairs = (("sqlite", "bare-sqlite"), ("memory", "bare-sink"), ("memory", "bare-keep"))
    for ours, floor in pairs:
        if given.only not in (None, ours):
            continue
        row = side_by_side(ours, floor, given.reports, given.repeats, given.connections)
        rows.append(row)
        print(
            f"{ours:8} {statistics.median(row['reports_per_second']):8.0f}/s   "  # type: ignore[arg-type]
            f"{floor:12} {statistics.median(row['floor_per_second']):8.0f}/s   "  # type: ignore[arg-type]
            f"ratio {row['ratio']:.2f} (target {TARGETS[ours]}) "
            f"{'met' if row['met'] else 'MISSED'}; pairs "
            + " ".join(f"{p:.2f}" for p in sorted(row["paired_ratios"]))  # type: ignore[call-overload]
            + f"; CPU {1e6 * row['cpu_seconds_per_report']:.0f} us a report, "  # type: ignore[operator]
            f"floor {1e6 * row['floor_cpu_seconds_per_report']:.0f} us, "  # type: ignore[operator]
            f"ratio {row['cpu_ratio']:.2f}",
            flush=True,
        )
    found["side_by_side"] = rows
    if given.small and given.only in (None, "small"):
        small = many_small("sqlite", given.small, given.connections)
        found["small"] = small
        print(
            f"{small['reports']} reports of {SMALL} B in one round: {small['seconds']:.1f} s, "
            f"{small['reports_per_second']:.0f}/s, {small['errors']} errors, "
            f"peak {small['peak_memory_mb']:.0f} MB"
        )
    print(f"load generator: {resource.getrusage(resource.RUSAGE_SELF).ru_utime:.0f} s of CPU time")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if given.check and not all(row["met"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
