"""What a device writes down before it acts: all it has given away, and the one envelope that it has still to send.

Before anything is sent in a round, a report or a cover, the ledger says that the client took part, how its coin fell,
and what that makes in all, over all plans. So no coin is flipped twice, and a server that changes its plan starts no
new budget. A round is paid for from its coin on, since it may be released. What is paid for an honest shuffler
(`epsilon`) is given back when the shuffler states that the round was void: that figure is a promise only if the
shuffler is honest, and then its statement is true. What is paid in case it is not (`local_epsilon`) never is: the
report had left the device. Neither says how coins fell, so that nobody learns anything when a client has spent its
budget and leaves.

The outbox is written before the owner's data are touched, with the cover or the neutral report, and again, whatever it
is to hold, before the first byte is sent; both times the file has the same size, and what it holds is sealed. So a
process that is killed and started again within the round sends what it would have sent, and never two different
envelopes: that they differ would tell that its computation had succeeded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpcheckin.service.pricing import Price, Spent
from dpcheckin.service.storage.files import replace_file
from dpcheckin.service.storage.journal import Journal, entries_of
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.problems import Malformed


@dataclass
class _Plan:
    """What has happened under one plan."""

    spent: Spent = field(default_factory=lambda: Spent.sum(()))
    coins: dict[int, bool] = field(default_factory=dict)
    """By round, how it fell: of the rounds that were or may yet be released, and of void ones."""
    void: set[int] = field(default_factory=set)

    @property
    def rounds(self) -> int:
        """Rounds that are paid for."""
        return len(self.coins) - len(self.void)

    def after(self, price: Price) -> Spent:
        """What it has cost after one more round, however its coin falls."""
        rounds = min(self.rounds + 1, price.document.rounds)
        return Spent(price.spent(rounds).epsilon, price.rounds_epsilon(len(self.coins) + 1), price.delta)


class ClientLedger:
    """The open ledger of one client: what it has given away, over all plans it ever joined, by their ids in hex. It
    lies in the journal at `path`, which is made when it is not there; with `look` it is only read, also while an agent
    has it open."""

    def __init__(self, path: Path, *, look: bool = False) -> None:
        self._journal = None if look else Journal(path)
        self._plans: defaultdict[str, _Plan] = defaultdict(_Plan)
        self._slots: dict[str, int | None] = {}
        for entry in entries_of(path) if self._journal is None else self._journal:
            self._take(entry.body)

    def close(self) -> None:
        """Let another process open it."""
        if self._journal is not None:
            self._journal.close()

    def plans(self) -> dict[str, tuple[int, int, Spent]]:
        """By plan: rounds taken part in, those of them that were void, and what is spent."""
        return {name: (len(plan.coins), len(plan.void), plan.spent) for name, plan in self._plans.items()}

    def reported(self, plan: str, round_number: int) -> bool | None:
        """How the coin of round `round_number` of a `plan` fell; None if the round is new."""
        return self._plans[plan].coins.get(round_number)

    def rounds_of(self, plan: str) -> int:
        """Rounds of a plan that are paid for: all it took part in but those stated to be void."""
        return self._plans[plan].rounds

    @property
    def taken(self) -> int:
        """Rounds of all plans that this client took part in, void ones too."""
        return sum(len(plan.coins) for plan in self._plans.values())

    def void_in_a_row(self, plan: str) -> int:
        """Void rounds of a plan since the last that was not; the newest may not be settled yet."""
        void = self._plans[plan].void
        taken = sorted(self._plans[plan].coins, reverse=True)
        if taken and taken[0] not in void:
            taken = taken[1:]
        return next((place for place, number in enumerate(taken) if number not in void), len(taken))

    def reports_of(self, plan: str) -> int:
        """Reports sent under a plan."""
        return sum(self._plans[plan].coins.values())

    def slot_of(self, plan: str) -> int | None:
        """The slot chosen for a plan of random check-ins; None: none, or not chosen yet."""
        return self._slots.get(plan)

    def has_slot(self, plan: str) -> bool:
        """Whether the choice has been made."""
        return plan in self._slots

    def choose_slot(self, plan: str, slot: int | None) -> None:
        """Write down a `plan`'s `slot`, or that there is none, before that has any consequence."""
        self._append({"kind": "slot", "plan": plan, "slot": slot})

    def totals(self) -> Spent:
        """Everything given away so far."""
        return Spent.sum(plan.spent for plan in self._plans.values())

    def totals_after(self, plan: str, price: Price) -> Spent:
        """What `totals` would be after one more round of a `plan` with this `price`, however its coin falls."""
        others = [found.spent for name, found in self._plans.items() if name != plan]
        return Spent.sum([*others, self._plans[plan].after(price)])

    def take_part(self, plan: str, round_number: int, price: Price, *, report: bool) -> None:
        """Write down, durably, round `round_number` of a `plan` with this `price`, and whether the client sends a
        `report`."""
        after = self._plans[plan].after(price).to_json()
        self._append({"kind": "round", "plan": plan, "round": round_number, "report": report, **after})

    def settle(self, plan: str, price: Price, void: Iterable[int]) -> int:
        """Give back, durably, what was paid under a `plan` with this `price` for rounds that were `void`; how many are
        new. Rounds that the client had no part in are passed over."""
        known = self._plans[plan]
        new = sorted((set(void) - known.void) & known.coins.keys())
        if not new:
            return 0
        left = min(known.rounds - len(new), price.document.rounds)
        self._append({"kind": "void", "plan": plan, "rounds": new, "epsilon": price.spent(left).epsilon})
        return len(new)

    def _append(self, body: dict[str, Any]) -> None:
        assert self._journal is not None
        self._journal.append(body)
        self._take(body)

    def _take(self, body: dict[str, Any]) -> None:
        name = body["plan"]
        if body["kind"] == "slot":
            self._slots[name] = body["slot"]
            return
        plan = self._plans[name]
        if body["kind"] == "void":
            plan.void.update(body["rounds"])
            plan.spent = replace(plan.spent, epsilon=body["epsilon"])
        else:
            plan.coins[body["round"]] = body["report"]
            plan.spent = Spent.from_json(body)


@dataclass(frozen=True)
class Parcel:
    """What is sent in which round, and when; times are seconds since the epoch."""

    plan: str
    """Its id, in hex."""
    round: int
    opens: float
    closes: float
    moment: float
    """When it is sent."""
    envelope: bytes
    """All of it; nothing in a plan without cover whose coin was tails."""

    def to_bytes(self) -> bytes:
        """The facts on one line, then the envelope as it is."""
        facts = {**self.__dict__, "envelope": len(self.envelope)}
        return canonical(facts) + b"\n" + self.envelope

    @staticmethod
    def from_bytes(content: bytes) -> Parcel | None:
        """What `to_bytes` wrote; None of anything else."""
        line, _, envelope = content.partition(b"\n")
        try:
            facts = parse(line)
            whole = facts.pop("envelope") == len(envelope)
            return Parcel(**facts, envelope=envelope) if whole else None
        except (Malformed, TypeError, AttributeError, KeyError):
            return None


class Outbox:
    """At most one parcel. `file`: where it lies."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.held: Parcel | None = Parcel.from_bytes(file.read_bytes()) if file.exists() else None

    def put(self, parcel: Parcel) -> None:
        """Keep this one in the place of any other, durably."""
        replace_file(self._file, parcel.to_bytes())
        self.held = parcel

    def clear(self) -> None:
        """It was sent, or its round is over. Should a crash undo this, the same bytes go again."""
        self._file.unlink(missing_ok=True)
        self.held = None
