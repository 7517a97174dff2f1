"""Proves a dpcheckin certificate again: python verify/check.py FILE

Exit code 0: the claim is proved, under the sentences printed as assumed. 1: not proved. 2: not a certificate, or not
covered. Imports the standard library and python-flint only; docs/certificate.md says what the file holds, and "section"
below means a section of docs/theory.md. Every number is a ball that contains the true one (`arb`), and a comparison of
balls is true only if it holds for all they contain: whatever is uncertain, NaN included, is not proved.
"""

import hashlib
import json
import re
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import acb, arb, ctx, fmpq

ctx.prec = 128
FORMAT = "dpcheckin-certificate/1"
MOST_BYTES, MOST_ROUNDS, MOST_POINTS, MOST_TERMS = 204_800, 40, 500, 100_000
MOST_WORK = 30_000_000  # exponentials: about a minute
SENTENCES = {
    "profile": "section 3: profiles are convex, and a pair above every adjacent pair's profile composes, adaptively too",
    "empty-seat": "sections 1, 2: a round is a sum of seats, reports lie below Z*, nobody absent costs rate^n h(alpha)",
    "types": "section 2b: reports may be replaced by mixtures of types; noise of mean zero only raises the bound",
    "types-hemisphere": "section 2b, 1: reports of random hemispheres lie below mixtures of A and B",
    "types-any": "section 2b, 2: reports of every pure randomizer lie below mixtures of A, B and C",
    "types-delta": "section 2b: (epsilon, delta)-reports lie below the pure ones' mixtures up to kappa(alpha)",
    "law": "section 2, the laws of W: the row of this randomizer",
    "delta-zero": "section 2: local mass without counterpart costs rate * delta",
    "blanket": "section 4: a full shuffle lies below as many seats of Z* as clients",
    "marking": "answering at random is staying away: a report is, with probability beta, a draw from a common law",
    "interval": "section 5: rates in an interval, dropouts that differ",
    "thresholds": "the truth falls when clients are added: a bound for m clients serves every larger crowd",
    "colluders": "section 5: clients that work with the analyzer are removed from the crowd",
}


class NotACertificate(Exception):
    """The file does not say what a certificate says, or says what is not covered. Exit code 2."""


class NotProved(Exception):
    """An inequality of the proof does not hold for certain. Exit code 1."""


Law = list[tuple[arb, arb]]  # atoms: (value, probability)

# ---------------------------------------------------------------- reading: nothing is converted by floating point


def number(text: Any, name: str) -> Fraction:
    """A decimal or a quotient of integers, exactly."""
    if not isinstance(text, str) or len(text) > 60:
        raise NotACertificate(f"{name} must be a number written as a string of at most 60 characters")
    if not re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?|\d+/0*[1-9]\d*", text, re.ASCII):
        raise NotACertificate(f"{name} is no decimal and no quotient of integers: {text[:60]!r}")
    return Fraction(text)


def positive(text: Any, name: str, *, zero: bool = False) -> Fraction:
    """A number above zero, or at least zero."""
    value = number(text, name)
    if value < 0 or (value == 0 and not zero):
        raise NotACertificate(f"{name} must be {'at least' if zero else 'above'} zero")
    return value


def integer(value: Any, name: str, least: int, most: int = 10**15) -> int:
    """A JSON integer within bounds."""
    if type(value) is not int or not least <= value <= most:
        raise NotACertificate(f"{name} must be an integer from {least} to {most}")
    return value


def fields(value: Any, name: str, needed: str, optional: str = "") -> dict[str, Any]:
    """A JSON object with these keys and no others."""
    if not isinstance(value, dict):
        raise NotACertificate(f"{name} must be an object")
    missing, unknown = set(needed.split()) - set(value), set(value) - set((needed + " " + optional).split())
    if missing or unknown:
        what = f"lacks {sorted(missing)}" if missing else f"has unknown keys {sorted(unknown)[:3]}"
        raise NotACertificate(f"{name} {what}")
    return value


