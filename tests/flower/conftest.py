"""Telemetry is off before anything of Flower is imported."""

from __future__ import annotations

import pytest

from dpcheckin.flower import turn_telemetry_off

turn_telemetry_off()


@pytest.fixture
def a_flower_task(monkeypatch):
    """What Flower knows in a process that it started for an app."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
