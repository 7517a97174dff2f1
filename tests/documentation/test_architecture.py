"""docs/architecture.md draws the house as it is, and its walks are the ones the code takes."""

from __future__ import annotations

import ast
import asyncio
import re
import tomllib
from pathlib import Path

import pytest

from documentation.blocks import ROOT, blocks
from documentation.sealed_report import play
from documentation.session import call
from documentation.walks import PACKAGE, PAGE, Entered, Hop, hops
from dpcheckin.accounting import clear_cache

WALKS = ("A question", "A training round", "A sealed report")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]


def floors(container: str) -> list[list[str]]:
    """The layers of the contract about a package, highest first."""
    (found,) = [c["layers"] for c in CONTRACTS["contracts"] if c.get("containers") == [container]]
    return [re.findall(r"\w+", layer) for layer in found]


@pytest.mark.parametrize("container", ["dpcheckin", "dpcheckin.accounting", "dpcheckin.accounting.engine"])
def test_the_drawing_is_the_contract(container: str) -> None:
    drawn = [[line.split("  ")[0].split(" | ") for line in block.text.splitlines()] for block in blocks(PAGE)]
    assert floors(container) in drawn


def defined(file: Path) -> set[str]:
    """Qualified names of the functions of a file."""
    found: set[str] = set()

    def look(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(prefix + child.name)
                look(child, f"{prefix}{child.name}.")

    look(ast.parse(file.read_text("utf-8")), "")
    return found


@pytest.mark.parametrize("walk", WALKS)
def test_every_hop_leads_to_a_function(walk: str) -> None:
    rows = hops(walk)
    assert len(rows) >= 15
    for file, function in rows:
        assert function in defined(PACKAGE / file), f"{walk}: {file} has no {function}"


def walked(taken: list[Hop], told: list[Hop]) -> list[Hop]:
    """The hops that were told of, in the order in which they were taken."""
    return [hop for hop in taken if hop in told]


def test_the_walk_of_a_question_is_taken(tmp_path: Path) -> None:
    (command,) = re.findall(r"^### A question\n\n`(.*)`$", PAGE.read_text("utf-8"), flags=re.M)
    clear_cache()  # another test may have asked the same
    with Entered() as entered:
        code, _, complained = call(command, tmp_path)
    assert code == 0, complained
    assert walked(entered.hops, hops("A question")) == hops("A question")


def test_the_walk_of_a_training_round_is_taken(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    (command,) = re.findall(r"^### A training round\n\n`(.*)`$", PAGE.read_text("utf-8"), re.M)
    clear_cache()
    with Entered() as entered:
        code, _, complained = call(f"{command} --threads 1 --out run", tmp_path)
    assert code == 0, complained
    assert walked(entered.hops, hops("A training round")) == hops("A training round")


def test_the_walk_of_a_sealed_report_is_taken(tmp_path: Path) -> None:
    clear_cache()
    with Entered() as entered:
        said = asyncio.run(play(tmp_path))
    assert said == "all 1 rounds of the plan have been charged"
    assert walked(entered.hops, hops("A sealed report")) == hops("A sealed report")
