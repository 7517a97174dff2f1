"""Hostile parties, unlucky owners and closed tabs against the module: `attacks.mjs` in Node."""

from __future__ import annotations

from pathlib import Path

import pytest

from web.conftest import MODULE, ROOT, run_node

ATTACKS = 100  # at the least: a runner that skips must not pass
REPORT_MILLISECONDS, REPORT_LIMIT = "milliseconds of a report", 20.0
MOMENTS, LEAST_MOMENTS = "moments of being closed", 60


def test_the_module_is_at_most_60_kilobytes() -> None:
    size = MODULE.stat().st_size
    assert size <= 60 * 1024
    assert f"{size:,} bytes" in (ROOT / "docs" / "browser.md").read_text(encoding="utf-8")


def test_the_module_keeps_its_promises(node: str) -> None:
    found = run_node(node, "attacks.mjs")
    assert found.pop(REPORT_MILLISECONDS) < REPORT_LIMIT
    assert found.pop(MOMENTS) >= LEAST_MOMENTS
    assert {name: said for name, said in found.items() if said != "ok"} == {}
    assert len(found) >= ATTACKS


# what is replaced, by what, and the attack that has to notice
MUTANTS = {
    "a report after every coin": ("envelope: heads ? neutral : away", "envelope: neutral", "a value that does"),
    "nothing written down": ('add: [[["round", plan, round], coin]], put: [', "put: [", "two tabs|closed at any"),
    "anybody believed": ("if (!holds) malformed", "if (false) malformed", "round signed by"),
    "any model believed": ("if (hex(await digest(body)) !== model)", "if (false)", "/v1/model/"),
    "any token used": ("?.key === token_key", " !== undefined", "key of one's own"),
    "failing with the data": ("} catch {\n\t\t\t// what", "} catch (p) { throw p;\n\t\t\t// what", "a neutral"),
    "both figures given back": (
        "local(this.of(plan).coins.size + 1)",
        "local(this.roundsOf(plan) + 1)",
        "void rounds are",
    ),
    "reports counted": (".filter((coin) => !coin.void)", ".filter((coin) => coin.heads)", "so many answers"),
    "no margin": ("closes - 0.15 * (closes - opens) - first", "closes - first", "moments do not"),
    "work on heads only": (
        "own = await report(question",
        "own = await report(heads ? question.neutral : question",
        "heads as for tails",
    ),
    "numbers read in many ways": ("(_\\d+)*(\\.(\\d", "(_?\\d+)*(\\.(\\d", "no value takes"),
    "any rate taken": ('["rate", () => plan.rate, limits.rate],', "", "refused: a rate"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_module_that_breaks_one_is_caught(node: str, tmp_path: Path, mutant: str) -> None:
    before, after, attack = MUTANTS[mutant]
    text = MODULE.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    spoiled = tmp_path / "dpcheckin.mjs"
    spoiled.write_text(text.replace(before, after), encoding="utf-8")
    found = run_node(node, "attacks.mjs", str(spoiled), attack)
    assert [name for name, said in found.items() if isinstance(said, str) and said != "ok"], found
