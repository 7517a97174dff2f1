"""What an operator and an owner ask by command: budgets, backups of an issuer, a stuck round, the store in use."""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import rounded_down, rounded_up
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.ledger import ChargeReason, FleetBudget, TotalLedger, view
from dpcheckin.service.analyzer.parties import Stopped
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.issuer.backup import backup, restore
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.pricing import Price
from dpcheckin.service.shuffler.settings import IN_USE
from dpcheckin.service.storage.backup_file import BackupDamaged
from dpcheckin.service.storage.identity import analyzer_token, load_identity
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.signing import identity_from_seed, public_identity
from service.analyzer_world import World, small_plan
from service.cli_runner import Cli
from service.issuer_world import ISSUER, IssuerWorld, use_pooled_keys
from service.plans import plan

CLIENT = b"c" * 16


def row(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in found["totals"] if one["of"] == name)


# --- the owner ------------------------------------------------------------------------------


def test_an_owner_sees_what_was_spent_beside_a_running_agent(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "client.token").write_text("t")
    (tmp_path / "client.token").chmod(0o600)
    config = tmp_path / "client.toml"
    config.write_text(
        '[shuffler]\naddress = "http://127.0.0.1:1"\ntoken_file = "client.token"\n'
        f'[analyzer]\nidentity = "{"ab" * 32}"\n[agent]\nstate = "state"\n'
        "[limits]\nrate = 0.5\nclip = 1.0\nlocal_epsilon = 8.0\ntotal_epsilon = 9.0\n"
        "total_local_epsilon = 100.0\ntotal_delta = 1e-3\n"
    )
    nothing = json.loads(cli("client", "status", "-c", str(config), "--json").out)
    assert (nothing["agent"], nothing["last_written"], nothing["plans"]) == ("not running", "never", [])
    price = Price(plan())
    ledger = ClientLedger(tmp_path / "state" / "client.ledger")
    for number in range(3):
        ledger.take_part("12" * 32, number, price, report=number == 1)
    ledger.settle("12" * 32, price, [2])
    ended = cli("client", "status", "-c", str(config), "--json")
    found = json.loads(ended.out)
    assert found["agent"] == "running"
    assert [(one["plan"], one["rounds"], one["void"]) for one in found["plans"]] == [("12" * 32, 3, 1)]
    totals, spent = row(found, "epsilon, shuffler honest"), price.spent(2).epsilon
    assert totals == {"of": "epsilon, shuffler honest", "spent": spent, "limit": 9.0, "left": 9.0 - spent}
    assert row(found, "epsilon, shuffler colluding")["spent"] == price.rounds_epsilon(3)
    ledger.close()
    shown = cli("client", "status", "-c", str(config)).out
    assert "agent: not running" in shown
    told = re.search(r"epsilon, shuffler honest +│ (\S+) +│ (\S+) +│ (\S+) ", shown)
    assert told is not None
    assert (told[1], told[2], told[3]) == (rounded_up(spent), "9", rounded_down(9.0 - spent))
    assert rounded_down(9.0 - spent) != rounded_up(9.0 - spent)
    assert "report" not in shown, "how coins fell is nobody's business"


# --- the analyzer's operator ----------------------------------------------------------------


def test_an_operator_sees_what_a_plan_and_the_fleet_have_spent(tmp_path: Path, cli: Cli) -> None:
    world = World(tmp_path / "analyzer", small_plan(), {1: Status("void", 50, None, "population")})
    world.stop.wait = lambda seconds=None: False  # type: ignore[method-assign, assignment]
    with pytest.raises(InvalidParameter, match="an analyzer that has run"):
        view(tmp_path / "analyzer")
    made = world.analyzer()
    try:
        for number in (0, 2):
            made.ledger.charge(number, ChargeReason.RELEASE)
        found = json.loads(cli("analyzer", "budget", "-f", str(tmp_path / "analyzer"), "--json").out)
    finally:
        made.close()
    price, plan_id = Price(world.kept_plan), world.kept_plan.id.hex()
    assert (found["plan"], found["rounds_charged"]) == (plan_id, 2)
    spent = price.spent(2).epsilon
    assert row(found, "epsilon of this plan") == {
        "of": "epsilon of this plan", "spent": spent, "limit": 50.0, "left": 50.0 - spent
    }  # fmt: skip
    budget = FleetBudget(tmp_path / "budget.ledger", 60.0, 1e-3)
    total = TotalLedger(budget)
    total.charge(plan_id, 0, price.spent(1))
    total.charge("34" * 32, 0, price.spent(1))
    fleet = view(tmp_path / "analyzer", budget)
    total.close()
    assert {one["plan"] for one in fleet["plans"]} == {plan_id, "34" * 32}
    assert row(fleet, "epsilon of all plans")["spent"] == pytest.approx(2 * price.spent(1).epsilon)
    assert "epsilon of this plan" in cli("analyzer", "budget", "-f", str(tmp_path / "analyzer")).out


@pytest.mark.parametrize(
    ("status", "charged", "outcome"),
    [
        (Status("closed", 120, 3), True, "lost"),
        (Status("claimed", 120, 3), True, "lost"),
        (Status("done", 120, 3), True, "lost"),
        (Status("void", 120, 1, "batch"), True, "lost"),
        (Status("void", 50, None, "population"), False, "void by population"),
        (None, False, "void by population"),
        ("away", True, "lost"),
    ],
)
def test_a_stuck_round_is_closed_and_charged_as_the_proof_demands(
    tmp_path: Path, status: Any, charged: bool, outcome: str
) -> None:
    """Of what nobody says that it was never released, reports may be out: also when nobody can be asked."""
    world = World(tmp_path, small_plan(), {})
    stuck = world.analyzer()
    stuck._publish()
    stuck._ensure_pending()
    stuck._announce()
    stuck.close()
    made = world.analyzer()
    world.shuffler.status_of.pop(0)
    if status == "away":

        def away(*_: Any) -> Any:
            raise Stopped("away")

        world.shuffler.status = world.shuffler.claim = away  # type: ignore[method-assign]
    elif status is not None:
        world.shuffler.status_of[0] = status
    said = made.close_round()
    made.close()
    assert ("and charged: 1 of" in said) == charged
    assert [body["round"] for body in world.charges()] == ([0] if charged else [])
    assert [one["state"] for one in world.kept.log] == [outcome]
    assert made.close_round() == "no round is under way"


