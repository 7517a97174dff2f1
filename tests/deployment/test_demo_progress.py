"""The demonstration says what it does, at once, and writes over nothing."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli_in_process import run_cli
from dpcheckin.deployment import options as options_module
from dpcheckin.deployment.demo import Deployment
from dpcheckin.deployment.options import DemoOptions, with_time_enough
from dpcheckin.deployment.processes import Party
from dpcheckin.deployment.progress import PartyDied, RoundsLost, Told, check_arrivals, follow


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    said = run_cli("deploy", "demo", "--out", str(tmp_path), code=2)
    assert said.count("\n") == 1
    assert "expected a new or empty folder" in said
    file = tmp_path / "mine"
    assert "new or empty folder" in run_cli("deploy", "demo", "--out", str(file), code=2)
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_it_says_that_it_starts_before_it_does_anything_that_takes_long() -> None:
    """The first line comes before torch, the services or a measurement of the machine are loaded.

    In seconds this is less than one on an idle machine; what is asserted does not depend on that.
    """
    script = (
        "import sys\n"
        "from dpcheckin.cli.parties import deploy\n"
        "def heard(line):\n"
        "    print(line, any(m in sys.modules for m in ('torch', 'httpx', 'numpy')))\n"
        "    raise SystemExit(0)\n"
        "deploy.remark = heard\n"
        "from dpcheckin.cli import main\n"
        "sys.argv = ['dpcheckin', 'deploy', 'demo', '--clients', '12']\n"
        "main()\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    print(f"{time.monotonic() - began:.2f} seconds")
    assert done.stdout == ("starting a shuffler, an analyzer and 12 clients on this machine False\n"), done.stderr


@pytest.mark.parametrize(("factor", "seconds"), [(1.1, 2.5), (4.0, 12.0)])
def test_a_busy_machine_gets_longer_rounds_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, factor: float, seconds: float
) -> None:
    monkeypatch.setattr(options_module, "contention", lambda: factor)
    said: list[str] = []
    assert with_time_enough(DemoOptions(), said.append).round_seconds == seconds
    busy = "this machine is busy (work takes 4.0 times as long): rounds of 12 seconds instead of 2.5"
    assert said == ([] if factor < 1.3 else [busy])


def test_void_rounds_are_told_and_others_where_no_bar_is_drawn() -> None:
    rows: list[dict[str, Any]] = [
        {"round": 0, "state": "void by population", "present": 7},
        {"round": 1, "state": "released", "present": 20, "accuracy": 0.5},
        {"round": 2, "state": "void by batch", "present": 20},
    ]
    for every, lines in ((False, 1), (True, 3)):
        said: list[str] = []
        told = Told(said.append, every=every)
        for count in (1, 1, 3):
            told.hear({"rounds": rows[:count], "plan": {"minimum_present": 18}})
        assert len(said) == lines
        assert said[0] == (
            "round 0: only 7 of the 18 clients that it needs were there in time, so it is void "
            "and the next one takes longer"
        )
    assert said[1] == "round 1: released, accuracy 50.0%"


def ended(name: str, folder: Path, code: int) -> Party:
    """A process that is over, with a line in its log."""
    log = folder / f"{name}.log"
    log.write_text("Traceback ...\nValueError: cannot reshape\n")
    process = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])
    process.wait()
    return Party(name, process, log, {"page": "http://127.0.0.1:9"})


@pytest.mark.parametrize("who", ["analyzer", "shuffler", "issuer", "agents"])
def test_a_party_that_died_ends_the_demonstration_and_is_named(tmp_path: Path, who: str) -> None:
    """Not with what its page showed last, which may be older than its ledger."""
    alive = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        deployment = Deployment(tmp_path, DemoOptions())
        deployment.analyzer = Party("analyzer", alive, tmp_path / "log", {})
        deployment.snapshot = lambda: None  # type: ignore[method-assign]
        died = ended(who, tmp_path, 1)
        if who == "agents":
            deployment.agents = [ended("agents", tmp_path, 0), died]  # all of one may refuse
        else:
            setattr(deployment, who, died)
        with pytest.raises(PartyDied, match=f"the {who} died with exit code 1: ValueError"):
            follow(deployment, lambda shot: None)
    finally:
        alive.kill()
        alive.wait()


@pytest.mark.slow
def test_rounds_without_reports_go_through_the_running_parties() -> None:
    """Four rounds of ten clients at rate 0.05: six of ten rounds are empty, on average."""
    asked = "--task histogram --clients 10 --rounds 4 --rate 0.05 --epsilon-budget 40 --json"
    facts = json.loads(run_cli("deploy", "demo", *asked.split()).strip().splitlines()[-1])
    assert facts["finished"] == "all 4 rounds of the plan have been charged"
    assert facts["released"] == 4
    assert facts["statement"].startswith("The run is (")


def test_the_command_says_so_and_does_not_exit_with_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(deployment: Deployment, say: Any) -> None:
        deployment.analyzer = ended("analyzer", tmp_path, 1)

    monkeypatch.setattr(Deployment, "start", start)
    monkeypatch.setattr(Deployment, "snapshot", lambda deployment: None)
    said = run_cli("deploy", "demo", "--round-seconds", "1", "--out", str(tmp_path / "x"), code=2)
    assert "the analyzer died with exit code 1: ValueError: cannot reshape" in said
    assert "No round was charged" not in said


@pytest.mark.parametrize("protocol", ["random-check-in-fixed", "random-check-in-averaged", "shuffled-check-in"])
@pytest.mark.parametrize("rounds", [2, 5, 20])
def test_the_owners_of_the_demonstration_allow_what_it_asks_of_them(protocol: str, rounds: int) -> None:
    """Few slots make a client report in each with a larger chance than `rate`."""
    options = DemoOptions(protocol=protocol, rounds=rounds, rate=0.3)
    assert options.report_probability == (1 / rounds if protocol.startswith("random") else 0.3)


def test_a_run_whose_rounds_were_all_void_is_no_success() -> None:
    void = {"state": "void by population", "present": 3}
    with pytest.raises(RoundsLost, match="2 of 2 rounds lost reports"):
        check_arrivals(DemoOptions(), [void, void], over=True)
    check_arrivals(DemoOptions(), [void, void])  # it may still become better
    check_arrivals(DemoOptions(), [void, {"state": "released"}], over=True)
