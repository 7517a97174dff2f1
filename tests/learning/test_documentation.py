import inspect
import json
import re
from pathlib import Path

from dpcheckin.accounting.statements import rounded_up
from dpcheckin.cli.train import train

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "training.md").read_text()


def test_every_option_on_the_page_exists():
    """Options named on the page are the command's, or those of `reproduce` and the results."""
    known = set(inspect.signature(train).parameters)
    named = {o.replace("-", "_") for o in re.findall(r"`--([a-z-]+)", PAGE)}
    assert named - known == {"list", "quick", "seeds"}


def test_the_results_on_the_page_are_those_of_the_runs():
    """Every run has its row, accuracy and epsilon as its report gave them."""
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    results = json.loads((ROOT / "docs" / "results" / "mnist.json").read_text())
    assert results
    for name, run in results.items():
        shown = f"| {100 * run['accuracy']:.2f}% | {rounded_up(run['epsilon'])} |"
        assert any(shown in row for row in rows), f"{name}: {shown}"
