"""The repository keeps its own promises: versions, pins, layers, rules of the house, ./dev."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version as installed_version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dpcheckin
from dpcheckin.protocols.questions import PROTOCOLS
from dpcheckin.randomizers.registry import BUILT_IN

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=600, env={**os.environ, **environment}
    )


# --- versions and pins ----------------------------------------------------------------------


def test_the_changelog_knows_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, flags=re.MULTILINE)
    assert releases[0] == dpcheckin.__version__


def test_the_installed_distribution_has_the_version_of_the_source() -> None:
    assert installed_version("dpcheckin") == dpcheckin.__version__


def all_requirements() -> list[Requirement]:
    project = PROJECT["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(line) for group in groups for line in group]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize("requirement", all_requirements(), ids=str)
def test_every_dependency_is_pinned_to_a_version_it_allows(requirement: Requirement) -> None:
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


def test_torch_is_pinned_where_it_is_installed_and_not_where_it_is_allowed() -> None:
    """An environment of somebody else's has a torch already; here another build would weigh gigabytes."""
    asked = [r.specifier for r in all_requirements() if r.name == "torch"]
    assert asked
    assert all(specifier.contains("2.4.0") and specifier.contains("3.0") for specifier in asked)
    assert "--constraint constraints.txt" in (ROOT / "dev").read_text(encoding="utf-8")


# --- layers ---------------------------------------------------------------------------------


