"""References are fresh and whole: the command line, the catalogue, the paper map, the API pages."""

from __future__ import annotations

import doctest
import json
import re
import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import ismodule
from pathlib import Path
from runpy import run_path

import pytest
import typer.main

import dpcheckin
from documentation.blocks import PAGES, ROOT, blocks, name_of
from documentation.session import LOOSE
from dpcheckin.cli import application
from dpcheckin.papers.catalogue import catalogue, steps

SOURCE = ROOT / "src"
API = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))


# --- pages made from code -------------------------------------------------------------------


PAGES_TOOL = run_path(str(ROOT / "tools" / "pages.py"))


@pytest.mark.parametrize(("name", "made"), PAGES_TOOL["PAGES"].items(), ids=PAGES_TOOL["PAGES"])
def test_the_page_is_what_the_code_says(name: str, made: Callable[[], str]) -> None:
    stored = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert stored == made(), f"docs/{name} is stale: ./dev docs writes it anew"


def test_the_paper_map_knows_a_function_for_every_statement() -> None:
    said = [(bound.name, PAGES_TOOL["functions_behind"](bound.compute)) for bound in catalogue()]
    for name, places in [*said, *((step.theorem, step.code) for step in steps())]:
        assert places, name
        for name in places:
            module, _, function = f"dpcheckin.{name}".rpartition(".")
            assert callable(getattr(import_module(module), function))


def test_the_mnist_tutorial_promises_what_was_measured() -> None:
    page = (ROOT / "docs" / "tutorials" / "mnist.md").read_text(encoding="utf-8")
    found = json.loads((ROOT / "docs" / "results" / "mnist.json").read_text(encoding="utf-8"))
    promised = re.findall(r"more than (\d+)% at ε < (\d)", page)
    assert [budget for _, budget in promised] == ["1", "3"]
    for accuracy, budget in promised:
        run = found[f"eps{budget}"]
        assert run["accuracy"] > float(accuracy) / 100
        assert run["epsilon"] < float(budget)


def test_the_mnist_tutorial_names_the_commands_that_were_measured() -> None:
    page = (ROOT / "docs" / "tutorials" / "mnist.md").read_text(encoding="utf-8")
    measured = run_path(str(ROOT / "benchmarks" / "training_results.py"))
    given = set(measured["COMMON"]) - {"--json", "--threads", "1"}
    for name in ("eps1", "eps3"):
        (command,) = re.findall(rf"`dpcheckin train (.*) --out {name}`", page)
        # how often it is looked at and saved changes nothing
        kept = measured["RUNS"][name][: measured["RUNS"][name].index("--evaluate-every")]
        assert set(command.split()) == given | set(kept)


def test_the_flower_tutorial_shows_the_app_as_it_is() -> None:
    shown = [b.text for b in blocks(ROOT / "docs" / "tutorials" / "flower.md")]
    for name in ("client_app.py", "server_app.py"):
        app = ROOT / "examples" / "flower" / "checkin_app" / name
        assert app.read_text(encoding="utf-8") in shown


# --- commands in running text ---------------------------------------------------------------


def options() -> dict[str, set[str]]:
    """Every command and its options."""
    known: dict[str, set[str]] = {}

    def collect(command: object, path: str) -> None:
        known[path] = {o for p in command.params for o in p.opts} | {"--help", "-h"}  # type: ignore[attr-defined]
        for name, child in getattr(command, "commands", {}).items():
            collect(child, f"{path} {name}")

    collect(typer.main.get_command(application()), "dpcheckin")
    return known


def mentioned(page: Path) -> set[str]:
    """dpcheckin commands in the page's text and in blocks that are not run."""
    text = page.read_text(encoding="utf-8")
    inline = re.findall(r"`(dpcheckin [^`]+)`", text)
    held = [b for b in blocks(page) if b.marker == "not run"]
    excused = [line for b in held for line in b.text.splitlines()]
    shown = [line.removeprefix("$ ") for line in excused]
    return {" ".join(c.split()) for c in [*inline, *shown] if c.startswith("dpcheckin ")}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_is_only_mentioned_exists_with_its_options(page: Path) -> None:
    known = options()
    for command in mentioned(page):
        words = command.split()
        path = " ".join(words[:3]) if " ".join(words[:3]) in known else " ".join(words[:2])
        path = "dpcheckin" if words[1].startswith(("-", "[")) else path
        assert path in known, command
        used = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= known[path], command


# --- files and modules in running text --------------------------------------------------------


def outside_blocks(page: Path) -> str:
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_is_mentioned_exists(page: Path) -> None:
    named = re.findall(r"`(?:python )?((?:tests|benchmarks|tools|examples)/[\w/.-]+)", page.read_text())
    for name in named:
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_module_and_function_that_is_mentioned_exists(page: Path) -> None:
    for name in set(re.findall(r"`(dpcheckin(?:\.\w+)+)`", outside_blocks(page))):
        assert resolved(name) is not None, name


def resolved(name: str) -> object:
    """The module, or what a module holds under the rest of the name."""
    module, _, last = name.rpartition(".")
    try:
        return import_module(name)
    except ImportError:
        return getattr(import_module(module), last, None)


# --- the interface --------------------------------------------------------------------------

LAYERS = ("accounting", "randomizers", "protocols", "learning", "survey", "audit")


@pytest.mark.parametrize("layer", LAYERS)
def test_every_public_name_of_the_layer_is_in_the_reference(layer: str) -> None:
    package = import_module(f"dpcheckin.{layer}")
    # a function with the name of its module is listed as module.function
    listed = set(re.findall(rf"^::: dpcheckin\.{layer}\.(?:\w+\.)?(\w+)$", API, flags=re.M))
    raised = {"DatasetMissing"}  # listed with the errors
    # a package whose names are loaded when touched lists them, the others import each under its own name
    public = getattr(package, "__all__", [n for n, v in vars(package).items() if n[0] != "_" and not ismodule(v)])
    assert set(public) - raised <= listed
    for name in public:
        assert getattr(package, name).__doc__, f"dpcheckin.{layer}.{name} says nothing of itself"


def test_every_name_of_the_front_door_is_on_its_page() -> None:
    page = (ROOT / "docs" / "api" / "front-door.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page)) - {"dpcheckin"}
    assert named == set(dpcheckin.__all__) - {"__version__"}


WITH_EXAMPLES = sorted(file for file in SOURCE.rglob("*.py") if ">>> " in file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", WITH_EXAMPLES, ids=lambda f: f.relative_to(SOURCE).as_posix())
def test_the_examples_in_the_docstrings_hold(file: Path) -> None:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    module = import_module(".".join(part for part in parts if part != "__init__"))
    with warnings.catch_warnings():
        outcome = doctest.testmod(module, optionflags=LOOSE)
    assert outcome.attempted > 0
    assert outcome.failed == 0
