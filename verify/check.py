"""Proves a dpcheckin certificate again: python verify/check.py FILE

Exit code 0: the claim is proved, under the sentences printed as assumed. 1: it is not. 2: this is
no certificate, or it asks for what is not covered. Nothing but the standard library and
python-flint is imported. docs/certificate.md describes the file; "section" below means a section
of docs/theory.md. Numbers are balls that contain the true ones (`arb`), and a comparison of balls
is true only if it holds for all they contain: what is uncertain, NaN included, is not proved.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from flint import acb, arb, ctx, fmpq

ctx.prec = 128
FORMAT = "dpcheckin-certificate/1"
MOST_BYTES, MOST_ROUNDS, MOST_POINTS = 204_800, 40, 500
MOST_WORK = 60_000_000  # exponentials of one file: a few minutes
SENTENCES = {
    "profile": "section 3: profiles are convex; a pair above all adjacent pairs' profiles composes",
    "empty-seat": "sections 1, 2: a round is a sum of seats, and every report lies below Z*",
    "types": "section 2b: reports may be replaced by mixtures of types, after noise of mean zero",
    "types-hemisphere": "section 2b, 1: random hemispheres lie below mixtures of A and B",
    "types-any": "section 2b, 2: every pure randomizer lies below mixtures of A, B and C",
    "types-delta": "section 2b: (epsilon, delta)-reports lie below those up to kappa(alpha)",
    "types-gaussian": "gaussian-certificate.md: inequality (1), for the entry that the file quotes",
    "types-laplace": "laplace-certificate.md: inequality (1), for the scale that the file quotes",
    "law": "section 2, the laws of W: the row of this randomizer",
    "delta-zero": "section 2: local mass without counterpart costs rate * delta",
    "blanket": "section 4: a full shuffle lies below as many seats of Z* as clients",
    "marking": "answering at random is staying away: reports hold a draw from a law common to all",
    "interval": "section 5: rates in an interval, dropouts that differ",
    "thresholds": "the truth falls when clients are added: m clients' bound serves larger crowds",
    "colluders": "section 5: clients that work with the analyzer are removed from the crowd",
}


class NotACertificate(Exception):
    """The file does not say what a certificate says, or says what is not covered. Exit code 2."""


class NotProved(Exception):
    """An inequality of the proof does not hold for certain. Exit code 1."""


Law = list[tuple[arb, arb]]  # atoms: value, probability


def need(holds: bool, text: str) -> None:
    if not holds:
        raise NotACertificate(text)


def prove(holds: bool, text: str) -> None:
    if not holds:
        raise NotProved(text)


# ------------------------------------------------------------------------ reading, exactly


def number(text: Any, name: str, least: int | None = 0) -> Fraction:
    """A decimal or a quotient of integers, at least `least`."""
    written = isinstance(text, str) and len(text) <= 60
    form = r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?|\d+/0*[1-9]\d*"
    need(written and re.fullmatch(form, text, re.ASCII) is not None, f'{name} is no number in ""')
    value = Fraction(text)
    need(least is None or value >= least, f"{name} must be at least {least}")
    return value


def integer(value: Any, name: str, least: int, most: int = 10**15) -> int:
    need(type(value) is int, f"{name} must be an integer")
    need(least <= value <= most, f"{name} must lie between {least} and {most}")
    return value


def fields(value: Any, name: str, needed: str, optional: str = "") -> dict[str, Any]:
    """A JSON object with these keys and no others."""
    need(isinstance(value, dict), f"{name} must be an object")
    for key in needed.split():
        need(key in value, f"{name} lacks {key}")
    for key in value:
        need(key in (needed + " " + optional).split(), f"{name} has an unknown key {key[:30]!r}")
    return value


def items(value: Any, name: str, most: int) -> list[Any]:
    need(isinstance(value, list), f"{name} must be a list")
    need(1 <= len(value) <= most, f"{name} must have 1 to {most} entries")
    return value


def ball(value: Fraction | int) -> arb:
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def read(path: Path) -> dict[str, Any]:
    """The file's content, with its hash checked."""

    def refuse(text: str) -> Any:
        raise NotACertificate(f"{text[:30]} is neither a string nor an integer of 20 digits")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a key is given twice")
        return dict(pairs)

    whole: Callable[[str], int] = lambda text: int(text) if len(text) <= 20 else refuse(text)
    readers: Any = {"parse_float": refuse, "parse_constant": refuse, "parse_int": whole}
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        need(len(raw) <= MOST_BYTES, f"larger than {MOST_BYTES} bytes")
        content = json.loads(raw.decode("ascii"), object_pairs_hook=once, **readers)
    except (OSError, ValueError, RecursionError) as error:
        raise NotACertificate(f"no JSON in ASCII: {str(error)[:100]}") from error
    keys = "format package run claim assumed rounds sha256"
    fields(content, "the certificate", keys, "composition")
    need(content["format"] == FORMAT, f"its format is not {FORMAT}")
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    found = hashlib.sha256(text.encode()).hexdigest()
    need(found == content["sha256"], "its sha256 does not fit its content")
    return content


