"""A training run is a table in a notebook: its log."""

from __future__ import annotations

from dpcheckin.learning.simulation.training import Outcome


def test_a_training_run_is_its_log() -> None:
    log = [{"round": n, "check_ins": 7} for n in range(1, 30)]
    outcome = Outcome(None, log, 29, 0.9, None, 1.0, False)  # type: ignore[arg-type]
    assert outcome.records() == log
    assert outcome._repr_html_().count("<tr>") == 1 + 10
    assert outcome.caption == "test accuracy 90.00% after 29 rounds"
