"""Metrics and logs, as an operator's tools read them."""

from __future__ import annotations

import json
import logging

import pytest

from dpcheckin.service import logs
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import LOGGER, ShufflerFront
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from service.shuffler_world import Clock, SeededChance


def test_metrics_are_prometheus_text() -> None:
    core = Shuffler(MemoryStore(), clock=Clock(), chance=SeededChance())
    metrics = ShufflerFront(core, bytes(32)).metrics
    metrics.add("refusals_total", problem="busy")
    metrics.add("refusals_total", 2, problem="busy")
    metrics.set("storage_ok", 1)
    lines = metrics.text().splitlines()
    assert 'dpcheckin_shuffler_refusals_total{problem="busy"} 3' in lines
    assert "dpcheckin_shuffler_storage_ok 1" in lines
    assert "dpcheckin_shuffler_reports_total 0" in lines
    assert "# TYPE dpcheckin_shuffler_reports_total counter" in lines
    assert not any(line.startswith("dpcheckin_shuffler_rounds_total") for line in lines)
    with pytest.raises(KeyError):
        metrics.add("clients_by_name")


def test_a_log_line_is_an_object_with_the_events_own_fields(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(LOGGER.name, "info")
    logs.event(LOGGER, "round closed", round=3)
    try:
        raise RuntimeError("odd")
    except RuntimeError as problem:
        LOGGER.error("internal error", exc_info=problem)
    logs.event(LOGGER, "hidden", level=logging.DEBUG)
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["event"], first["round"], first["level"]) == ("round closed", 3, "info")
    assert "RuntimeError: odd" in second["error"]
