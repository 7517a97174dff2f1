"""Writes the published test vectors: `python tests/vectors/write.py`.

Sealing is randomized, so the envelopes differ from run to run; what a vector says is that *these*
bytes, under *this* private key, open to *this* payload. The files are written once and then only
read: an implementation that cannot read them speaks another language.
"""

import json
from pathlib import Path

import numpy as np

from dpcheckin.service.issuer.private_keys import PrivateKey
from dpcheckin.service.wire import envelope, payloads
from dpcheckin.service.wire.blind_signatures import blind, finalize
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, signed_bytes
from dpcheckin.service.wire.tokens import token_message

FOLDER = Path(__file__).parents[1] / "vectors"
IDENTITY_SEED = digest(b"dpcheckin test vector identity")


def plan_object(**changes: object) -> dict[str, object]:
    plan: dict[str, object] = {
        "type": "plan",
        "format": 1,
        "protocol": "shuffled-check-in",
        "population": 100,
        "minimum_present": changes.get("population", 100),
        "colluding": 0.0,
        "dropout": 0.0,
        "minimum_batch": 2,
        "rate": 0.1,
        "rounds": 10,
        "randomizer": {"name": "ldp-sgd", "local_epsilon": 2.0, "dimension": 5, "clip": 1.0, "encoding": 1},
        "delta": 1e-05,
        "epsilon_budget": 1.0,
        "round_seconds": 30.0,
        "compute_seconds": 9.0,
        "suite": 1,
        "cover": True,
        "task": {"model": "digits-linear"},
        "nonce": "000102030405060708090a0b0c0d0e0f",
    }
    plan.update(changes)
    return {name: value for name, value in plan.items() if value is not None}


def randomizer(encoding: int, dimension: int, name: str = "ldp-sgd") -> dict[str, object]:
    return {"name": name, "dimension": dimension, "clip": 1.0, "encoding": encoding}


PLANS = {
    "vector": plan_object(colluding=0.05, dropout=0.02, minimum_present=110),
    "symbol": plan_object(randomizer=randomizer(2, 7, "dary")),
    "shares": plan_object(protocol="distributed-check-in", randomizer=randomizer(3, 6, "skellam"), cover=False),
    "slots": plan_object(
        protocol="random-check-in-fixed", rate=None, slots=10, check_in_probability=0.5, minibatch=1, minimum_batch=0
    ),
    "hybrid": plan_object(suite=2),
    "token": plan_object(issuer=digest(b"dpcheckin test vector issuer").hex()),
    "octets": plan_object(
        randomizer=randomizer(4, 3, "hash") | {"local_epsilon": 2.0, "buckets": 256, "functions": 1024, "salt": ""},
        task={"kind": "heavy-hitters", "bits": 24, "about": "word", "answers": 12},
    ),
    "octets-token": plan_object(
        randomizer=randomizer(4, 3, "hash") | {"local_epsilon": 2.0, "buckets": 256, "functions": 1024, "salt": ""},
        task={"kind": "heavy-hitters", "bits": 24, "about": "word", "answers": 12},
        issuer=digest(b"dpcheckin test vector issuer").hex(),
    ),
}
TOKEN_KEY = PrivateKey(
    int(
        "c54bf3009abde3ba850c9bc5f35a860d32c58547a44609b9a0e9414172e1acb783e70581c0b7fbec2945ea"
        "70cba9173e125646bb1ae5770c17473373953113663d85acd0044c1f53aeef49b37cfe07b759d15270b803"
        "e9085a06f8ae3aeb0ba04e8130c7c24afde540c56ed66d50dbfe072d02a466753fd9cef339aba4692b75",
        16,
    ),
    int(
        "b69b3f357c4a3d0633d5c1c7b5046a68656c8e34ba8b14561bf8e32c489af292bd1bd124a3d89df1030451"
        "7a0d9bedacc82ed9895408beba9a468f23b3bce35ec0912267dd46f5cb2c6c9237eb042db14faaaaa104f8"
        "5eb509b4ef3020b08d64ec99c9060e9d62949e3f435ff5d9b5eb81aed0e1c6fe4ca269887b584a5377ad",
        16,
    ),
)
"""Of nobody: both primes are published here."""
MODEL = b"a model"
ROUND = 3