def lint_layers(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The repository's own contract, applied to a made-up package of the same name."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in {"__init__.py": "", "errors.py": "", **files}.items():
        file = folder / "dpcheckin" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    program = (
        f"import os, sys; os.chdir({str(folder)!r}); sys.path.insert(0, {str(folder)!r}); "
        "from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(limit_to_contracts=('layers',), no_cache=True))"
    )
    return run(sys.executable, "-c", program)


def test_a_downward_import_keeps_the_contract(tmp_path: Path) -> None:
    result = lint_layers(
        tmp_path, {"accounting.py": "import dpcheckin.errors", "cli.py": "import dpcheckin.accounting"}
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    "files",
    [
        {"accounting.py": "import dpcheckin.cli", "cli.py": ""},
        {"learning.py": "import dpcheckin.service", "service.py": ""},
        {"misplaced.py": ""},
    ],
    ids=["upward import", "sideways import", "module without a layer"],
)
def test_the_contract_catches(tmp_path: Path, files: dict[str, str]) -> None:
    result = lint_layers(tmp_path, files)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout


def test_the_architecture_page_places_every_layer_of_the_contract() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    for name in re.findall(r"\w+", " ".join(layers)):
        assert f"`{name}`" in page


LIBRARIES = {
    "errors.py": set[str](),
    "special": {"numpy"},
    "accounting": {"attr", "threadpoolctl", "numpy", "dp_accounting", "attrs"},
}


@pytest.mark.parametrize("layer", LIBRARIES)
def test_the_lowest_layers_use_only_the_libraries_they_are_allowed(layer: str) -> None:
    allowed = LIBRARIES[layer] | {"dpcheckin"} | sys.stdlib_module_names
    place = ROOT / "src" / "dpcheckin" / layer
    for file in [place] if place.is_file() else place.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            assert {name.split(".")[0] for name in names} <= allowed, file


# --- the rules of the house -------------------------------------------------------------------
#
# What the next change adds must not refill the rooms unseen. An exception names what is still too
# large, with its size: it may shrink, it may not grow, and it goes when it is no longer needed.

SOURCE = ROOT / "src" / "dpcheckin"
MODULES, LINES, LINES_OF_ACCOUNTING, LINES_IN_ALL = 16, 350, 320, 50_000
CROWDED: dict[str, int] = {}
LONG: dict[str, int] = {}
SILENT = 0  # public functions whose docstring names not every parameter
STILL = 55500  # lines of the whole house; the goal is LINES_IN_ALL


def modules() -> dict[str, int]:
    """Every module by its path, and its lines."""
    return {
        file.relative_to(SOURCE).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for file in sorted(SOURCE.rglob("*.py"))
    }


def held(sizes: dict[str, int], limit: Callable[[str], int], known: dict[str, int]) -> None:
    """No size above its limit but the known ones, which neither grow nor outlive their reason."""
    large = {name: size for name, size in sizes.items() if size > limit(name)}
    assert large.keys() <= known.keys(), f"too large: {large.keys() - known.keys()}"
    assert known.keys() <= large.keys(), f"no exception any more: {known.keys() - large.keys()}"
    assert all(size <= known[name] for name, size in large.items()), (large, known)


def test_a_folder_holds_at_most_sixteen_modules() -> None:
    rooms = Counter(str(Path(name).parent) for name in modules() if not name.endswith("__init__.py"))
    held(rooms, lambda _: MODULES, CROWDED)


def test_a_file_holds_one_idea() -> None:
    accounting = ("accounting/", "special/")
    held(modules(), lambda name: LINES_OF_ACCOUNTING if name.startswith(accounting) else LINES, LONG)


def test_the_house_does_not_grow() -> None:
    assert sum(modules().values()) <= max(STILL, LINES_IN_ALL)


# Names stand in one table: `randomizers.registry` for randomizers, `protocols.questions` for protocols. What lists
# several of them elsewhere means something else, named here, or is on its way out.
TABLES = {
    "protocols/questions.py": "the table of protocols",
    "accounting/proof/reports.py": "kinds of reports in the format of certificates",
    "accounting/proof/ways.py": "the same",
    "service/wire/documents.py": "what plan documents may name, which is the wire's own to say",
}


def listings(text: str, names: set[str]) -> Iterator[set[str]]:
    """The names that stand together in one literal: a dict's keys, a list, a match."""
    for node in ast.walk(ast.parse(text)):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = list(node.elts)
        elif isinstance(node, ast.Match):
            patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
            parts = [part.value for part in patterns if isinstance(part, ast.MatchValue)]
        together = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        if len(together & names) > 1:
            yield together & names


def test_names_of_randomizers_and_protocols_stand_in_one_table() -> None:
    randomizers = {name for kind in BUILT_IN for name in (kind.name, *kind.aliases)}
    protocols = {name for key, protocol in PROTOCOLS.items() for name in (key, *protocol.aliases)}
    second = {}
    for name in modules():
        text = (SOURCE / name).read_text(encoding="utf-8")
        if found := [*listings(text, randomizers), *listings(text, protocols)]:
            second[name] = found
    assert second.keys() == TABLES.keys(), second


def public_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods that a stranger may call."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node


def unnamed_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Those of several parameters that the docstring never names."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = [part.arg for part in arguments if part.arg not in ("self", "cls") and not part.arg.startswith("_")]
    told = ast.get_docstring(node) or ""
    return [name for name in names if not re.search(rf"\b{name}\b", told)] if len(names) > 1 else []


def test_docstrings_name_the_parameters() -> None:
    """A method that says nothing is described where a class above it says it; a command's docstring is its help."""
    known, silent = set[str](), []
    for name in modules():
        for node in public_functions(ast.parse((SOURCE / name).read_text(encoding="utf-8")).body):
            missing = unnamed_parameters(node)
            if not missing:
                known.add(node.name)
            elif not name.startswith("cli/"):
                silent.append((node.name, f"{name}:{node.lineno} {node.name} {missing}", ast.get_docstring(node)))
    left = [text for function, text, docstring in silent if docstring or function not in known]
    assert len(left) <= SILENT, "\n".join(left)


def test_no_function_is_excused_from_the_limit_of_complexity() -> None:
    assert PROJECT["tool"]["ruff"]["lint"]["mccabe"]["max-complexity"] <= 10
    assert "C901" in PROJECT["tool"]["ruff"]["lint"]["select"]
    assert not [name for name in modules() if "C901" in (SOURCE / name).read_text(encoding="utf-8")]


def test_lines_of_scripts_are_as_wide_as_can_be_read() -> None:
    """No linter looks at JavaScript."""
    scripts = sorted(SOURCE.rglob("*.js"))
    assert scripts
    wide = [
        f"{script.name}:{number}"
        for script in scripts
        for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 130
    ]
    assert not wide


# the goals are 22, 22 and 30 files
WALKS = {
    "epsilon --population 10000 --rate 0.01 --local-epsilon 2 --rounds 100 --delta 1e-4": 27,
    "epsilon --protocol random-check-in-fixed --population 10000 --slots 1000 --local-epsilon 0.5 --delta 1e-6": 25,
    "epsilon --population 10000 --rate 0.01 --noise-multiplier 2 --rounds 100 --delta 1e-4": 34,
}


@pytest.mark.parametrize("command", WALKS, ids=["check-in", "window", "gaussian"])
def test_an_answer_goes_through_few_files(command: str) -> None:
    said = run(sys.executable, ROOT / "tools" / "hops.py", *command.split())
    (files,) = re.findall(r"(\d+) files, \d+ functions", said.stdout)
    assert int(files) <= WALKS[command], said.stdout


def test_every_long_test_is_there() -> None:
    for line in (ROOT / "tests" / "long_tests.txt").read_text(encoding="utf-8").split():
        file, name = line.split("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), line


# --- the ./dev script -----------------------------------------------------------------------


def commands_of_dev() -> set[str]:
    result = run(ROOT / "dev", "help")
    assert result.returncode == 0
    return set(re.findall(r"^  (\w+) ", result.stdout, flags=re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_dev_command_in_a_document_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert set(re.findall(r"\./dev (\w+)", text)) <= commands_of_dev()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_in_a_document_leads_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            place = document.parent / target
            # the site makes a page of a notebook when it is built
            assert place.exists() or place.with_suffix(".ipynb").exists(), target


def test_newcomers_are_told_the_two_commands() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "./dev demo" in told
    assert "./dev test" in told


def test_ci_runs_what_contributors_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert commands.rstrip().endswith("exec ./dev test")
    assert "\n./dev test-elsewhere --quick\n" in commands  # one other processor, imitated


def test_dev_refuses_an_unknown_command_in_one_line() -> None:
    result = run(ROOT / "dev", "tset")
    assert result.returncode == 2
    assert result.stderr == "dev: unknown command 'tset'; ./dev help lists them\n"


def test_dev_refuses_an_old_python_before_it_makes_anything(tmp_path: Path) -> None:
    home = tmp_path / "a folder with spaces"
    home.mkdir()
    for name in ("dev", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, home)
    old = tmp_path / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    result = run(home / "dev", "demo", PYTHON=str(old))
    assert result.returncode == 1
    assert result.stderr == f"dev: PYTHON={old} is not Python 3.11 or newer\n"
    assert not (home / ".venv").exists()