# ------------------------------------------------------------------------ profiles and pairs


def chords(points: list[tuple[Any, Any]]) -> tuple[Any, list[tuple[Any, Any]]]:
    """The symmetric pair whose profile is the chords of these points, 1 = alpha_0 < alpha_1 ..., of
    their mirror images (1/alpha, 1 - 1/alpha + delta/alpha) and the horizontal beyond the last.

    Under Q the ratio W is 1 with the probability returned first, alpha_i with m_i and 1/alpha_i with
    alpha_i m_i, where m_i is the change of slope at alpha_i; what P lacks is infinitely far out.
    """
    slopes = [(e - d) / (b - a) for (a, d), (b, e) in pairwise(points)] + [0]
    masses = [
        (a, right - left)
        for (a, _), (left, right) in zip(points[1:], pairwise(slopes), strict=True)
    ]
    return 1 - points[0][1] + 2 * slopes[0], masses


@dataclass(frozen=True)
class Randomizer:
    """What section 2 knows of a randomizer: W = dP/dQ under Q, and delta = h(infinity)."""

    kind: str
    ratios: Law
    delta: arb
    e0: arb
    numbers: dict[str, Any]

    def profile(self, alpha: arb) -> arb:
        """h(alpha) = E(W - alpha)+ + delta, for alpha >= 1."""
        return sum((q * (w - alpha).nonnegative_part() for w, q in self.ratios), self.delta)

    def worst(self, alpha: arb) -> Law:
        """Z*: W - alpha for W > alpha, 1 - alpha W for W > 1/alpha, and the rest at 0."""
        up = [((w - alpha).nonnegative_part(), q) for w, q in self.ratios]
        down = [(-(alpha * w - 1).nonnegative_part(), q) for w, q in self.ratios]
        law = [(value, q) for value, q in up + down if not value.is_zero()]
        return [*law, (arb(0), 1 - sum((q for _, q in law), arb(0)))]


def of_profile(kind: str, points: list[tuple[Any, Any]], numbers: dict[str, Any]) -> Randomizer:
    middle, masses = chords(points)
    ratios = [(arb(1), arb(middle))]
    for w, mass in masses:
        ratios += [(w, mass), (1 / w, w * mass)]
    return Randomizer(kind, ratios, points[-1][1], points[-1][0], numbers)


def three_atoms(kind: str, numbers: dict[str, Any]) -> Randomizer:
    """The table of section 2: W = e0 with probability hit, 1/e0 with e0 hit, 1 otherwise."""
    e0, d, w, p, q, delta = (numbers.get(k) for k in ("e0", "values", "size", "p", "q", "delta"))
    if p is not None:  # unary encoding, PrivUnit
        prove(q > 0 and p > q and p < 1 and (kind == "unary" or q <= 0.5), "no such p and q")
        e0, hit = p * (1 - q) / (q * (1 - p)), q * (1 - p) / (1 if kind == "unary" else 1 - q)
    elif kind in ("dary", "hashing"):
        hit = 1 / (e0 + d - 1)
    elif kind == "subset":  # the report holds one of the two values and not the other
        hit = w * (d - w) / ((d - 1) * (w * e0 + d - w))
    else:  # any pure randomizer, binary response, random hemisphere; two rows of Hadamard's matrix
        hit = 1 / (e0 + 1) / (2 if kind == "hadamard" else 1)
    delta = arb(0) if delta is None else delta
    points = [(arb(1), delta + (1 - delta) * hit * (e0 - 1)), (e0, delta)]
    return of_profile(kind, points, numbers)