def items(value: Any, name: str, most: int) -> list[Any]:
    """A JSON list that is neither empty nor too long."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise NotACertificate(f"{name} must be a list of 1 to {most} entries")
    return value


def ball(value: Fraction | int) -> arb:
    """The ball round a rational number."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def read(path: Path) -> dict[str, Any]:
    """The file's content, with its hash checked."""

    def refuse(text: str) -> Any:
        raise NotACertificate(f"numbers are strings or integers, not {text[:30]}")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise NotACertificate("a key is given twice")
        return dict(pairs)

    def whole(text: str) -> int:
        return int(text) if len(text) <= 20 else refuse(text)

    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise NotACertificate(f"larger than {MOST_BYTES} bytes")
        content = json.loads(
            raw.decode("ascii"), parse_float=refuse, parse_int=whole, parse_constant=refuse, object_pairs_hook=once
        )
    except (OSError, ValueError, RecursionError) as error:
        raise NotACertificate(f"no JSON file in ASCII: {str(error)[:100]}") from error
    keys = "format package run claim assumed rounds sha256"
    content = fields(content, "the certificate", keys, "composition")
    if content["format"] != FORMAT:
        raise NotACertificate(f"its format is not {FORMAT}")
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != content["sha256"]:
        raise NotACertificate("its sha256 does not fit its content")
    return content


# ---------------------------------------------------------------- randomizers: the law of W (section 2), from e0


@dataclass(frozen=True)
class Randomizer:
    """What section 2 knows of a randomizer: W = dP/dQ under Q, and the local delta h(infinity)."""

    kind: str
    ratios: Law  # W above 0
    e0: arb  # the largest ratio
    delta: arb
    values: int = 0  # of k-ary response
    p: arb | None = None  # of unary encoding and PrivUnit
    q: arb | None = None
    size: int = 0  # of subset selection

    def profile(self, alpha: arb) -> arb:
        """h(alpha) = E(W - alpha)+ + delta, for alpha >= 1."""
        return sum((q * (w - alpha).nonnegative_part() for w, q in self.ratios), self.delta)

    def worst(self, alpha: arb) -> Law:
        """Z*: w - alpha for W = w > alpha, 1 - alpha w for W = w > 1/alpha, the rest at 0."""
        up = [((w - alpha).nonnegative_part(), q) for w, q in self.ratios]
        down = [(-(alpha * w - 1).nonnegative_part(), q) for w, q in self.ratios]
        law = [(value, q) for value, q in up + down if not value.is_zero()]
        return [*law, (arb(0), 1 - sum((q for _, q in law), arb(0)))]


def three_atoms(kind: str, e0: arb, hit: arb, delta: arb | None = None, **more: Any) -> Randomizer:
    """W = e0 with probability hit, 1/e0 with e0*hit, 1 otherwise; times 1 - delta where local delta is lost."""
    delta = arb(0) if delta is None else delta
    if not (e0 > 1 and hit > 0 and (e0 + 1) * hit < 1 + arb("1e-30")):
        raise NotProved(f"{kind}: these numbers are no randomizer's")
    neutral = (1 - (e0 + 1) * hit).nonnegative_part()
    ratios = [(e0, hit), (arb(1), neutral), (1 / e0, e0 * hit)]
    return Randomizer(kind, [(w, q * (1 - delta)) for w, q in ratios], e0, delta, **more)


def pure(kind: str, e0: arb, values: int = 0, size: int = 0, delta: arb | None = None) -> Randomizer:
    """The table of section 2 for randomizers given by e0."""
    if kind in ("any", "binary", "hemisphere"):
        hit = 1 / (e0 + 1)
    elif kind in ("dary", "hashing"):
        hit = 1 / (e0 + values - 1)
    elif kind == "hadamard":
        hit = 1 / (2 * (e0 + 1))
    else:  # subset selection: the report holds one of the two values and not the other
        hit = size * (values - size) / ((values - 1) * (size * e0 + values - size))
    return three_atoms(kind, e0, hit, delta, values=values, size=size)


def two_rates(kind: str, p: arb, q: arb) -> Randomizer:
    """The table of section 2 for unary encoding and PrivUnit."""
    if not (0 < q and q < p and p < 1 and (kind == "unary" or q <= ball(Fraction(1, 2)))):
        raise NotProved(f"{kind} needs 0 < q < p < 1, and a cap of at most half the sphere")
    hit = q * (1 - p) if kind == "unary" else q * (1 - p) / (1 - q)
    return three_atoms(kind, p * (1 - q) / (q * (1 - p)), hit, p=p, q=q)


