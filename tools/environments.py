"""What is installed elsewhere: under other Pythons, and with other versions of the libraries.

For each an environment of its own is made and the package installed into it; there tests and a few commands run. An
interpreter that is not on this machine is named, and the run fails.

    python tools/environments.py pythons             the core alone, under every Python of the classifiers
    python tools/environments.py pythons 3.13        under these
    python tools/environments.py versions            core, services, frames and pictures, with the oldest libraries that
                                                     pyproject.toml allows and with the newest
    python tools/environments.py versions lowest     with these
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("pytest", "hypothesis", "mpmath", "scipy")
CORE = (
    "tests/special",
    "tests/accounting/test_frozen_figures.py",
    "tests/accounting/test_pairs.py",
    "tests/accounting/test_statements.py",
    "tests/accounting/test_parameters.py",
)
PARTIES = (
    *CORE,
    "tests/accounting/test_bridge.py",
    "tests/service/wire",
    "tests/service/shuffler",
    "tests/service/test_end_to_end.py",
    "tests/survey",
)
EXTRAS = ("service", "plot", "frame", "bridge")
# what the core alone does not have: dp-accounting, by which named reports are priced, and mypy
ELSEWHERE = "not local-only and not error_of_types"
RUN = ("--population", "10000", "--rate", "1/100", "--local-epsilon", "2")
COMMANDS = {  # with what has to be found in the JSON that they print
    ("epsilon", *RUN, "--rounds", "100", "--delta", "1e-4"): "0.0694",
    ("plan", *RUN, "--epsilon", "0.1", "--delta", "1e-4"): '"value": 188',
    ("compare", *RUN, "--rounds", "100", "--delta", "1e-4"): "0.0694",
}
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}  # as uv calls them


def classified() -> list[str]:
    """The versions of Python that the classifiers name."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def interpreter(version: str) -> str | None:
    """An interpreter of this version: on the path, or one of pyenv's."""
    found = shutil.which(f"python{version}")
    if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
        return found  # pyenv's stand-ins are there and fail
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return str(kept[-1]) if kept else None


def run(*command: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    """A command that has to succeed."""
    return subprocess.run([*map(str, command)], check=True, text=True, **more)  # type: ignore[call-overload,no-any-return]


def check(folder: Path, tests: tuple[str, ...], which: str) -> None:
    """Run the commands and these tests in the environment `venv` of a folder; `which` leaves tests out."""
    bin_ = folder / "venv" / "bin"
    for command, wanted in COMMANDS.items():
        said = run(bin_ / "dpcheckin", *command, "--json", capture_output=True, cwd=folder)
        json.loads(said.stdout)
        if wanted not in said.stdout:
            raise SystemExit(f"{command[0]} does not say {wanted}")
    # away from the sources, so that what is tested is what was installed
    shutil.copytree(ROOT / "tests", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    quick = "not slow and not long and not browser and not cluster and not document"
    # what an old library says of another, newer one is not ours to mend
    patient = ["-W", "default::DeprecationWarning", "-W", "default::PendingDeprecationWarning"]
    options = ["-q", "-p", "no:cacheprovider", *patient, "-m", quick, "-k", which]
    run(bin_ / "python", "-m", "pytest", *tests, *options, cwd=folder)


def python(version: str) -> None:
    """The core alone under a Python of this version."""
    found = interpreter(version)
    if found is None:
        raise SystemExit(f"not on this machine: Python {version}")
    with tempfile.TemporaryDirectory(prefix=f"dpcheckin-{version}-") as name:
        folder = Path(name)
        run(found, "-m", "venv", folder / "venv")
        run(folder / "venv" / "bin" / "pip", "install", "-qq", "--disable-pip-version-check", ROOT, *BESIDE)
        check(folder, CORE, ELSEWHERE)
    print(f"Python {version}: the core works", flush=True)


def libraries(which: str) -> None:
    """The core and the services with the lowest or the newest libraries that are allowed."""
    if which not in RESOLUTIONS:
        raise SystemExit(f"which versions? {' or '.join(RESOLUTIONS)}, not {which!r}")
    with tempfile.TemporaryDirectory(prefix=f"dpcheckin-{which}-") as name:
        folder = Path(name)
        lock, uv = folder / "lock.txt", [sys.executable, "-m", "uv"]
        extras = [part for extra in EXTRAS for part in ("--extra", extra)]
        resolved = ["pip", "compile", "-q", "--resolution", RESOLUTIONS[which], *extras]
        run(*uv, *resolved, "--output-file", lock, ROOT / "pyproject.toml", capture_output=True)
        run(*uv, "venv", "-q", "--python", sys.executable, folder / "venv")
        into = ["--python", str(folder / "venv" / "bin" / "python")]
        run(*uv, "pip", "install", "-q", *into, "-r", lock, "-c", lock, *BESIDE, "pytest-xdist", "trustme")
        run(*uv, "pip", "install", "-q", *into, "--no-deps", ROOT)
        for line in lock.read_text(encoding="utf-8").splitlines():
            if line[:1].isalpha():
                print(line, flush=True)
        check(folder, PARTIES, "not error_of_types and not wire_page")  # pages are not copied
    print(f"the {which} versions: core and services work", flush=True)


def main() -> None:
    """Check what the command line names, or all."""
    kind, *chosen = sys.argv[1:] or [""]
    if kind == "pythons":
        for version in chosen or classified():
            python(version)
    elif kind == "versions":
        for which in chosen or RESOLUTIONS:
            libraries(which)
    else:
        raise SystemExit("pythons or versions?")


if __name__ == "__main__":
    main()
