"""Counters, in the Prometheus text format. They tell no more than `GET /v1/rounds/{round}` does.

Reports are counted when their round is closed, never while it is open and never for a round void
by population: the number of check-ins is a secret until it has been charged for.
"""

from __future__ import annotations

import threading

_HELP = {
    "refusals_total": "Requests refused, by problem.",
    "rounds_total": "Rounds closed, by outcome.",
    "reports_total": "Reports of rounds that were closed with a count.",
    "present_total": "Clients present, summed over closed rounds.",
    "releases_total": "Batches streamed to the analyzer to their end.",
    "storage_failures_total": "Operations that failed because the store could not serve them.",
    "clock_steps_back_total": "Times the wall clock was found set back.",
    "timeouts_total": "Connections dropped because a request or a reader was too slow.",
    "slow_readers_total": "Connections dropped because an answer was not read.",
    "connections_refused_total": "Connections dropped because there were too many.",
    "internal_errors_total": "Errors nobody foresaw: each is a bug.",
    "enrolled_clients": "Clients that hold a token.",
    "round_open": "1 while a round is open.",
    "storage_ok": "1 if the last look at the store succeeded.",
    "start_time_seconds": "When this process started.",
}
_PREFIX = "dpcheckin_shuffler_"
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Named counters and gauges; names are those of `_HELP`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, Labels], float] = {}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count."""
        with self._lock:
            place = _known(name), tuple(sorted(labels.items()))
            self._values[place] = self._values.get(place, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[_known(name), ()] = value

    def value(self, name: str, **labels: str) -> float:
        """What has been counted."""
        return self._values.get((_known(name), tuple(sorted(labels.items()))), 0)

    def text(self) -> str:
        """All of them."""
        with self._lock:
            values = dict(self._values)
        lines = []
        for name, help_text in _HELP.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {_PREFIX}{name} {help_text}", f"# TYPE {_PREFIX}{name} {kind}"]
            found = {labels: v for (n, labels), v in values.items() if n == name}
            if not found and name not in _LABELLED:
                found = {(): 0}
            for labels, value in sorted(found.items()):
                inside = ",".join(f'{key}="{text}"' for key, text in labels)
                lines.append(f"{_PREFIX}{name}{'{' + inside + '}' if inside else ''} {value}")
        return "\n".join(lines) + "\n"


_LABELLED = {"refusals_total", "rounds_total"}


def _known(name: str) -> str:
    if name not in _HELP:
        raise KeyError(name)
    return name
