import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def test_every_option_on_the_page_exists():
    """Options named in the table are options of the command."""
    source = Path(__file__).resolve().parents[2] / "src" / "dpcheckin" / "cli" / "train.py"
    known = set(re.findall(r"^    (\w+): Annotated", source.read_text(), re.M))
    named = {o.replace("-", "_") for o in re.findall(r"`--([a-z-]+)", PAGE.read_text())}
    assert named - known == {"cpu_time"}  # the benchmark's own