def matrix(rows: list[list[Fraction]]) -> Randomizer:
    """A table of probabilities: h is the largest of all pairs of rows, at all ratios."""
    laws = all(len(row) == len(rows[0]) and min(row) >= 0 and sum(row) == 1 for row in rows)
    need(laws and len(rows) > 1, "the rows of a matrix must be laws, exactly, of one length")
    pairs = [list(zip(x, y, strict=True)) for x in rows for y in rows if x is not y]
    kinks = {s / t for pair in pairs for s, t in pair if t and s > t} | {Fraction(1), Fraction(2)}

    def largest(alpha: Fraction) -> Fraction:
        return max(sum((max(s - alpha * t, Fraction(0)) for s, t in pair)) for pair in pairs)

    return of_profile("matrix", [(ball(kink), ball(largest(kink))) for kink in sorted(kinks)], {})


def smooth(kind: str, size: arb, grid: Any) -> Randomizer:
    """Gaussian (size s = 2/sigma) and Laplace (size epsilon0) reports: h at the points of a grid of
    losses. Chords lie above h, so that this law is the larger one in convex order."""
    losses = [Fraction(0)]
    for part in items(grid, "grid", 8):
        step, count = (
            number(items(part, "part of grid", 2)[0], "step"),
            integer(part[-1], "count", 1, 400),
        )
        losses += [losses[-1] + step * (i + 1) for i in range(count)]
    need(losses[1] > 0 and len(losses) < 1000, "grid must rise, in less than 1000 points")

    def profile(loss: arb) -> arb:
        if kind == "laplace":
            return (1 - ((loss - size) / 2).exp()).nonnegative_part()
        tail: Callable[[arb], arb] = lambda x: (x / arb(2).sqrt()).erfc() / 2
        return tail(loss / size - size / 2) - loss.exp() * tail(loss / size + size / 2)

    points = [(ball(loss).exp(), profile(ball(loss))) for loss in losses]
    return of_profile(kind, points, {"size": size, "grid": grid})


PURE = {"any": "", "binary": "", "hemisphere": "", "hadamard": "", "dary": "values"}
PURE |= {"hashing": "values", "subset": "values size"}


def randomizer(entry: Any, used: set[str]) -> Randomizer:
    """The randomizer that the run names."""
    kind = str(entry.get("kind")) if isinstance(entry, dict) else ""
    used |= {"law"} & (
        {"law"} if kind in "subset hadamard hashing unary privunit".split() else set()
    )
    if kind in ("unary", "privunit"):
        fields(entry, "randomizer", "kind p q")
        return three_atoms(kind, {name: ball(number(entry[name], name)) for name in "pq"})
    if kind == "matrix":
        rows = items(fields(entry, "randomizer", "kind rows")["rows"], "rows", 12)
        return matrix([[number(p, "rows") for p in items(row, "a row", 30)] for row in rows])
    if kind == "gaussian":
        sigma = number(
            fields(entry, kind, "kind noise_multiplier grid")["noise_multiplier"], "noise"
        )
        need(sigma > 0, "noise must be positive")
        return smooth(kind, 2 / ball(sigma), entry["grid"])
    need(kind in PURE or kind == "laplace", f"randomizer {kind[:30]!r} is not covered")
    more = PURE.get(kind, "grid")
    fields(
        entry, "randomizer", f"kind local_epsilon {more}", "local_delta" if kind == "any" else ""
    )
    epsilon, delta = (
        number(entry["local_epsilon"], "epsilon"),
        number(entry.get("local_delta", "0"), ""),
    )
    need(0 < epsilon <= 50 and delta < 1, "local_epsilon must be in (0, 50], local_delta below 1")
    if kind == "laplace":
        return smooth(kind, ball(epsilon), entry["grid"])
    numbers = {"e0": ball(epsilon).exp(), "delta": ball(delta)}
    if more:
        numbers["values"] = integer(entry["values"], "values", 3 if kind == "dary" else 2)
    if kind == "subset":
        numbers["size"] = integer(entry["size"], "size", 1, numbers["values"] - 1)
    return three_atoms(kind, numbers)


def marked(r: Randomizer, beta: arb) -> Randomizer:
    """R' of the marking lemma, R = beta G + (1 - beta) R': G uniform, or R(a) for any randomizer."""
    need(
        r.kind in "any binary hemisphere hadamard dary subset unary privunit".split(),
        "marking here",
    )
    need(r.delta.is_zero(), "marking is not covered with a local delta")
    p, q, d, w = (r.numbers.get(name) for name in ("p", "q", "values", "size"))
    if p is not None:
        prove(beta < (1 - p) / (1 - q), "marking: beta is too large")
        return three_atoms(r.kind, {"p": (p - beta * q) / (1 - beta), "q": q})
    mean = (r.e0 + 1) / 2  # over the lowest density
    if d is not None:
        mean = ((w or 1) * r.e0 + d - (w or 1)) / d
    cut = beta * (r.e0 if r.kind == "any" else mean)
    prove(cut < 1, "marking: beta is too large")
    e0 = (r.e0 * (1 - beta) if r.kind == "any" else r.e0 - cut) / (1 - cut)
    return three_atoms(r.kind, r.numbers | {"e0": e0})