def matrix(rows: list[list[Fraction]]) -> Randomizer:
    """A table of probabilities: h is the largest of all pairs of rows, with chords between all ratios (section 2b)."""
    if any(len(row) != len(rows[0]) or min(row) < 0 or sum(row) != 1 for row in rows) or len(rows) < 2:
        raise NotACertificate("matrix: rows must be laws of one length, exactly")
    pairs = [(x, y) for x in rows for y in rows if x is not y]
    kinks = sorted({s / t for x, y in pairs for s, t in zip(x, y, strict=True) if s and t} | {Fraction(1)})

    def largest(alpha: Fraction) -> Fraction:
        return max(sum((max(s - alpha * t, Fraction(0)) for s, t in zip(x, y, strict=True))) for x, y in pairs)

    ends = [(Fraction(0), Fraction(1)), *((kink, largest(kink)) for kink in kinks)]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(ends, ends[1:], strict=False)] + [Fraction(0)]
    masses = [right - left for left, right in zip(slopes, slopes[1:], strict=False)]
    ratios = [(ball(kink), ball(mass)) for kink, mass in zip(kinks, masses, strict=True) if mass]
    return Randomizer("matrix", ratios, ball(kinks[-1]), ball(ends[-1][1]))


def randomizer(entry: Any, used: set[str]) -> Randomizer:
    """The randomizer that the run names."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    more = {"dary": "values", "hashing": "values", "subset": "values size"}.get(str(kind), "")
    if kind in ("unary", "privunit"):
        fields(entry, "randomizer", "kind p q")
        used.add("law")
        return two_rates(kind, ball(number(entry["p"], "p")), ball(number(entry["q"], "q")))
    if kind == "matrix":
        fields(entry, "randomizer", "kind rows")
        rows = [[number(p, "rows") for p in items(row, "a row", 30)] for row in items(entry["rows"], "rows", 12)]
        return matrix(rows)
    if kind not in ("any", "binary", "hemisphere", "dary", "hashing", "subset", "hadamard"):
        raise NotACertificate(f"randomizer {str(kind)[:30]!r} is not covered")
    fields(entry, "randomizer", f"kind local_epsilon {more}", "local_delta" if kind == "any" else "")
    if kind in ("subset", "hadamard", "hashing"):
        used.add("law")
    epsilon, delta = positive(entry["local_epsilon"], "local_epsilon"), number(entry.get("local_delta", "0"), "delta")
    if not (epsilon <= 50 and 0 <= delta < 1):
        raise NotACertificate("local_epsilon must be at most 50, local_delta from 0 to below 1")
    values = integer(entry["values"], "values", 3 if kind == "dary" else 2) if more else 0
    size = integer(entry["size"], "size", 1, values - 1) if kind == "subset" else 0
    return pure(kind, ball(epsilon).exp(), values, size, ball(delta))


def marked(r: Randomizer, beta: arb) -> Randomizer:
    """R' of the marking lemma: R = beta G + (1 - beta) R', G one law for all values in play."""
    if r.kind in ("unary", "privunit"):
        if not beta < (1 - r.p) / (1 - r.q):
            raise NotProved("marking: beta is too large")
        return two_rates(r.kind, (r.p - beta * r.q) / (1 - beta), r.q)
    d, w, e0 = r.values, r.size, r.e0
    means = {"any": e0, "binary": (e0 + 1) / 2, "hemisphere": (e0 + 1) / 2, "hadamard": (e0 + 1) / 2}
    if r.kind in ("dary", "subset"):
        w = w or 1
        means[r.kind] = (w * e0 + d - w) / d
    if r.kind not in means or not r.delta.is_zero():
        raise NotACertificate(f"marking is not covered for {r.kind} with these numbers")
    cut = beta * means[r.kind]
    if not cut < 1:
        raise NotProved("marking: beta is too large")
    e1 = e0 * (1 - beta) / (1 - cut) if r.kind == "any" else (e0 - cut) / (1 - cut)
    return pure(r.kind, e1, d, r.size)


# ---------------------------------------------------------------- types and smoothing (section 2b)


def positions(r: Randomizer, alpha: arb, used: set[str]) -> dict[str, Law]:
    """The laws below whose mixtures every report lies: others at a (A), at b (B), at a third value (C)."""
    if r.kind not in ("any", "binary", "hemisphere", "dary"):
        raise NotACertificate(f"types are not covered for {r.kind}")
    used |= {"types"} | ({f"types-{r.kind}"} if r.kind in ("any", "hemisphere") else set())
    e, d = r.e0, r.values if r.kind == "dary" else 2

    def law(atoms: list[tuple[arb, arb]], d: int) -> Law:
        seen = [(value, weight / (e + d - 1)) for value, weight in atoms]
        rest = 1 - sum((p for _, p in seen), arb(0))
        return seen if d == len(atoms) else [*seen, (1 - alpha, rest)]

    laws = {
        "A": law([((e - alpha) / e, e), (1 - alpha * e, arb(1))], d),
        "B": law([(e - alpha, arb(1)), ((1 - alpha * e) / e, e)], d),
    }
    if r.kind in ("any", "dary"):
        third = [(e - alpha, arb(1)), (1 - alpha * e, arb(1)), ((1 - alpha) / e, e)]
        laws["C"] = law(third, max(d, 3))
    return laws


def smoothly_above(types: list[Law], weights: list[arb], report: Law, tau: arb) -> bool:
    """Whether f(u) = E G(mixture - u) - E G(report - u) >= 0 for every u, G(v) = v+ + (tau/2) exp(-|v|/tau).

    f - tau^2 f'' = D, the difference of the potentials, and f vanishes far out (one mean). At a negative minimum f'' >= 0,
    so D < 0: it is enough that f > 0 wherever D < 0, which is between the outermost atoms. Intervals are halved until
    balls prove one of D >= 0 and f > 0.
    """
    atoms = [(v, w * p) for law, w in zip(types, weights, strict=True) for v, p in law] + [(v, -p) for v, p in report]

    def slope(x: arb) -> arb:  # G', which rises from 0 to 1
        ends = [1 - (-t / tau).exp() / 2 if t > 0 else (t / tau).exp() / 2 for t in (x.lower(), x.upper())]
        return ends[0].union(ends[1])

    def value(u: arb) -> arb:
        return sum((m * ((v - u).nonnegative_part() + tau / 2 * (-abs(v - u) / tau).exp()) for v, m in atoms), arb(0))

    def proved(low: arb, high: arb, depth: int) -> bool:
        u, middle = low.union(high), ((low + high) / 2).mid()
        if sum((m * (v - u).nonnegative_part() for v, m in atoms), arb(0)) >= 0:
            return True
        if value(middle) - sum((m * slope(v - u) for v, m in atoms), arb(0)) * (u - middle) > 0:  # mean value
            return True
        return depth > 0 and proved(low, middle, depth - 1) and proved(middle, high, depth - 1)

    ends = sorted({v.mid() for v, _ in atoms}, key=float)
    pad = arb("1e-25") * (1 + abs(ends[0]) + abs(ends[-1]))
    ends = [(ends[0] - pad).mid(), *ends, (ends[-1] + pad).mid()]
    return all(proved(low, high, 12) for low, high in zip(ends, ends[1:], strict=False))


def types_of(way: dict[str, Any], r: Randomizer, alpha: arb, tau: arb, used: set[str]) -> list[Law]:
    """The types of a way at this alpha, proved to lie above every report of the randomizer."""
    laws, exact, types = positions(r, alpha, used), set(), []
    if not alpha <= r.e0:
        raise NotProved("types need alpha up to e0")
    for entry in items(way["types"], "types", 2):
        name, wider = items(entry, "a type", 2)[0], positive(entry[-1], "wider", zero=True)
        if name not in laws or len(entry) != 2:
            raise NotACertificate(f"{str(entry)[:40]} is no type of {r.kind}")
        exact |= {name} if wider == 0 else set()
        types.append([((1 - alpha) + (1 + ball(wider)) * (v - (1 - alpha)), p) for v, p in laws[name]])
    weights = fields(way.get("weights", {}), "weights", "", " ".join(laws))
    for name in sorted(set(laws) - exact):  # a law that is itself a type needs no proof
        if name not in weights:
            raise NotProved(f"nothing is said to lie above type {name}")
        mixture = [positive(w, "a weight", zero=True) for w in items(weights[name], "weights", 2)]
        if len(mixture) != len(types) or sum(mixture) != 1:
            raise NotACertificate(f"the weights of {name} must be one for each type, with sum 1")
        if not (tau > 0 and smoothly_above(types, [ball(w) for w in mixture], laws[name], tau)):
            raise NotProved(f"type {name} is not proved to lie below its mixture at alpha = {alpha.str(8, radius=False)}")
    return types


# ---------------------------------------------------------------- sums of seats by Laplace inversion (section 2b, "The largest sum")


@dataclass(frozen=True)
class Sum:
    """The searched numbers of one trapezoidal sum: any values give a bound, good ones a sharp one."""

    theta: arb
    period: arb
    terms: int
    normal: arb
    laplace: arb


WORK = [0]


def trapezoid(entry: dict[str, Any]) -> Sum:
    """The numbers of a sum, with theta * laplace < 1."""
    found = {name: positive(entry[name], name) for name in ("theta", "period")}
    noise = {name: positive(entry.get(name, "0"), name, zero=True) for name in ("normal", "laplace")}
    if not (found["theta"] * noise["laplace"] < 1 and sum(noise.values()) > 0):
        raise NotACertificate("a sum needs noise, and theta times the Laplace scale below 1")
    terms = integer(entry["terms"], "terms", 1, MOST_TERMS)
    return Sum(terms=terms, **{name: ball(value) for name, value in (found | noise).items()})


def transform(law: Law, z: acb) -> acb:
    """E exp(z X)."""
    return sum((p * (z * v).exp() for v, p in law), acb(0))


def largest_sum(seats: list[tuple[Law, int]], shift: arb, s: Sum, pair: list[Law], cells: list[int], rounds: bool) -> arb:
    """Above E(shift + seats)+, or above E(1 - exp(-(shift + seats)))+ for `rounds`, for j seats of pair[0] and
    cells[-1] - j of pair[1], whatever j is.

    E(S)+ is the integral of M(z)/z^2 over Re z = theta, divided by 2 pi i; E(1 - exp(-S))+ has 1/(z(z+1)). The
    trapezoidal rule adds E(S - lL)+ exp(theta l L), l != 0, none of them negative (Poisson). Noise of mean zero raises
    the first (Jensen); in the second it is one more mechanism, with loss N(normal^2/2, normal^2), which is released
    too. Beyond the last term the integrand is at most M(theta) phi(y)/y^2.
    """
    WORK[0] += s.terms * (sum(len(law) for law, _ in seats) + sum(map(len, pair)) + 2 * len(cells))
    if WORK[0] > MOST_WORK:
        raise NotACertificate("its sums have too many terms")
    step, most = 2 * arb.pi() / s.period, cells[-1]
    shift = shift + s.normal**2 / 2 if rounds else shift
    totals, peaks = [arb(0) for _ in cells], []
    bends = [arb(0) for _ in cells[1:]]
    for k in range(s.terms + 1):
        z = acb(s.theta, k * step)
        term = (shift * z + s.normal**2 * z * z / 2).exp() / (1 - (s.laplace * z) ** 2) / s.period * (2 if k else 1)
        for law, count in seats:
            term *= transform(law, z) ** count
        kernel = 1 / (z * (z + 1) if rounds else z * z)
        if not pair:
            parts = [term]
        else:
            first, second = (transform(law, z) for law in pair)
            parts = [term * first**j * second ** (most - j) for j in cells]
            one, two, bend = abs(first), abs(second), abs(term * kernel) * abs(first - second) ** 2
            for i, (j, m) in enumerate(zip(cells, cells[1:], strict=False)):
                if m - j > 1:  # between the ends of a cell the modulus is geometric in j: largest at an end
                    at = one**j * two ** (most - j - 2), one ** (m - 2) * two ** (most - m)
                    bends[i] += bend * at[0].max(at[1])
        totals = [total + (part * kernel).real for total, part in zip(totals, parts, strict=True)]
        peaks = peaks or [(part * s.period).real for part in parts]
    last, room = s.terms * step, 1 - (s.laplace * s.theta) ** 2
    phi = (-((s.normal * last) ** 2) / 2).exp() * room / (room + (s.laplace * last) ** 2)
    tail = s.period / (2 * arb.pi() ** 2 * s.terms) * phi
    tops = [total + peak * tail for total, peak in zip(totals, peaks, strict=True)]
    for i, (j, m) in enumerate(zip(cells, cells[1:], strict=False)):
        tops.append(totals[i].max(totals[i + 1]) + bends[i] * (m - j) ** 2 / 8 + peaks[i].max(peaks[i + 1]) * tail)
    best = tops[0]
    for top in tops[1:]:
        best = best.max(top)
    return best


# ---------------------------------------------------------------- one round at one alpha


@dataclass(frozen=True)
class Round:
    """One kind of round, in numbers: honest clients, rates, a cohort's size or nobody absent."""

    clients: int
    rate: arb  # the largest; 1 in a full shuffle
    share: Fraction  # lowest rate / largest rate
    cohort: int
    r: Randomizer

    @property
    def presence(self) -> arb:
        """The largest probability that client 1's report is in the batch."""
        return ball(Fraction(self.cohort, self.clients)) if self.cohort else self.rate


