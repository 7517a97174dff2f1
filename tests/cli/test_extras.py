"""Without an extra, every command of services and Flower says in one line what to install."""

import json
import subprocess
import sys
import textwrap

from dpcheckin.cli import COMMANDS
from dpcheckin.cli.arguments import EXTRAS

GROUPS = ("shuffler", "analyzer", "client", "deploy", "flower", "issuer")
SERVED = [name for name in COMMANDS if name.split(" ")[0] in GROUPS and " " in name]
_SCRIPT = textwrap.dedent(
    """
    import contextlib, io, json, sys
    blocked, commands = json.loads(sys.argv[1])
    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in blocked:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Blocked())
    from dpcheckin.cli import main
    found = {}
    for command, arguments in commands.items():
        out, err, code = io.StringIO(), io.StringIO(), None
        sys.argv = ["dpcheckin", *command.split(), *arguments]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                code = end.code
            except BaseException as problem:
                err.write(f"traceback of {problem!r}")
        found[command] = (code, err.getvalue())
    print(json.dumps(found))
    """
)


def run(blocked: list[str], commands: dict[str, list[str]], folder: str) -> dict[str, tuple]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps([blocked, commands])],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ARGUMENTS = {
    "shuffler backup": ["--out", "b"],
    "shuffler restore": ["--from", "b"],
    "analyzer backup": ["--out", "b"],
    "analyzer restore": ["--from", "b"],
    "shuffler serve": ["--dev"],
    "shuffler init": ["--test-certificate", "127.0.0.1"],
    "shuffler revoke": ["00" * 16],
    "shuffler rotate": ["00" * 16],
}


def test_every_command_of_services_and_flower_names_the_extra_in_one_line(tmp_path) -> None:
    names = [name for name, extra in EXTRAS.items() if extra in ("service", "flower", "learning")]
    (tmp_path / "pyproject.toml").write_text("")
    commands = {name: ARGUMENTS.get(name, []) for name in SERVED if not name.startswith("issuer")}
    found = run(names, commands, str(tmp_path))
    for command, (code, said) in found.items():
        assert code == 2, (command, code, said)
        assert said.count("\n") == 1, (command, said)
        assert "pip install 'dpcheckin[" in said, (command, said)
    assert not list(tmp_path.glob("*-data")), "nothing is half made"


def test_without_torch_only_what_trains_says_so(tmp_path) -> None:
    commands = {
        "deploy demo": ["--out", "demo"],
        "flower fleet": ["--app", "."],
        "client run": ["--config", "nowhere.toml"],
        "analyzer identity": ["--folder", "analyzer"],
    }
    (tmp_path / "analyzer").mkdir()
    found = run(["torch"], commands, str(tmp_path))
    for command in ("deploy demo", "flower fleet"):
        assert found[command] == [2, "dpcheckin: torch is not installed: pip install 'dpcheckin[learning]'\n"]
    assert found["client run"][0] == 2
    assert "nowhere.toml" in found["client run"][1]
    assert found["analyzer identity"] == [0, ""]
    assert not (tmp_path / "demo").exists()


def test_parties_ask_for_the_extra_that_has_all_they_need(tmp_path) -> None:
    """`ui` brings two of their five libraries."""
    (tmp_path / "analyzer-data").mkdir()
    commands = {"shuffler serve": ["--dev"], "deploy demo": [], "ui": ["--no-browser"]}
    found = run(["starlette"], commands, str(tmp_path))
    for command, extra in (("shuffler serve", "service"), ("deploy demo", "service"), ("ui", "ui")):
        assert found[command] == [2, f"dpcheckin: starlette is not installed: pip install 'dpcheckin[{extra}]'\n"]


def test_prices_of_a_sweep_need_no_torch_where_no_model_has_a_say(tmp_path) -> None:
    priced = ["--account-only", "--backend", "local", "--set", "population=1000", "--set", "rounds=5"]
    commands = {
        "sweep": [*priced, "--set", "randomizer=hemisphere", "--over", "rate=0.01,0.1", "--out", "a"],
        "sweep ": [*priced, "--set", "randomizer=privunit", "--out", "b"],  # the model's size is part of its law
    }
    found = run(["torch"], commands, str(tmp_path))
    assert found["sweep"][0] in (0, None), found["sweep"]
    assert (tmp_path / "a" / "sweep.md").read_text().count("\n") > 3
    assert found["sweep "] == [2, "dpcheckin: torch is not installed: pip install 'dpcheckin[learning]'\n"]
