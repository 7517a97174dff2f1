"""What lies in deploy/ can be used as it stands: every command, option and setting in it exists."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from dpcheckin.cli import application
from dpcheckin.service.shuffler.settings import ENVIRONMENT, Settings, load

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def assert_exists(command: list[str]) -> None:
    """`dpcheckin GROUP COMMAND --option value …`: all of its words are known."""
    assert Path(command[0]).name == "dpcheckin"
    found: Any = typer.main.get_command(application())
    for word in command[1:3]:
        found = found.commands[word]
    options = {name: one for one in found.params for name in one.opts}
    rest = iter(command[3:])
    for word in rest:
        if not options[word].is_flag:
            assert not next(rest).startswith("-")


def line_of(unit: Path, name: str) -> str:
    (found,) = [line.split("=", 1)[1] for line in unit.read_text().splitlines() if line.startswith(f"{name}=")]
    return found


def test_there_is_a_unit_for_each_party() -> None:
    assert [unit.stem.removeprefix("dpcheckin-") for unit in UNITS] == ["analyzer", "client", "issuer", "shuffler"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_start_commands_that_exist_in_folders_they_may_write(unit: Path) -> None:
    command = shlex.split(line_of(unit, "ExecStart"))
    assert_exists(command)
    state = f"/var/lib/{line_of(unit, 'StateDirectory')}"
    assert sum(word.startswith(state) for word in command) == 1


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_start_again_after_a_failure_later_and_later(unit: Path) -> None:
    """A strange day is over at some time; a party that was not started again by then stays away."""
    assert line_of(unit, "Restart") in ("always", "on-failure")
    assert float(line_of(unit, "RestartMaxDelaySec")) > float(line_of(unit, "RestartSec"))
    assert int(line_of(unit, "RestartSteps")) > 1
    assert line_of(unit, "StartLimitIntervalSec") == "0", "systemd gives up after five starts otherwise"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_nothing_wrong_with_units(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    text = unit.read_text().replace("/opt/dpcheckin/bin/dpcheckin", sys.executable)
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True).stdout
    if int(re.findall(r"\d+", version)[0]) < 254:  # ignores the two entries by which pauses grow, and says so
        text = re.sub(r"(?m)^Restart(Steps|MaxDelaySec)=.*\n", "", text)
    copy.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_compose_starts_commands_that_exist_with_settings_that_exist() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    ours = {name: one for name, one in compose["services"].items() if "build" in one}
    assert len(ours) == 2
    for service in ours.values():
        assert_exists(service["command"])
        for name in service["environment"]:
            assert hasattr(Settings, name.removeprefix(ENVIRONMENT).lower())
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        assert set(service["secrets"]) <= compose["secrets"].keys()
        assert service["depends_on"].keys() <= compose["services"].keys()
    taken = [port for service in ours.values() for port in service["ports"]]
    assert len(set(taken)) == len(taken)


def test_the_image_holds_an_extra_and_a_command_that_exist() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (install,) = [line for line in lines if "pip install" in line]
    assert install.split("[")[1].split("]")[0] in extras
    (command,) = [line for line in lines if line.startswith("CMD ")]
    assert_exists(yaml.safe_load(command.removeprefix("CMD ")))


def test_every_image_is_pinned_by_a_digest_that_somebody_has_looked_up() -> None:
    """Neither file names an image that may change: without a digest from whoever builds nothing is built."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("FROM ")] == ["FROM ${BASE}"]
    assert "ARG BASE" in lines, "and no default"
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    named = [one["image"] for one in compose["services"].values() if "image" in one]
    named += [one["build"]["args"]["BASE"] for one in compose["services"].values() if "build" in one]
    assert len(named) == 3
    for image in named:
        assert re.fullmatch(r"\$\{[A-Z_]+:\?[a-z]+:[\w.-]+@sha256:… as you have looked it up\}", image), image


def test_the_recipe_keeps_to_what_recipes_should() -> None:
    """What a linter of recipes asks for; nothing here can build it."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line and line[0] not in "# "]
    known = ("ARG ", "FROM ", "COPY ", "RUN ", "USER ", "ENTRYPOINT ", "CMD ")
    assert all(line.startswith(known) for line in lines)
    assert next(line for line in lines if line.startswith("USER ")) != "USER root"
    assert lines.index("USER shuffler") < next(i for i, line in enumerate(lines) if line.startswith("CMD "))
    for line in lines:
        if "pip install" in line:
            assert "--no-cache-dir" in line and "--require-hashes" in line
        assert not line.startswith("RUN ") or "curl" not in line


def test_the_settings_are_all_known_and_are_the_defaults_where_they_are_limits(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "shuffler.toml", tmp_path)
    found = load(tmp_path, {}, {})
    assert (found.host, found.port, found.tls_key) == ("0.0.0.0", 8440, "server.key")
    bare = load(tmp_path / "empty", {"dev": True}, {})
    assert found.limits == bare.limits