# ------------------------------------------------------------------------ types and smoothing


def positions(r: Randomizer, alpha: arb, used: set[str]) -> dict[str, Law]:
    """The laws below whose mixtures every report lies: others at a (A), at b (B), at a third value
    (C). Section 2b; Gaussian and Laplace reports have A = 1 - alpha W and B = W - alpha."""
    if r.kind in ("gaussian", "laplace"):
        return {
            "A": [(1 - alpha * w, q) for w, q in r.ratios],
            "B": [(w - alpha, q) for w, q in r.ratios],
        }
    need(r.kind in ("any", "binary", "hemisphere", "dary"), f"types are not covered for {r.kind}")
    used |= {f"types-{r.kind}"} & set(SENTENCES)
    prove(alpha <= r.e0, "types need alpha up to e0")
    e, values = r.e0, r.numbers.get("values", 2)

    def law(atoms: list[tuple[arb, Any]], d: int) -> Law:  # what is left weighs 1 - alpha
        seen = [(value, weight / (e + d - 1)) for value, weight in atoms]
        rest = (1 - alpha, ball(d - len(atoms)) / (e + d - 1))
        return [*seen, rest] if d > len(atoms) else seen

    a, b = (e - alpha, arb(1)), (1 - alpha * e, arb(1))
    laws = {"A": law([(a[0] / e, e), b], values), "B": law([a, (b[0] / e, e)], values)}
    if r.kind in ("any", "dary"):
        laws["C"] = law([a, b, ((1 - alpha) / e, e)], max(values, 3))
    return laws


def smoothly_above(types: list[Law], weights: list[arb], report: Law, tau: arb) -> bool:
    """Whether f(u) = E G(mixture - u) - E G(report - u) >= 0 for all u, G(v) = v+ + tau/2 e^(-|v|/tau).

    f - tau^2 f'' = D, the difference of the potentials, and f vanishes far out (the means agree). At
    a negative minimum f'' >= 0, so D < 0 there: it is enough that f > 0 wherever D < 0, which is
    between the outermost atoms. Intervals are halved until balls prove D >= 0 or f > 0.
    """
    atoms = [(v, w * p) for law, w in zip(types, weights, strict=True) for v, p in law]
    atoms += [(v, -p) for v, p in report]

    def mean(function: Callable[[arb], arb], u: arb) -> arb:
        return sum((mass * function(v - u) for v, mass in atoms), arb(0))

    def smoothed(x: arb) -> arb:
        return x.nonnegative_part() + tau / 2 * (-abs(x) / tau).exp()

    def slope(x: arb) -> arb:  # of `smoothed`: rises from 0 to 1
        ends = [(-abs(t) / tau).exp() / 2 for t in (x.lower(), x.upper())]
        low, high = (
            1 - end if t > 0 else end for t, end in zip((x.lower(), x.upper()), ends, strict=True)
        )
        return low.union(high)

    def proved(low: arb, high: arb, depth: int) -> bool:
        spend(4 * len(atoms))
        u, middle = low.union(high), ((low + high) / 2).mid()
        if (
            mean(arb.nonnegative_part, u) >= 0
            or mean(smoothed, middle) - mean(slope, u) * (u - middle) > 0
        ):
            return True
        return depth > 0 and proved(low, middle, depth - 1) and proved(middle, high, depth - 1)

    ends = sorted((v.mid() for v, _ in atoms), key=float)
    pad = arb("1e-25") * (1 + abs(ends[0]) + abs(ends[-1]))
    ends = [(ends[0] - pad).mid(), *ends, (ends[-1] + pad).mid()]
    return all(proved(low, high, 12) for low, high in pairwise(ends))


