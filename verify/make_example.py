"""Searches certificates with the checker's own sums, so that the checker can be tried out. Not a producer for users."""

import hashlib
import json
import math
import sys
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import check  # noqa: E402

exact_sum = check.largest_sum
import os
STEP = float(os.environ.get("STEP", "0.05"))
NOISE = float(os.environ.get("NOISE", "1e-4"))


def up(x: float, digits: int = 8) -> str:
    return str(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(x))


def txt(x: float, digits: int = 4) -> str:
    return f"{x:.{digits}g}"


def tilted(laws, shift, theta):
    """log M, mean, variance of the tilted sum."""
    total, mean, var = shift * theta, shift, 0.0
    for v, p, count in laws:
        a = np.log(np.maximum(p, 1e-300)) + theta * v
        top = a.max()
        w = np.exp(a - top)
        s = w.sum()
        m = (w * v).sum() / s
        total += count * (top + math.log(s))
        mean += count * m
        var += count * ((w * v * v).sum() / s - m * m)
    return total, mean, var


def choose(seats, shift, pair, cells, rounds, tau, noise, target=None):
    laws = [(np.array([float(v) for v, _ in l]), np.array([float(p) for _, p in l]), c) for l, c in seats]
    if pair:
        half = cells[-1] / 2
        laws += [(np.array([float(v) for v, _ in l]), np.array([float(p) for _, p in l]), half) for l in pair]
    shift = float(shift)
    _, m0, v0 = tilted(laws, shift, 0.0)
    sd = math.sqrt(v0)

    def objective(theta):
        k = math.log(theta) + (math.log1p(theta) if rounds else math.log(theta))
        return tilted(laws, shift, theta)[0] + (tau * theta) ** 2 - k

    grid = np.geomspace(1e-3 / sd, 60 / sd, 200)
    if tau:
        grid = grid[grid < 0.7 / tau]
    values = [objective(t) for t in grid]
    theta = grid[int(np.argmin(values))]
    var = tilted(laws, shift, theta)[2] + 2 * tau**2
    eta = math.sqrt(max(noise * v0 - 2 * tau**2, 0.0)) if not rounds else math.sqrt(noise * v0)
    eta = max(eta, 1e-3 * sd)
    need = 16 / theta
    if rounds:
        need = (math.log(1 / target) + 14) / theta
    period = max(8.5 * math.sqrt(var + eta**2), need)
    y = 7.0 / eta
    if tau:  # Laplace noise helps too
        y = min(y, 60 / tau)
    terms = max(60, math.ceil(y * period / 2 / math.pi))
    return {"theta": txt(theta), "period": txt(period), "terms": int(terms), "normal": txt(eta)}


def smallest_tau(r, way, alpha):
    used: set[str] = set()
    laws = check.positions(r, alpha)
    types = [[((1 - alpha) + (1 + check.ball(Fraction(w))) * (v - (1 - alpha)), p) for v, p in laws[n]] for n, w in ((t["law"], t.get("wider", "0")) for t in way["types"])]
    exact = {t["law"] for t in way["types"]}

    def ok(tau):
        t = check.ball(Fraction(txt(tau, 5)))
        return all(check.smoothly_above(types, [check.ball(Fraction(x)) for x in way["weights"][n]], laws[n], t) for n in set(laws) - exact)

    if not set(laws) - exact:
        return 0.0
    low, high = 0.01, float(r.e0)
    while not ok(high):
        high *= 1.5
        if high > 200 * float(r.e0):
            return math.inf
    for _ in range(9):
        mid = math.sqrt(low * high)
        low, high = (low, mid) if ok(mid) else (mid, high)
    return high * 1.001


def parsed(entry):
    return check.take({"delta": "0"} | entry, "a point", POINT)


POINT = "alpha= delta= way cells*? theta=? period=? terms#? normal=? laplace=?"


def point(rnd, ways, name, alpha: Fraction, noise=4e-4, cells=None):
    way = ways[name]
    a = check.ball(alpha)
    entry: dict[str, Any] = {"alpha": str(float(alpha)) if alpha != 1 else "1", "way": name}
    if way["theorem"] == "local":
        entry["delta"] = up(float(check.value(rnd, way, entry, a, set()).upper()))
        return entry
    tau = 0.0
    if way["theorem"] == "types":
        r = check.marked(rnd.r, check.ball(Fraction(way["marking"]))) if "marking" in way else rnd.r
        tau = smallest_tau(r, way, a)
        if not tau < 1e3:
            return None
    entry |= {"laplace": txt(tau, 5), "theta": "1e-9", "period": "1", "terms": 1, "normal": "1"}
    if cells:
        entry["cells"] = cells
    found = {}

    def capture(seats, shift, s, pair, cells):
        if not found:
            found.update(choose(seats, shift, pair, cells, False, tau, noise))
            entry.update(found)
        return exact_sum(seats, shift, parsed(entry), pair, cells)

    check.largest_sum = capture
    try:
        bound = check.value(rnd, way, parsed(entry), a, set())
    finally:
        check.largest_sum = exact_sum
        check.WORK[0] = 0
    entry["delta"] = up(float(bound.upper()) * (1 + 1e-12))
    return entry


def grid(sd, reach, step):
    """log alpha: step deviations near 0, growing as the density falls."""
    x, xs = 0.0, [0.0]
    while x < reach:
        x += step * math.exp(min(x * x / 6, 2.5))
        xs.append(x)
    return [sd * x for x in xs]


