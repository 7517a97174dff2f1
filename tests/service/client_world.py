"""An analyzer's announcements, and agents that hear them."""

from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from dpcheckin.randomizers import SecureSource
from dpcheckin.service.client.config import ClientConfig, Limits
from dpcheckin.service.client.core import Agent
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import OpeningKey, new_private_key
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, signed
from service.plans import plan

MODEL = b"a model"


WIDE = Limits(rate=0.5, clip=1.0, local_epsilon=20.0, total_epsilon=20.0, total_local_epsilon=1e6, total_delta=0.01)


class Coin(SecureSource):
    """A secure source whose uniform draws a test decides."""

    def __init__(self, draws: list[float] | None = None) -> None:
        self.draws = draws or []

    def uniform(self, size: Any) -> Any:
        if size == 1 and self.draws:
            return np.array([self.draws.pop(0)])
        return super().uniform(size)


class SameWords(SecureSource):
    """A secure source in form whose words follow from a seed: the same reports in every run."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def _words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(bytearray(self._generator.bytes(8 * count)), dtype=np.uint64)


class World:
    """An analyzer's announcements, and agents that hear them."""

    def __init__(self, folder: Path, document: PlanDocument | None = None) -> None:
        self.folder = folder
        self.identity = identity_from_seed(bytes(31) + b"\1")
        self.plan = document or plan()
        self.key = OpeningKey(self.plan.suite, new_private_key(self.plan.suite))
        self.key_document = KeyDocument(self.plan.id.hex(), self.plan.suite, self.key.public_key.hex(), 0)

    def page(self, by: Ed25519PrivateKey | None = None, **changes: Any) -> bytes:
        key = by or self.identity
        said = {"plan": signed(self.plan, key), "keys": [signed(self.key_document, key)], **changes}
        return canonical(said)

    def round(self, number: int = 0, by: Ed25519PrivateKey | None = None, **changes: Any) -> bytes:
        document = RoundDocument(
            **{
                "plan": self.plan.id.hex(),
                "round": number,
                "model": digest(MODEL).hex(),
                "key": self.key.key_id.hex(),
                "opens": 100.0,
                "closes": 200.0,
                **changes,
            }
        )
        return canonical(signed(document, by or self.identity))

    def agent(self, limits: Limits = WIDE, coin: SecureSource | None = None, **config: Any) -> Agent:
        made = ClientConfig(
            "http://127.0.0.1:1", "token", public_identity(self.identity), limits, self.folder / "state", **config
        )
        wallet = None if made.issuer is None else TokenWallet(made.state)
        ledger = ClientLedger(made.state / "ledger")
        return Agent(made, ledger, coin or SecureSource(), wallet=wallet)