def seated(rnd: Round, alpha: arb, s: Sum, types: list[Law], cells: Any, charge: arb) -> arb:
    """Sections 2 and 2b: n seats (k of them in a cohort), one of Z*, the others of the types; or all of Z*."""
    n, k, empty = rnd.clients, rnd.cohort, 1 - alpha

    def seat(law: Law) -> Law:  # taken with the client's own coin, worth 1 - alpha when empty
        return law if k else [(v, rnd.rate * p) for v, p in law] + [(empty, 1 - rnd.rate)]

    others = (k or n) - 1
    seats = [(seat(rnd.r.worst(alpha)), 1 if types else others + 1)]
    if len(types) == 1:
        seats.append((seat(types[0]), others))
    counts = [others]
    if len(types) == 2:
        counts = [integer(j, "a cell", 0) for j in items(cells, "cells", 200)]
        if counts[0] != 0 or counts[-1] != others or sorted(set(counts)) != counts:
            raise NotACertificate(f"cells must rise from 0 to {others}")
    pair = [seat(law) for law in types] if len(types) == 2 else []
    total = largest_sum(seats, (n - k) * empty if k else arb(0), s, pair, counts, rounds=False)
    nobody = arb(0) if k else rnd.rate**n * rnd.r.profile(alpha)
    return total / n + rnd.presence * charge + nobody


