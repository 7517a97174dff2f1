"""The benchmarks of the services run on the code that ships, in a form that takes a second."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("token_costs.py", ["--rounds", "2", "--tokens", "3", "--repeats", "1"]),
        ("service_open.py", ["--reports", "2", "--repeats", "1"]),
    ],
)
def test_a_benchmark_runs(tmp_path: Path, script: str, options: list[str]) -> None:
    """What it measures is nothing to rely on here; that it measures something is."""
    command = [sys.executable, str(BENCHMARKS / script), *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])
