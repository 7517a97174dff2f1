"""Proves a dpcheckin certificate again: python verify/check.py FILE

Exit code 0: the claim is proved, under the sentences printed as assumed. 1: it is not. 2: this is no certificate, or it
asks for what is not covered. Nothing but the standard library and python-flint is imported. docs/certificate.md
describes the file; "section" means one of docs/theory.md. Numbers are balls that contain the true ones (`arb`), and a
comparison is true only if it holds for all that balls contain: what is uncertain, NaN included, is not proved.
"""

# fmt: off
import hashlib
import json
import re
import sys
from collections import namedtuple
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from math import isqrt, prod
from pathlib import Path
from typing import Any

from flint import acb, acb_mat, arb, ctx, fmpq

ctx.prec = 128
MOST_BYTES, MOST_WORK, WORK = 204_800, 60_000_000, [0]  # work in exponentials: a few minutes
SENTENCES = {
    "profile": "section 3: profiles are convex; a pair above all adjacent pairs' profiles composes",
    "empty-seat": "sections 1, 2: a round is a sum of seats, below Z*; the table of laws; delta_0",
    "types": "section 2b: reports may be replaced by mixtures of types, after noise of mean zero",
    "types-hemisphere": "section 2b, 1: random hemispheres lie below mixtures of A and B",
    "types-any": "section 2b, 2: every pure randomizer lies below mixtures of A, B and C",
    "types-delta": "section 2b: (epsilon, delta)-reports lie below those up to kappa(alpha)",
    "types-gaussian": "gaussian-certificate.md: inequality (1), for the numbers that are quoted",
    "types-laplace": "laplace-certificate.md: inequality (1) at the points, for their atoms and what is quoted",
    "blanket": "section 4: a full shuffle lies below as many seats of Z* as clients",
    "marking": "section 2c, 1: answering at random is staying away",
    "extensions": "section 5: rates in an interval, dropouts that differ, colluding clients",
    "thresholds": "section 2c, 2: what is lost falls when clients are added",
}
Law = list[tuple[arb, arb]]  # atoms: value, probability
Numbers = dict[str, Any]

class Refused(Exception):
    """A text, and the exit code."""

def need(holds: Any, text: str, code: int = 2) -> None:
    if not holds:
        raise Refused(text, code)
prove = partial(need, code=1)

def spend(exponentials: int) -> None:
    WORK[0] += exponentials
    need(WORK[0] <= MOST_WORK, "it asks for too much work")
# ---------------- reading, exactly
def number(text: Any, name: str = "a number") -> Fraction:
    """A decimal or a quotient of integers, not negative."""
    form = r"\d+(\.\d+)?([eE][+-]?\d{1,3})?|\d+/0*[1-9]\d*"
    written = isinstance(text, str) and len(text) <= 60 and re.fullmatch(form, text, re.ASCII)
    need(written, f"{name} must be a decimal or a quotient, not negative, as a string")
    return Fraction(text)

def take(entry: Any, name: str, form: str) -> Numbers:
    """An object with these keys only: key= number, key# integer, key* list, key; ? is optional."""
    need(isinstance(entry, dict), f"{name} must be an object")
    signs = dict(re.findall(r"(\w+)([=#*]?\??)", form))
    need(set(entry) <= set(signs), f"{name} has unknown keys {sorted(set(entry) - set(signs))[:3]}")
    for key, sign in signs.items():
        need(key in entry or "?" in sign, f"{name} lacks {key}")
    for key, value in entry.items():
        fits = "#" not in signs[key] or (type(value) is int and 0 <= value <= 10**15)
        fits = fits and ("*" not in signs[key] or (type(value) is list and 0 < len(value) <= 500))
        need(fits, f"{key} must be {'a list' if '*' in signs[key] else 'an integer'} within bounds")
    return {key: number(entry[key], key) if "=" in signs[key] else entry[key] for key in entry}

def ball(value: Fraction | int) -> arb:
    return arb(fmpq(*Fraction(value).as_integer_ratio()))

