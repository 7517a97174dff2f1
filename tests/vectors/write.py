"""Writes the vectors that every client is held to: `python tests/vectors/write.py`.

Documents and envelopes are `service.wire_vectors`, written once since sealing is randomized; `rfc9180.json` and
`rfc9474.json` are the RFCs' own. All others follow from the code and are the same in every run, which a test checks.
Thresholds of coins and laws of reports are computed here a second time, with decimals of eighty digits.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, getcontext
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

from dpcheckin.accounting import CheckInRound, ShuffleRound, any_pure, compose, local_guarantee  # noqa: E402
from dpcheckin.randomizers import LocalHashing, randomizer  # noqa: E402
from dpcheckin.randomizers.two_parts import DITHERS  # noqa: E402
from dpcheckin.service.wire.blind_signatures import finalize  # noqa: E402
from dpcheckin.service.wire.canonical import canonical, digest, parse  # noqa: E402
from dpcheckin.service.wire.problems import Malformed  # noqa: E402
from dpcheckin.service.wire.tokens import TokenKeysDocument, token_message  # noqa: E402
from dpcheckin.survey.questions.query import Query  # noqa: E402

getcontext().prec = 80
WORD = Decimal(2) ** 64


# --- canonical JSON -------------------------------------------------------------------------

TEXTS = [
    '{"a":1,"b":1.0,"é":"x\\n"}', '{"10":1,"2":1}',
    '{"2":1,"10":1}', '{"b":1,"a":1}', '{"a":1,"a":1}', '{"a": 1}',
    "1", "-1", "01", "-0", "-0.0", "0.0", "1e5", "100000.0", "1e-05", "1e-5", "0.0001", "1e+16",
    "1e16", "1e15", "1.5e-07",
    "1000000000000000.0", "10000000000000000.0",
    "1.7976931348623157e+308", "5e-324", "1e999", "0.1", "0.10", "1.25e+20",
    "123456789012345678901234567890", "1234567890123456789012345678901", "-123456789012345678901234567890",
    "NaN", "Infinity", "nul", "true", "false", "null",
    '""', '"\\u00e9"', '"é"', '"\\u001f"', '"\\u001F"', '"\\/"', '"/"',
    '"\\"\\\\\\b\\f\\n\\r\\t"', '"\x7f"', '"\u2028"', '"\\ud800"', '{"":{}}', "[]", "[1,2]",
    "[1, 2]", "[1,]", "[]x", " []",
    '{"\ufffd":1,"\U00010000":2}', '{"\U00010000":2,"\ufffd":1}', '{"__proto__":1}', '{"a":{"b":[{"c":null}]}}', "",
]  # fmt: skip


def canonical_texts() -> list[dict[str, Any]]:
    """Texts, and whether they are canonical: read and written again they are the same bytes."""
    found = []
    for text in TEXTS:
        try:
            good = canonical(parse(text.encode())) == text.encode()
        except Malformed:
            good = False
        found.append({"text": text, "canonical": good})
    return found


# --- coins and laws -------------------------------------------------------------------------

EPSILONS = (2.0**-20, 0.1, 0.5, 1.0, math.log(3), 2.0, 4.0, 7.3, 12.0, 40.0)


def _floor(share: Decimal) -> str:
    return str(int((share * WORD).to_integral_value(ROUND_FLOOR)))


def _ceiling(share: Decimal) -> str:
    return str(int((share * WORD).to_integral_value(ROUND_CEILING)))


def coins() -> dict[str, Any]:
    """Thresholds, of 2^64: a coin is heads when a word of 64 random bits is below its threshold."""
    own, chosen, others = [], [], []
    for epsilon in EPSILONS:
        lie = (-Decimal(epsilon)).exp()
        for k in (2, 3, 10, 915, 1 << 20):
            own.append({"local_epsilon": epsilon, "symbols": k, "threshold": _floor(1 / (1 + (k - 1) * lie))})
        for k, w in ((3, 1), (20, 3), (915, 48)):
            threshold = _floor(Decimal(w) / (w + (k - w) * lie))
            chosen.append({"local_epsilon": epsilon, "symbols": k, "chosen": w, "threshold": threshold})
        for truth in (0.5, 0.3, 0.9):
            p = Decimal(truth)
            others.append(
                {"local_epsilon": epsilon, "truth": truth, "threshold": _ceiling(p * lie / (p * lie + 1 - p))}
            )
    rates = [{"rate": rate, "threshold": _floor(Decimal(rate))} for rate in (1.0, 0.5, 0.1, 1e-4, 1 / 3)]
    return {"own": own, "chosen": chosen, "other_bit": others, "rate": rates}


PLANS: list[tuple[dict[str, Any], list[Any]]] = [
    ({"name": "dary", "local_epsilon": 1.0, "symbols": 5}, [0, 3]),
    ({"name": "dary", "local_epsilon": 2.5, "symbols": 300}, [299]),
    ({"name": "binary", "local_epsilon": 0.7, "symbols": 2}, [1]),
    ({"name": "hadamard", "local_epsilon": 1.5, "symbols": 5}, [0, 4]),
    ({"name": "subset", "local_epsilon": 1.0, "symbols": 6, "chosen": 1}, [2]),
    ({"name": "subset", "local_epsilon": 2.0, "symbols": 7, "chosen": 2}, [0, 6]),
    ({"name": "subset", "local_epsilon": 2.0, "symbols": 40, "chosen": 2}, [11]),
    ({"name": "unary", "local_epsilon": 2.0, "symbols": 6, "truth": 0.5}, [0, 5]),
    ({"name": "unary", "local_epsilon": 1.0, "symbols": 9, "truth": 0.25}, [8]),
    ({"name": "levels", "local_epsilon": 2.0, "steps": 3}, [0.3]),
    ({"name": "tree", "local_epsilon": 1.0, "leaves": 16, "branching": 16}, [7]),
    ({"name": "tree", "local_epsilon": 2.0, "leaves": 16, "branching": 4}, [0, 13]),
    ({"name": "tree", "local_epsilon": 0.5, "leaves": 100, "branching": 3}, [42]),
    ({"name": "hash", "local_epsilon": 2.0, "buckets": 16, "functions": 8, "salt": "s"}, [5, 2**40 + 17]),
]


def _responses(table: dict[str, Any], value: int) -> dict[tuple[int, ...], Decimal]:
    """The law of the report of one symbol, as numbers of a report, by what each name means."""
    lie = (-Decimal(table["local_epsilon"])).exp()
    k = table["symbols"]
    if table["name"] == "unary":
        truth = Decimal(table["truth"])
        other = truth * lie / (truth * lie + 1 - truth)
        law = {}
        for bits in product((0, 1), repeat=k):
            chances = [truth if i == value else other for i in range(k)]
            whole = [sum(bit << j for j, bit in enumerate(bits[i : i + 8])) for i in range(0, k, 8)]
            law[tuple(whole)] = math.prod((p if bit else 1 - p) for p, bit in zip(chances, bits, strict=True))
        return law
    weights: dict[tuple[int, ...], Decimal] = {}
    if table["name"] in ("dary", "binary"):
        weights = {(y,): Decimal(1) if y == value else lie for y in range(k)}
    elif table["name"] == "hadamard":
        for column in range(1 << k.bit_length()):
            odd = (column & (value + 1)).bit_count() % 2
            weights[column,] = lie if odd else Decimal(1)
    else:
        w = table["chosen"]
        in_bits = w * (1 if k <= 256 else 2) > (k + 7) // 8
        for some in combinations(range(k), w):
            held = some
            if in_bits:
                held = tuple(sum(1 << (s - i) for s in some if i <= s < i + 8) for i in range(0, k, 8))
            weights[held] = Decimal(1) if value in some else lie
    total = sum(weights.values())
    return {report: weight / total for report, weight in weights.items()}


def _of_dary(epsilon: float, symbols: int, value: int) -> dict[tuple[int, ...], Decimal]:
    return _responses({"name": "dary", "local_epsilon": epsilon, "symbols": symbols}, value)


def _of_levels(table: dict[str, Any], value: float) -> dict[tuple[int, ...], Decimal]:
    steps = table["steps"]
    law: dict[tuple[int, ...], Decimal] = {}
    for dither in range(DITHERS):
        # the level is rounded by a shift that is uniform in [dither, dither + 1) / 256
        low = Decimal(steps) * Decimal(value) + Decimal(dither) / DITHERS
        first = int(low)
        up = max(low + Decimal(1) / DITHERS - (first + 1), Decimal(0)) * DITHERS
        for level, part in ((first, 1 - up), (first + 1, up)):
            for (y,), p in _of_dary(table["local_epsilon"], steps + 1, min(level, steps)).items():
                law[dither, y] = law.get((dither, y), Decimal(0)) + part * p / DITHERS
    return law


def _law(table: dict[str, Any], value: Any) -> dict[tuple[int, ...], Decimal]:
    epsilon = table["local_epsilon"]
    if table["name"] == "levels":
        return _of_levels(table, value)
    parts = []
    if table["name"] == "tree":
        made = randomizer(table)
        for response, width in zip(made.levels, made.widths, strict=True):
            inner = {"name": response.name, "local_epsilon": epsilon, "symbols": response.symbols}
            parts.append(_responses(inner, value // width))
    elif table["name"] == "hash":
        made = randomizer(table)
        for function in range(made.functions):
            bucket = int(made.hashed(np.array([value], np.uint64), function)[0])
            parts.append(_of_dary(epsilon, made.buckets, bucket))
    else:
        return _responses(table, value)
    return {(i, *report): p / len(parts) for i, part in enumerate(parts) for report, p in part.items()}


def randomizers() -> list[dict[str, Any]]:
    """Plans' randomizers, the size of their reports, and with what probability each report is made of a value."""
    found = []
    for table, values in PLANS:
        form = randomizer(table).report_format
        laws = []
        for value in values:
            law = _law(table, value)
            rows = np.array(list(law), np.int64)
            octets = form.encode(rows if form.in_rows else rows[:, 0])
            shares = {one.hex(): float(p) for one, p in zip(octets, law.values(), strict=True)}
            laws.append({"value": str(value) if table["name"] == "hash" else value, "law": shares})
        plan = {**table, "clip": 1.0, "encoding": 4, "dimension": form.size}
        found.append({"randomizer": plan, "limits": list(form.limits), "laws": laws})
    return found


