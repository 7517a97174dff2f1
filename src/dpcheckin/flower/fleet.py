"""A whole Flower fleet on one machine: shuffler, SuperLink, SuperNodes and their agents.

For trying things out and for tests. It is the deployment of `dpcheckin.deployment`, in which the analyzer runs inside a
ServerApp and agents wait for their node's bell. Everything listens on the loopback interface, telemetry and update
checks are off, and only what was started here is stopped.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpcheckin.deployment.demo import Deployment
from dpcheckin.deployment.options import DemoOptions
from dpcheckin.deployment.processes import NotStarted, Party, await_ready, start
from dpcheckin.errors import ServiceError
from dpcheckin.flower import environment
from dpcheckin.flower.host import QUIET_SECONDS
from dpcheckin.flower.server import FOLDER, RESULT
from dpcheckin.service.analyzer import state

CONNECTION = "fleet"
_PATIENCE = 60.0
_ASK_EVERY = 5.0
_CLIENT_APP = "import flwr.supernode.cli.flwr_clientapp, dpcheckin.flower.doorbell"


class RunFailed(ServiceError):
    """Flower says that the run did not end well."""


def free_port() -> int:
    """A port on the loopback interface that nobody uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def starting_seconds() -> float:
    """Seconds that a ClientApp's process needs before it does anything, when several start."""
    began = time.monotonic()
    command = [sys.executable, "-c", _CLIENT_APP]
    for process in [subprocess.Popen(command, env=environment()) for _ in range(3)]:
        process.wait()
    return time.monotonic() - began


def round_seconds(quiet: float) -> float:
    """How long a round must be here: Flower starts a process for every message. Enough for a ring to arrive (nodes look
    every three seconds) and for agents to act after the `quiet` seconds."""
    return 6.0 + quiet + 3.0 * starting_seconds()


def _loopback(port: int) -> list[str]:
    return ["--insecure", "--host", "127.0.0.1", "--port", str(port)]


