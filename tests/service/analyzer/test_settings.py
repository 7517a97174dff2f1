"""The analyzer's settings, the plan they make, and its price."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.backup import backup, restore
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.server import open_analyzer
from dpcheckin.service.analyzer.settings import read_settings
from dpcheckin.service.pricing import Price
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.wire.signing import public_identity
from service.cli_runner import Cli
from service.every_setting import blocks_of
from service.fake_shuffler import FakeShuffler
from service.minimal_parties import Toy
from service.plans import DARY, plan

SETTINGS = """
[shuffler]
address = "http://127.0.0.1:1"
token = "t"
[plan]
protocol = "shuffled-check-in"
population = 100
rate = 0.2
rounds = 12
delta = 1e-5
epsilon_budget = 8.0
round_seconds = 1.0
[randomizer]
name = "privunit"
local_epsilon = 4.0
[task]
data = "digits"
[analyzer]
rotate_every = 3
"""


def test_the_page_lists_every_entry(tmp_path: Path) -> None:
    """docs/deploying.md: its block is read as it stands, and makes a plan."""
    block = next(one for one in blocks_of("deploying.md") if "most_void_rounds" in one)
    for token in ("analyzer.token", "issuer.token"):
        (tmp_path / token).touch(mode=0o600)
        (tmp_path / token).write_text("t\n")
    (tmp_path / "analyzer.toml").write_text(re.sub(r'"\w*…"', f'"{"ab" * 32}"', block))
    found = read_settings(tmp_path)
    assert found.issuer is not None and found.budget is not None
    assert found.names == ("analyzer.example",)
    Price(found.plan_document(20))


def test_settings_make_a_plan(tmp_path: Path) -> None:
    (tmp_path / "analyzer.toml").touch(mode=0o600)
    (tmp_path / "analyzer.toml").write_text(SETTINGS)
    found = read_settings(tmp_path)
    document = found.plan_document(20)
    assert (document.dimension, document.encoding, document.cover) == (20, 1, True)
    assert document.nonce != found.plan_document(20).nonce
    assert (found.rotate_every, found.task) == (3, {"data": "digits"})


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("rate = 0.2", "rate = 2.0", "rate"),
        ("rounds = 12", "round = 12", "plan"),
        (
            "rate = 0.2",
            "rate = 0.2\nminimum_present = 5",
            r"^plan\.minimum_present = 5 is not allowed: "
            r"expected at least the population of 100 that is priced$",
        ),
        ("rotate_every = 3", "rotate_every = -1", "rotate_every"),
        ("rotate_every = 3", "port = 70000", "port"),
        ("rotate_every = 3", "pause_seconds = -1.0", "pause_seconds"),
        ("rotate_every = 3", 'log_level = "loud"', "log_level"),
        ("rotate_every = 3", "rotat_every = 3", "rotat_every"),
        ("http://127.0.0.1:1", "http://shuffler.example", "address"),
    ],
)
def test_mistakes_in_the_settings_are_named(tmp_path: Path, old: str, new: str, named: str) -> None:
    (tmp_path / "analyzer.toml").touch(mode=0o600)
    (tmp_path / "analyzer.toml").write_text(SETTINGS.replace(old, new))
    with pytest.raises(InvalidParameter, match=named):
        read_settings(tmp_path).plan_document(20)


@pytest.mark.parametrize(
    ("protocol", "changes", "named"),
    [
        ("shuffled-check-in", {"randomizer": DARY | {"encoding": 1}}, "randomizer.encoding"),
        ("random-check-in-fixed", {"minimum_batch": 3}, "minimum_batch"),
        ("random-check-in-fixed", {"rounds": 13}, "rounds"),
        ("distributed-check-in", {"population": 2**24}, "population"),
    ],
)
def test_plans_that_no_theorem_covers_are_refused(protocol: str, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        Price(plan(protocol, **changes))


@pytest.mark.parametrize("protocol", ["distributed-check-in", "random-check-in-sliding"])
def test_every_protocol_has_both_figures(protocol: str) -> None:
    rounds = {"rounds": 89} if protocol.endswith("sliding") else {}
    price = Price(plan(protocol, epsilon_budget=50.0, **rounds))
    spent = price.spent(5)
    assert 0 < spent.epsilon <= spent.local_epsilon * 1.001
    assert price.reports_epsilon(1) <= price.reports_epsilon(2)
    assert price.local.epsilon > 0
    assert price.spent(0).local_epsilon == 0.0


def test_many_plans_have_one_identity(tmp_path: Path, cli: Cli) -> None:
    """Clients pin one; each plan has a folder of its own. It is the one that is printed, and goes into backups."""
    known, printed = [], []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "analyzer.toml").touch(mode=0o600)
        (folder / "analyzer.toml").write_text(SETTINGS + 'identity_folder = "../fleet"\n')
        settings = read_settings(folder)
        printed.append(cli("analyzer", "identity", "-f", str(folder)).out.strip())
        shuffler: Any = FakeShuffler(lambda number, said: (Status("closed", 120, 0), []))
        with open_analyzer(settings, Toy(), 20, shuffler, threading.Event()) as analyzer:
            known.append(public_identity(analyzer.identity))
            analyzer.run()
        assert not (folder / "identity.key").exists()
    assert known == 2 * [public_identity(load_identity(tmp_path / "fleet"))]
    assert printed == [one.hex() for one in known]
    backup(tmp_path / "first", tmp_path / "kept")
    (tmp_path / "elsewhere").mkdir()  # another machine, without the fleet's folder
    restore(tmp_path / "elsewhere" / "first", tmp_path / "kept")
    assert cli("analyzer", "identity", "-f", str(tmp_path / "elsewhere" / "first")).out.strip() == printed[0]
    assert read_settings(tmp_path / "elsewhere" / "first").identity_folder is None