def private_key(suite: int) -> bytes:
    stretched = b"".join(digest(b"dpcheckin test vector key" + bytes([i])) for i in range(3))
    return stretched[: {1: 32, 2: 96}[suite]]


def made_token(plan: PlanDocument) -> bytes:
    number = digest(b"dpcheckin test vector token")
    message = token_message(plan.id, ROUND, number)
    hidden = blind(TOKEN_KEY.public, message, number + number[:16], 12345)
    signed = TOKEN_KEY.blind_sign(hidden.message)
    return number + finalize(TOKEN_KEY.public, message, signed, hidden.inverse)


def documents(name: str) -> dict[str, object]:
    identity = identity_from_seed(IDENTITY_SEED)
    plan = PlanDocument.from_object(PLANS[name])
    key = envelope.OpeningKey(plan.suite, private_key(plan.suite))
    announced = KeyDocument(plan.id.hex(), plan.suite, key.public_key.hex(), 0)
    times = (1700000000.25, 1700000030.25)
    token_key = None if plan.issuer is None else TOKEN_KEY.public.to_bytes().hex()
    opened = RoundDocument(plan.id.hex(), ROUND, digest(MODEL).hex(), key.key_id.hex(), *times, token_key)
    return {
        "identity": public_identity(identity).hex(),
        "documents": [
            {
                "id": document.id.hex(),
                "canonical": document.to_bytes().decode(),
                "signed": signed_bytes(document, identity).decode(),
            }
            for document in (plan, announced, opened)
        ],
    }


def envelopes(name: str) -> dict[str, object]:
    plan = PlanDocument.from_object(PLANS[name])
    key = envelope.OpeningKey(plan.suite, private_key(plan.suite))
    share, extra, token = b"", {}, b""
    if plan.issuer is not None:
        token = made_token(plan)
        key_bytes = TOKEN_KEY.public.to_bytes()
        extra = {"token": token.hex(), "token_key": key_bytes.hex()}
    if plan.encoding == 1:
        report = np.array([0.5, -1.25, 3.0, 0.0, 1e-3], dtype=np.float32)
        payload = payloads.vector_payload(report)
    elif plan.encoding == 2:
        payload = payloads.symbol_payload(4, plan.dimension)
        report = np.array([4], dtype=np.uint32)
    elif plan.encoding == 4:
        report = np.array([0xFE, 0x03, 0x2A], dtype=np.uint8)  # function 1022, bucket 42
        payload = payloads.octets_payload(report.tobytes())
    else:
        values, seed = np.array([1, -1, 0, 2**31 - 1, -(2**31), 42]), digest(b"seed")
        payload, share = payloads.seed_payload(seed, plan.dimension), payloads.split(values, seed)
        report = payloads.expand(seed, plan.dimension)
        extra = {"share": share.hex(), "values": values.tolist(), "seed": seed.hex()}
    sealed = envelope.seal(plan, key.public_key, ROUND, digest(MODEL), payload + token, share)
    return {
        "plan": PLANS[name],
        "private_key": private_key(plan.suite).hex(),
        "public_key": key.public_key.hex(),
        "key_id": key.key_id.hex(),
        "round": ROUND,
        "model_digest": digest(MODEL).hex(),
        "envelope": sealed.hex(),
        "payload": payload.hex(),
        "report": report.tolist(),
        **extra,
    }


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for kind, made in (("documents", documents), ("envelope", envelopes)):
        for name in PLANS:
            file = FOLDER / f"{kind}-{name}.json"
            if not file.exists():
                file.write_text(json.dumps(made(name), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
