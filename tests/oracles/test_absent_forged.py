"""Numbers of a full shuffle's certificate, forged by a fifth, are caught by the program that checks it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import dpcheckin as dp

CHECK = Path(__file__).resolve().parents[2] / "verify/check.py"
Content = dict[str, Any]


@pytest.fixture(scope="module")
def issued() -> str:
    """A full shuffle of ten thousand, proved by marking and one type."""
    stated = dp.guarantee(dp.ShuffleRound(10_000, dp.any_pure(2.0)), delta=1e-6)
    return json.dumps(stated.certificate())


def checked(content: Content, folder: Path) -> subprocess.CompletedProcess[str]:
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    path = folder / "certificate.json"
    path.write_text(json.dumps(rest | {"sha256": sha256(text.encode()).hexdigest()}), encoding="ascii")
    return subprocess.run([sys.executable, str(CHECK), str(path)], capture_output=True, text=True, timeout=600)


def times(entry: Content, key: str, factor: float) -> None:
    entry[key] = f"{float(Fraction(entry[key])) * factor:.12g}"


def _way(content: Content) -> Content:
    return next(way for way in content["rounds"][0]["ways"].values() if "marking" in way)


def _another_type(content: Content) -> None:
    way = _way(content)
    way["types"], way["weights"] = [{"law": "A"}], {"B": ["1"], "C": ["1"]}


FORGED: dict[str, Callable[[Content], None]] = {
    "a fifth fewer draws from G": lambda c: times(_way(c), "marking", 0.8),
    "a fifth more draws from G": lambda c: times(_way(c), "marking", 1.2),
    "another single type": _another_type,
    "a fifth less noise above the type": lambda c: (
        [times(p, "laplace", 0.8) for p in c["rounds"][0]["points"]] and None
    ),
    "a fifth less lost at every point": lambda c: [times(p, "delta", 0.8) for p in c["rounds"][0]["points"]] and None,
    "a fifth less claimed": lambda c: times(c["claim"], "epsilon", 0.8),
    "a fifth more clients": lambda c: c["rounds"][0].update(population=12_000) or times(c["claim"], "epsilon", 0.9),
}


def test_what_the_package_issues_is_proved_by_marking(issued: str, tmp_path: Path) -> None:
    done = checked(json.loads(issued), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "assumed: marking: " in done.stdout


@pytest.mark.parametrize("name", FORGED)
def test_a_fifth_is_too_much_to_forge(name: str, issued: str, tmp_path: Path) -> None:
    content = json.loads(issued)
    FORGED[name](content)
    done = checked(content, tmp_path)
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith("not proved: ")
