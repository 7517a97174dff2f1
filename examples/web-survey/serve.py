"""A survey on a web page, all of it on this machine: `python examples/web-survey/serve.py`, then http://localhost:8080.

The site is two files and a script; shuffler, issuer and analyzer are the real ones, as processes on the loopback
interface, and forty neighbours in Python make a crowd. What a site of yours needs of this: tokens from
`shuffler enroll` and `issuer enroll`, one of each for a member, `--origins` with the site's origin at both, and TLS
(docs/browser.md).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.deployment.agents import Specification
from dpcheckin.deployment.demo import toml
from dpcheckin.deployment.processes import COMMAND, Party, start, start_agents, start_analyzer
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage.files import make_folder
from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token, load_identity
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.signing import public_identity

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NEIGHBOURS, VISITORS = 40, 200
ABOUT, WAYS = "way to work", ["on foot", "bicycle", "bus or train", "car", "other"]
PLAN = {
    "population": 30, "rate": 0.5, "rounds": 6, "delta": 1e-5, "epsilon_budget": 20.0, "minimum_batch": 5,
    "round_seconds": 20.0,
}  # fmt: skip
LIMITS = {
    "rate": 0.5, "clip": 1.0, "local_epsilon": 2.0, "total_epsilon": 20.0, "total_local_epsilon": 40.0,
    "total_delta": 1e-4, "require_cover": True,
}  # fmt: skip
# only this site's own scripts run beside the owner's answer, only its parties are asked, and nobody frames the button
POLICY = "default-src 'self'; connect-src 'self' http://127.0.0.1:*; base-uri 'none'; frame-ancestors 'none'"
SHOWN = {
    "/": (HERE / "index.html", "text/html"),
    "/site.css": (HERE / "site.css", "text/css"),
    "/site.js": (HERE / "site.js", "text/javascript"),
    "/clients/web/dpcheckin.js": (ROOT / "clients" / "web" / "dpcheckin.js", "text/javascript"),
    "/clients/web/owner.js": (ROOT / "clients" / "web" / "owner.js", "text/javascript"),
}


def enrolled(store: Any) -> list[str]:
    """Tokens for everybody who may come."""
    tokens = [new_token() for _ in range(NEIGHBOURS + VISITORS)]
    with contextlib.closing(store):
        store.enroll([token_digest(token) for token in tokens])
    return tokens


@contextlib.contextmanager
def parties(folder: Path, origin: str) -> Iterator[tuple[Party, list[dict[str, Any]]]]:
    """The analyzer, and what visitors are given, one after the other."""
    running: list[Party] = []
    places = {name: folder / name for name in ("shuffler", "issuer", "analyzer")}
    for place in places.values():
        make_folder(place)
    try:
        for name in ("shuffler", "issuer"):
            analyzer_token(places[name])
        tokens = enrolled(open_store(f"sqlite:{places['shuffler'] / 'shuffler.db'}"))
        issuer_tokens = enrolled(IssuerStore(places["issuer"] / "issuer.db"))
        said: dict[str, dict[str, Any]] = {}
        for name in ("shuffler", "issuer"):
            (places[name] / f"{name}.toml").write_text(
                ("[issuer]\n" if name == "issuer" else "") + f'origins = "{origin}"\n', encoding="utf-8"
            )
            serve = [*COMMAND, name, "serve", "--folder", places[name], "--dev", "--port", "0", "--admin-port", "0"]
            running.append(start(name, serve, folder / f"{name}.log"))
            token = str((places[name] / TOKEN_FILE).resolve())
            said[name] = {"address": running[-1].listening["address"], "token_file": token}
        said["issuer"]["identity"] = running[-1].listening["identity"]
        tables = {
            **said,
            "plan": PLAN,
            "randomizer": {"name": "dary", "local_epsilon": 2.0},
            "task": {"kind": "histogram", "about": ABOUT, "categories": WAYS},
            "analyzer": {"port": 0},
        }
        (places["analyzer"] / "analyzer.toml").write_text(toml(tables), encoding="utf-8")
        identities = {name: public_identity(load_identity(places[name])).hex() for name in ("shuffler", "analyzer")}
        running.append(start_agents(neighbours(folder, said, identities, tokens, issuer_tokens), folder / "agents.log"))
        analyzer = start_analyzer(places["analyzer"])
        running.append(analyzer)
        memberships = [
            {
                "shuffler": {
                    "address": said["shuffler"]["address"], "token": token, "identity": identities["shuffler"],
                },
                "issuer": {"address": said["issuer"]["address"], "token": own, "identity": said["issuer"]["identity"]},
                "analyzer": {"identity": identities["analyzer"]},
            }
            for token, own in zip(tokens[NEIGHBOURS:], issuer_tokens[NEIGHBOURS:], strict=True)
        ]  # fmt: skip
        yield analyzer, memberships
    finally:
        for party in reversed(running):
            party.stop()


def neighbours(
    folder: Path, said: dict[str, Any], identities: dict[str, str], tokens: list[str], issuer_tokens: list[str]
) -> Path:
    """Forty agents, as `dpcheckin client run` runs them, with made-up answers."""
    drawn = random.Random(5).choices(WAYS, weights=(3, 4, 6, 5, 2), k=NEIGHBOURS)
    people = folder / "people.csv"
    people.write_text("way\n" + "".join(f"{way}\n" for way in drawn), encoding="utf-8")
    path = folder / "agents.json"
    Specification(
        shuffler=said["shuffler"]["address"], identity=identities["analyzer"], tokens=tokens[:NEIGHBOURS], first=0,
        clients=NEIGHBOURS, state=str(folder / "neighbours"), data=None, model="", limits=LIMITS,
        answers={ABOUT: {"file": str(people), "column": "way", "row": 1}}, shuffler_identity=identities["shuffler"],
        poll_seconds=2.0, issuer=said["issuer"]["address"], issuer_identity=said["issuer"]["identity"],
        issuer_tokens=issuer_tokens[:NEIGHBOURS],
    ).write(path)  # fmt: skip
    return path


class Site(BaseHTTPRequestHandler):
    """Five files, one enrolment for each visitor, and what the analyzer's page shows."""

    analyzer: Party
    memberships: list[dict[str, Any]]
    own_origin: str
    lock = threading.Lock()

    def do_GET(self) -> None:
        if self.path in SHOWN:
            file, kind = SHOWN[self.path]
            return self._answer(file.read_bytes(), f"{kind}; charset=utf-8")
        if self.path == "/run":
            told = {"analyzer": self.memberships[0]["analyzer"]["identity"] if self.memberships else None}
            return self._answer(json.dumps(told).encode(), "application/json")
        if self.path == "/result":
            page = self.analyzer.listening["page"]
            shot = httpx.get(f"{page}/status.json", timeout=10.0, trust_env=False).json()
            return self._answer(json.dumps(shot.get("survey") or {}).encode(), "application/json")
        return self._answer(b"", "text/plain", 404)

    def do_POST(self) -> None:
        if self.path != "/enroll" or self.headers.get("origin") != self.own_origin:
            return self._answer(b"", "text/plain", 404)
        with self.lock:  # a site with accounts gives each account one, and the same again
            given = self.memberships.pop() if self.memberships else None
        return self._answer(json.dumps(given).encode(), "application/json", 200 if given else 503)

    def _answer(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", POLICY)
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    port = parser.parse_args().port
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # that ends the parties too
    server = ThreadingHTTPServer(("127.0.0.1", port), Site)
    origin = f"http://localhost:{server.server_address[1]}"
    with tempfile.TemporaryDirectory(prefix="web-survey-") as folder:
        print("starting shuffler, issuer, analyzer and forty neighbours …", flush=True)
        with parties(Path(folder), origin) as (analyzer, memberships):
            Site.analyzer, Site.memberships, Site.own_origin = analyzer, memberships, origin
            print(f"open {origin}  (Ctrl-C ends everything and forgets it)", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
