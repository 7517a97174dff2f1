"""What a release rests on: the listing of the interface, stated versions, files for a public forge, security pages."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from dpcheckin import handover
from dpcheckin.accounting.proof import certificate
from dpcheckin.service.analyzer import state
from dpcheckin.service.issuer import store
from dpcheckin.service.shuffler.stores import schema
from dpcheckin.service.storage import backup_file
from dpcheckin.service.wire import documents, envelope

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def test_the_interface_is_the_one_that_is_listed() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "interface.py", "--check"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_listing_notices_a_parameter_that_is_gone(tmp_path: Path) -> None:
    """The script is run on a copy of the sources from which one parameter was taken."""
    copy = tmp_path / "repository"
    for name in ("tools", "docs/api"):
        (copy / name).mkdir(parents=True)
    (copy / "src").symlink_to(ROOT / "src")
    text = (ROOT / "tools" / "interface.py").read_text(encoding="utf-8")
    (copy / "tools" / "interface.py").write_text(text, encoding="utf-8")
    known = (ROOT / "docs" / "api" / "interface.txt").read_text(encoding="utf-8")
    changed = known.replace("population: int", "people: int", 1)
    assert changed != known
    (copy / "docs" / "api" / "interface.txt").write_text(changed, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, copy / "tools" / "interface.py", "--check"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "-    people: int" in done.stderr


def test_the_page_of_versions_says_what_the_code_says() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| [^|]+ \|$", page, flags=re.MULTILINE))
    assert rows["plan, key, round and other signed documents"] == str(documents.FORMAT)
    assert rows["envelope"] == f"{envelope.VERSION}; {envelope.VERSION_WITH_TOKEN} with a token"
    assert rows["the shuffler's database"] == str(schema.VERSION)
    assert rows["the issuer's database"] == store.SCHEMA_VERSION
    assert rows["the analyzer's checkpoint"] == str(state.FORMAT)
    assert rows["backups"] == str(backup_file.FORMAT)
    assert rows["certificate"] == certificate.FORMAT
    assert rows["privacy card"] == handover.FORMAT


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_runs_commands_that_exist(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    ours = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  ([\w-]+) ", ours, flags=re.MULTILINE))
    lines = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    named = {name for line in lines for name in re.findall(r"\./dev ([\w-]+)", line)}
    assert named <= commands
    assert named or any(".ci/run" in line for line in lines)
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


def test_workflows_try_the_pythons_that_are_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = {line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)}
    quick = yaml.safe_load((ROOT / ".github" / "workflows" / "quick.yml").read_text("utf-8"))
    assert set(quick["jobs"]["quick"]["strategy"]["matrix"]["python"]) == promised


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_a_template_asks_for_something(file: Path) -> None:
    template = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert template["name"]
    assert template["description"]
    assert any(part.get("validations", {}).get("required") for part in template["body"])
    assert all(part["type"] == "markdown" or part["attributes"]["label"] for part in template["body"])


def test_addresses_that_only_the_owner_knows_are_named_as_such() -> None:
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "[the owner of this project fills in an address here before the first release]" in text
        assert "@" not in text


def test_every_row_of_the_threat_model_is_played() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    table = page.partition("## Parties")[2].partition("## Not protected")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        assert re.search(r"\]\(\.\./tests/", row), row
