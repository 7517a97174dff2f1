import json
from types import SimpleNamespace

import pytest

from dpcheckin.accounting import CheckInRound, compose, hemisphere
from dpcheckin.cli import main

SHORT = ["--rounds", "6", "--rate", "0.1", "--threads", "1", "--evaluate-every", "3"]


@pytest.fixture
def command(monkeypatch, capsys):
    """`dpcheckin train` as it is started from a shell, with its exit code and what it prints."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["dpcheckin", "train", *SHORT, *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(
            exit_code=ended.value.code, stdout=printed.out, stderr=printed.err, output=printed.out + printed.err
        )

    return run


def test_json_report_agrees_with_the_accountant(command):
    """The printed epsilon is that of the rounds run, to the last digit."""
    result = command("--json", "--randomizer", "ldp-sgd", "--local-epsilon", "2")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    one = CheckInRound(1437, 0.1, hemisphere(2.0))
    assert facts["epsilon"] == compose([(one, 6)]).epsilon(1e-5).upper
    assert facts["rounds"] == 6 and 0 <= facts["accuracy"] <= 1


def test_a_folder_gets_checkpoint_log_model_and_report(command, tmp_path):
    out = tmp_path / "run"
    first = command("--out", str(out))
    assert first.exit_code == 0, first.output
    written = {path.name for path in out.iterdir()}
    assert written == {
        "checkpoint.pt",
        "log.csv",
        "log.json",
        "model.pt",
        "report.json",
        "accuracy.png",
        "report.html",
        "certificate.json",
        "privacy-card.json",
        "privacy-card.schema.json",
    }
    again = command("--out", str(out))
    assert again.exit_code == 0 and "test accuracy" in again.stdout


def test_a_run_that_validates_says_so_everywhere(command, tmp_path):
    """Nobody takes the accuracy on held-out training records for that on test records."""
    result = command("--validate", "0.2", "--out", str(tmp_path / "run"))
    assert result.exit_code == 0, result.output
    assert "held-out accuracy" in result.stdout and "test accuracy" not in result.stdout
    facts = json.loads((tmp_path / "run" / "report.json").read_text())
    assert facts["evaluated_on"] == "training records held out" and facts["population"] == 1150
    assert "held-out accuracy" in (tmp_path / "run" / "report.html").read_text()
    refused = command("--validate", "2")
    assert refused.exit_code == 2 and "validate = 2" in refused.stderr


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--data", "nowhere"], "data = 'nowhere'"),
        (["--protocol", "gossip"], "protocol = 'gossip'"),
        (["--randomizer", "coin"], "randomizer = 'coin'"),
        (["--rate", "1.5"], "rate = 1.5"),
        (["--rounds", "0"], "rounds = 0"),
        (["--learning-rate", "nan"], "learning-rate = nan"),
        (["--delta", "0"], "delta = 0.0"),
        (["--reports", "some"], "reports = 'some'"),
        (["--backend", "cloud"], "backend = 'cloud'"),
        (["--by-owner"], "by-owner = True"),
        (["--epsilon-budget", "0.0001"], "first round"),
        (["--protocol", "distributed-check-in"], "randomizer = 'privunit'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command, arguments, words):
    result = command(*arguments)
    assert result.exit_code == 2
    message = result.stderr.strip()
    assert words in message and "\n" not in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["--protocol", "subsampled-shuffle"],
        ["--protocol", "random-check-ins-fixed", "--slots", "40", "--minibatch", "8"],
        ["--protocol", "random-check-ins-averaged", "--slots", "6"],
        ["--protocol", "random-check-ins-sliding", "--slots", "1400", "--minibatch", "19"],
        ["--protocol", "distributed-check-in", "--randomizer", "gaussian"],
        ["--protocol", "local-only"],
        ["--protocol", "central", "--noise-multiplier", "4"],
    ],
    ids=lambda a: a[1],
)
def test_every_protocol_trains_and_prices_its_rounds(command, arguments):
    """The reported epsilon is the plan's own for the rounds run."""
    result = command("--json", *arguments)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["rounds"] >= 1 and facts["epsilon"] > 0 and facts["statement"]


def test_a_damaged_checkpoint_is_one_clear_line(command, tmp_path):
    """As a full disk leaves it: the file is named, nothing is overwritten, exit code 2."""
    assert command("--out", str(tmp_path)).exit_code in (0, None)
    saved = tmp_path / "checkpoint.pt"
    for broken in (b"garbage", saved.read_bytes()[:2000], b""):
        saved.write_bytes(broken)
        ended = command("--out", str(tmp_path))
        assert ended.exit_code == 2 and "it is damaged, remove it to begin anew" in ended.stderr
        assert "Traceback" not in ended.output and saved.read_bytes() == broken


def test_a_run_that_its_budget_stops_says_so(command):
    told = command("--epsilon-budget", "0.15", "--local-epsilon", "2")
    assert "stopped by the budget: the next round would pass ε = 0.15" in told.stdout
    assert "stopped by the budget" not in command().stdout


def test_different_targets_are_no_classes(command, tmp_path):
    table = tmp_path / "houses.csv"
    rows = "\n".join(f"{i % 7},{i / 7:.4f}" for i in range(400))
    table.write_text(f"rooms,price\n{rows}\n")
    ended = command("--data", str(table), "--target", "price", "--task", "classes")
    assert ended.exit_code == 2 and "400 different targets in 400 records" in ended.stderr
