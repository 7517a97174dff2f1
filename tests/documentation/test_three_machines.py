"""The page of three machines, run: network namespaces stand for hosts, with TLS, PostgreSQL and the units' commands.

Every file is written and every command run on the machine that the page names, with its folders below a temporary one.
Only systemd is not there: what `systemctl enable --now` would start is the `ExecStart` of the unit in deploy/.
"""

import contextlib
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from documentation.blocks import ROOT, Block, blocks
from service.postgres_server import PostgresServer, _program

PAGE = ROOT / "docs" / "tutorials" / "three-machines.md"
HOSTS = {"shuffler.example": "10.77.0.1", "issuer.example": "10.77.0.2", "analyzer.example": "10.77.0.3"}
MACHINES = {**HOSTS, "devices": "10.77.0.4"}
DEVICES = 6
_ON = re.compile(r"On \*\*([\w.]+)\*\*(?:, `([^`]+)`)?:\s*$")
_PRINTED = re.compile(r'"…"(\s+# (\w+) identity)')
PROGRAM = f'{sys.executable} -c "from dpcheckin.cli import main; main()"'


def _namespaces() -> str | None:
    """Why there are none here, if there are none."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and ip"
    done = subprocess.run(["unshare", "-n", "true"], capture_output=True)
    return None if done.returncode == 0 else "this machine allows no network namespaces"


class Machines:
    """Four hosts on one wire; a fifth namespace is the switch, so that this machine's own network stays as it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.identities: dict[str, str] = {}
        self._prefix = f"dpc{os.getpid()}-"
        self._made: list[str] = []
        self._add("switch")
        self._ip("switch", "link add wire type bridge")
        self._ip("switch", "link set wire up")
        hosts = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in HOSTS.items())
        for number, (name, address) in enumerate(MACHINES.items()):
            (folder / name).mkdir()
            self._add(name)
            files = Path("/etc/netns") / self._named(name)
            files.mkdir(parents=True)
            (files / "hosts").write_text(hosts)
            self._ip("switch", f"link add port{number} type veth peer name eth0 netns {self._named(name)}")
            self._ip("switch", f"link set port{number} master wire up")
            self._ip(name, "link set lo up")
            self._ip(name, "link set eth0 up")
            self._ip(name, f"addr add {address}/24 dev eth0")

    def _named(self, name: str) -> str:
        return self._prefix + name.partition(".")[0]

    def _add(self, name: str) -> None:
        subprocess.run(["ip", "netns", "add", self._named(name)], check=True)
        self._made.append(name)

    def _ip(self, name: str, words: str) -> None:
        subprocess.run(["ip", "-n", self._named(name), *words.split()], check=True)

    def on(self, name: str, *words: str | Path) -> list[str]:
        return ["ip", "netns", "exec", self._named(name), *map(str, words)]

    def here(self, name: str, text: str) -> str:
        """The text with this machine's own folders, programs, and the identities that were printed."""
        text = text.replace("/var/lib/", f"{self.folder / name}/")
        return _PRINTED.sub(lambda found: f'"{self.identities[found[2]]}"{found[1]}', text)

    def run(self, name: str, line: str) -> str:
        words = shlex.split(self.here(name, line).replace("dpcheckin ", f"{PROGRAM} ", 1))
        done = subprocess.run(self.on(name, *words), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    def start(self, name: str, unit: str, folder: str) -> None:
        """What the unit would start, as its own process; it is stopped by its id."""
        text = (ROOT / "deploy" / f"{unit}.service").read_text()
        command = re.search(r"^ExecStart=/opt/dpcheckin/bin/dpcheckin (.+)$", text, re.MULTILINE)
        assert command is not None
        line = command[1].replace(f"/var/lib/{unit}", folder)
        with open(Path(folder) / "log", "ab") as out:
            words = self.on(name, *shlex.split(PROGRAM), *shlex.split(line))
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            self.running.append(
                subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
            )

    def reaches(self, name: str, address: str, port: int) -> bool:
        """Whether somebody listens there for this machine."""
        probe = f"import socket; socket.create_connection(('{address}', {port}), 5).close()"
        return subprocess.run(self.on(name, sys.executable, "-c", probe), capture_output=True).returncode == 0

    def remove(self) -> None:
        for process in reversed(self.running):
            process.terminate()
        for process in reversed(self.running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
        for name in self._made:
            subprocess.run(["ip", "netns", "del", self._named(name)], check=False)
            shutil.rmtree(Path("/etc/netns") / self._named(name), ignore_errors=True)


class Database(PostgresServer):
    """PostgreSQL on the shuffler's machine, which asks for a password."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        super().__init__()
        sql = "ALTER USER shuffler PASSWORD 'a secret'; CREATE DATABASE shuffler OWNER shuffler"
        for statement in sql.split("; "):
            psql = str(_program("psql"))
            words = [psql, "-h", "127.0.0.1", "-p", str(self.port), "-U", "shuffler", "-c", statement, "postgres"]
            subprocess.run(machines.on("shuffler.example", *words), check=True, capture_output=True)
        rules = self.data / "pg_hba.conf"
        rules.write_text(rules.read_text().replace("trust", "scram-sha-256"))
        self._call("pg_ctl", "-D", self.data, "reload")

    def _call(self, name: str, *arguments: object) -> None:
        user = [] if self._user is None else ["setpriv", f"--reuid={self._user}", "--clear-groups", "--"]
        if self._user is not None:
            user.insert(1, f"--regid={pwd.getpwnam(self._user).pw_gid}")
        words = self._machines.on("shuffler.example", *user, str(_program(name)), *map(str, arguments))
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        subprocess.run(
            words, cwd=self.folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
        )


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    for why in (_namespaces(), PostgresServer.missing()):
        if why is not None:
            pytest.skip(why)
    made = Machines(tmp_path)
    yield made
    made.remove()


def steps() -> Iterator[tuple[str, str | None, Block]]:
    """Machine, file (None: commands) and block, in the order of the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for one in blocks(PAGE):
        before = " ".join(lines[max(0, one.line - 4) : one.line - 1])
        found = _ON.search(before.rstrip())
        if found is not None and one.language in ("text", "toml"):
            yield found[1], found[2], one


def hand_over(machines: Machines) -> None:
    """The four files of the analyzer, and what each device has."""
    (block,) = [one for one in blocks(PAGE) if "→" in one.text]
    for line in block.text.splitlines():
        words = line.split()
        source, target = machines.here(words[0], words[1]), machines.here(words[3], words[4])
        shutil.copy(source, target)
        Path(target).chmod(0o600)


def devices(machines: Machines, config: str) -> list[Path]:
    folders = []
    homes = {party: machines.folder / f"{party}.example" / f"dpcheckin-{party}" for party in ("shuffler", "issuer")}
    lines = {party: (home / "tokens.jsonl").read_text().splitlines() for party, home in homes.items()}
    for number in range(DEVICES):
        folder = machines.folder / "devices" / f"device-{number}"
        folder.mkdir(mode=0o700)
        folders.append(folder)
        (folder / "client.toml").write_text(config)
        (folder / "me.csv").write_text(f"cycles\n{'yes' if number % 2 else 'no'}\n")
        for party, tokens in lines.items():
            shutil.copy(homes[party] / "authority.pem", folder / f"{party}.pem")
            (folder / f"{party}.token").touch(mode=0o600)
            (folder / f"{party}.token").write_text(json.loads(tokens[number])["token"])
    return folders


def write(machines: Machines, name: str, file: str, text: str, port: int) -> None:
    """A file of the page, and what lies beside it on that machine."""
    path = Path(machines.here(name, file))
    path.write_text(text)
    if path.name == "shuffler.toml":
        (path.parent / "pgpass").touch(mode=0o600)
        (path.parent / "pgpass").write_text(f"127.0.0.1:{port}:shuffler:shuffler:a secret\n")
    if path.name == "analyzer.toml":
        hand_over(machines)


def carry_out(machines: Machines, name: str, block: Block, folders: list[Path]) -> None:
    """Commands of the page on a machine; of devices there are several, in these folders."""
    for line in block.text.splitlines():
        if line.startswith("systemctl enable --now "):
            unit = line.split()[-1]
            for folder in folders if name == "devices" else [machines.folder / name / unit]:
                machines.start(name, unit, str(folder))
            continue
        said = machines.run(name, line)
        if " identity " in line:
            machines.identities[line.split()[1]] = said.strip()


@pytest.mark.slow
def test_the_page_of_three_machines_runs_as_it_stands(machines: Machines) -> None:
    database = Database(machines)
    folders: list[Path] = []
    try:
        for name, file, block in steps():
            text = machines.here(name, block.text).replace(":5432/", f":{database.port}/")
            if file is None:
                carry_out(machines, name, block, folders)
            elif name == "devices":
                folders = devices(machines, text)
            else:
                write(machines, name, file, text, database.port)
        wait_for_rounds(machines, 3)
        for folder in folders:
            said = machines.run("devices", f"dpcheckin client status --config {folder}/client.toml --json")
            print(json.loads(said)["plans"])
            assert json.loads(said)["agent"] == "running"
            assert json.loads(said)["plans"][0]["rounds"] >= 2
        check_walls(machines)
    finally:
        database.remove()


def wait_for_rounds(machines: Machines, rounds: int) -> None:
    looked = "dpcheckin analyzer budget --folder /var/lib/dpcheckin-analyzer --json"
    limit, charged = time.monotonic() + 400, 0
    while charged < rounds:
        assert time.monotonic() < limit, (machines.folder / "analyzer.example/dpcheckin-analyzer/log").read_text()
        time.sleep(2.0)
        with contextlib.suppress(AssertionError):  # before its first round
            charged = json.loads(machines.run("analyzer.example", looked))["rounds_charged"]


def check_walls(machines: Machines) -> None:
    """The table at the head of the page: who listens for whom."""
    open_ports = {(name, port) for name, port in (("shuffler.example", 8440), ("issuer.example", 8443))}
    for name, address in HOSTS.items():
        for port in (5432, 8440, 8441, 8442, 8443, 8444):
            assert machines.reaches("devices", address, port) == ((name, port) in open_ports), (name, port)
    assert machines.reaches("analyzer.example", "127.0.0.1", 8442), "its own administrators see the page"
    assert machines.reaches("shuffler.example", "127.0.0.1", 8441)