def read(path: Path) -> Numbers:
    """The file's content, with its hash checked."""
    def whole(text: str) -> int:
        need(len(text) <= 20 and text.lstrip("-").isdigit(), f"{text[:20]} is no integer")
        return int(text)
    def once(pairs: list[tuple[str, Any]]) -> Numbers:
        need(len(dict(pairs)) == len(pairs), "a key is given twice")
        return dict(pairs)
    readers: Any = dict.fromkeys(("parse_float", "parse_constant", "parse_int"), whole)
    with path.open(encoding="ascii") as file:
        text = file.read(MOST_BYTES + 1)
    need(len(text) <= MOST_BYTES, f"larger than {MOST_BYTES} bytes")
    content = json.loads(text, object_pairs_hook=once, **readers)
    rest = take(content, "it", "format package run claim assumed* rounds* composition? sha256")
    need(rest["format"] == "dpcheckin-certificate/1", "its format is not dpcheckin-certificate/1")
    stated, text = rest.pop("sha256"), json.dumps(rest, sort_keys=True, separators=(",", ":"))
    need(hashlib.sha256(text.encode()).hexdigest() == stated, "its sha256 does not fit its content")
    return rest
# ---------------- profiles and pairs
def chords(points: list[tuple[Any, Any]]) -> tuple[Any, list[tuple[Any, Any]]]:
    """The symmetric pair whose profile is the chords of these points, 1 = alpha_0 < alpha_1 ..., of their mirror images
    (1/alpha, 1 - 1/alpha + delta/alpha) and the horizontal beyond the last. Under Q the ratio W is 1 with the
    probability returned first, alpha_i with m_i, 1/alpha_i with alpha_i m_i, where m_i is the change of slope at
    alpha_i; what P lacks is infinitely far out."""
    slopes = [(e - d) / (b - a) for (a, d), (b, e) in pairwise(points)] + [0]
    masses = [(a, right - left) for (a, _), (left, right) in zip(points[1:], pairwise(slopes), strict=True)]
    return 1 - points[0][1] + 2 * slopes[0], masses

class Randomizer:
    """What section 2 knows of a randomizer: W = dP/dQ under Q, and delta = h(infinity)."""
    def __init__(self, kind: str, profile: list[tuple[arb, arb]], numbers: Numbers) -> None:
        middle, masses = chords(profile)
        self.kind, self.numbers, (self.e0, self.delta) = kind, numbers, profile[-1]
        self.ratios: Law = [(arb(1), arb(middle)), *masses, *((1 / w, w * m) for w, m in masses)]
    def profile(self, alpha: arb) -> arb:  # h(alpha) = E(W - alpha)+ + delta, for alpha >= 1
        return sum((q * (w - alpha).nonnegative_part() for w, q in self.ratios), self.delta)
    def worst(self, alpha: arb) -> Law:
        """Z*: W - alpha for W > alpha, 1 - alpha W for W > 1/alpha, and the rest at 0."""
        up = [((w - alpha).nonnegative_part(), q) for w, q in self.ratios]
        down = [(-(alpha * w - 1).nonnegative_part(), q) for w, q in self.ratios]
        law = [(value, q) for value, q in up + down if not value.is_zero()]
        return [*law, (arb(0), 1 - sum((q for _, q in law), arb(0)))]

def three_atoms(kind: str, numbers: Numbers) -> Randomizer:
    """The table of section 2: W = e0 with probability hit, 1/e0 with e0 hit, 1 otherwise."""
    e0, d, w, p, q, delta = (numbers.get(k, 0) for k in ("e0", "values", "size", "p", "q", "delta"))
    if kind in ("unary", "privunit"):
        prove(q > 0 and p > q and p < 1 and (kind == "unary" or q <= 0.5), "no such p and q")
        e0, hit = p * (1 - q) / (q * (1 - p)), q * (1 - p) / (1 if kind == "unary" else 1 - q)
    elif kind == "subset":  # the report holds one of the two values and not the other
        hit = w * (d - w) / ((d - 1) * (w * e0 + d - w))
    elif kind in ("dary", "hashing"):
        hit = 1 / (e0 + d - 1)
    else:  # any pure randomizer, binary response, random hemisphere; two rows of Hadamard's matrix
        hit = 1 / (e0 + 1) / (2 if kind == "hadamard" else 1)
    return Randomizer(kind, [(arb(1), delta + (1 - delta) * hit * (e0 - 1)), (e0, arb(delta))], numbers)

def matrix(table: list[list[str]]) -> Randomizer:
    """A table of probabilities: h is the largest of all pairs of rows, at all ratios."""
    need(all(type(row) is list for row in table) and len(table) * len(table[0]) <= 100, "rows")
    rows = [[number(p) for p in row] for row in table]
    need(all(sum(row) == 1 for row in rows) and len(rows) <= 10, "rows must be laws, at most 10")
    pairs = [list(zip(x, y, strict=True)) for x in rows for y in rows]
    kinks = {s / t for pair in pairs for s, t in pair if t and s > t} | {Fraction(1)}
    points = [(w, max(sum(max(s - w * t, 0) for s, t in p) for p in pairs)) for w in sorted(kinks)]
    return Randomizer("matrix", [(ball(w), ball(h)) for w, h in points], {})