def types_of(
    way: dict[str, Any], r: Randomizer, alpha: arb, tau: arb, used: set[str]
) -> tuple[list[Law], arb]:
    """The types of a way at this alpha, above every report of the randomizer; and what that costs."""
    charge = arb(0)
    used.add("types")
    if r.kind in (
        "gaussian",
        "laplace",
    ):  # the claim (1) that is quoted: distance, noise, violation
        used.add(f"types-{r.kind}")
        quoted = fields(way.get("quoted"), "quoted", "distance smoothing violation largest_alpha")
        distance, smoothing, violation, most = (number(quoted[k], k) for k in sorted(quoted))
        prove(tau >= ball(smoothing) * (1 + alpha) / 2, "less noise than the claim (1) asks for")
        prove(
            alpha <= ball(most) and ball(distance) >= r.numbers["size"], "alpha or distance of (1)"
        )
        r = smooth(r.kind, ball(distance), r.numbers["grid"])
        charge = (
            ball(violation) * (1 + alpha) / 2 + r.delta
        )  # the types end at the grid's last point
    elif not r.delta.is_zero():
        used.add("types-delta")
        charge = 2 * r.delta * (alpha + (alpha * r.e0 - 1) / (r.e0**2 - 1))
    laws, exact, types = positions(r, alpha, used), set(), []
    for entry in items(way["types"], "types", 2):
        name, wider = items(entry, "a type", 2)[0], number(entry[-1], "wider")
        need(name in laws and len(entry) == 2, f"{str(name)[:20]} is no type of {r.kind}")
        exact |= {name} if wider == 0 or "quoted" in way else set()
        mean = 1 - alpha
        types.append([(mean + (1 + ball(wider)) * (v - mean), p) for v, p in laws[name]])
    weights = fields(way.get("weights", {}), "weights", "", " ".join(laws))
    for name in sorted(set(laws) - exact):  # a law that is itself a type needs no proof
        prove(name in weights, f"nothing is said to lie above type {name}")
        mixture = [number(w, "a weight") for w in items(weights[name], "weights", 2)]
        need(len(mixture) == len(types) and sum(mixture) == 1, "weights: one per type, with sum 1")
        above = tau > 0 and smoothly_above(types, [ball(w) for w in mixture], laws[name], tau)
        prove(
            above, f"type {name} is not below its mixture at alpha = {alpha.str(8, radius=False)}"
        )
    return types, charge


# ------------------------------------------------------------------------ sums of seats


@dataclass(frozen=True)
class Sum:
    """The searched numbers of a trapezoidal sum: any values give a bound, good ones a sharp one."""

    theta: arb
    period: arb
    normal: arb
    laplace: arb
    terms: int


WORK = [0]


def spend(exponentials: int) -> None:
    WORK[0] += exponentials
    need(WORK[0] <= MOST_WORK, "it asks for too much work")


def trapezoid(entry: dict[str, Any]) -> Sum:
    need({"theta", "period", "terms"} <= set(entry), "a sum lacks its numbers")
    found = [
        number(entry.get(name, "0"), name) for name in ("theta", "period", "normal", "laplace")
    ]
    need(found[0] > 0 and found[1] > 0 and found[0] * found[3] < 1, "a sum needs theta < 1/laplace")
    return Sum(*map(ball, found), integer(entry["terms"], "terms", 1, 10**6))


