"""The checker of certificates proves what is true, and refuses what was forged."""

import importlib.util
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = Path(__file__).with_name("small.json")
README = ROOT / "docs/results/certificate-readme.json"

spec = importlib.util.spec_from_file_location("check", ROOT / "verify/check.py")
assert spec is not None
assert spec.loader is not None
check: Any = importlib.util.module_from_spec(spec)
sys.modules["check"] = check  # its dataclass looks itself up there
spec.loader.exec_module(check)

Content = dict[str, Any]


def signed(content: Content) -> str:
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return json.dumps(rest | {"sha256": sha256(text.encode()).hexdigest()})


def times(entry: Content, key: str, factor: float) -> None:
    """Multiply a number of the file, which is written as a string."""
    entry[key] = f"{float(Fraction(entry[key])) * factor:.12g}"


def code(tmp_path: Path, text: str) -> int:
    path = tmp_path / "forged.json"
    path.write_text(text)
    return int(check.main([str(path)]))


def points(content: Content, kind: int = 0) -> list[Content]:
    return list(content["rounds"][kind]["points"])


# --- the files that are shipped --------------------------------------------------------------


def test_readmes_first_figure_is_proved_by_the_program_alone() -> None:
    """Run as a regulator runs it: another process, and nothing of dpcheckin imported."""
    command = [sys.executable, "-I", str(ROOT / "verify/check.py"), str(README)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    content = json.loads(README.read_text())
    (kind,) = content["rounds"]
    assert (kind["population"], kind["rate"], kind["count"]) == (60_000, "1/30", 6000)
    assert kind["randomizer"] == {"kind": "any", "local_epsilon": "2"}
    assert content["claim"]["delta"] == "1e-05"
    assert 0.6084 < float(content["claim"]["epsilon"]) < 0.6089 * 1.002
    assert "assumed: types-any: section 2b, 2" in done.stdout
    assert f"proved: ({content['claim']['epsilon']}, 1e-05)-DP over 6000 rounds" in done.stdout


def test_the_checker_is_one_short_file_that_shares_no_code() -> None:
    text = (ROOT / "verify/check.py").read_text()
    assert len(text.splitlines()) <= 500
    assert "import dpcheckin" not in text
    assert "from dpcheckin" not in text


def test_a_mixed_run_of_two_kinds_of_rounds_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(SMALL)]) == 0
    said = capsys.readouterr().out
    assert "over 50 rounds" in said
    assert "types-any" in said


# --- forgeries: 1 is "not proved" --------------------------------------------------------------


def raised_in_the_middle(content: Content) -> None:
    """A dent the other way round: one point too high, so that the masses beside it are negative."""
    times(points(content)[5], "delta", 1.05)


def another_type(content: Content) -> None:
    way = content["rounds"][0]["ways"]["C"]
    way["types"], way["weights"] = [{"law": "A"}], {"B": ["1"], "C": ["1"]}


def far_point_by_its_own_word(content: Content) -> None:
    points(content)[3]["way"] = "own"


