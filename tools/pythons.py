"""The core under every Python that the classifiers of pyproject.toml name.

For each version an environment of its own is made and the package installed into it, without any
extra and with the newest libraries that it allows; there the tests of the accounting core and a few
commands run. An interpreter that is not on this machine is named, and the run fails.

    python tools/pythons.py          every version of the classifiers
    python tools/pythons.py 3.13     these
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
TESTS = (
    "tests/special",
    "tests/accounting/test_frozen_figures.py",
    "tests/accounting/test_pairs.py",
    "tests/accounting/test_statements.py",
    "tests/accounting/test_parameters.py",
)
# what the core alone does not have: dp-accounting, by which named reports are priced, and mypy
ELSEWHERE = "not local-only and not error_of_types"
RUN = ("--population", "10000", "--rate", "1/100", "--local-epsilon", "2")
COMMANDS = {  # with what has to be found in the JSON that they print
    ("epsilon", *RUN, "--rounds", "100", "--delta", "1e-4"): "0.0694",
    ("plan", *RUN, "--epsilon", "0.1", "--delta", "1e-4"): '"value": 188',
    ("compare", *RUN, "--rounds", "100", "--delta", "1e-4"): "0.0694",
}


def classified() -> list[str]:
    """The versions that the classifiers name."""
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


def check(version: str, found: str) -> None:
    """Install the core and run its tests and commands.

    Args:
        version: As the classifiers write it.
        found: The interpreter.
    """
    with tempfile.TemporaryDirectory(prefix=f"dpcheckin-{version}-") as folder:
        bin_ = Path(folder) / "venv" / "bin"
        run(found, "-m", "venv", bin_.parent)
        run(bin_ / "pip", "install", "-qq", "--disable-pip-version-check", ROOT, *BESIDE)
        for command, wanted in COMMANDS.items():
            said = run(bin_ / "dpcheckin", *command, "--json", capture_output=True, cwd=folder)
            json.loads(said.stdout)
            if wanted not in said.stdout:
                raise SystemExit(f"Python {version}: {command[0]} does not say {wanted}")
        # away from the sources, so that what is tested is what was installed
        shutil.copytree(ROOT / "tests", Path(folder) / "tests")
        shutil.copy(ROOT / "pyproject.toml", folder)
        tests = [*TESTS, "-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", ELSEWHERE]
        run(bin_ / "python", "-m", "pytest", *tests, cwd=folder)
    print(f"Python {version}: the core works", flush=True)


def main() -> None:
    """Check the versions of the command line, or all."""
    versions = sys.argv[1:] or classified()
    interpreters = {version: interpreter(version) for version in versions}
    for version, found in interpreters.items():
        if found is not None:
            check(version, found)
    missing = [version for version, found in interpreters.items() if found is None]
    if missing:
        raise SystemExit(f"not on this machine: Python {', '.join(missing)}")


if __name__ == "__main__":
    main()