def few(clients: int, share: Fraction, threshold: int) -> arb:
    """Above P(1 + Bin(clients - 1, share) < threshold): Chernoff's bound."""
    trials, most = clients - 1, threshold - 2
    if most < 0:
        return arb(0)
    if Fraction(most, trials) >= share:
        return arb(1)
    x, q = Fraction(most, trials), share
    rest = (1 - ball(x)) * (ball((1 - x) / (1 - q))).log()
    return (-trials * (rest + (ball(x) * ball(x / q).log() if x else 0))).exp()


def value(rnd: Round, way: dict[str, Any], point: dict[str, Any], alpha: arb, used: set[str]) -> arb:
    """Above the profile of this round at alpha >= 1, for every two adjacent datasets."""
    theorem, cells = way["theorem"], point.get("cells")
    local = rnd.presence * rnd.r.profile(alpha)
    if theorem == "local":  # section 3: the batch is post-processing of client 1's lazy report and the rest
        return local
    s = trapezoid(point)
    if "marking" in way:
        if rnd.cohort or rnd.share != 1:
            raise NotACertificate("marking is covered for a full shuffle and for check-in at one rate")
        used.add("marking")
        beta = ball(positive(way["marking"], "marking"))
        rnd = replace(rnd, rate=rnd.rate * (1 - beta), r=marked(rnd.r, beta))
    n, r = rnd.clients, rnd.r
    if theorem == "blanket":  # section 4
        if not (rnd.rate == 1 and not rnd.cohort and r.kind in ("any", "binary", "hemisphere", "dary", "hashing", "privunit")):
            raise NotACertificate(f"the blanket is not covered for {r.kind} here")
        if not (r.delta.is_zero() and alpha <= r.e0):
            raise NotProved("the blanket needs a pure randomizer and alpha up to e0")
        used.add("blanket")
        return largest_sum([(r.worst(alpha), n)], arb(0), s, [], [n], rounds=False) / n
    if not (rnd.rate < 1 or rnd.cohort):
        raise NotACertificate("a full shuffle has no empty seat: marking or blanket")
    used.add("empty-seat")
    if theorem == "worst":
        used |= {"delta-zero"} if not r.delta.is_zero() else set()
        if rnd.share == 1:
            return seated(rnd, alpha, s, [], None, r.delta)
        q = ball(rnd.share)  # section 5
        law = [(v, q * rnd.rate * p) for v, p in r.worst(alpha)] + [(1 - alpha, q * (1 - rnd.rate)), (arb(0), 1 - q)]
        nobody = rnd.rate * (1 - q + q * rnd.rate) ** (n - 1) * r.profile(alpha)
        return largest_sum([(law, n)], arb(0), s, [], [n], rounds=False) / (n * q) + rnd.rate * r.delta + nobody
    types = types_of(way, r, alpha, s.laplace, used)
    charge = arb(0)
    if not r.delta.is_zero():
        used.add("types-delta")
        charge = 2 * r.delta * (alpha + (alpha * r.e0 - 1) / (r.e0**2 - 1))
    if rnd.share == 1:
        return seated(rnd, alpha, s, types, cells, charge)
    used.add("thresholds")
    bound, rare = [local.upper()], []
    for i, m in enumerate(items(way.get("thresholds"), "thresholds", 8)):
        crowd = replace(rnd, clients=integer(m, "a threshold", 2, n), share=Fraction(1))
        part = cells[i] if isinstance(cells, list) and i < len(cells) else None
        bound.append(seated(crowd, alpha, s, types, part, charge).upper().min(bound[-1]))
        rare.append(few(n, rnd.share, m))
    return bound[-1] + sum(((a - b) * p for a, b, p in zip(bound, bound[1:], rare, strict=False)), arb(0))


