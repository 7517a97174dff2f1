"""The vectors of tests/vectors, in both languages: what Python writes today is what the files hold, and the module that
browsers load reads, randomizes and seals as they say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.randomizers import SecureSource, randomizer
from web.conftest import MODULE, ROOT, run_node

VECTORS = ROOT / "tests" / "vectors"
sys.path.insert(0, str(VECTORS))
import write  # noqa: E402

CHECKED = 1200  # comparisons at the least: a runner that skips must not pass


class Words(SecureSource):
    """A secure source in form, whose words follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def _words(self, count: int) -> Any:
        return np.frombuffer(self._generator.bytes(8 * count), dtype=np.uint64).copy()


@pytest.mark.parametrize("name", sorted(write.made(Path()).keys() - {"prices"}))
def test_a_file_is_what_the_code_says_today(name: str, tmp_path: Path) -> None:
    assert write.text_of(write.made(tmp_path)[name]()) == (VECTORS / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "case", json.loads((VECTORS / "randomizers.json").read_text()), ids=lambda c: c["randomizer"]["name"]
)
def test_pythons_reports_follow_the_published_laws(case: dict[str, Any]) -> None:
    """A chi-square test, five standard deviations wide, as the module's own."""
    layout = {"clip", "encoding", "dimension"}
    made = randomizer({k: v for k, v in case["randomizer"].items() if k not in layout})
    total = 40_000
    for place, told in enumerate(case["laws"]):
        value = int(told["value"]) if made.name == "hash" else told["value"]
        values = np.full(total, value, np.uint64 if made.name == "hash" else None)
        reports = made.report_format.encode(made.randomize(values, Words(place)))
        kinds, counts = np.unique([report.hex() for report in reports], return_counts=True)
        seen = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
        assert seen.keys() <= told["law"].keys()
        assert chi_square(seen, told["law"], total) < 5.0


def chi_square(seen: dict[str, int], law: dict[str, float], total: int) -> float:
    """Of counts against a law, in standard deviations above what is expected; rare reports are one cell."""
    large = {report: p * total for report, p in law.items() if p * total >= 5}
    parts = [(seen.get(report, 0) - mean) ** 2 / mean for report, mean in large.items()]
    rest = total - sum(large.values())
    if rest > 1e-6 * total:
        parts.append((total - sum(seen.get(r, 0) for r in large) - rest) ** 2 / max(rest, 1.0))
    freedom = max(len(parts) - 1, 1)
    return float((sum(parts) - freedom) / np.sqrt(2 * freedom))


def test_the_laws_are_laws_and_keep_the_local_epsilon() -> None:
    for case in json.loads((VECTORS / "randomizers.json").read_text()):
        laws = [told["law"] for told in case["laws"]]
        for law in laws:
            assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
            for other in laws:
                most = max(law[report] / other[report] for report in law)
                assert most <= np.exp(case["randomizer"]["local_epsilon"]) * (1 + 1e-12)


def test_node_agrees(node: str) -> None:
    said = run_node(node, "vectors.mjs")
    assert said["failures"] == []
    assert said["checked"] >= CHECKED


def test_chromium_agrees(browser: Any, files: str) -> None:
    page = browser.new_page()
    page.goto(f"{files}/tests/web/empty.html")
    vectors = {file.stem: json.loads(file.read_text()) for file in VECTORS.glob("*.json")}
    said = page.evaluate(
        """async (vectors) => {
            const { check } = await import("/tests/web/vectors.mjs");
            return check(await import("/clients/web/dpcheckin.js"), vectors);
        }""",
        vectors,
    )
    page.close()
    assert said["failures"] == []
    assert said["checked"] >= CHECKED


def test_a_runner_notices_what_is_wrong(node: str, tmp_path: Path) -> None:
    """Another threshold, another law, another price: each is found."""
    text = MODULE.read_text(encoding="utf-8")
    for before, after, found in (
        ("(value + 1 + chance.below(symbols - 1)) % symbols", "chance.below(symbols)", "law of"),
        ("const MARGIN = 1n << 60n", "const MARGIN = 1n << 270n", "own "),
        ("(e0 + 1) / 2) * fewest", "(e0 + 1) / 1) * fewest", "price "),
        ("edge <= found", "edge < found", '"bins"'),
    ):
        assert text.count(before) == 1, before
        spoiled = tmp_path / "dpcheckin.mjs"
        spoiled.write_text(text.replace(before, after), encoding="utf-8")
        said = run_node(node, "vectors.mjs", str(spoiled))
        assert any(found in failure for failure in said["failures"]), (before, said["failures"][:5])