UNPROVED: dict[str, Callable[[Content], Any]] = {
    "epsilon 0.5% smaller": lambda c: times(c["claim"], "epsilon", 0.995),
    "delta 2% smaller": lambda c: times(c["claim"], "delta", 0.98),
    "more rounds": lambda c: c["rounds"][0].update(count=41),
    "more rounds of the other kind": lambda c: c["rounds"][1].update(count=12),
    "a smaller population": lambda c: c["rounds"][0].update(population=297),
    "a larger rate": lambda c: c["rounds"][0].update(rate="0.202"),
    "a weaker randomizer": lambda c: c["rounds"][0]["randomizer"].update(local_epsilon="1.51"),
    "a local delta": lambda c: c["rounds"][0]["randomizer"].update(local_delta="1e-06"),
    "colluding clients": lambda c: c["rounds"][0].update(colluding=3),
    "dropouts": lambda c: c["rounds"][0].update(dropout="0.5"),
    "a point 0.1% lower": lambda c: times(points(c)[4], "delta", 0.999),
    "the last point lower": lambda c: times(points(c)[-1], "delta", 0.99),
    "alpha of a point moved": lambda c: times(points(c)[4], "alpha", 0.999),
    "points that are not convex": raised_in_the_middle,
    "no last points": lambda c: c["rounds"][0].update(points=points(c)[:-4]),
    "too little smoothing": lambda c: times(points(c)[1], "laplace", 0.8),
    "no smoothing": lambda c: points(c)[1].update(laplace="0"),
    "a type that is missing": lambda c: c["rounds"][0]["ways"]["C"]["weights"].pop("B"),
    "a type that is not above the others": another_type,
    "a point by another theorem": far_point_by_its_own_word,
    "too few terms": lambda c: points(c)[2].update(terms=5),
    "too few terms for the rounds": lambda c: c["composition"].update(terms=5),
    "too short a period": lambda c: times(points(c)[2], "period", 0.3),
    "too short a period for the rounds": lambda c: times(c["composition"], "period", 0.2),
    "another abscissa": lambda c: times(points(c)[2], "theta", 0.3),
    "an abscissa beyond all numbers": lambda c: c["composition"].update(theta="1e300"),
    "one cell for all counts, and few terms": lambda c: points(c, 1)[0].update(terms=9),
    "an assumption that is not stated": lambda c: c["assumed"].remove("types-any"),
    "a hemisphere for binary response": lambda c: c["rounds"][1]["randomizer"].update(kind="any"),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_a_forged_certificate_is_not_proved(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(SMALL.read_text())
    UNPROVED[name](content)
    assert code(tmp_path, signed(content)) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("not proved: ")
    assert said.err.count("\n") == 1


CROWDS = Path(__file__).with_name("crowds.json")  # colluders in a cohort, rates that differ, a full shuffle by marking
IN_CROWDS: dict[str, tuple[int, Callable[[Content], Any]]] = {
    "more colluders in the cohort": (1, lambda c: c["rounds"][0].update(colluding=25)),
    "a crowd too few": (1, lambda c: c["rounds"][0]["ways"]["AB"].update(thresholds=[27])),
    "a lower rate": (1, lambda c: c["rounds"][1].update(lowest_rate="0.055")),
    "dropouts": (1, lambda c: c["rounds"][1].update(dropout="0.1")),
    "the worst crowd forgotten": (1, lambda c: c["rounds"][1]["ways"]["C"]["thresholds"].pop(0)),
    "less marking": (1, lambda c: c["rounds"][2]["ways"]["C"].update(marking="0.01")),
    "too much marking": (1, lambda c: c["rounds"][2]["ways"]["C"].update(marking="0.4")),
    "no marking": (2, lambda c: c["rounds"][2]["ways"]["C"].pop("marking")),
    "marking that is not said": (1, lambda c: c["assumed"].remove("marking")),
    "thresholds that are not said": (1, lambda c: c["assumed"].remove("thresholds")),
    "colluders that are not said": (1, lambda c: c["assumed"].remove("extensions")),
    "thresholds in a wrong order": (2, lambda c: c["rounds"][0]["ways"]["AB"]["thresholds"].reverse()),
    "a crowd beyond the cohort": (2, lambda c: c["rounds"][0]["ways"]["AB"].update(thresholds=[31, 27])),
    "a crowd beyond the population": (2, lambda c: c["rounds"][1]["ways"]["C"]["thresholds"].append(4001)),
    "marking of a cohort": (2, lambda c: c["rounds"][0]["ways"]["AB"].update(marking="0.1")),
    "no cells": (2, lambda c: points(c, 0)[0].pop("cells")),
}


@pytest.mark.parametrize("name", IN_CROWDS)
def test_a_forged_crowd_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(CROWDS.read_text())
    expected, forge = IN_CROWDS[name]
    forge(content)
    assert code(tmp_path, signed(content)) == expected
    assert capsys.readouterr().out == ""


def test_crowds_of_random_size_are_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(CROWDS)]) == 0
    said = capsys.readouterr().out
    assert all(f"assumed: {name}: " in said for name in ("marking", "thresholds", "extensions"))


# --- 2 is "not a certificate" --------------------------------------------------------------------

