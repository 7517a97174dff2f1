"""The issuer as the analyzer sees it: it is told of the plan, and gives the key of each round."""

from __future__ import annotations

import threading

from dpcheckin.service.analyzer.shuffler_client import PatientClient
from dpcheckin.service.settings_file import IssuerAccess
from dpcheckin.service.wire.blind_signatures import PublicKey
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.documents import MODULUS_BYTES
from dpcheckin.service.wire.fields import hex_bytes
from dpcheckin.service.wire.problems import Malformed

NO_TOKENS = "ff" * MODULUS_BYTES
"""In the place of a token key: nobody has the other half, or a token under it."""


class IssuerClient(PatientClient):
    """The connection to the issuer, with the analyzer's access token."""

    party = "issuer"

    def put_plan(self, signed: bytes) -> None:
        """Have tokens issued for a signed plan."""
        self._call("PUT", "/v1/plan", signed)

    def open_round(self, plan: bytes, number: int) -> str:
        """The key of a round that is about to open, in hex; rounds before it are over.

        Args:
            plan: its id.
            number: of the round.
        """
        answer = parse(self._call("POST", f"/v1/plans/{plan.hex()}/rounds/{number}"))
        if not isinstance(answer, dict):
            raise Malformed("the issuer's answer is not an object")
        key: str = hex_bytes(MODULUS_BYTES)("issuer.key", answer.get("key"))
        PublicKey.from_bytes(bytes.fromhex(key))
        return key


def issuer_client(
    access: IssuerAccess | None, stop: threading.Event | None = None
) -> IssuerClient | None:
    """The connection to the issuer that an analyzer's settings name, if they name one.

    Args:
        access: as in the settings.
        stop: set by whoever wants waiting to end.
    """
    if access is None:
        return None
    return IssuerClient(access.address, access.token, access.authority, stop)
