"""Files and options that cannot be used are found out before anything is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpcheckin.deployment.options import DemoOptions
from dpcheckin.errors import InvalidParameter


def run(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-c", "from dpcheckin.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("place", ["taken.jsonl", "no-folder/tokens.jsonl"])
def test_nobody_is_enrolled_whose_token_cannot_be_written(tmp_path: Path, place: str) -> None:
    folder, out = tmp_path / "shuffler", tmp_path / place
    (tmp_path / "taken.jsonl").write_text("kept")
    code, _, said = run("shuffler", "enroll", "--folder", str(folder), "--out", str(out))
    assert (code, said.count("\n")) == (2, 1)
    assert "out = " in said
    assert (tmp_path / "taken.jsonl").read_text() == "kept"
    assert not folder.exists()  # not even a database was made


def test_a_report_that_cannot_be_written_is_not_a_violated_claim(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    code, printed, said = run("audit", "--budget", "200", "--out", str(tmp_path / "taken"))
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert "out = " in said and "a folder" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clients", 9),
        ("clients", 10**9),
        ("rate", 0.0),
        ("rate", float("nan")),
        ("rounds", 0),
        ("delta", 1.0),
        ("round_seconds", -1.0),
        ("local_epsilon", float("nan")),
        ("noise_multiplier", float("inf")),
        ("epsilon_budget", -1.0),
    ],
)
def test_a_demonstration_names_what_it_cannot_be_given(name: str, value: float) -> None:
    with pytest.raises(InvalidParameter, match=f"^{name} = "):
        DemoOptions(**{name: value})  # type: ignore[arg-type]