def on_grid(kind: str, size: arb, grid: list[Any]) -> Randomizer:
    """Gaussian (size 2/sigma) and Laplace (size epsilon_0) reports: h at a grid of losses, [[step, count], ...].
    Chords lie above h: they belong to a law that is larger in convex order."""
    points = [Fraction(0)]
    for step, count in grid:
        need(type(count) is int and count <= 1000 and len(points) <= 2000, "grid is too long")
        points += [points[-1] + number(step) * (i + 1) for i in range(count)]
    def profile(loss: arb) -> arb:
        if kind == "laplace":
            return (1 - ((loss - size) / 2).exp()).nonnegative_part()
        near, far = ((loss / size + half) / arb(2).sqrt() for half in (-size / 2, size / 2))
        return (near.erfc() - loss.exp() * far.erfc()) / 2
    spend(10 * len(points))
    law = [(ball(loss).exp(), profile(ball(loss))) for loss in points]
    return Randomizer(kind, law, {"size": size, "grid": grid})

NUMBERS = dict.fromkeys(("binary", "hemisphere", "hadamard"), "local_epsilon=") | {"matrix": "rows*"}
NUMBERS |= dict.fromkeys(("dary", "hashing"), "local_epsilon= values#") | {"any": "local_epsilon= local_delta=?"}
NUMBERS |= dict.fromkeys(("unary", "privunit"), "p= q=") | {"subset": "local_epsilon= values# size#"}
NUMBERS |= {"laplace": "local_epsilon= grid*", "gaussian": "noise_multiplier= grid*"}

def randomizer(entry: Any) -> Randomizer:
    kind = str(entry["kind"])
    need(kind in NUMBERS, f"randomizer {kind[:30]!r} is not covered")
    x = take(entry, "randomizer", f"kind {NUMBERS[kind]}")
    need(0 < x.get("local_epsilon", 1) <= 50 and x.get("local_delta", 0) < 1, "local numbers")
    if kind == "matrix":
        return matrix(x["rows"])
    if kind in ("gaussian", "laplace"):
        size = 2 / x["noise_multiplier"] if kind == "gaussian" else x["local_epsilon"]
        return on_grid(kind, ball(size), x["grid"])
    need(0 < x.get("size", 1) < x.get("values", 3) and x.get("values", 3) > 2, "values, size")
    numbers = {key: ball(x[key]) if key in "pq" else x[key] for key in x}
    e0, delta = ball(x.get("local_epsilon", 0)).exp(), ball(x.get("local_delta", 0))
    return three_atoms(kind, numbers | {"e0": e0, "delta": delta})

def marked(r: Randomizer, beta: arb) -> Randomizer:
    """R' of the marking lemma, R = beta G + (1 - beta) R': G uniform, or R(a) for `any`."""
    kinds = ("any", "binary", "hemisphere", "hadamard", "dary", "subset", "unary", "privunit")
    need(r.kind in kinds and r.delta.is_zero(), f"marking is not covered for this {r.kind}")
    d, w, p, q = r.numbers.get("values", 2), r.numbers.get("size", 1), *map(r.numbers.get, "pq")
    if p is not None:
        prove(beta < (1 - p) / (1 - q), "marking: beta is too large")
        return three_atoms(r.kind, {"p": (p - beta * q) / (1 - beta), "q": q})
    cut = beta * (r.e0 if r.kind == "any" else (w * r.e0 + d - w) / d)  # mean over lowest density
    prove(cut < 1, "marking: beta is too large")
    e0 = (r.e0 * (1 - beta) if r.kind == "any" else r.e0 - cut) / (1 - cut)
    return three_atoms(r.kind, r.numbers | {"e0": e0})