MALFORMED: dict[str, Callable[[Content], Any]] = {
    "NaN": lambda c: c["claim"].update(epsilon="nan"),
    "infinity": lambda c: c["claim"].update(delta="inf"),
    "a negative number": lambda c: c["claim"].update(epsilon="-0.5"),
    "a float": lambda c: c["claim"].update(epsilon=0.5),
    "the float NaN": lambda c: c["claim"].update(epsilon=math.nan),
    "a number of many digits": lambda c: c["claim"].update(epsilon="0." + "1" * 100),
    "a large exponent": lambda c: c["claim"].update(epsilon="1e9999"),
    "a division by zero": lambda c: c["rounds"][0].update(rate="1/0"),
    "a rate of one": lambda c: c["rounds"][0].update(rate="1"),
    "a boolean for a number": lambda c: c["rounds"][0].update(count=True),
    "an integer beyond bounds": lambda c: c["rounds"][0].update(count=10**30),
    "no rounds": lambda c: c.update(rounds=[]),
    "a round that is no object": lambda c: c.update(rounds=[3]),
    "work without end": lambda c: points(c)[0].update(terms=10**12),
    "an unknown key": lambda c: c["rounds"][0].update(secret="1"),
    "another protocol": lambda c: c["rounds"][0].update(protocol="random-check-in-fixed"),
    "another randomizer": lambda c: c["rounds"][0]["randomizer"].update(kind="skellam"),
    "another theorem": lambda c: c["rounds"][0]["ways"]["C"].update(theorem="trust me"),
    "another adjacency": lambda c: c["run"].update(adjacency="add or remove"),
    "another format": lambda c: c.update(format="dpcheckin-certificate/2"),
    "points that do not start at 1": lambda c: c["rounds"][0].update(points=points(c)[1:]),
    "cells with a hole at the end": lambda c: points(c, 1)[0].update(cells=[0, 150]),
    "cells beyond the last seat": lambda c: points(c, 1)[0].update(cells=[0, 299, 400]),
    "cells that fall": lambda c: points(c, 1)[0].update(cells=[0, 299, 150, 299]),
    "types of the wrong shape": lambda c: c["rounds"][0]["ways"]["C"].update(types=[7]),
    "a way that is a list": lambda c: points(c)[0].update(way=["C"]),
    "weights of the wrong shape": lambda c: c["rounds"][0]["ways"]["C"].update(weights=[1]),
    "no composition": lambda c: c.pop("composition"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_certificate_is_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(SMALL.read_text())
    MALFORMED[name](content)
    assert code(tmp_path, signed(content)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("not a certificate: ")
    assert said.err.count("\n") == 1


def test_files_that_are_not_json_altered_or_too_large_are_refused(tmp_path: Path) -> None:
    good = SMALL.read_text()
    assert code(tmp_path, good) == 0
    assert code(tmp_path, good.replace('"population": 300', '"population": 301')) == 2  # the hash
    assert code(tmp_path, good[:-40]) == 2
    assert code(tmp_path, good + " " * 204_800) == 2
    assert code(tmp_path, "[" * 100_000) == 2
    assert code(tmp_path, "") == 2
    assert code(tmp_path, good.replace('"format"', '"format": "x", "format"', 1)) == 2  # twice
    assert check.main([str(tmp_path / "absent.json")]) == 2
    assert check.main([]) == 2


# --- the mathematics, against enumeration ---------------------------------------------------------


def numbers(**more: str) -> dict[str, Any]:
    found = {"theta": "0.7", "period": "40", "normal": "0.05", "laplace": "0"} | more
    return {key: Fraction(value) for key, value in found.items()} | {"terms": 900}


def test_a_sum_of_seats_lies_closely_above_its_enumeration() -> None:
    law = [(-1.5, 0.3), (0.25, 0.6), (4.0, 0.1)]
    balls = [(check.arb(v), check.arb(p)) for v, p in law]
    exact = 0.0
    for seats in itertools.product(law, repeat=6):
        total = sum(v for v, _ in seats) - 2
        exact += math.prod(p for _, p in seats) * max(total, 0.0)
    found = float(check.largest_sum([(balls, 6)], check.arb(-2), numbers(), [], [6]).upper())
    assert exact <= found <= exact * 1.001


def test_the_largest_of_all_counts_of_two_types_is_covered() -> None:
    first = [(-1.0, 0.5), (1.0, 0.5)]
    second = [(-0.5, 0.8), (2.0, 0.2)]
    exact = []
    for j in range(9):
        laws = [first] * j + [second] * (8 - j)
        total = 0.0
        for seats in itertools.product(*laws):
            total += math.prod(p for _, p in seats) * max(sum(v for v, _ in seats) - 1, 0.0)
        exact.append(total)
    pair = [[(check.arb(v), check.arb(p)) for v, p in law] for law in (first, second)]
    for cells in ([0, 8], [0, 4, 8], list(range(9))):
        found = float(check.largest_sum([], check.arb(-1), numbers(), pair, cells).upper())
        assert found >= max(exact)
    assert found <= max(exact) * 1.001


def test_rounds_lie_closely_above_the_product_of_pairs() -> None:
    points = [(Fraction(1), Fraction(1, 5)), (Fraction(3, 2), Fraction(1, 20)), (Fraction(2), Fraction(1, 100))]
    law = [(float(v), float(p)) for v, p in check.losses(points)]
    assert sum(p for _, p in law) == pytest.approx(0.99)
    epsilon = 0.6
    exact = 1 - 0.99**3
    for seats in itertools.product(law, repeat=3):
        loss = sum(v for v, _ in seats)
        exact += math.prod(p for _, p in seats) * max(1 - math.exp(epsilon - loss), 0.0)
    s = numbers(theta="2", period="12", normal="0.01")
    found = float(check.largest_sum([(check.losses(points), 3)], check.arb("-0.6"), s, [], []).upper())
    assert exact <= found + 1 - 0.99**3 <= exact * 1.002


@pytest.mark.parametrize("deltas", [("1/5", "19/100", "1/100"), ("3/5", "1/5", "1/10")])
def test_points_that_need_a_negative_mass_are_no_pair(deltas: tuple[str, ...]) -> None:
    """A dent in the middle; a kink at alpha = 1 that only a negative mass at loss 0 would have."""
    points = [(Fraction(a), Fraction(d)) for a, d in zip(("1", "11/10", "2"), deltas, strict=True)]
    with pytest.raises(check.Refused, match="not convex"):
        check.losses(points)


def test_a_local_delta_is_paid_for_beside_types() -> None:
    """gamma kappa(alpha) of section 2b, and the pure Z* beside the types."""
    r = check.randomizer({"kind": "any", "local_epsilon": "2", "local_delta": "0.001"})
    way = {"types": [{"law": "C"}], "weights": {"A": ["1"], "B": ["1"]}}
    _, charge = check.types_of(way, r, check.arb(1), check.arb(3))
    e = math.exp(2)
    assert float(charge) == pytest.approx(0.002 * (1 + (e - 1) / (e * e - 1)))
    rate = check.ball(Fraction(1, 2))
    s = numbers(normal="0.1", period="100")
    rnd = check.Round(9, 9, rate, Fraction(1), 0, rate, r)
    free = float(check.seated(rnd, check.arb(1), s, [], None, check.arb(0)))
    paid = float(check.seated(rnd, check.arb(1), s, [], None, charge))
    assert paid - free == pytest.approx(float(charge) / 2)


@pytest.mark.parametrize(
    ("epsilon", "alpha", "enough", "too_small"),
    [("2", "1", "2.4158", "2.415"), ("1", "1", "2.1713", "2.170"), ("4", "1", "9.773", "9.76")],
)
def test_the_smallest_scales_of_the_theory_are_found(epsilon: str, alpha: str, enough: str, too_small: str) -> None:
    """Type C alone is above A and B from a certain scale on, which the theory's notes print."""
    e0 = check.ball(Fraction(epsilon)).exp()
    laws = check.positions(check.three_atoms("any", {"e0": e0}), check.ball(Fraction(alpha)))

    def above(name: str, tau: str) -> bool:
        one = [check.arb(1)]
        return bool(check.smoothly_above([laws["C"]], one, laws[name], check.ball(Fraction(tau))))

    assert above("A", enough)
    assert above("B", enough)
    assert not (above("A", too_small) and above("B", too_small))


def batch_profile(n: int, rate: float, e0: float, others: tuple[int, ...], alpha: float) -> float:
    """Of the true shuffled batch of lazy binary response, by enumeration of all reports."""
    laws: list[dict[tuple[int, int], float]] = []
    for first in (0, 1):
        law: dict[tuple[int, int], float] = {}
        for seen in itertools.product((None, 0, 1), repeat=n):
            p = 1.0
            for value, report in zip((first, *others), seen, strict=True):
                truth = e0 / (e0 + 1) if report == value else 1 / (e0 + 1)
                p *= 1 - rate if report is None else rate * truth
            key = seen.count(0), seen.count(1)
            law[key] = law.get(key, 0.0) + p
        laws.append(law)
    p, q = laws
    return sum(max(p[key] - alpha * q[key], 0.0) for key in p)


@pytest.mark.parametrize("theorem", ["worst", "types"])
@pytest.mark.parametrize("alpha", ["1", "1.2", "2"])
def test_a_point_lies_above_every_true_batch_of_few_clients(theorem: str, alpha: str) -> None:
    n, rate, used = 4, Fraction(2, 5), set[str]()
    r = check.randomizer({"kind": "binary", "local_epsilon": "1"})
    rnd = check.Round(n, n, check.ball(rate), Fraction(1), 0, check.ball(rate), r)
    way = {"theorem": theorem} | ({"types": [{"law": "A"}, {"law": "B"}]} if theorem == "types" else {})
    s = numbers(normal="0.02", period="60") | {"cells": [0, 1, 2, 3], "terms": 3000}
    found = float(check.value(rnd, way, s, check.ball(Fraction(alpha)), used).upper())
    others = itertools.product((0, 1), repeat=n - 1)
    true = max(batch_profile(n, 0.4, math.e, x, float(Fraction(alpha))) for x in others)
    assert true <= found <= 5 * true
    assert "empty-seat" in used


def test_every_randomizer_of_the_table_has_a_law_and_its_profile() -> None:
    """h(1) = hit (e0 - 1), and the masses of W have mean one."""
    rows = [["0.5", "0.3", "0.2"], ["0.2", "0.3", "0.5"]]
    for entry, variation in [
        ({"kind": "any", "local_epsilon": "1"}, (math.e - 1) / (math.e + 1)),
        ({"kind": "dary", "local_epsilon": "1", "values": 10}, (math.e - 1) / (math.e + 9)),
        ({"kind": "subset", "local_epsilon": "1", "values": 5, "size": 2}, 6 / 4 * (math.e - 1) / (2 * math.e + 3)),
        ({"kind": "hadamard", "local_epsilon": "1"}, (math.e - 1) / (math.e + 1) / 2),
        ({"kind": "unary", "p": "0.5", "q": "0.2"}, 0.3),
        ({"kind": "privunit", "p": "0.6", "q": "0.3"}, 0.3 * 0.4 / 0.7 * 2.5),
        ({"kind": "matrix", "rows": rows}, 0.3),
        ({"kind": "gaussian", "noise_multiplier": "2", "grid": [["0.1", 80]]}, math.erf(0.5 / 2**0.5)),
        ({"kind": "laplace", "local_epsilon": "1", "grid": [["0.1", 10]]}, 1 - math.exp(-0.5)),
    ]:
        r = check.randomizer(entry)
        assert float(r.profile(check.arb(1))) == pytest.approx(variation, rel=1e-9)
        assert float(sum(w * q for w, q in r.ratios) + r.delta) == pytest.approx(1)
        assert float(sum(q for _, q in r.ratios)) == pytest.approx(1, abs=1e-6)
        star = r.worst(check.arb("1.1"))
        assert float(sum(v * q for v, q in star)) == pytest.approx(-0.1, abs=1e-6)


@pytest.mark.parametrize(("people", "honest", "cohort"), [(150, 135, 30), (40, 5, 20), (40, 35, 38), (60, 60, 10)])
def test_more_honest_clients_of_a_cohort_are_as_likely_as_counting_says(people: int, honest: int, cohort: int) -> None:
    everything = math.comb(people, cohort)
    for size in range(min(cohort, honest) + 1):
        ways = sum(math.comb(honest, h) * math.comb(people - honest, cohort - h) for h in range(size + 1, cohort + 1))
        found = check.more(people, honest, cohort, size)
        assert ways / everything <= float(found.upper()) * (1 + 1e-15)
        assert float(found.upper()) == pytest.approx(ways / everything, rel=1e-12, abs=1e-30) or found == 1


def test_transforms_are_sums_of_exponentials() -> None:
    law = [(check.arb("-1.5"), check.arb("0.3")), (check.arb("0.25"), check.arb("0.7"))]
    values = check.transforms(law, check.arb("0.5"), check.arb("0.1"), 10)
    for k in range(11):
        z = check.acb("0.5", check.arb("0.1") * k)
        assert values[k].overlaps(sum((p * (z * v).exp() for v, p in law), check.acb(0)))


def test_fewer_clients_than_a_threshold_are_hardly_less_likely_than_is_charged() -> None:
    exact = sum(math.comb(99, k) * 0.7**k * 0.3 ** (99 - k) for k in range(59))
    assert exact <= float(check.fewer(100, Fraction(7, 10), 60)) <= 1.1 * exact
    assert float(check.fewer(100, Fraction(7, 10), 2)) == pytest.approx(0.3**99)
    assert float(check.fewer(100, Fraction(7, 10), 80)) == 1