def test_an_open_round_is_not_closed_by_hand(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {0: Status("open")})
    made = world.analyzer()
    made._publish()
    made._ensure_pending()
    made._announce()
    with pytest.raises(InvalidParameter, match="one that has ended"):
        made.close_round()
    made.close()
    assert world.charges() == []


# --- the issuer -----------------------------------------------------------------------------


@pytest.fixture
def issuing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IssuerWorld]:
    use_pooled_keys(monkeypatch)
    folder = tmp_path / "issuer"
    folder.mkdir(mode=0o700)
    (folder / "identity.key").write_text((b"i" * 32).hex())
    (folder / "identity.key").chmod(0o600)
    assert (
        public_identity(load_identity(folder))
        == public_identity(ISSUER)
        == public_identity(identity_from_seed(b"i" * 32))
    )
    analyzer_token(folder)
    made = IssuerWorld(folder)
    yield made
    made.store.close()


def test_a_restored_issuer_goes_on_and_gives_nobody_a_second_token(
    issuing: IssuerWorld, tmp_path: Path, cli: Cli
) -> None:
    """Backup beside the running one; two further rounds; the clients are known, and how far they had come."""
    client, other = issuing.store.enroll([token_digest("one"), token_digest("two")])
    issuing.issuer.open_round(issuing.plan.id, 1)
    old = issuing.token(client, 1)
    assert issuing.store.has_taken(other, 5)
    file, folder = tmp_path / "backup", tmp_path / "again"
    key = issuing.store.keys(issuing.plan.id, range(1, 2))[1]
    ended = cli("issuer", "backup", "--out", str(file), "-f", str(tmp_path / "issuer"))
    assert ended.code == 0, ended.err
    content = file.read_bytes()
    for secret in (key.to_bytes(), old.number):
        assert secret.hex().encode() not in content, "no key of a round, and no token"
    assert cli("issuer", "restore", "--from", str(file), "-f", str(folder)).out.endswith(f"restored from {file}\n")
    assert (folder / "issuer.db").stat().st_mode & 0o077 == 0
    issuing.file = folder / "issuer.db"
    issuing.restart()
    assert issuing.store.clients() == {token_digest("one"): client, token_digest("two"): other}
    assert not issuing.store.has_taken(other, 4)
    assert public_identity(load_identity(folder)) == public_identity(ISSUER)
    for number in (2, 3):
        issuing.issuer.open_round(issuing.plan.id, number)
        issuing.token(client, number).check(issuing.key(number), issuing.plan.id, number)
    with pytest.raises(InvalidParameter, match=r"one without"):
        restore(folder, file)


def test_a_backup_that_was_changed_makes_no_issuer(issuing: IssuerWorld, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    backup(tmp_path / "issuer", file)
    file.write_bytes(file.read_bytes().replace(b'"first":0', b'"first":9'))
    with pytest.raises(BackupDamaged):
        restore(tmp_path / "again", file)
    assert not (tmp_path / "again").exists()
    with pytest.raises(InvalidParameter, match="an issuer that has run"):
        backup(tmp_path, tmp_path / "other")


def test_a_store_of_an_earlier_release_is_served_and_learns_how_far_clients_are(tmp_path: Path) -> None:
    IssuerStore(tmp_path / "issuer.db").close()
    with sqlite3.connect(tmp_path / "issuer.db") as earlier:
        earlier.execute("DROP TABLE taken")
    store = IssuerStore(tmp_path / "issuer.db")
    assert store.has_taken(CLIENT, 3) and not store.has_taken(CLIENT, 2)
    store.close()


# --- the shuffler's store -------------------------------------------------------------------


def test_clients_are_enrolled_where_they_are_served(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / IN_USE).write_text("postgresql://shuffler:…@db/x\n")
    ended = cli("shuffler", "enroll", "-f", str(folder))
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "store = 'sqlite:shuffler.db' is not allowed: expected postgresql://shuffler:…@db/x" in ended.err
    assert not (folder / "shuffler.db").exists()
    (folder / IN_USE).write_text("sqlite:shuffler.db\n")
    monkeypatch.chdir(tmp_path)
    for named in (str(folder), "data"):
        assert cli("shuffler", "enroll", "-f", named).code == 0
    assert cli("shuffler", "enroll", "-f", "data", "--store", "sqlite:data/shuffler.db").code == 0
    assert cli("shuffler", "enroll", "-f", "data", "--store", "sqlite:other.db").code == 2


@pytest.mark.parametrize("command", [("shuffler", "serve", "--dev"), ("shuffler", "enroll"), ("deploy", "demo")])
def test_a_password_is_not_taken_from_the_command_line(tmp_path: Path, cli: Cli, command: tuple[str, ...]) -> None:
    """Everybody on the machine can read it there."""
    ended = cli(*command, "--store", "postgresql://shuffler:s3cret@127.0.0.1:1/x")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "s3cret" not in ended.err and "DPCHECKIN_SHUFFLER_STORE" in ended.err