# ---------------- types and smoothing
def positions(r: Randomizer, alpha: arb) -> dict[str, Law]:
    """The laws below whose mixtures every report lies: others at a (A), at b (B), at a third value (C). Section 2b;
    Gaussian and Laplace reports have A = 1 - alpha W and B = W - alpha."""
    if r.kind in ("gaussian", "laplace"):
        return {"A": [(1 - alpha * w, q) for w, q in r.ratios], "B": [(w - alpha, q) for w, q in r.ratios]}
    need(r.kind in ("any", "binary", "hemisphere", "dary", "unary", "subset"), f"types are not covered for {r.kind}")
    prove(alpha <= r.e0, "types need alpha up to e0")
    e, values, size, hit = r.e0, r.numbers.get("values", 2), r.numbers.get("size", 0), r.ratios[1][1]
    if r.kind in ("unary", "subset"):  # a report of a third value supports one of the three, or two of them
        one = hit * ((values - size - 1) / ball(values - 2) if size else 1 - r.numbers["q"])
        two, up, low, none = hit - one, e - alpha, 1 - alpha * e, 1 - alpha
        c = [(up, one), (low, one), (none / e, e * one), (up / e, e * two), (low / e, e * two), (e * none, two)]
        laws = {"A": [(up / e, e * hit), (low, hit)], "B": [(up, hit), (low / e, e * hit)], "C": c}
        return {name: [*law, (none, 1 - sum((p for _, p in law), arb(0)))] for name, law in laws.items()}
    def law(atoms: list[tuple[arb, Any]], d: int) -> Law:  # all other reports weigh 1 - alpha
        rest = [(1 - alpha, ball(d - len(atoms)))] if d > len(atoms) else []
        return [(value, weight / (e + d - 1)) for value, weight in atoms + rest]
    a, b = (e - alpha, arb(1)), (1 - alpha * e, arb(1))
    laws = {"A": law([(a[0] / e, e), b], values), "B": law([a, (b[0] / e, e)], values)}
    if r.kind in ("any", "dary"):
        laws["C"] = law([a, b, ((1 - alpha) / e, e)], max(values, 3))
    return laws

def smoothly_above(types: list[Law], weights: list[arb], report: Law, tau: arb) -> bool:
    """Whether f(u) = E G(mixture - u) - E G(report - u) >= 0, G(v) = v+ + (tau/2) exp(-|v|/tau). f - tau^2 f'' = D, the
    difference of the potentials, and f vanishes far out (the means agree). At a negative minimum f'' >= 0, so D < 0
    there: it is enough that f > 0 wherever D < 0, which is between the outermost atoms. Intervals are halved until
    balls prove D >= 0 or f > 0."""
    atoms = [(v, w * p) for law, w in zip(types, weights, strict=True) for v, p in law] + [(v, -p) for v, p in report]
    def mean(function: Any, u: arb) -> arb:
        return sum((mass * function(v - u) for v, mass in atoms), arb(0))
    def smoothed(x: arb) -> arb:
        return x.nonnegative_part() + tau / 2 * (-abs(x) / tau).exp()
    def slope(x: arb) -> arb:  # of `smoothed`: rises from 0 to 1
        ends = [(t, (-abs(t) / tau).exp() / 2) for t in (x.lower(), x.upper())]
        low, high = (1 - end if t > 0 else end for t, end in ends)
        return low.union(high)
    def proved(low: arb, high: arb, depth: int) -> bool:
        spend(4 * len(atoms))
        u, middle = low.union(high), ((low + high) / 2).mid()
        if mean(arb.nonnegative_part, u) >= 0 or mean(smoothed, middle) > mean(slope, u) * (u - middle):
            return True
        return depth > 0 and proved(low, middle, depth - 1) and proved(middle, high, depth - 1)
    ends = sorted((v.mid() for v, _ in atoms), key=float)
    pad = arb("1e-25") * (1 + abs(ends[0]) + abs(ends[-1]))
    return all(proved(*cell, 12) for cell in pairwise([(ends[0] - pad).mid(), *ends, (ends[-1] + pad).mid()]))

