"""What report tokens cost: a client for one round, the issuer and the analyzer for one token.

    python benchmarks/token_costs.py [--rounds 64] [--tokens 2000] [--repeats 5] [--check]

CPU time of one core, best of the repeats, on the code that ships: a wallet blinds, uncovers
and checks the tokens of many rounds at once and writes them to disk; the issuer's core writes down
who got what and signs, with OpenSSL's powers and with Python's; the analyzer's checker verifies
signature, round and plan and refuses what was used before. Targets: at most 2 ms of a client's CPU
for a round, and at least 2,000 tokens a second at the analyzer. With `--check` a missed target ends
with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dpcheckin.service.analyzer.batches import TokenChecker
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.issuer.private_keys import best_power, python_power
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.documents import PlanDocument, RoundDocument
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, read_signed, signed_bytes
from dpcheckin.service.wire.tokens import TokenKeysDocument

CLIENT_MS, CHECKS_PER_SECOND = 2.0, 2000
IDENTITY = identity_from_seed(b"i" * 32)


def plan() -> PlanDocument:
    said = {
        "type": "plan",
        "format": 1,
        "protocol": "shuffled-check-in",
        "population": 1000,
        "minimum_present": 1000,
        "colluding": 0.0,
        "dropout": 0.0,
        "minimum_batch": 10,
        "rate": 0.1,
        "rounds": 100,
        "randomizer": {"name": "privunit", "local_epsilon": 2.0, "dimension": 100, "clip": 1.0, "encoding": 1},
        "delta": 1e-5,
        "epsilon_budget": 8.0,
        "round_seconds": 60.0,
        "compute_seconds": 18.0,
        "suite": 1,
        "cover": True,
        "task": {},
        "nonce": "00" * 16,
        "issuer": public_identity(IDENTITY).hex(),
    }
    return PlanDocument.from_object(said)


def timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class Bench:
    """An issuer with a window of rounds, and clients that fetch all of it."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.plan, self.rounds = folder, plan(), rounds
        self.issuer = Issuer(IssuerStore(folder / "issuer.db"), IDENTITY, ahead=rounds)
        self.key_seconds = timed(lambda: self.issuer.register(signed_bytes(self.plan, IDENTITY)))
        page = parse(self.issuer.keys_page(self.plan.id))
        self.keys = read_signed(TokenKeysDocument, page, public_identity(IDENTITY))

    def fetch(self, number: int) -> tuple[float, float, TokenWallet]:
        """CPU seconds of a client and of the issuer for a whole window."""
        wallet = TokenWallet(self.folder / f"client-{number}")
        asked = list(self.keys.rounds)
        began = time.process_time()
        request = wallet.request(self.keys, asked)
        client = time.process_time() - began
        body = canonical(request.to_object())
        began = time.process_time()
        answer = self.issuer.issue(number.to_bytes(16, "big"), self.plan.id, body)
        issuer = time.process_time() - began
        signatures = [bytes.fromhex(one) for one in json.loads(answer)["signatures"]]
        began = time.process_time()
        taken = wallet.take_in(self.keys, asked, list(signatures))
        client += time.process_time() - began
        assert taken == len(asked)
        return client, issuer, wallet

    def check(self, tokens: list[bytes]) -> float:
        """CPU seconds for the analyzer to use these tokens of round 0 up."""
        found = RoundDocument(self.plan.id.hex(), 0, "00" * 32, "00" * 8, 0.0, 1.0, self.keys.key_of(0))
        checker = TokenChecker(self.plan, found)
        return timed(lambda: [checker.use(token) for token in tokens])

    def tokens(self, count: int) -> list[bytes]:
        """Tokens of round 0, of as many clients."""
        made = []
        for number in range(count):
            wallet = TokenWallet(self.folder / "many" / str(number))
            body = canonical(wallet.request(self.keys, [0]).to_object())
            client = (10**6 + number).to_bytes(16, "big")
            answer = json.loads(self.issuer.issue(client, self.plan.id, body))["signatures"]
            wallet.take_in(self.keys, [0], [bytes.fromhex(answer[0])])
            token = wallet.token(self.plan.id.hex(), 0, self.keys.key_of(0))
            assert token is not None
            made.append(token)
        return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.rounds)
        fetched = [bench.fetch(number) for number in range(options.repeats)]
        tokens = bench.tokens(options.tokens)
        checked = min(bench.check(tokens) for _ in range(options.repeats))
        blinded = fetched[0][2].request(bench.keys, [0]).blinded[0]
        key = bench.issuer.store.keys(bench.plan.id, range(1))[0]
        powers = {
            name: min(timed(lambda p=power: key.blind_sign(blinded, p)) for _ in range(20))
            for name, power in (("best", best_power()), ("python", python_power))
        }
    figures = {
        "client_ms_per_round": round(1e3 * min(f[0] for f in fetched) / options.rounds, 3),
        "issuer_ms_per_token": round(1e3 * min(f[1] for f in fetched) / options.rounds, 3),
        "issuer_signature_ms": round(1e3 * powers["best"], 3),
        "issuer_signature_ms_python_only": round(1e3 * powers["python"], 3),
        "issuer_ms_per_round_key": round(1e3 * bench.key_seconds / options.rounds, 1),
        "analyzer_tokens_per_second": round(options.tokens / checked),
        "token_bytes": len(tokens[0]),
        "cpus": os.cpu_count(),
    }
    print(json.dumps(figures))
    met = figures["client_ms_per_round"] <= CLIENT_MS and figures["analyzer_tokens_per_second"] >= CHECKS_PER_SECOND
    if options.check and not met:
        sys.exit(1)


if __name__ == "__main__":
    main()