class FlowerFleet(Deployment):
    """The parties of one Flower run; `options.processes` is the number of SuperNodes."""

    def __init__(self, folder: Path, options: DemoOptions, *, quiet_seconds: float = QUIET_SECONDS) -> None:
        super().__init__(folder.absolute(), options)
        self._quiet = quiet_seconds
        self.superlink: Party | None = None
        self.nodes: list[Party] = []
        self.port = 0

    def __enter__(self) -> FlowerFleet:
        return self

    def start_analyzer(self) -> None:
        """The analyzer runs in the ServerApp, so here only SuperLink and SuperNodes start."""
        self.start_superlink()
        self.nodes = [self.start_node(i) for i in range(self.options.processes)]

    def start_superlink(self, command: Sequence[str] = ("flower-superlink",)) -> None:
        """The SuperLink, and the connection by which `flwr` finds it."""
        self.port = free_port()
        home = self.folder / "flwr"
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
            f'address = "127.0.0.1:{self.port}"\ninsecure = true\n'
        )
        more = [*_loopback(self.port), "--disable-runtime-dependency-installation"]
        self.superlink = self._start("superlink", [*command, *more])
        limit = time.monotonic() + _PATIENCE
        while time.monotonic() < limit and self.superlink.process.poll() is None:
            with socket.socket() as caller:
                if caller.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        last = self.superlink.log.read_text(errors="replace").strip().splitlines()[-1:]
        raise NotStarted(f"superlink did not start: {' '.join(last)[:300]}")

    def start_node(self, index: int) -> Party:
        """SuperNode `index`; its configuration names its own mailbox."""
        command = ["flower-supernode", *_loopback(free_port())]
        command += ["--superlink", f"127.0.0.1:{self.port}"]
        command += ["--node-config", f"doorbell={json.dumps(str(self.box(index)))}"]
        return self._start(f"supernode-{index}", command)

    def start_agent_process(self, index: int) -> Party:
        """The agents behind SuperNode `index`."""
        return self._start(f"agents-{index}", self._host(index))

    def _host(self, *indices: int) -> list[str]:
        pairs = [(self._specification(index), self.box(index)) for index in indices]
        files = [str(path) for pair in pairs for path in pair]
        return [sys.executable, "-m", "dpcheckin.flower.host", *files]

    def box(self, index: int) -> Path:
        """The mailbox of a node."""
        return self.folder / "mailboxes" / str(index)

    def stop(self) -> None:
        """Stop everything, nodes before the SuperLink."""
        for party in (*self.nodes, self.superlink):
            if party is not None:
                party.stop()
        super().stop()

    def _start(self, name: str, command: Sequence[str]) -> Party:
        own = environment(
            FLWR_HOME=str(self.folder / "flwr"),
            FLWR_SUPEREXEC_TASK_POLL_INTERVAL="0.3",
            DPCHECKIN_QUIET_SECONDS=str(self._quiet),
        )
        return start(name, command, self.folder / f"{name}.log", ready=None, variables=own)

    def submit(self, app: Path, run_config: Mapping[str, Any] | None = None) -> str:
        """`flwr run` of an `app` with a `run_config` (None: it names the analyzer's folder); the run's number."""
        given = {FOLDER: str(self.analyzer_folder)} if run_config is None else run_config
        overrides = " ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
        more = ["--run-config", overrides] if overrides else []
        answer = self._flwr("run", str(app), CONNECTION, "--format", "json", *more)
        if not answer.get("success"):
            raise RunFailed(f"flwr run: {answer.get('error-message', answer)}")
        return str(answer["run-id"])

    def status(self, run: str) -> tuple[str, str]:
        """What Flower says about a run: such as `running` or `finished:failed`, and why."""
        answer = self._flwr("list", CONNECTION, "--run-id", run, "--format", "json")["runs"][0]
        return str(answer["status"]), str(answer.get("status-details", ""))

    def settled(self) -> list[dict[str, Any]]:
        """The rounds that are over, as the analyzer wrote them down."""
        saved = state.load(self.analyzer_folder)
        return [] if saved is None else list(saved.log)

    def wait(self, run: str, patience: float, watch: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Wait at most `patience` seconds for the end of a `run`; the analyzer's last snapshot. `watch` is given the
        number of rounds settled so far."""
        limit, asked = time.monotonic() + patience, 0.0
        while time.monotonic() < limit:
            if watch is not None:
                watch(sum(row["state"] == "released" for row in self.settled()))
            if time.monotonic() < asked + _ASK_EVERY:  # asking takes Flower a second of work
                time.sleep(0.5)
                continue
            (status, why), asked = self.status(run), time.monotonic()
            if status.startswith("finished"):
                if status != "finished:completed":
                    raise RunFailed(f"run {run} is {status}: {why}")
                snapshot: dict[str, Any] = json.loads((self.analyzer_folder / RESULT).read_text())
                return snapshot
        raise RunFailed(f"run {run} has not ended after {patience:g} seconds")

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        own = environment(FLWR_HOME=str(self.folder / "flwr"))
        done = subprocess.run(["flwr", *arguments], env=own, capture_output=True, text=True)
        try:
            answer: dict[str, Any] = json.loads(done.stdout[done.stdout.find("{") :])
        except ValueError:
            last_line = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise RunFailed(f"flwr {arguments[0]}: {' '.join(last_line)[:300]}") from None
        return answer


class SimulatedFleet(FlowerFleet):
    """The same with virtual nodes: Flower's simulation engine instead of SuperLink and SuperNodes.

    Shuffler and agents are as real as ever; `options.processes` is the number of virtual nodes, and one process holds
    the agents of all of them.
    """

    def start_analyzer(self) -> None:
        """The analyzer runs in the ServerApp, and the engine starts the nodes."""

    def start_agents(self) -> None:
        self.agents = [self._start("agents", self._host(*range(self.options.processes)))]
        await_ready(self.agents[0])

    def simulate(self, workers: int = 2) -> dict[str, Any]:
        """Run the plan on the engine; the analyzer's last snapshot."""
        from flwr.app import Context
        from flwr.serverapp import Grid, ServerApp
        from flwr.simulation import run_simulation

        from dpcheckin.flower.doorbell import ENVIRONMENT, make_doorbell
        from dpcheckin.flower.server import check_in

        os.environ.update(environment())
        os.environ[ENVIRONMENT] = str(self.folder / "mailboxes" / "{node}")
        snapshots: list[dict[str, Any]] = []

        def main(grid: Grid, context: Context) -> None:
            config = {FOLDER: str(self.analyzer_folder)}
            # the engine's workers start while the first rounds are already open
            snapshots.append(check_in(grid, config, late_seconds=60.0))

        server = ServerApp()
        server.main()(main)
        run_simulation(
            server_app=server,
            client_app=make_doorbell(),
            num_supernodes=self.options.processes,
            backend_config={
                "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                "init_args": {"num_cpus": workers, "include_dashboard": False},
            },
        )
        if not snapshots:
            raise RunFailed("the simulation ended without a result")
        return snapshots[0]
