"""Searches certificates with the checker's own sums, to try the checker out; for no user."""

import hashlib
import importlib.util
import json
import math
import os
import sys
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

spec = importlib.util.spec_from_file_location("check", Path(__file__).with_name("check.py"))
assert spec is not None
assert spec.loader is not None
check: Any = importlib.util.module_from_spec(spec)
sys.modules["check"] = check
spec.loader.exec_module(check)

exact_sum = check.largest_sum
STEP = float(os.environ.get("STEP", "0.045"))
NOISE = float(os.environ.get("NOISE", "1.5e-4"))


def floats(law, count):
    return np.array([float(v) for v, _ in law]), np.array([float(p) for _, p in law]), count


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
    laws = [floats(law, count) for law, count in seats]
    laws += [floats(law, cells[-1] / 2) for law in pair]
    shift = float(shift)
    v0 = tilted(laws, shift, 0.0)[2]
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
    eta = math.sqrt(noise * v0 if rounds else max(noise * v0 - 2 * tau**2, noise * v0 / 2))
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
    if "quoted" in way:
        return float(way["quoted"]["smoothing"]) * (1 + float(alpha)) / 2 * 1.001
    laws = check.positions(r, alpha)
    types = [
        [((1 - alpha) + (1 + check.ball(Fraction(w))) * (v - (1 - alpha)), p) for v, p in laws[n]]
        for n, w in ((t["law"], t.get("wider", "0")) for t in way["types"])
    ]
    exact = {t["law"] for t in way["types"]}

    def ok(tau):
        t = check.ball(Fraction(txt(tau, 5)))
        return all(
            check.smoothly_above(
                types, [check.ball(Fraction(x)) for x in way["weights"][n]], laws[n], t
            )
            for n in set(laws) - exact
        )

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
    return high * 1.03


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


def make_round(entry, delta, names, step=STEP, cells=None, noise=NOISE, reach=60.0):
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
    check.WORK[0], laws = 0, []
    for r in rounds:
        points = [(Fraction(p["alpha"]), Fraction(p["delta"])) for p in r["points"]]
        laws.append((check.losses(points), r["count"]))
    kept = check.arb(1)
    for r in rounds:
        kept *= (1 - check.ball(Fraction(r["points"][-1]["delta"]))) ** r["count"]
    target = float(Fraction(delta))
    flo = [floats(law, count) for law, count in laws]

    def delta_at(eps, comp):
        return float(
            (
                1
                - kept
                + exact_sum(
                    laws,
                    check.ball(-Fraction(eps)),
                    check.take(comp, "composition", "theta= period= terms# normal="),
                    [],
                    [],
                )
            ).upper()
        )

    # crude epsilon by Chernoff, then bisection with exact sums
    def chernoff(eps):
        return min(
            tilted(flo, -eps, t)[0] - math.log(t) - math.log1p(t)
            for t in np.geomspace(1e-3, 1e5, 200)
        )

    lo, hi = 0.0, 100.0
    for _ in range(50):
        mid = (lo + hi) / 2
        lo, hi = (lo, mid) if chernoff(mid) < math.log(target) else (mid, hi)
    comp = choose(laws, -hi, [], [0], True, 0.0, noise, target)
    lo, hi = 0.3 * hi, 20 * hi
    for _ in range(24):
        mid = float(up((lo + hi) / 2, 6))
        check.WORK[0] = 0
        lo, hi = (lo, mid) if delta_at(up(mid, 6), comp) <= target else (mid, hi)
    comp = choose(laws, -hi, [], [0], True, 0.0, noise, target)
    for _ in range(60):
        eps = up(hi, 6)
        check.WORK[0] = 0
        if delta_at(eps, comp) <= target:
            break
        hi *= 1.00002
    content = {
        "format": "dpcheckin-certificate/1",
        "package": package,
        "run": {"words": words, "adjacency": "replace one client"},
        "claim": {"epsilon": eps, "delta": delta},
        "assumed": sorted(check.SENTENCES),
        "rounds": rounds,
        "composition": comp,
    }
    return content


def sign(content):
    content.pop("sha256", None)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


TYPE_C = {"theorem": "types", "types": [{"law": "C"}], "weights": {"A": ["1"], "B": ["1"]}}
TYPES_AB = {"theorem": "types", "types": [{"law": "A"}, {"law": "B"}]}


def check_in(count, population, rate, kind, epsilon, **ways):
    return {
        "count": count,
        "protocol": "shuffled-check-in",
        "population": population,
        "rate": rate,
        "randomizer": {"kind": kind, "local_epsilon": epsilon},
        "ways": ways,
    }


def small():
    many = check_in(
        40, 300, "1/5", "any", "1.5", C=TYPE_C, Z={"theorem": "worst"}, own={"theorem": "local"}
    )
    few = check_in(10, 300, "1/10", "binary", "1.5", AB=TYPES_AB, own={"theorem": "local"})
    rounds = [
        make_round(many, "0.0001", ["C", "Z"], step=0.25, noise=1e-3),
        make_round(few, "0.0001", ["AB"], step=0.25, noise=1e-3, cells=[0, 150, 299]),
    ]
    return make("300 clients, 40 rounds at rate 1/5 and 10 at 1/10", rounds, "0.0001", noise=1e-3)


def readme():
    words = "60,000 clients; in each of 6,000 rounds each reports with probability 1/30"
    entry = check_in(6000, 60_000, "1/30", "any", "2", C=TYPE_C)
    return make(words, [make_round(entry, "1e-05", ["C"])], "1e-05")


if __name__ == "__main__":
    name, path = sys.argv[1:3]
    content = sign({"small": small, "readme": readme}[name]())
    content["assumed"] = sorted(check.check(content)[1])
    Path(path).write_text(json.dumps(sign(content)).replace('{"alpha"', '\n{"alpha"') + "\n")
    print(content["claim"], [len(entry["points"]) for entry in content["rounds"]])