def types_of(way: Numbers, r: Randomizer, alpha: arb, tau: arb) -> tuple[list[Law], arb]:
    """The types of a way at this alpha, above every report of the randomizer; and what it costs."""
    charge, exact, types, mean = arb(0), set(), [], 1 - alpha
    if r.kind in ("gaussian", "laplace"):  # the claim (1) that the file quotes is assumed
        x = take(way.get("quoted"), "quoted", "diameter= distance= smoothing= violation= largest_alpha=")
        fits = tau >= ball(x["smoothing"]) * (1 + alpha) / 2 and alpha <= ball(x["largest_alpha"])
        fits = fits and ball(x["diameter"]) >= r.numbers["size"] and x["distance"] >= x["diameter"]
        prove(fits, "less noise than (1) asks for, or (1) for another alpha or distance")
        r = on_grid(r.kind, ball(x["distance"]), r.numbers["grid"])  # B ends where the grid ends
        charge = ball(x["violation"]) * (1 + alpha) / 2 + 2 * r.delta
    elif not r.delta.is_zero():
        charge = 2 * r.delta * (alpha + (alpha * r.e0 - 1) / (r.e0**2 - 1))
    laws = positions(r, alpha)
    for entry in way["types"]:
        x = take(entry, "a type", "law wider=?")
        need(x["law"] in ("A", "B", "C") and x["law"] in laws, f"no such type of {r.kind}")
        wider, least = x.get("wider", Fraction(0)), Fraction(1, 2000) if r.kind == "laplace" else 0
        prove(least <= wider <= 1, "types twice as wide, or (1) with types less than 0.0005 wider")
        exact.add(x["law"])  # wider about its mean is larger in convex order
        types.append([(mean + (1 + ball(wider)) * (v - mean), p) for v, p in laws[x["law"]]])
    need(len(types) <= 2, "more than two types are not covered")
    for name in sorted(set(laws) - exact):
        mixture = [number(w) for w in take(way.get("weights", {}), "weights", "A*? B*? C*?").get(name, [])]
        prove(len(mixture) == len(types) and sum(mixture) == 1, f"no mixture is above type {name}")
        above = tau > 0 and "quoted" not in way and smoothly_above(types, [ball(w) for w in mixture], laws[name], tau)
        prove(above, f"type {name} is not below its mixture at alpha = {alpha.str(8)}")
    return types, charge
# ---------------- sums of seats
def transforms(law: Law, theta: arb, step: arb, terms: int) -> list[acb]:
    """E e^(zX) at z = theta + i k step, k = 0 .. terms and on: exponentials of sums, so a product of two matrices."""
    width = isqrt(terms) + 1
    rows = [[p * (v * acb(theta, k * step)).exp() for v, p in law] for k in range(0, terms + 1, width)]
    columns = [[(v * acb(0, k * step)).exp() for k in range(width)] for v, _ in law]
    return list((acb_mat(rows) * acb_mat(columns)).entries())

def log(w: acb) -> acb:  # some branch of it: it is for powers with whole exponents
    return w.log() if w.real > 0 else (-w).log() + acb(0, arb.pi())

def largest_sum(seats: list[Any], shift: arb, s: Numbers, pair: list[Law], cells: list[int]) -> arb:
    """Above E(shift + seats)+ with, besides, j seats of pair[0] and cells[-1] - j of pair[1], whatever j is; or,
    without cells, above E(1 - exp(-(shift + seats)))+.
    E(S)+ is the integral of M(z)/z^2 over Re z = theta, divided by 2 pi i; 1/(z(z+1)) belongs to the other. The
    trapezoidal rule adds E(S - lL)+ exp(theta l L) for l != 0, which is not negative (Poisson's summation). Noise of
    mean zero raises the first (Jensen); to the other it adds a mechanism with loss N(normal^2/2, normal^2), and what
    more is seen can only cost. Beyond the last term the integrand is at most M(theta) phi(y)/y^2. As a function of j
    the sum has the second differences sum c M1^(j-1) M2^(J-j-1) (M1 - M2)^2, in modulus largest at a cell's end."""
    numbers = [s["theta"], s["period"], s.get("normal", 0), s.get("laplace", 0)]
    need(min(numbers[:2]) > 0 and s["theta"] * numbers[3] < 1, "a sum needs 0 < theta < 1/laplace")
    theta, period, normal, laplace = map(ball, numbers)
    terms, rounds, cells = max(s["terms"], 1), not cells, cells or [0]
    need(terms <= 10**6, "a sum has a million terms at most")
    spend((terms + 1) * (sum(len(law) for law, _ in seats) + sum(map(len, pair)) + 4 * len(cells)))
    step, most = 2 * arb.pi() / period, cells[-1]
    shift = shift + normal**2 / 2 if rounds else shift
    known = [(transforms(law, theta, step, terms), count) for law, count in seats]
    types = [transforms(law, theta, step, terms) for law in pair]
    totals, peaks, bends = ([arb(0)] * len(cells) for _ in range(3))
    for k in range(terms + 1):
        z = acb(theta, k * step)
        powers = sum((count * log(values[k]) for values, count in known), shift * z + (normal * z) ** 2 / 2)
        term = powers.exp() / (1 - (laplace * z) ** 2)
        weight = (2 if k else 1) / (period * z * (z + 1 if rounds else z))
        one, two = (values[k] for values in types) if pair else (acb(1), acb(1))
        size, one, two = abs(term * weight) * abs(one - two) ** 2, log(one), log(two)
        for i, j in enumerate(cells):
            part = term * (j * one + (most - j) * two).exp()
            totals[i] += (part * weight).real
            peaks[i] = peaks[i] if k else part.real
            if i and j - cells[i - 1] > 1:
                ends = [(cells[i - 1], most - cells[i - 1] - 2), (j - 2, most - j)]
                low, high = ((a * one + b * two).real.exp() for a, b in ends)
                bends[i] += size * low.max(high)
    last, room = terms * step, 1 - (laplace * theta) ** 2
    phi = (-((normal * last) ** 2) / 2).exp() * room / (room + (laplace * last) ** 2)
    tail = period / (2 * arb.pi() ** 2 * terms) * phi
    best = totals[0] + peaks[0] * tail
    for i, (j, m) in enumerate(pairwise(cells), 1):
        top = totals[i].max(totals[i - 1]) + bends[i] * (m - j) ** 2 / 8
        best = best.max(top + peaks[i].max(peaks[i - 1]) * tail)
    return best