# ---------------------------------------------------------------- a kind of round: points, hull, pair (section 3)


def round_of(entry: dict[str, Any], used: set[str]) -> Round:
    """The numbers of one kind of round."""
    protocol = entry.get("protocol") if isinstance(entry, dict) else None
    numbers = {
        "shuffled-check-in": ("rate", "lowest_rate dropout colluding"),
        "subsampled-shuffle": ("cohort", ""),
        "shuffle": ("", "colluding"),
    }
    if protocol not in numbers:
        raise NotACertificate(f"protocol {str(protocol)[:30]!r} is not covered")
    needed, optional = numbers[protocol]
    fields(entry, "a round", f"count protocol population randomizer ways points {needed}", optional)
    population = integer(entry["population"], "population", 2)
    colluding = integer(entry.get("colluding", 0), "colluding", 0, population - 2)
    used |= {"colluders"} if colluding else set()
    r, rate, share = randomizer(entry["randomizer"], used), Fraction(1), Fraction(1)
    if protocol == "shuffled-check-in":
        rate = positive(entry["rate"], "rate")
        lowest = positive(entry.get("lowest_rate", entry["rate"]), "lowest_rate")
        dropout = positive(entry.get("dropout", "0"), "dropout", zero=True)
        if not (lowest <= rate < 1 and dropout < 1):
            raise NotACertificate("rates must rise from lowest_rate to rate, below 1, and dropout be below 1")
        share = lowest * (1 - dropout) / rate
        used |= {"interval"} if share < 1 else set()
    cohort = integer(entry["cohort"], "cohort", 1, population - 1) if "cohort" in entry else 0
    return Round(population - colluding, ball(rate), share, cohort, r)


