"""Report tokens at the analyzer: what they are checked for before a report counts.

A report counts when the issuer signed its token for this round of this plan and no report with the
same token was counted before. Who invents reports has no tokens for them, whoever else it is.
"""

from __future__ import annotations

from dpcheckin.service.wire.blind_signatures import PublicKey
from dpcheckin.service.wire.documents import PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.tokens import Token

FORGED = "the token is not one of this round"
SPENT = "the token was used before"


class TokenChecker:
    """Checks the tokens of one round, each once.

    Args:
        plan: has an issuer.
        round_document: names the issuer's key of the round.
    """

    def __init__(self, plan: PlanDocument, round_document: RoundDocument) -> None:
        if round_document.token_key is None:
            raise Malformed("a round of a plan with an issuer names its token key")
        self._key = PublicKey.from_bytes(bytes.fromhex(round_document.token_key))
        self._plan, self._round = plan.id, round_document.round
        self._used: set[bytes] = set()

    def use(self, raw: bytes) -> None:
        """Use a token up; `Malformed` if it is not good.

        Args:
            raw: what stands at the end of an opened payload.
        """
        token = Token.from_bytes(raw)
        try:
            token.check(self._key, self._plan, self._round)
        except Malformed:
            raise Malformed(FORGED) from None
        if token.number in self._used:
            raise Malformed(SPENT)
        self._used.add(token.number)