def hashes() -> list[dict[str, Any]]:
    """Buckets of values under open hash functions."""
    found = []
    for salt, buckets, functions in (("", 256, 1024), ("colour é", 1 << 18, 5)):
        made = LocalHashing(2.0, buckets, functions, salt)
        values = np.array([0, 1, 2**32 - 1, 2**32, 2**53 + 1, 2**64 - 1], np.uint64)
        cases = [
            {"value": str(value), "function": which, "bucket": int(made.hashed(np.array([value]), which)[0])}
            for value in values
            for which in (0, 1, functions - 1)
        ]
        found.append({"salt": salt, "buckets": buckets, "functions": functions, "cases": cases})
    return found


# --- questions ------------------------------------------------------------------------------

ANYTHING: list[Any] = [
    None, "", "red", "Red", "other", "blue", 0, 1, 2, 3, 7, -1, 2.7, -2.7, 10, 11.5, 1e300, "3", " 3 ",
    "1e1", "4.5", "-inf",
    "inf", "nan", "text", "yes", "YES ", "no", "true", "1", True, False, "0x10", "1_0", "tea", "TEA", "a b",
    "cabbage", "9" * 30,
    2**40, 5.0, "Tea-2 GO", "東京都", "a😀b", "1" * 40 + "x", "1_", "_1", "1__0", "1_0.5_0e1_0", ".5", "5.", ".",
]  # fmt: skip
ASKED: list[dict[str, Any]] = [
    {"kind": "count"},
    {"kind": "histogram", "categories": ["red", "green", "blue"]},
    {"kind": "histogram", "categories": ["red", "Other", "blue"]},
    {"kind": "histogram", "categories": 5},
    {"kind": "mean", "low": 0.0, "high": 10.0},
    {"kind": "mean", "low": -3.5, "high": 120},
    {"kind": "mean", "low": 2.0, "high": 7.0},
    {"kind": "quantiles", "low": 0.0, "high": 10.0, "bins": 16},
    {"kind": "quantiles", "low": -1.0, "high": 0.3, "bins": 7},
    {"kind": "distribution", "low": 0.0, "high": 1.0, "bins": 64},
    {"kind": "heavy-hitters", "bits": 20, "alphabet": "abcdefghijklmnopqrstuvwxyz"},
    {"kind": "heavy-hitters", "bits": 24},
    {"kind": "heavy-hitters", "bits": 64, "top": 5},
    {"kind": "heavy-hitters", "bits": 64, "alphabet": "any"},
]


