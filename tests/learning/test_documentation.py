import inspect
import json
import re
from pathlib import Path

from dpcheckin.cli.train import train
from dpcheckin.numerals import rounded_up

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


def test_a_model_of_ones_own_takes_ten_lines():
    """The block that trains a custom model on a CSV file, imports and all."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (block,) = (one for one in blocks if "client_data(" in one)
    lines = [line for line in block.splitlines() if line.strip()]
    assert len(lines) <= 10 and any("nn.Sequential" in line for line in lines)
    assert 'client_data("visits.csv"' in block and "outcome = train(" in block