def largest_sum(
    seats: list[tuple[Law, int]],
    shift: arb,
    s: Sum,
    pair: list[Law],
    cells: list[int],
    rounds: bool,
) -> arb:
    """Above E(shift + seats)+ with, besides, j seats of pair[0] and cells[-1] - j of pair[1],
    whatever j is; for `rounds` above E(1 - exp(-(shift + seats)))+.

    E(S)+ is the integral of M(z)/z^2 over Re z = theta, divided by 2 pi i; 1/(z(z+1)) belongs to the
    other. The trapezoidal rule adds E(S - lL)+ exp(theta l L) for l != 0, which is not negative
    (Poisson's summation). Noise of mean zero raises the first (Jensen); to the rounds it adds a
    mechanism with loss N(normal^2/2, normal^2), and what more is seen can only cost. Beyond the last
    term the integrand is at most M(theta) phi(y)/y^2. As a function of j the sum has the second
    differences sum c M1^(j-1) M2^(J-j-1) (M1 - M2)^2, in modulus largest at an end of a cell of j.
    """
    spend(
        (s.terms + 1) * (sum(len(law) for law, _ in seats) + sum(map(len, pair)) + 4 * len(cells))
    )
    step, most = 2 * arb.pi() / s.period, cells[-1]
    shift = shift + s.normal**2 / 2 if rounds else shift
    totals, peaks, bends = [arb(0)] * len(cells), [arb(0)] * len(cells), [arb(0)] * len(cells)
    for k in range(s.terms + 1):
        z = acb(s.theta, k * step)
        term = (shift * z + (s.normal * z) ** 2 / 2).exp() / (1 - (s.laplace * z) ** 2)
        for law, count in seats:
            term *= transform(law, z) ** count
        weight = (2 if k else 1) / (s.period * z * (z + 1 if rounds else z))
        one, two = (transform(law, z) for law in pair) if pair else (acb(1), acb(1))
        for i, j in enumerate(cells):
            part = term * one**j * two ** (most - j) if pair else term
            totals[i] += (part * weight).real
            if k == 0:
                peaks[i] = part.real
            if i and j - cells[i - 1] > 1:
                ends = [(cells[i - 1], most - cells[i - 1] - 2), (j - 2, most - j)]
                low, high = (abs(one) ** a * abs(two) ** b for a, b in ends)
                bends[i] += abs(term * weight) * abs(one - two) ** 2 * low.max(high)
    last, room = s.terms * step, 1 - (s.laplace * s.theta) ** 2
    phi = (-((s.normal * last) ** 2) / 2).exp() * room / (room + (s.laplace * last) ** 2)
    tail = s.period / (2 * arb.pi() ** 2 * s.terms) * phi
    best = totals[0] + peaks[0] * tail
    for i, (j, m) in enumerate(pairwise(cells), 1):
        top = totals[i].max(totals[i - 1]) + bends[i] * (m - j) ** 2 / 8
        best = best.max(top + peaks[i].max(peaks[i - 1]) * tail)
    return best


def transform(law: Law, z: acb) -> acb:
    return sum((p * (z * v).exp() for v, p in law), acb(0))


# ------------------------------------------------------------------------ one round at one alpha


@dataclass(frozen=True)
class Round:
    """A kind of round: honest clients, rates (1 in a full shuffle), or a cohort's size."""

    clients: int
    rate: arb  # the largest
    share: Fraction  # lowest rate / largest rate
    cohort: int
    r: Randomizer

    @property
    def presence(self) -> arb:
        """The largest probability that client 1's report is in the batch."""
        return ball(Fraction(self.cohort, self.clients)) if self.cohort else self.rate


def seated(rnd: Round, alpha: arb, s: Sum, types: list[Law], cells: Any, charge: arb) -> arb:
    """Sections 2 and 2b: n seats, one of Z* and the others of the types, or all of Z*; a cohort has
    k of them and the constant (n - k)(1 - alpha). Nobody absent costs rate^n h(alpha)."""
    n, k, empty = rnd.clients, rnd.cohort, 1 - alpha
    others = (k or n) - 1

    def seat(law: Law) -> Law:  # taken by the client's own coin, worth 1 - alpha when empty
        return law if k else [(v, rnd.rate * p) for v, p in law] + [(empty, 1 - rnd.rate)]

    seats = [(seat(rnd.r.worst(alpha)), 1 if types else others + 1)]
    if len(types) == 1:
        seats.append((seat(types[0]), others))
    pair, counts = [], [others]
    if len(types) == 2:
        pair, counts = [seat(law) for law in types], items(cells, "cells", 200)
        counts = [integer(j, "a cell", 0, others) for j in counts]
        rise = counts[0] == 0 and counts[-1] == others and all(i < j for i, j in pairwise(counts))
        need(rise, f"cells must rise from 0 to {others}")
    total = largest_sum(seats, (n - k) * empty if k else arb(0), s, pair, counts, False)
    return total / n + rnd.presence * charge + (0 if k else rnd.rate**n * rnd.r.profile(alpha))


def few(clients: int, share: Fraction, threshold: int) -> arb:
    """Above P(1 + Bin(clients - 1, share) < threshold): Chernoff's bound."""
    trials = clients - 1
    x = Fraction(threshold - 2, trials)
    if not 0 < x < share:
        return arb(1)
    return (
        -trials
        * (ball(x) * ball(x / share).log() + ball(1 - x) * ball((1 - x) / (1 - share)).log())
    ).exp()