def questions() -> list[dict[str, Any]]:
    """What every value counts as, for every kind of question; nothing is refused. Words are written as texts."""
    found = []
    for document in ASKED:
        query = Query.from_document(document)
        rows = []
        for value in ANYTHING:
            if value == 5.0 and document.get("alphabet") == "any":
                continue  # as a text it has a point here and none in other languages
            with np.errstate(all="ignore"):  # as clients do: a warning would be a line about the data
                encoded = query.encode_any(value)[0]
            word = document["kind"] == "heavy-hitters"
            asked = [str(int(query.asked(np.array([encoded]), i)[0])) for i in range(query.stages)] if word else None
            plain = str(int(encoded)) if word else float(encoded) if document["kind"] == "mean" else int(encoded)
            rows.append({"value": value, "encoded": plain, **({"asked": asked} if word else {})})
        found.append({"task": document, "values": rows})
    return found


# --- tokens and prices ----------------------------------------------------------------------


def tokens(folder: Path) -> list[dict[str, Any]]:
    """Number, blinded message and token of one device, which follow from its secret."""
    from dpcheckin.service.client.tokens import SECRET_FILE, TokenWallet
    from dpcheckin.service.storage.files import replace_file
    from service.wire_vectors import TOKEN_KEY

    secret, plan, first = digest(b"dpcheckin test vector secret"), digest(b"dpcheckin test vector plan").hex(), 6
    replace_file(folder / SECRET_FILE, secret.hex().encode() + b"\n")
    wallet = TokenWallet(folder)
    keys = TokenKeysDocument(plan, first, [TOKEN_KEY.public.to_bytes().hex()])
    own, hidden = wallet._blinded(keys, first)
    signed = TOKEN_KEY.blind_sign(hidden.message)
    signature = finalize(TOKEN_KEY.public, token_message(bytes.fromhex(plan), first, own), signed, hidden.inverse)
    return [
        {
            "secret": secret.hex(), "plan": plan, "round": first, "modulus": keys.keys[0], "number": own.hex(),
            "blinded": hidden.message.hex(), "signed": signed.hex(), "token": (own + signature).hex(),
        }
    ]  # fmt: skip


