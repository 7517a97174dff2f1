"""docs/audit.md and docs/audit-tables.md do not lie: example, options and tables hold."""

import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE, TABLES = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("audit.md", "audit-tables.md"))


def test_every_option_on_the_page_exists() -> None:
    source = (ROOT / "src" / "dpcheckin" / "cli" / "audit.py").read_text(encoding="utf-8")
    known = set(re.findall(r"^    (\w+): [\w |]+ = option\(", source, re.M))
    named = {o.replace("-", "_") for o in re.findall(r"--([a-z][a-z-]+)", PAGE + TABLES)}
    assert named <= known


def test_the_python_example_runs_and_prints_what_it_says() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
    done = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"


def stored(name: str) -> Path:
    return ROOT / "docs" / "results" / name


def test_the_mutant_table_is_the_one_that_the_command_prints_of_the_stored_results() -> None:
    from dpcheckin.audit.tables import load_rows, mutants_markdown

    rows = load_rows(stored("audit-mutants.json"))
    assert f"<!-- mutants -->\n{mutants_markdown(list(rows.values()))}<!-- /mutants -->" in TABLES


def test_every_mutant_was_caught_every_time_and_no_honest_system_was_flagged() -> None:
    """What the detection probability is at least, with 95% confidence, stands in the table."""
    from dpcheckin.audit.mutants import all_mutants
    from dpcheckin.audit.tables import load_rows, most_likely

    rows = load_rows(stored("audit-mutants.json"))
    everyone = all_mutants()
    assert list(rows) == [mutant.name for mutant in everyone]
    for mutant, row in zip(everyone, rows.values(), strict=True):
        assert row.budget == mutant.pairs
        assert row.claimed == pytest.approx(mutant.broken.epsilon, rel=1e-3)
        assert row.caught == row.repetitions
        assert row.detection >= 0.99
        assert row.flagged == 0
        assert row.least_lower >= row.claimed
        assert row.most_honest_lower <= row.honest_claimed
    assert most_likely(0, sum(row.honest_repetitions for row in rows.values())) <= 0.01


def test_the_tightness_tables_are_those_that_the_command_prints_of_the_stored_results() -> None:
    from dpcheckin.audit.tables import tightness_tables

    done = json.loads(stored("audit-tightness.json").read_text(encoding="utf-8"))
    assert f"<!-- tightness -->\n{tightness_tables(done)}<!-- /tightness -->" in TABLES


def test_the_tightness_tables_show_what_they_must() -> None:
    """0.7 of the certificate for one round at local epsilon 2 and 4, 0.5 for a hundred."""
    from dpcheckin.audit.tables import AIM, COMPOSED_AIM, composed_cells, one_round_cells

    done = json.loads(stored("audit-tightness.json").read_text(encoding="utf-8"))
    must = [(c, AIM) for c in one_round_cells() if c.local_epsilon in (2.0, 4.0)]
    must += [(c, COMPOSED_AIM) for c in composed_cells()]
    assert len(must) == 30
    short = []
    for cell, aim in must:
        result = done[cell.key]
        if result["lower_bound"] < aim * result["claimed_epsilon"]:
            short.append(cell.key)
        assert result["lower_bound"] <= result["claimed_epsilon"], cell.key
        assert result["confidence"] == 0.99
        assert result["cpu_seconds"] <= 1200  # ten minutes on two cores
        assert not result["refuted"]
    assert not short


def ratios(response: str, rounds: int) -> list[float]:
    """Audited over certified, of the cells with an aim."""
    done = json.loads(stored("audit-tightness.json").read_text(encoding="utf-8")).values()
    return [
        result["lower_bound"] / result["claimed_epsilon"]
        for result in done
        if result["cell"]["randomizer"] == response
        and result["cell"]["rounds"] == rounds
        and result["cell"]["local_epsilon"] in (2.0, 4.0)
    ]


@pytest.mark.parametrize("rounds", [1, 100])
@pytest.mark.parametrize(("shown", "response"), [("binary", "binary"), ("3-ary", "dary:3")])
def test_the_summary_of_tightness_is_that_of_the_cells(shown: str, response: str, rounds: int) -> None:
    found = ratios(response, rounds)
    least, median = (math.floor(100 * x + 1e-9) / 100 for x in (min(found), statistics.median(found)))
    assert f"| {shown} | {rounds} | {least:.2f} | {median:.2f} |" in PAGE


def test_the_summary_of_the_mutants_is_that_of_the_table() -> None:
    from dpcheckin.audit.tables import load_rows

    rows = load_rows(stored("audit-mutants.json")).values()
    assert len(rows) == 13
    assert {(row.caught, row.repetitions) for row in rows} == {(300, 300)}
    honest = sum(row.honest_repetitions for row in rows)
    text = " ".join(PAGE.split())
    assert "caught in 300 of 300 audits" in text
    assert f"flagged honest systems in 0 of {honest:,} audits" in text
    assert min(row.detection for row in rows) >= 0.99


def test_the_page_is_short() -> None:
    """It was 4,000 words; the long tables have a page of their own."""
    assert len(PAGE.split()) <= 2000