def value(
    rnd: Round, way: dict[str, Any], point: dict[str, Any], alpha: arb, used: set[str]
) -> arb:
    """Above the profile of this round at alpha >= 1, for every two adjacent datasets."""
    theorem, local = way["theorem"], rnd.presence * rnd.r.profile(alpha)
    if theorem == "local":  # section 3: the batch is post-processing of client 1's lazy report
        return local
    s, cells = trapezoid(point), point.get("cells")
    if "marking" in way:
        need(not rnd.cohort and rnd.share == 1, "marking is covered where all have one rate")
        used.add("marking")
        beta = ball(number(way["marking"], "marking"))
        rnd = replace(rnd, rate=rnd.rate * (1 - beta), r=marked(rnd.r, beta))
    n, r, q = rnd.clients, rnd.r, ball(rnd.share)
    if theorem == "blanket":  # section 4
        kinds = ("any", "binary", "hemisphere", "dary", "hashing", "privunit")
        full = rnd.rate == 1 and not rnd.cohort and r.kind in kinds and r.delta.is_zero()
        need(full, f"the blanket is covered for a full shuffle of {', '.join(kinds)}")
        prove(alpha <= r.e0, "the blanket needs alpha up to e0")
        used.add("blanket")
        return largest_sum([(r.worst(alpha), n)], arb(0), s, [], [n], False) / n
    need(rnd.rate < 1 or rnd.cohort > 0, "a full shuffle has no empty seat: marking or blanket")
    used.add("empty-seat")
    if theorem == "worst":
        used |= set() if r.delta.is_zero() else {"delta-zero"}
        if rnd.share == 1:
            return seated(rnd, alpha, s, [], None, r.delta)
        law = [(v, q * rnd.rate * p) for v, p in r.worst(alpha)]  # section 5
        law += [(1 - alpha, q * (1 - rnd.rate)), (arb(0), 1 - q)]
        nobody = rnd.rate * (1 - q + q * rnd.rate) ** (n - 1) * r.profile(alpha)
        total = largest_sum([(law, n)], arb(0), s, [], [n], False) / (n * q)
        return total + rnd.rate * r.delta + nobody
    types, charge = types_of(way, r, alpha, s.laplace, used)
    if rnd.share == 1:
        return seated(rnd, alpha, s, types, cells, charge)
    used.add(
        "thresholds"
    )  # bounds for at least m clients, with the probability that there are fewer
    bound, total = local.upper(), arb(0)
    for i, m in enumerate(items(way.get("thresholds"), "thresholds", 8)):
        crowd = replace(rnd, clients=integer(m, "a threshold", 3, n), share=Fraction(1))
        part = cells[i] if isinstance(cells, list) and i < len(cells) else None
        better = seated(crowd, alpha, s, types, part, charge).upper().min(bound)
        total, bound = total + (bound - better) * few(n, rnd.share, m), better
    return total + bound


# ------------------------------------------------------------------------ a run


PROTOCOLS = {
    "shuffled-check-in": ("rate", "lowest_rate dropout colluding"),
    "subsampled-shuffle": ("cohort", ""),
    "shuffle": ("", "colluding"),
}


def round_of(entry: Any, used: set[str]) -> Round:
    """The numbers of one kind of round."""
    protocol = str(entry.get("protocol")) if isinstance(entry, dict) else ""
    need(protocol in PROTOCOLS, f"protocol {protocol[:30]!r} is not covered")
    needed, optional = PROTOCOLS[protocol]
    fields(entry, "a round", f"count protocol population randomizer ways points {needed}", optional)
    population = integer(entry["population"], "population", 2)
    colluding = integer(entry.get("colluding", 0), "colluding", 0, population - 2)
    used |= {"colluders"} if colluding else set()
    rate = share = Fraction(1)
    if protocol == "shuffled-check-in":
        rate, dropout = number(entry["rate"], "rate"), number(entry.get("dropout", "0"), "dropout")
        lowest = number(entry.get("lowest_rate", entry["rate"]), "lowest_rate")
        need(
            0 < lowest <= rate < 1 and dropout < 1,
            "rates: 0 < lowest_rate <= rate < 1, dropout < 1",
        )
        share = lowest * (1 - dropout) / rate
        used |= {"interval"} if share < 1 else set()
    cohort = (
        integer(entry.get("cohort", 1), "cohort", 1, population - 1) if needed == "cohort" else 0
    )
    r = randomizer(entry["randomizer"], used)
    return Round(population - colluding, ball(rate), share, cohort, r)