def hull(points):
    out = []
    for p in points:
        q = (Fraction(p["alpha"]), Fraction(p["delta"]))
        while len(out) >= 2:
            (a, d), (b, e) = [(Fraction(o["alpha"]), Fraction(o["delta"])) for o in out[-2:]]
            if (e - d) * (q[0] - b) >= (q[1] - e) * (b - a):
                out.pop()
            else:
                break
        if out and Fraction(out[-1]["delta"]) <= q[1]:
            continue
        out.append(p)
    return out


def make_round(entry, delta, names, step=STEP, cells=None, noise=NOISE, reach=7.6):
    used: set[str] = set()
    entry.setdefault("points", [])
    entry["points"] = [0]
    rnd, _ = check.round_of(entry, used)
    h = float(rnd.presence)
    # deviation of the loss: mu^2 = 2 rate E(W-1)+^2 / n
    hits = sum(float(q) * max(float(w) - 1, 0) ** 2 for w, q in rnd.r.ratios)
    mu = math.sqrt(2 * h * hits / rnd.clients)
    points = []
    for x in grid(mu, reach, step):
        alpha = Fraction(f"{math.exp(x):.12g}") if x else Fraction(1)
        best = None
        if alpha > Fraction(float(rnd.r.e0)):
            p = point(rnd, entry["ways"], "local", alpha) if "local" in entry["ways"] else None
            if p:
                points.append(p)
            break
        for name in names:
            p = point(rnd, entry["ways"], name, alpha, noise, cells)
            if p and (best is None or Fraction(p["delta"]) < Fraction(best["delta"])):
                best = p
        points.append(best)
        if Fraction(best["delta"]) < Fraction(delta) / entry["count"] / 10**4:
            break
    entry["points"] = hull(points)
    return entry


def make(words, rounds, delta, package="dpcheckin (prototype)", noise=NOISE):
    used = {"profile"}
    laws = []
    check.WORK[0] = 0
    for r in rounds:
        laws.append((check.losses([(Fraction(p["alpha"]), Fraction(p["delta"])) for p in r["points"]]), r["count"]))
    kept = check.arb(1)
    for r in rounds:
        kept *= (1 - check.ball(Fraction(r["points"][-1]["delta"]))) ** r["count"]
    target = float(Fraction(delta))
    low, high, best = 0.0, 60.0, None
    flo = [(np.array([float(v) for v, _ in l]), np.array([float(p) for _, p in l]), c) for l, c in laws]

    def delta_at(eps, comp):
        return float((1 - kept + exact_sum(laws, check.ball(-Fraction(eps)), check.take(comp, "composition", check.SUM), [], [])).upper())

    # crude epsilon by Chernoff, then bisection with exact sums
    def chernoff(eps):
        return min(tilted(flo, -eps, t)[0] - math.log(t) - math.log1p(t) for t in np.geomspace(1e-3, 1e5, 200))

    lo, hi = 0.0, 100.0
    for _ in range(50):
        mid = (lo + hi) / 2
        lo, hi = (lo, mid) if chernoff(mid) < math.log(target) else (mid, hi)
    comp = choose(laws, -hi, [], [0], True, 0.0, noise, target)
    lo, hi = 0.3 * hi, 1.2 * hi
    for _ in range(16):
        mid = float(up((lo + hi) / 2, 6))
        check.WORK[0] = 0
        lo, hi = (lo, mid) if delta_at(up(mid, 6), comp) <= target else (mid, hi)
    comp = choose(laws, -hi, [], [0], True, 0.0, noise, target)
    for _ in range(16):
        eps = up(hi, 6)
        check.WORK[0] = 0
        if delta_at(eps, comp) <= target:
            break
        hi *= 1.00002
    content = {
        "format": "dpcheckin-certificate/1", "package": package, "run": {"words": words, "adjacency": "replace one client"},
        "claim": {"epsilon": eps, "delta": delta}, "assumed": sorted(check.SENTENCES), "rounds": rounds, "composition": comp,
    }
    return content


def sign(content):
    content.pop("sha256", None)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


CASES = {
    "readme": lambda: make("60,000 clients, each by its own coin with probability 1/30 in each of 6,000 rounds, any randomizer with local epsilon 2", [
        make_round({"count": 6000, "protocol": "shuffled-check-in", "population": 60000, "rate": "1/30",
            "randomizer": {"kind": "any", "local_epsilon": "2"},
            "ways": {"C": {"theorem": "types", "types": [{"law": "C"}], "weights": {"A": ["1"], "B": ["1"]}}, "Z": {"theorem": "worst"}}}, "1e-05", ["C"])], "1e-05"),
    "worst": lambda: make("", [
        make_round({"count": 6000, "protocol": "shuffled-check-in", "population": 60000, "rate": "1/30",
            "randomizer": {"kind": "any", "local_epsilon": "2"},
            "ways": {"Z": {"theorem": "worst"}}}, "1e-05", ["Z"])], "1e-05"),
    "binary": lambda: make("", [
        make_round({"count": 6000, "protocol": "shuffled-check-in", "population": 60000, "rate": "1/30",
            "randomizer": {"kind": "hemisphere", "local_epsilon": "2"},
            "ways": {"AB": {"theorem": "types", "types": [{"law": "A"}, {"law": "B"}]}}}, "1e-05", ["AB"], cells=[0,15000,30000,45000,59999])], "1e-05"),
}

if __name__ == "__main__":
    name, path = sys.argv[1:3]
    content = sign(CASES[name]())
    content["assumed"] = sorted(check.check(content)[1])
    text = json.dumps(sign(content), indent=None)
    Path(path).write_text(text.replace('{"alpha"', '\n{"alpha"') + "\n")
    print(content["claim"], len(text), [len(r["points"]) for r in content["rounds"]])
