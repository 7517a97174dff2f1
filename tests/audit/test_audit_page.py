"""docs/audit.md does not lie: its example runs, its options exist, its tables hold."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def tables(first_column: str) -> list[list[str]]:
    """Rows of the tables whose first column has this title."""
    rows: list[list[str]] = []
    inside = False
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] == first_column:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not cells[0].startswith("---"):
            rows.append(cells)
    return rows


def test_every_option_on_the_page_exists() -> None:
    source = (ROOT / "src" / "dpcheckin" / "cli" / "audit.py").read_text(encoding="utf-8")
    known = set(re.findall(r"^    (\w+): Annotated", source, re.M))
    named = {o.replace("-", "_") for o in re.findall(r"--([a-z][a-z-]+)", PAGE)}
    assert named <= known


def test_the_python_example_runs_and_prints_what_it_says() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"


def test_the_mutant_table_has_every_mutant_all_caught_and_no_honest_system_flagged() -> None:
    from dpcheckin.audit.mutants import mutants

    rows = tables("mutant")
    assert [row[0] for row in rows] == [mutant.name for mutant in mutants()]
    for row in rows:
        caught, of = map(int, row[7].split(" of "))
        assert caught == of > 0
        assert int(row[10].split(" of ")[0]) == 0
        assert float(row[5]) >= float(row[4])  # audited at or above what was claimed
        assert float(row[9]) <= float(row[8])


@pytest.mark.parametrize(("rounds", "least", "rows"), [("1", 0.7, 12), ("100", 0.5, 2)])
def test_the_tightness_tables_show_what_they_must(rounds: str, least: float, rows: int) -> None:
    """No audited figure exceeds its certificate; those short of the aim are marked as such."""
    shown = [row for row in tables("response") if row[4] == rounds]
    for row in shown:
        certified, audited, ratio = float(row[6]), float(row[7]), float(row[8].strip("*"))
        assert audited <= certified
        assert abs(ratio - audited / certified) < 0.02
        assert (ratio < least) == row[8].startswith("*")
    must = [row for row in shown if row[3] in ("2", "4") and not row[8].startswith("*")]
    assert len(must) >= rows