RUNS = [
    (100, 0.5, 1.0, 4, 1e-5), (1000, 0.1, 2.0, 10, 1e-6), (10_000, 0.01, 2.0, 100, 1e-4), (40, 0.5, 4.0, 2, 1e-5),
    (100_000, 0.5, 1.0, 3, 1e-8), (1_000, 1.0, 1.0, 1, 1e-6), (2_000, 1.0, 2.0, 5, 1e-6), (20, 0.9, 0.5, 1, 1e-4),
]  # fmt: skip


def prices() -> list[dict[str, Any]]:
    """What the accounting certifies for any pure randomizer, and what nobody can promise less than."""
    found = []
    for crowd, rate, local_epsilon, rounds, delta in RUNS:
        pair = any_pure(local_epsilon)
        one = CheckInRound(crowd, rate, pair) if rate < 1 else ShuffleRound(crowd, pair)
        found.append(
            {
                "crowd": crowd, "rate": rate, "local_epsilon": local_epsilon, "rounds": rounds, "delta": delta,
                "certified": compose([(one, rounds)]).epsilon(delta).upper,
                "without_shuffler": local_guarantee([(pair, rate, rounds)], delta).epsilon,
            }
        )  # fmt: skip
    return found


def made(scratch: Path) -> dict[str, Callable[[], Any]]:
    """Every file that follows from the code, by name."""
    return {
        "canonical": canonical_texts, "coins": coins, "randomizers": randomizers, "hashes": hashes,
        "questions": questions, "tokens": lambda: tokens(scratch), "prices": prices,
    }  # fmt: skip


def text_of(value: Any) -> str:
    """As a file holds it."""
    return json.dumps(value, indent=1) + "\n"


def write() -> None:
    import tempfile

    from service import wire_vectors

    wire_vectors.write()
    with tempfile.TemporaryDirectory() as scratch:
        for name, make in made(Path(scratch)).items():
            (FOLDER / f"{name}.json").write_text(text_of(make()), encoding="utf-8")


if __name__ == "__main__":
    write()
