"""Counters and gauges of a party, in the Prometheus text format."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

COMMON = {
    "storage_failures_total": "Operations that failed because the store could not serve them.",
    "timeouts_total": "Connections dropped because a request or a reader was too slow.",
    "slow_readers_total": "Connections dropped because an answer was not read.",
    "connections_refused_total": "Connections dropped because there were too many.",
    "storage_ok": "1 if the last look at the store succeeded.",
}
"""What every party with a store counts."""

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Named counters and gauges; a counter's name ends with `_total`.

    `prefix`: before every name; `meanings`: of the names there are, in the order in which they are shown; `labelled`:
    names that are shown only with labels, so not before something was counted.
    """

    def __init__(self, prefix: str, meanings: Mapping[str, str], labelled: Collection[str] = ()) -> None:
        self._prefix, self._meanings, self._labelled = prefix, meanings, labelled
        self._lock = threading.Lock()
        self._values: dict[str, dict[Labels, float]] = {name: {} for name in meanings}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count `amount` more under `name` and its labels."""
        place = tuple(sorted(labels.items()))
        with self._lock:
            self._values[name][place] = self._values[name].get(place, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Set the gauge `name` to a value."""
        with self._lock:
            self._values[name][()] = value

    def value(self, name: str, **labels: str) -> float:
        """What has been counted under `name` and its labels."""
        return self._values[name].get(tuple(sorted(labels.items())), 0)

    def text(self) -> str:
        """All of them."""
        with self._lock:
            values = {name: dict(found) for name, found in self._values.items()}
        lines = []
        for name, meaning in self._meanings.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {self._prefix}{name} {meaning}", f"# TYPE {self._prefix}{name} {kind}"]
            if not values[name] and name not in self._labelled:
                values[name] = {(): 0}
            for labels, value in sorted(values[name].items()):
                inside = ",".join(f'{key}="{text}"' for key, text in labels)
                lines.append(f"{self._prefix}{name}{'{' + inside + '}' if inside else ''} {value}")
        return "\n".join(lines) + "\n"