def points_of(entry: Any, used: set[str]) -> list[tuple[Fraction, Fraction]]:
    """The points (alpha, delta) of one kind of round, each proved to lie above every profile."""
    rnd, points = round_of(entry, used), []
    ways = fields(entry["ways"], "ways", "", " ".join(map(str, entry["ways"])))
    for way in ways.values():
        optional = "types weights marking thresholds quoted"
        theorem = fields(way, "a way", "theorem", optional)["theorem"]
        need(theorem in ("local", "worst", "types", "blanket"), f"theorem {str(theorem)[:20]}?")
        need((theorem == "types") == ("types" in way), "types belong to the theorem of types")
    for point in items(entry["points"], "points", MOST_POINTS):
        fields(point, "a point", "alpha delta way", "laplace normal theta period terms cells")
        need(isinstance(point["way"], str) and point["way"] in ways, "a point has no way")
        alpha, delta = number(point["alpha"], "alpha", 1), number(point["delta"], "delta")
        bound = value(rnd, ways[point["way"]], point, ball(alpha), used)
        claimed = f"delta at alpha = {float(alpha):.9g}: {float(delta):.9g} claimed"
        prove(bound <= ball(delta), f"{claimed}, {bound.str(9)} found")
        points.append((alpha, delta))
    need(
        points[0][0] == 1 and all(a < b for (a, _), (b, _) in pairwise(points)),
        "alpha must rise from 1",
    )
    return points


def losses(points: list[tuple[Fraction, Fraction]]) -> Law:
    """The finite losses of the pair above every profile of a round, under P (section 3)."""
    middle, masses = chords(points)
    prove(
        middle >= 0 and all(mass >= 0 for _, mass in masses), "the points are not convex: no pair's"
    )
    law = [(arb(0), ball(middle))]
    for alpha, mass in masses:
        law += [(ball(alpha).log(), ball(alpha * mass)), (-ball(alpha).log(), ball(mass))]
    return law


def check(content: dict[str, Any]) -> tuple[str, set[str]]:
    """What is proved, in a sentence, and the names of the sentences that are assumed."""
    WORK[0], used = 0, {"profile"}
    run = fields(content["run"], "run", "words adjacency")
    need(run["adjacency"] == "replace one client", "only 'replace one client' is covered")
    assumed = {str(name) for name in items(content["assumed"], "assumed", len(SENTENCES))}
    need(assumed <= set(SENTENCES), "it assumes what has no name here")
    claim = fields(content["claim"], "claim", "epsilon delta")
    epsilon, delta = number(claim["epsilon"], "epsilon"), number(claim["delta"], "delta")
    entries = items(content["rounds"], "rounds", MOST_ROUNDS)
    kinds = [points_of(entry, used) for entry in entries]
    counts = [integer(entry["count"], "count", 1) for entry in entries]
    seats = [(losses(points), count) for points, count in zip(kinds, counts, strict=True)]
    if sum(counts) == 1 and "composition" not in content:
        below = [d for a, d in kinds[0] if ball(a) <= ball(epsilon).exp()]
        found = ball(min([*below, Fraction(1)]))
    else:
        numbers = fields(content.get("composition"), "composition", "theta period terms normal")
        found = 1 + largest_sum(seats, ball(-epsilon), trapezoid(numbers), [], [0], True)
        kept = arb(1)  # no loss is infinite
        for points, count in zip(kinds, counts, strict=True):
            kept *= ball(1 - points[-1][1]) ** count
        found -= kept
    stated = f"({claim['epsilon']}, {claim['delta']})"
    prove(found <= ball(delta), f"{stated} claimed, delta = {found.str(9)} found")
    prove(
        used <= assumed, f"the proof assumes {sorted(used - assumed)} as well, and does not say so"
    )
    return f"{stated}-DP over {sum(counts)} rounds, {run['adjacency']}; {found.str(6)} found", used


def main(arguments: list[str]) -> int:
    """Read, prove, say."""
    try:
        need(len(arguments) == 1, "usage: python check.py FILE")
        content = read(Path(arguments[0]))
        proved, used = check(content)
    except (NotACertificate, NotProved) as error:
        refused = isinstance(error, NotACertificate)
        print(f"{'not a certificate' if refused else 'not proved'}: {error}", file=sys.stderr)
        return 2 if refused else 1
    rounds = [
        {k: v for k, v in entry.items() if k not in ("points", "ways")}
        for entry in content["rounds"]
    ]
    names = [f"  {name}: {SENTENCES[name]}" for name in sorted(used)]
    print("\n".join([f"proved: {proved}", *map(str, rounds), "assumed (docs/theory.md):", *names]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
