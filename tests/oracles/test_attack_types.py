"""The attack with clients at different values: the package stands, a forged figure does not."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import pytest

from dpcheckin import accounting
from oracles import attack_types
from oracles.seat_types.cases import KINDS, draw

_QUICK = [kind for kind in KINDS if not kind.endswith("/gaussian")]


@pytest.mark.parametrize("kind", _QUICK)
def test_the_package_is_not_crossed(kind: str) -> None:
    checks = 0
    for index in range(6):
        found = attack_types.examine(draw(kind, 31, index))
        assert found.crossings == []
        checks += found.checks
    assert checks > 12


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in _QUICK])
def test_gaussian_reports_are_not_crossed(kind: str) -> None:
    for index in range(4):
        assert attack_types.examine(draw(kind, 31, index)).crossings == []


@dataclass(frozen=True)
class _TooSmall:
    """A composition that says one in a thousand less than the truth of one case."""

    true: object

    def delta(self, epsilon: float) -> accounting.Bracket:
        figure = self.true(exp(epsilon)) * 0.999  # type: ignore[operator]
        return accounting.Bracket(figure, figure)

    def epsilon(self, delta: float) -> accounting.Bracket:
        return accounting.Bracket(0.0, 0.0)


@pytest.mark.parametrize("kind", ["truth/circle", "seats/vertex", "many/any", "theorem/any"])
def test_a_figure_slightly_too_small_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = draw(kind, 31, 3)
    monkeypatch.setattr(accounting, "compose", lambda rounds: _TooSmall(case.true))
    found = attack_types.examine(case)
    assert any("said delta" in line for line in found.crossings)
    assert "cases.draw" in found.crossings[0]


def test_a_figure_far_above_brute_force_is_found_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = draw("theorem/any", 31, 3)
    assert attack_types.examine(case, ceiling=10.0).crossings == []

    class Loose(_TooSmall):
        def delta(self, epsilon: float) -> accounting.Bracket:
            return accounting.Bracket(1.0, 1.0)

        def epsilon(self, delta: float) -> accounting.Bracket:
            return accounting.Bracket(40.0, 40.0)

    monkeypatch.setattr(accounting, "compose", lambda rounds: Loose(case.true))
    assert attack_types.examine(case).crossings == []
    assert any("brute force" in line for line in attack_types.examine(case, 0.01).crossings)