# ---------------- one round at one alpha
# Of a kind of round: all and honest clients, the largest rate (1 in a full shuffle), the lowest rate / the largest, a
# cohort's size or 0, and the largest probability that client 1's report is in the batch.
Round = namedtuple("Round", "population clients rate share cohort presence r")

def seated(rnd: Round, alpha: arb, s: Numbers, types: list[Law], cells: Any, charge: arb) -> arb:
    """Sections 2, 2b: n seats, one of Z* and the others of the types, or all of Z*; a cohort has k and the constant
    (n - k)(1 - alpha). Nobody absent costs rate^n h(alpha). Beside types Z* is the pure randomizer's: their charge has
    paid for the local delta."""
    n, k, empty = rnd.clients, rnd.cohort, 1 - alpha
    others = (k or n) - 1
    def seat(law: Law) -> Law:  # taken by the client's own coin, worth 1 - alpha when empty
        return law if k else [(v, rnd.rate * p) for v, p in law] + [(empty, 1 - rnd.rate)]
    pure = three_atoms("any", {"e0": rnd.r.e0}) if types and rnd.r.kind == "any" else rnd.r
    seats = [(seat(pure.worst(alpha)), 1 if types else others + 1)]
    seats += [(seat(types[0]), others)] if len(types) == 1 else []
    pair, counts = [seat(law) for law in types] if len(types) == 2 else [], [others]
    if pair:
        counts = sorted({j for j in cells or [-1] if type(j) is int})
        need(counts == cells and counts[0] == 0 and counts[-1] == others, f"cells: 0 to {others}")
    total = largest_sum(seats, (n - k) * empty if k else arb(0), s, pair, counts)
    return total / n + rnd.presence * charge + (0 if k else rnd.rate**n * rnd.r.profile(alpha))

def choose(n: int, k: int) -> arb:  # the logarithm
    return arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()

def fewer(clients: int, share: Fraction, threshold: int) -> arb:
    """Above P(1 + Bin(clients - 1, share) < threshold): binomial, with quotients that fall away from the mean."""
    n, k, q = clients - 1, threshold - 2, ball(share)
    if not 0 <= k < n * share:
        return arb(1)
    p = (choose(n, k) + k * q.log() + (n - k) * (1 - q).log()).exp()
    return p / (1 - k * (1 - q) / ((n - k + 1) * q))

@cache
def more(population: int, clients: int, cohort: int, threshold: int) -> arb:
    """Above P(H > threshold), H the honest clients in a cohort: hypergeometric, with quotients that fall."""
    others, h, total = population - clients, threshold + 1, arb(0)
    if h < cohort - others or h > min(clients, cohort):
        return arb(h <= cohort)
    p = (choose(clients, h) + choose(others, cohort - h) - choose(population, cohort)).exp()
    while True:
        spend(1)
        quotient = arb((clients - h) * (cohort - h)) / ((h + 1) * (others - cohort + h + 1))
        total, p, h = total + p, p * quotient, h + 1
        if quotient < 1 and p < (1 - quotient) * arb("1e-40"):
            return total + p / (1 - quotient)

