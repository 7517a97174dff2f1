"""What is handed over to somebody else: the page of a statement, and its privacy card.

A page is one or two sheets of paper: the statement, what it rests on and what it does not cover, both trust figures,
parameters, versions, and how to check all of it. A card says the same as data (`privacy-card.schema.json`). Certificate
and card lie beside the page, under its name.
"""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from dpcheckin.display import told
from dpcheckin.document import Document, Table, versions
from dpcheckin.errors import NumericalFailure, OutsideTheorem
from dpcheckin.numerals import rounded_down, rounded_up, written

FORMAT = "dpcheckin-privacy-card/1"
CARD = "privacy-card.json"
SCHEMA = Path(__file__).with_name("privacy-card.schema.json")
NOT_COVERED = (
    "who the clients are and, towards the shuffler and the network, when they report",
    "a person behind several clients, or a client that reports more than once in a round",
    "other runs, questions and models about the same clients: what they cost adds to this",
    "what is learned about everybody alike, whether or not a given client took part",
    "parties and devices that do not run what is described here",
)
_SIGNS = {
    "population": "n = {}",
    "cohort": "cohort {}",
    "slots": "{} slots",
    "rate": "rate {}",
    "lowest_rate": "lowest rate {}",
    "randomizer": "{}",
    "local_epsilon": "ε₀ = {}",
    "noise_multiplier": "noise multiplier {}",
    "check_in_probability": "check-in probability {}",
    "colluding": "{} colluding",
    "dropout": "dropout {}",
    "rounds": "rounds: {}",
    "delta": "δ = {}",
}


class Stated(Protocol):
    """A statement that can be handed over; there is one kind, a guarantee."""

    def to_json(self) -> dict[str, Any]:
        """Its figures and reasons."""

    def sentences(self) -> tuple[str, str | None]:
        """What holds, and what is left of it in the weaker case."""

    def certificate(self) -> dict[str, Any]:
        """Its proof, or `OutsideTheorem`."""


def in_words(protocol: str, run: Mapping[str, Any], without: str = "") -> str:
    """A run of a protocol in one line, for the title of a picture; `without` what its axis says.

    >>> in_words("Shuffled check-in", {"population": 10_000, "rate": 0.01, "local_epsilon": 2.0, "dropout": 0.0})
    'Shuffled check-in, n = 10,000, rate 0.01, ε₀ = 2'
    """
    said = {name: run[name] for name in _SIGNS if run.get(name) not in (None, 0, 0.0, "any", "") and name != without}
    parts = (sign.format(told(said[name])) for name, sign in _SIGNS.items() if name in said)
    return ", ".join((protocol, *parts))


def privacy_card(subject: str, stated: Stated, run: Mapping[str, Any], certificate: str = "") -> dict[str, Any]:
    """The card of what is `stated` about a `subject`, such as "survey", as plain data.

    `run` are its parameters, `certificate` is the name of a file, or "" where there is none.
    """
    facts = stated.to_json()
    record = "record" in facts["adjacency"]
    return {
        "format": FORMAT,
        "subject": subject,
        "statement": " ".join(filter(None, stated.sentences())),
        "epsilon": facts["epsilon"]["upper"],
        "delta": facts["delta"],
        "adjacency": facts["adjacency"],
        "unit": "one record" if record else "one client: all that it holds, in all rounds together",
        "trust": {"holds_if": facts["assumptions"], "otherwise": facts["local"]},
        "rests_on": facts["basis"],
        "not_covered": list(NOT_COVERED),
        "run": {name: value if _plain(value) else str(value) for name, value in run.items() if value is not None},
        "software": {str(name): str(value) for name, value in versions().rows},
        "certificate": certificate or None,
    }


def _plain(value: object) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def card_beside(folder: Path, subject: str, stated: Stated, run: Mapping[str, Any], proof: Path | str = "") -> Path:
    """Write the card of what is `stated` about a `subject` into the `folder` of its report.

    `run` are its parameters, `proof` the certificate that lies there, or a sentence that there is none.
    """
    name = proof.name if isinstance(proof, Path) else ""
    return write_card(folder / CARD, privacy_card(subject, stated, run, name))


def write_card(path: Path, card: Mapping[str, Any]) -> Path:
    """Write a card to a file at `path`, and the schema beside it."""
    path.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.copyfile(SCHEMA, path.with_name(SCHEMA.name))
    return path


def hand_over(
    path: Path,
    stated: Stated,
    run: Mapping[str, Any],
    *,
    least: float | None = None,
    pictures: Mapping[Any, str] | None = None,
    tables: Sequence[Table] = (),
) -> None:
    """Write the page of what is `stated`, to `path`, with card, schema and certificate beside it.

    Args:
        path: of the page, .html.
        stated: the guarantee.
        run: its parameters, by name.
        least: proven lower bound, if it was asked for.
        pictures: PNG files or what they hold, each with a text.
        tables: what else there is to say.
    """
    facts, (statement, weaker) = stated.to_json(), stated.sentences()
    path.parent.mkdir(parents=True, exist_ok=True)
    proof, why = _certified(path.with_suffix(".certificate.json"), stated)
    card = path.with_suffix(".card.json")
    write_card(card, privacy_card("run", stated, run, "" if proof is None else proof.name))
    epsilon, local = facts["epsilon"]["upper"], facts["local"] or {}
    above = "no finite ε" if epsilon is None else f"≤ {rounded_up(epsilon)}"
    figures = {"ε, certified": above, "δ": rounded_up(facts["delta"])}
    if local:
        figures[f"ε if {local['when']}"] = "none" if local["epsilon"] is None else f"≤ {rounded_up(local['epsilon'])}"
    if least is not None:
        figures["nobody can promise less than"] = rounded_down(least)
    figures |= {
        word: written(run[name]) for name, word in (("population", "clients"), ("rounds", "rounds")) if run.get(name)
    }
    command = shlex.join(["dpcheckin", *sys.argv[1:]]) if Path(sys.argv[0]).name == "dpcheckin" else ""
    check: list[tuple[object, ...]] = [("the figures again", command)] if command else []
    if proof is None:
        check.append(("certificate", f"none: {why}"))
    else:
        check += [("certificate", proof), ("its proof, without dpcheckin", f"python verify/check.py {proof.name}")]
    check += [("all of this as data", card), ("what the data mean", card.with_name(SCHEMA.name))]
    rests = [("proved by", one) for one in facts["basis"]] + [("provided that", one) for one in facts["assumptions"]]
    parameters = [(name.replace("_", " "), told(value)) for name, value in run.items() if value is not None]
    Document(
        kind="Privacy statement",
        title=f"ε\u00a0{above.replace(' ', chr(0xA0))} at δ\u00a0=\u00a0{rounded_up(facts['delta'])}",
        chip="no guarantee" if epsilon is None else "certified",
        statement="\n".join(filter(None, (statement, weaker))),
        figures=figures,
        pictures=pictures or {},
        tables=(
            *tables,
            Table("What it rests on", rests),
            Table("What it does not cover", [(one,) for one in NOT_COVERED]),
            Table("The run", [("neighbours", facts["adjacency"]), *parameters]),
            Table("How to check it", check),
            versions(),
        ),
        bad=epsilon is None,
    ).write(path)


def _certified(path: Path, stated: Stated) -> tuple[Path | None, str]:
    """The file of the statement's certificate, or why there is none."""
    try:
        path.write_text(json.dumps(stated.certificate(), separators=(",", ":")) + "\n", encoding="ascii")
    except (OutsideTheorem, NumericalFailure) as problem:
        return None, str(problem)
    return path, ""
