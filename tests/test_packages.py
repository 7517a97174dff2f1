"""A wheel and an sdist are built, and the core alone answers in an environment with nothing else.

The quick test needs no network: the environment gets links to the core's own dependencies and to
nothing else that happens to be installed here. The slow one lets pip fetch them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytest.importorskip("hatchling")
ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "src")
RUN = ("--population", "2000", "--rate", "1/20", "--local-epsilon", "1")


# several questions in one process, which is started once
ASK = """
import contextlib, importlib.util, io, json, sys
import dpcheckin
from dpcheckin.cli import main
said = {"file": dpcheckin.__file__, "scipy": importlib.util.find_spec("scipy") is not None}
for name, arguments in json.loads(sys.argv[1]).items():
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["dpcheckin", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    said[name] = {"code": code, "out": out.getvalue(), "err": err.getvalue()}
print(json.dumps(said))
"""


def built(source: Path, out: Path, target: str) -> Path:
    """The wheel or sdist of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True, timeout=1200)
    (found,) = out.iterdir()
    return found


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel and an sdist, built from a copy of what git keeps."""
    folder = tmp_path_factory.mktemp("packages")
    source = folder / "source"
    source.mkdir()
    for name in BUILT_FROM:
        place = ROOT / name
        if place.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(place, source / name, ignore=ignored)
        else:
            shutil.copy(place, source / name)
    return built(source, folder / "wheel", "wheel"), built(source, folder / "sdist", "sdist")


def test_the_sdist_makes_the_same_wheel(packages: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = packages
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    again = built(tree, tmp_path / "again", "wheel")
    names = [set(zipfile.ZipFile(one).namelist()) for one in (wheel, again)]
    assert names[0] == names[1]
    for needed in ("__main__.py", "py.typed", "accounting/pairs/gaussian.jsonl"):
        assert f"dpcheckin/{needed}" in names[0]


def core() -> set[str]:
    """Names of the distributions that the core needs, and those that these need."""
    found: set[str] = set()
    queue = [Requirement(text).name for text in PROJECT["dependencies"]]
    while queue:
        name = queue.pop()
        if name in found:
            continue
        try:
            wanted = distribution(name).requires or []
        except PackageNotFoundError:  # a marker of another platform
            continue
        found.add(name)
        for text in wanted:
            one = Requirement(text)
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                queue.append(one.name)
    return found


def test_the_core_is_light() -> None:
    heavy = {"scipy", "matplotlib", "scikit-learn", "dp-accounting", "torch", "pandas", "attrs"}
    assert not core() & heavy
    assert len(core()) <= 12
    assert {"plot", "learning", "bridge", "frame"} <= set(PROJECT["optional-dependencies"])


def link_core(site: Path) -> None:
    """Links to the files of the core's dependencies, and to nothing else."""
    for name in core():
        about = distribution(name)
        for file in about.files or []:
            top = Path(str(file)).parts[0]
            if top.startswith("..") or top == "__pycache__":
                continue
            source, link = Path(str(about.locate_file(top))), site / top
            if not link.exists():
                link.symlink_to(source)


def test_the_wheel_alone_answers(packages: tuple[Path, Path], tmp_path: Path) -> None:
    """epsilon, plan and compare in an empty environment; a picture says which extra it needs."""
    place = tmp_path / "environment"
    venv.EnvBuilder(with_pip=False, symlinks=True).create(place)
    python = place / "bin" / "python"
    (site,) = place.glob("lib/python*/site-packages")
    with zipfile.ZipFile(packages[0]) as archive:
        archive.extractall(site)
    link_core(site)

    questions = {
        "epsilon": ["epsilon", *RUN, "--rounds", "20"],
        "plan": ["plan", "--epsilon", "1", "--delta", "1/1000", "--population", "50", *RUN[2:]],
        "compare": ["compare", *RUN, "--rounds", "20", "--json"],
        "local": ["epsilon", "--protocol", "local-only", *RUN[:2], *RUN[4:], "--json"],
        "picture": ["compare", *RUN, "--over", "rounds", "--values", "1,2", "--out", "pictures"],
        "training": ["train"],
    }
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
    done = subprocess.run(
        [str(python), "-c", ASK, json.dumps(questions)],
        capture_output=True, text=True, timeout=1200, cwd=tmp_path, env=clean,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["file"].startswith(str(site))
    assert not said["scipy"]
    assert {name: said[name]["code"] for name in questions} == {
        "epsilon": 0, "plan": 0, "compare": 0, "local": 0, "picture": 2, "training": 2
    }  # fmt: skip
    assert "differentially private" in said["epsilon"]["out"]
    assert "rounds = " in said["plan"]["out"]
    assert "empty-seat theorem" in said["compare"]["out"]
    line = "dpcheckin: {} is not installed: pip install 'dpcheckin[{}]'\n"
    assert said["picture"]["err"] == line.format("matplotlib", "plot")
    assert said["training"]["err"] == line.format("torch", "learning")


@pytest.mark.slow
def test_pip_installs_the_wheel_with_what_it_needs(packages: tuple[Path, Path], tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.EnvBuilder(with_pip=True).create(place)
    python = place / "bin" / "python"
    pins = ["-c", str(ROOT / "constraints.txt")]
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", *pins, str(packages[0])],
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    asked = subprocess.run([str(place / "bin" / "dpcheckin"), "epsilon", *RUN], capture_output=True, text=True)
    assert "differentially private" in asked.stdout
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format", "freeze"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "matplotlib" not in listed.stdout
    assert "scipy" not in listed.stdout
    assert len(listed.stdout.splitlines()) <= 17