def in_crowds(rnd: Round, way: Numbers, alpha: arb, s: Numbers, types: list[Law], charge: arb) -> arb:
    """Where the crowd is random, the bounds for crowds from the worst to the best, and the probabilities of a worse
    one. Rates differ: at least m clients (section 2c, 2). Colluders in a cohort: at most m honest ones (section 5)."""
    n, k, marks = rnd.clients, rnd.cohort, way.get("thresholds", [])
    colluders = k > 0 and rnd.population > n
    if not colluders and rnd.share == 1:
        return seated(rnd, alpha, s, types, s.get("cells"), charge)
    least, most = (1, min(k, n - 1)) if colluders else (3, n)
    fits = all(type(m) is int and least <= m <= most for m in marks)
    need(fits and sorted(set(marks), reverse=colluders) == marks, "thresholds go from the worst crowd to the best")
    bound, total = rnd.r.profile(alpha).upper() * (1 if colluders else rnd.presence), arb(0)
    for m in marks:
        cells = [*(j for j in s.get("cells", []) if j < m - 1), m - 1]  # a smaller crowd has fewer
        if colluders:
            crowd, worse = rnd._replace(cohort=m, presence=ball(Fraction(m, n))), more(rnd.population, n, k, m)
        else:
            crowd, worse = rnd._replace(clients=m, share=1), fewer(n, rnd.share, m)
        better = seated(crowd, alpha, s, types, cells, charge).upper().min(bound.upper())
        total, bound = total + (bound - better) * worse, better
    return total + bound

def value(rnd: Round, way: Numbers, s: Numbers, alpha: arb, used: set[str]) -> arb:
    """Above the profile of this round at alpha >= 1, for every two adjacent datasets."""
    theorem, n, q = way["theorem"], rnd.clients, ball(rnd.share)
    if theorem == "local":  # section 3: the batch is post-processing of client 1's lazy report
        return rnd.presence * rnd.r.profile(alpha)
    if "marking" in way:
        need(not rnd.cohort and rnd.share == 1, "marking is covered where all have one rate")
        used.add("marking")
        beta, rate = ball(number(way["marking"])), rnd.rate * (1 - ball(number(way["marking"])))
        rnd = rnd._replace(rate=rate, presence=rate, r=marked(rnd.r, beta))
    if theorem == "blanket":  # section 4
        kinds = ("any", "binary", "hemisphere", "dary", "hashing", "privunit")
        full = rnd.rate == 1 and not rnd.cohort and rnd.r.kind in kinds and rnd.r.delta.is_zero()
        need(full, f"the blanket is covered for a full shuffle of {', '.join(kinds)}")
        prove(alpha <= rnd.r.e0, "the blanket needs alpha up to e0")
        used.add("blanket")
        return largest_sum([(rnd.r.worst(alpha), n)], arb(0), s, [], [n]) / n
    need(rnd.rate < 1 or rnd.cohort > 0, "a full shuffle has no empty seat: marking or blanket")
    used.add("empty-seat")
    if theorem == "worst" and rnd.share == 1:
        return in_crowds(rnd, way, alpha, s, [], rnd.r.delta)
    if theorem == "worst":  # section 5
        law = [(v, q * rnd.rate * p) for v, p in rnd.r.worst(alpha)]
        law += [(1 - alpha, q * (1 - rnd.rate)), (arb(0), 1 - q)]
        nobody = (1 - q + q * rnd.rate) ** (n - 1) * rnd.r.profile(alpha)
        total = largest_sum([(law, n)], arb(0), s, [], [n]) / (n * q)
        return total + rnd.rate * (rnd.r.delta + nobody)
    kinds = {f"types-{rnd.r.kind}"} | (set() if rnd.r.delta.is_zero() else {"types-delta"})
    used |= {"types"} | kinds & set(SENTENCES) | ({"thresholds"} if rnd.share < 1 else set())
    return in_crowds(rnd, way, alpha, s, *types_of(way, rnd.r, alpha, ball(s.get("laplace", 0))))
# ---------------- a run
WAY = "theorem types*? weights? marking? thresholds*? quoted?"
POINT = "alpha= delta= way cells*? theta=? period=? terms#? normal=? laplace=?"
ROUND = "count# protocol population# randomizer ways points* "
PROTOCOLS = {"subsampled-shuffle": "cohort# colluding#?", "shuffle": "colluding#?"}
PROTOCOLS |= {"shuffled-check-in": "rate= lowest_rate=? dropout=? colluding#?"}

def round_of(entry: Any, used: set[str]) -> tuple[Round, Numbers]:
    protocol = str(entry["protocol"])
    need(protocol in PROTOCOLS, f"protocol {protocol[:30]!r} is not covered")
    x = take(entry, "a round", ROUND + PROTOCOLS[protocol])
    clients, rate = x["population"] - x.get("colluding", 0), x.get("rate", Fraction(1))
    cohort, lowest, dropout = x.get("cohort", 0), x.get("lowest_rate", rate), x.get("dropout", 0)
    need(clients > 1 and x["count"] > 0, "a round has two honest clients or more, and takes place")
    need(0 < lowest <= rate <= 1 and dropout < 1, "0 < lowest_rate <= rate < 1, dropout < 1")
    fits = rate < 1 if "rate" in x else protocol == "shuffle" or 0 < cohort < x["population"]
    need(fits, "the rate must be below 1, a cohort smaller than the population")
    share = lowest * (1 - dropout) / rate
    used |= {"extensions"} if share < 1 or x.get("colluding") else set()
    presence = ball(Fraction(cohort, x["population"]) if cohort else rate)
    return Round(x["population"], clients, ball(rate), share, cohort, presence, randomizer(x["randomizer"])), x