def points_of(entry: dict[str, Any], used: set[str]) -> list[tuple[Fraction, Fraction]]:
    """The points (alpha, delta) of one kind of round, each proved to lie above every profile."""
    rnd, ways, points = round_of(entry, used), entry["ways"], []
    if not isinstance(ways, dict):
        raise NotACertificate("ways must be an object")
    for way in ways.values():
        theorem = fields(way, "a way", "theorem", "types weights marking thresholds")["theorem"]
        if theorem not in ("local", "worst", "types", "blanket") or (theorem == "types") != ("types" in way):
            raise NotACertificate(f"theorem {str(theorem)[:30]!r} is not covered, or its types are not where they belong")
    for point in items(entry["points"], "points", MOST_POINTS):
        fields(point, "a point", "alpha delta way", "laplace normal theta period terms cells")
        alpha, delta = number(point["alpha"], "alpha"), positive(point["delta"], "delta", zero=True)
        if alpha < 1 or not isinstance(point["way"], str) or point["way"] not in ways:
            raise NotACertificate("a point needs alpha of at least 1 and a way of its round")
        way = ways[point["way"]]
        if way["theorem"] != "local" and not {"theta", "period", "terms"} <= set(point):
            raise NotACertificate("a point lacks the numbers of its sum")
        bound = value(rnd, way, point, ball(alpha), used)
        if not bound <= ball(delta):
            raise NotProved(f"delta at alpha = {float(alpha):.8g}: {float(delta):.8g} claimed, {bound.str(8)} found")
        points.append((alpha, delta))
    return points


