"""Logs: one JSON object a line, and never more of them than a disk can hold."""

import json
import logging

from dpcheckin.service.logs import BoundedRate, JsonLines


def record(level: int, text: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord("dpcheckin.shuffler", level, "", 0, text, values, None)


def test_warnings_of_one_kind_pass_at_a_bounded_rate_and_say_how_many_did_not() -> None:
    now = [0.0]
    bounded = BoundedRate(burst=3, per_minute=60.0, monotonic=lambda: now[0])
    passed = [bounded.filter(record(logging.WARNING, "junk from %s", i)) for i in range(10)]
    assert passed == [True] * 3 + [False] * 7
    assert bounded.filter(record(logging.ERROR, "another kind"))
    now[0] = 1.0
    after = record(logging.WARNING, "junk from %s", 11)
    assert bounded.filter(after)
    line = json.loads(JsonLines().format(after))
    assert (line["event"], line["suppressed"]) == ("junk from 11", 7)
    now[0] = 2.0
    again = record(logging.WARNING, "junk from %s", 12)
    assert bounded.filter(again)
    assert "suppressed" not in json.loads(JsonLines().format(again))


def test_what_is_no_warning_always_passes() -> None:
    bounded = BoundedRate(burst=1, per_minute=0.001)
    assert all(bounded.filter(record(logging.INFO, "round closed")) for _ in range(100))


def test_kinds_without_end_share_one_rate() -> None:
    bounded = BoundedRate(burst=2, per_minute=0.001)
    passed = sum(bounded.filter(record(logging.WARNING, f"kind {i}")) for i in range(1000))
    assert passed == 256 + 2