def points_of(entry: Any, used: set[str]) -> list[tuple[Fraction, Fraction]]:
    """The points (alpha, delta) of one kind of round, each proved to lie above every profile."""
    (rnd, x), points = round_of(entry, used), []
    ways = {name: take(way, "a way", WAY) for name, way in x["ways"].items()}
    need(all(way["theorem"] in ("local", "worst", "types", "blanket") for way in ways.values()), "no such theorem")
    for item in x["points"]:
        s = take(item, "a point", POINT)
        need(s["alpha"] >= 1 and str(s["way"]) in ways, "a point needs alpha >= 1 and a way")
        bound = value(rnd, ways[str(s["way"])], s, ball(s["alpha"]), used)
        claimed = f"{float(s['delta']):.9g} claimed, {bound.str(9)} found"
        prove(bound <= ball(s["delta"]), f"delta at alpha = {float(s['alpha']):.9g}: {claimed}")
        points.append((s["alpha"], s["delta"]))
    alphas = [alpha for alpha, _ in points]
    need(alphas[0] == 1 and sorted(set(alphas)) == alphas, "alpha must start at 1 and rise")
    return points

def losses(points: list[tuple[Fraction, Fraction]]) -> Law:
    """The finite losses of the pair above every profile of a round, under P (section 3)."""
    middle, masses = chords(points)
    prove(middle >= 0 and all(mass >= 0 for _, mass in masses), "the points are not convex")
    law = [(arb(0), ball(middle)), *((ball(a).log(), ball(a * mass)) for a, mass in masses)]
    return law + [(-ball(a).log(), ball(mass)) for a, mass in masses]

def check(content: Numbers) -> tuple[str, set[str]]:
    """What is proved, in a sentence, and the names of the sentences that are assumed."""
    WORK[0], used = 0, {"profile"}
    run, claim = take(content["run"], "run", "words adjacency"), content["claim"]
    need(run["adjacency"] == "replace one client", "only 'replace one client' is covered")
    epsilon, delta = (take(claim, "claim", "epsilon= delta=")[k] for k in ("epsilon", "delta"))
    rounds = [(points_of(entry, used), entry["count"]) for entry in content["rounds"]]
    seats, total = [(losses(points), count) for points, count in rounds], sum(n for _, n in rounds)
    if total == 1 and "composition" not in content:
        below = [d for a, d in rounds[0][0] if ball(a) <= ball(epsilon).exp()]
        found = ball(min([*below, Fraction(1)]))
    else:
        s = take(content.get("composition"), "composition", "theta= period= terms# normal=")
        finite = [ball(1 - points[-1][1]) ** count for points, count in rounds]
        found = 1 - prod(finite, start=arb(1)) + largest_sum(seats, ball(-epsilon), s, [], [])
    stated = f"({claim['epsilon']}, {claim['delta']})"
    prove(found <= ball(delta), f"{stated} claimed, delta = {found.str(9)} found")
    prove(used <= set(map(str, content["assumed"])), f"it assumes, unsaid, some of {sorted(used)}")
    return f"{stated}-DP over {total} rounds, {run['adjacency']}; {found.str(6)} found", used

def main(arguments: list[str]) -> int:
    try:
        need(len(arguments) == 1, "usage: python check.py FILE")
        content = read(Path(arguments[0]))
        proved, used = check(content)
    except Exception as e:  # a file that breaks the reading is no certificate
        text, code = e.args if isinstance(e, Refused) else (f"{type(e).__name__}: {e}"[:150], 2)
        print("not proved:" if code == 1 else "not a certificate:", *str(text).split(), file=sys.stderr)
        return int(code)
    rounds = [{k: x[k] for k in x if k not in ("points", "ways")} for x in content["rounds"]]
    rounds += [f"quoted: {way['quoted']}" for x in content["rounds"] for way in x["ways"].values() if "quoted" in way]
    print(f"proved: {proved}", *rounds, *(f"assumed: {name}: {SENTENCES[name]}" for name in sorted(used)), sep="\n  ")
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