def losses(points: list[tuple[Fraction, Fraction]]) -> Law:
    """The finite losses of the pair whose profile is the chords of the points and of their mirror images (section 3)."""
    alphas, deltas = zip(*points, strict=True)
    if alphas[0] != 1 or any(a >= b for a, b in zip(alphas, alphas[1:], strict=False)) or deltas[-1] > 1:
        raise NotACertificate("points must start at alpha = 1 and rise")
    slopes = [(e - d) / (b - a) for (a, d), (b, e) in zip(points, points[1:], strict=False)] + [Fraction(0)]
    masses = [right - left for left, right in zip(slopes, slopes[1:], strict=False)]
    middle = 1 - deltas[0] + 2 * slopes[0]
    if middle < 0 or any(mass < 0 for mass in masses):
        raise NotProved("the points are not convex: they are no pair's profile")
    law = [(arb(0), ball(middle))]
    for alpha, mass in zip(alphas[1:], masses, strict=True):
        loss = ball(alpha).log()
        law += [(loss, ball(alpha * mass)), (-loss, ball(mass))]
    return law


# ---------------------------------------------------------------- the claim


def check(content: dict[str, Any]) -> tuple[str, set[str]]:
    """What is proved, in a sentence, and the sentences that are assumed."""
    WORK[0] = 0
    used, run = {"profile"}, fields(content["run"], "run", "words adjacency")
    claim = fields(content["claim"], "claim", "epsilon delta")
    if run["adjacency"] != "replace one client":
        raise NotACertificate("only the adjacency 'replace one client' is covered")
    assumed = set(map(str, items(content["assumed"], "assumed", len(SENTENCES))))
    if not assumed <= set(SENTENCES):
        raise NotACertificate(f"unknown sentences are assumed: {sorted(assumed - set(SENTENCES))[:3]}")
    epsilon, delta = positive(claim["epsilon"], "epsilon", zero=True), positive(claim["delta"], "delta")
    entries = items(content["rounds"], "rounds", MOST_ROUNDS)
    counts = [integer(entry.get("count") if isinstance(entry, dict) else None, "count", 1) for entry in entries]
    kinds = [points_of(entry, used) for entry in entries]
    laws = [losses(points) for points in kinds]
    if sum(counts) == 1 and "composition" not in content:
        (points,) = kinds
        found = min((ball(d) for a, d in points if ball(a) <= ball(epsilon).exp()), key=float)
    else:
        entry = fields(content.get("composition"), "composition", "theta period terms normal")
        kept = arb(1)
        for points, count in zip(kinds, counts, strict=True):
            kept *= (1 - ball(points[-1][1])) ** count
        seats = list(zip(laws, counts, strict=True))
        found = 1 - kept + largest_sum(seats, ball(-epsilon), trapezoid(entry), [], [0], rounds=True)
    if not found <= ball(delta):
        raise NotProved(f"delta at epsilon = {float(epsilon):.8g}: {float(delta):.8g} claimed, {found.str(8)} found")
    if not used <= assumed:
        raise NotProved(f"the proof also assumes {sorted(used - assumed)}, which the file does not say")
    rounds = f"{sum(counts)} round{'s' if sum(counts) > 1 else ''}"
    return f"{rounds}: ({claim['epsilon']}, {claim['delta']})-DP, {run['adjacency']}; delta found: {found.str(6)}", used


def main(arguments: list[str]) -> int:
    """Read, prove, say."""
    if len(arguments) != 1:
        print("usage: python check.py FILE", file=sys.stderr)
        return 2
    try:
        content = read(Path(arguments[0]))
        proved, used = check(content)
    except NotACertificate as error:
        print(f"not a certificate: {error}", file=sys.stderr)
        return 2
    except NotProved as error:
        print(f"not proved: {error}", file=sys.stderr)
        return 1
    print(f"proved: {proved}")
    for entry in content["rounds"]:
        print(" ", {k: v for k, v in entry.items() if k not in ("points", "ways")})
    print("assumed, from docs/theory.md and docs/certificate.md:")
    for name in sorted(used):
        print(f"  {name}: {SENTENCES[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
