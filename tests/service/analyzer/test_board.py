"""What the analyzer shows: the board and the band that coins predict."""

from pathlib import Path

from dpcheckin.service.analyzer.board import expected
from service.analyzer_world import OUTCOMES, World, small_plan


def test_the_board_tells_what_happened(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), OUTCOMES)
    made = world.analyzer()
    made.run()
    shot, text = made.board.snapshot(), made.board.prometheus()
    made.close()
    assert shot["spent"]["charged"] == 4
    assert shot["spent"]["epsilon"] == made.price.plan.guarantee(1e-5, 4).charge()
    assert shot["rounds"][0]["expected"] == expected(120, 0.2)
    assert "expected" not in shot["rounds"][1]
    assert 'dpcheckin_analyzer_rounds_total{outcome="released"} 3' in text
    assert 'dpcheckin_analyzer_epsilon_spent{shuffler="colluding"}' in text
    assert shot["finished"].startswith("all 4 rounds")


def test_the_band_holds_99_percent() -> None:
    from scipy.stats import binom

    for present, rate in ((120, 0.2), (300, 0.3), (10, 0.01)):
        band = expected(present, rate)
        inside = binom.cdf(band["high"], present, rate) - binom.cdf(band["low"] - 1, present, rate)
        assert inside >= 0.99
        assert binom.cdf(band["low"] - 1, present, rate) < 0.005
        assert binom.sf(band["high"], present, rate) <= 0.005
