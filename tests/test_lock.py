"""requirements.lock: what a service host installs, each file by its hash."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
_ENTRY = re.compile(r"^(\S+)==(\S+)(?: ; [^\\\n]*)? \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE)


def locked() -> dict[str, tuple[str, list[str]]]:
    """Version and hashes by name."""
    found = {}
    for name, version, hashes in _ENTRY.findall(LOCK):
        found[canonicalize_name(name)] = (version, re.findall(r"--hash=(\S+)", hashes))
    return found


def test_every_line_is_a_pin_with_hashes() -> None:
    lines = [line for line in LOCK.splitlines() if line and not line.startswith(("#", "    --hash="))]
    assert len(lines) == len(locked()) > 30
    for version, hashes in locked().values():
        assert version
        assert hashes
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes)
    assert "://" not in LOCK


def test_the_pins_are_those_of_the_constraints() -> None:
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            pins[canonicalize_name(name)] = version
    tools = {"hatchling", "pluggy", "trove-classifiers", "tomlkit"}  # of the build backend alone
    for name, (version, _) in locked().items():
        if name in pins:
            assert version == pins[name], f"{name}: run ./dev lock"
        else:
            assert name in tools, f"{name} is not in constraints.txt"


@pytest.mark.parametrize("part", ["dependencies", "service", "build"])
def test_what_a_service_host_needs_is_locked(part: str) -> None:
    project = PROJECT["project"]
    wanted = {
        "dependencies": project["dependencies"],
        "service": project["optional-dependencies"]["service"],
        "build": PROJECT["build-system"]["requires"],
    }[part]
    for text in wanted:
        asked = Requirement(text)
        version, _ = locked()[canonicalize_name(asked.name)]
        assert asked.specifier.contains(version), f"{asked}: run ./dev lock"
    assert "torch" not in locked()


def test_the_image_installs_nothing_else() -> None:
    made = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes -r /src/requirements.lock" in made
    assert '--no-deps --no-build-isolation "/src[service]"' in made
    assert made.count("pip install") == 2
