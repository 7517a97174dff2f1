"""Queries: documents, values, unbiased estimates, bytes, and what colluding clients can do."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import DaryResponse, SecureSource, registry
from dpcheckin.survey import (
    Count,
    Distribution,
    HeavyHitters,
    Histogram,
    Mean,
    Quantiles,
    Query,
    Sum,
    Survey,
    VectorMean,
    one_round,
    simulate,
)
from dpcheckin.survey.questions.distribution import non_decreasing

EVERY = [
    (Count(), None, [0, 1] * 50),
    (Histogram(("red", "green", "blue")), "dary", ["red", "blue"] * 50),
    (Histogram(12), "subset:3", [3, 4] * 50),
    (Histogram(12), "unary", [3, 4] * 50),
    (Histogram(12), "hadamard", [3, 4] * 50),
    (Histogram(5), "subset:2", [3, 4] * 50),
    (Histogram(5), "unary", [3, 4] * 50),
    (Mean(-1, 3), "levels:4", [0.5, 2.5] * 50),
    (Sum(-1, 3), "levels:4", [0.5, 2.5] * 50),
    (VectorMean(3, 2.0), "privunit", [[1, 0, 0], [0, 1, 1]] * 50),
    (Distribution(0, 1, 8), "flat", [0.1, 0.9] * 50),
    (Quantiles(0, 1, 16, (0.5,)), "tree:4", [0.1, 0.9] * 50),
    (HeavyHitters(12, 5), "hash:6", [7, 4000] * 50),
    (HeavyHitters(24, 5, alphabet="abcde"), "hash:6", ["abc", "ed"] * 50),
]
IDS = [f"{query.kind} {mechanism}" for query, mechanism, _ in EVERY]


@pytest.mark.parametrize(("query", "mechanism", "values"), EVERY, ids=IDS)
def test_a_query_and_its_survey_come_back_from_their_documents(query, mechanism, values):
    assert Query.from_document(json.loads(json.dumps(query.as_document()))) == query
    survey = Survey(query, 100, 2.0, mechanism, rate=0.5, rounds=query.stages)
    again = Survey.from_document(json.loads(json.dumps(survey.as_document())))
    assert again.query == query and again.as_document() == survey.as_document()
    assert again.randomizer == survey.randomizer


@pytest.mark.parametrize(("query", "mechanism", "values"), EVERY, ids=IDS)
def test_reports_travel_as_bytes_of_one_length(query, mechanism, values):
    """Also those made with the operating system's chance, as a device makes them."""
    survey = Survey(query, 100, 2.0, mechanism, rounds=query.stages)
    encoded = query.encode(values)
    reports = survey.randomizer.randomize(query.asked(encoded, 0), SecureSource())
    payloads = survey.randomizer.report_format.encode(reports)
    assert {len(payload) for payload in payloads} == {survey.report_bytes}
    rows, dropped = query.decode(payloads, survey.plan)
    assert dropped == 0
    assert rows == pytest.approx(reports, abs=1e-6)


@pytest.mark.parametrize(("query", "mechanism", "values"), EVERY, ids=IDS)
def test_what_is_no_report_is_dropped_and_counted(query, mechanism, values):
    survey = Survey(query, 100, 2.0, mechanism, rounds=query.stages)
    reports = one_round(survey, query.encode(values), 0, 0)
    payloads = survey.randomizer.report_format.encode(reports)
    hostile = [b"", payloads[0] + b"x", b"\xff" * survey.report_bytes]
    rows, dropped = query.decode([*payloads, *hostile], survey.plan)
    assert len(rows) == len(payloads)
    assert dropped == 3


def test_the_estimate_drops_what_was_not_checked_before():
    survey = Survey(Histogram(4), 100, 3.0)
    reports = one_round(survey, np.zeros(100, dtype=np.int64), 0, 0)
    found = survey.estimate(np.append(reports, [4, -1, 99]))
    assert (found.reports, found.dropped) == (100, 3)
    assert found.values == pytest.approx(survey.estimate(reports).values)


@pytest.mark.parametrize(("query", "mechanism", "values"), EVERY, ids=IDS)
def test_fractions_and_what_is_not_finite_are_no_reports(query, mechanism, values):
    survey = Survey(query, 100, 2.0, mechanism, rounds=query.stages)
    rounds = [one_round(survey, query.encode(values), 0, r) for r in range(survey.rounds)]
    plain = survey.estimate(rounds)
    strange = [np.nan, np.inf, -np.inf, 0.5, 1e300]
    hostile = np.array([np.full(rounds[0].shape[1:], value) for value in strange])
    found = survey.estimate([np.concatenate([rounds[0].astype(float), hostile]), *rounds[1:]])
    assert found.dropped == 5 and found.reports == plain.reports
    assert found.values == pytest.approx(plain.values)


@pytest.mark.parametrize(("query", "mechanism", "values"), EVERY, ids=IDS)
def test_reports_of_another_shape_are_refused(query, mechanism, values):
    survey = Survey(query, 100, 2.0, mechanism, rounds=query.stages)
    reports = one_round(survey, query.encode(values), 0, 0)
    wrong = np.stack([reports, reports], axis=1)
    for some in (wrong, np.array(["1", "2"]), np.array(3)):
        with pytest.raises(InvalidParameter, match="reports"):
            survey.estimate([some] * survey.rounds)


@pytest.mark.parametrize("mechanism", ["dary", "subset:2", "hadamard", "unary"])
def test_the_expected_histogram_is_the_true_one(mechanism):
    """Exact: the estimate is linear, so its mean is that over the law of one report."""
    query = Histogram(4)
    survey = Survey(query, 2, 1.3, mechanism)
    one = survey.randomizer
    kinds = {"dary": 4, "hadamard": 8, "subset:2": 6, "unary": 16}[mechanism]
    reports = np.unique(one.randomize(np.zeros(20_000, np.int64), _seeded()), axis=0)
    assert len(reports) == kinds
    each = np.array([query.estimate(reports[i : i + 1], survey.plan).values for i in range(kinds)])
    for symbol in range(4):
        own = np.array([one.support(reports[i : i + 1])[symbol] for i in range(kinds)])
        if mechanism == "unary":  # bits are independent: the law is a product
            bits = np.array([one.support(reports[i : i + 1]) for i in range(kinds)])
            p = np.where(np.arange(4) == symbol, one.own_support, one.other_support)
            law = np.prod(np.where(bits > 0, p, 1 - p), axis=1)
        else:  # two probabilities, e^ε₀ apart
            weights = np.where(own > 0, np.exp(1.3), 1.0)
            law = weights / weights.sum()
        assert law @ each == pytest.approx(2 * np.eye(4)[symbol], abs=1e-12)


def test_somebody_elses_randomizer_answers_a_question(monkeypatch):
    """Once it is registered the planner tries it, and it is asked for by name."""
    monkeypatch.setattr(registry, "_registered", {})

    @registry.register
    @dataclass(frozen=True)
    class Loud(DaryResponse):
        name, label, aliases = "loud", "loud response", ()

    query = Histogram(4)
    assert list(query.mechanisms())[-1] == "loud"
    survey = Survey(query, 500, 3.0, "loud")
    assert survey.randomizer == Loud(3.0, 4)
    values = np.repeat(np.arange(4), [200, 150, 100, 50])
    reports = survey.randomizer.randomize(query.encode(values), _seeded())
    assert np.abs(survey.estimate([reports]).values - [200, 150, 100, 50]).max() < 60
    with pytest.raises(InvalidParameter, match="mechanism"):
        Survey(query, 500, 3.0, "levels:4")
    with pytest.raises(InvalidParameter, match="mechanism = 'skellam:4' is not allowed: expected one such as privunit"):
        Survey(VectorMean(3), 500, 3.0, "skellam:4")  # it keeps no local epsilon


def _seeded():
    from dpcheckin.randomizers import SeededSource

    return SeededSource(0)


@pytest.mark.parametrize("branching", [2, 3, 9])
def test_the_expected_distribution_is_the_true_one(branching):
    """Exact, level by level: every level's mean adds its part of the running share."""
    query = Distribution(0, 1, 9)
    mechanism = "flat" if branching == 9 else f"tree:{branching}"
    survey = Survey(query, 100, 1.1, mechanism)
    tree = survey.randomizer
    from dpcheckin.survey.questions.distribution import _flat, _levels

    for leaf in (0, 4, 8):
        seen = []
        for level, width in zip(tree.levels, tree.widths, strict=True):
            reports = np.arange(level.report_format.limits[0])
            own = np.array([level.support(reports[i : i + 1])[leaf // width] for i in reports])
            weights = np.where(own > 0, np.exp(1.1), 1.0)
            seen.append(weights / weights.sum())
        shares, _ = _flat(tree, seen[0]) if branching == 9 else _levels(tree, seen)
        assert shares == pytest.approx((np.arange(9) >= leaf).astype(float), abs=1e-3)


@pytest.mark.parametrize("low", [0.0, -5.0])
def test_means_and_sums_are_unbiased(low):
    values = np.linspace(low, 10, 200)
    for query, truth in ((Mean(low, 10), values.mean()), (Sum(low, 10), values.sum())):
        survey = Survey(query, 200, 3.0, "levels:4", rate=0.5)
        found = np.array([simulate(survey, values, seed=s).estimate.values[0] for s in range(600)])
        assert abs(found.mean() - truth) < 4.5 * found.std() / np.sqrt(600)


@pytest.mark.parametrize(
    ("query", "mechanism", "make", "figure"),
    [
        (Histogram(6), "dary", lambda n: np.full(n, 2), 2),
        (Histogram(40), "subset:2", lambda n: np.tile([2, 5], (n, 1)), 2),
        (Count(), None, lambda n: np.ones(n, np.int64), 0),
        (Mean(0, 10), "levels:5", lambda n: np.tile([0, 5], (n, 1)), 0),
    ],
)
def test_colluding_clients_move_a_figure_by_at_most_the_bound_and_nearly_by_it(query, mechanism, make, figure):
    """The worst reports in place of the best honest ones for the attack."""
    people, hostile = 200, 20
    survey = Survey(query, people, 2.0, mechanism)
    values = np.zeros(people) if query.kind == "mean" else np.zeros(people, np.int64)
    honest = one_round(survey, query.encode(values), 1, 0)
    bad = honest.copy()
    bad[:hostile] = make(hostile)
    moved = np.abs(survey.estimate(bad).values - survey.estimate(honest).values)
    bound = survey.influence(hostile, len(honest))
    assert moved.max() <= bound * (1 + 1e-12)
    assert moved[figure] > 0.5 * bound


def test_a_distribution_does_not_decrease_whatever_came():
    survey = Survey(Distribution(0, 1, 32), 300, 0.5, "tree:4")
    values = np.random.default_rng(1).random(300)
    for simultaneous in (False, True):
        e = simulate(survey, values, seed=3, simultaneous=simultaneous).estimate
        assert (np.diff(e.values) >= 0).all() and e.values[-1] == 1.0
        assert (e.lower <= e.values).all() and (e.values <= e.upper).all()
    assert (np.diff(e.lower) >= 0).all() and (np.diff(e.upper) >= 0).all()


def test_heavy_hitters_are_found_and_nothing_that_nobody_holds():
    rng = np.random.default_rng(2)
    values = np.concatenate([np.repeat([77_777, 1, 2**23], [900, 700, 500]), rng.integers(1 << 24, size=1900)])
    query = HeavyHitters(24, 5)
    assert query.stages == 2
    survey = Survey(query, len(values), 6.0, "hash:8", rounds=2)
    found = simulate(survey, values, seed=1)
    assert found.estimate.names[:3] == ("77777", "1", str(2**23))
    off = np.abs(found.estimate.values - found.truth)
    assert (off < 5 * found.estimate.deviation).all()
    assert (found.truth > 0).all()


def test_heavy_hitters_of_strings():
    words = ["ab"] * 400 + ["cd"] * 300 + ["abc"] * 250 + ["dada"] * 50
    survey = Survey(HeavyHitters(24, 3, alphabet="abcd"), 1000, 6.0, "hash:8", rounds=2)
    assert simulate(survey, words, seed=1).estimate.names == ("ab", "cd", "abc")


@pytest.mark.parametrize(
    ("query", "values", "word"),
    [
        (Histogram(("a", "b")), ["a", "c"], "values"),
        (Histogram(3), [0, 3], "values"),
        (Histogram(3), [0.5], "values"),
        (Histogram(3), ["x"], "values"),
        (Histogram(3), [[0]], "values"),
        (Count(), ["maybe"], "values"),
        (Mean(0, 1), ["x"], "values"),
        (Mean(0, 1), [float("nan")], "values"),
        (VectorMean(3), [[1, 2]], "values"),
        (HeavyHitters(8), [256], "values"),
        (HeavyHitters(8), [-1], "values"),
        (HeavyHitters(24, alphabet="ab"), ["abc"], "values"),
    ],
)
def test_values_that_are_none_are_refused(query, values, word):
    with pytest.raises(InvalidParameter, match=word):
        query.encode(values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Histogram(1),
        lambda: Histogram(("a", "a")),
        lambda: Histogram(2**21),
        lambda: Count(categories=3),
        lambda: Mean(1, 1),
        lambda: Mean(0, float("inf")),
        lambda: VectorMean(1),
        lambda: VectorMean(2, 0.0),
        lambda: Distribution(0, 1, 1),
        lambda: Distribution(0, 1, 2**15),
        lambda: Quantiles(0, 1, 8, (0.0,)),
        lambda: Quantiles(0, 1, 8, ()),
        lambda: HeavyHitters(65),
        lambda: HeavyHitters(24, 0),
        lambda: HeavyHitters(24, 5, 1.0),
        lambda: HeavyHitters(24, 5, alphabet="aa"),
        lambda: Query.from_document({"kind": "poem"}),
        lambda: Query.from_document({"kind": "mean", "low": 0, "high": 1, "mood": 2}),
        lambda: Query.from_document({"kind": "mean", "low": 0}),
        lambda: Survey.from_document({"population": 5}),
        lambda: Survey(Count(), 1, 1.0),
        lambda: Survey(Count(), 10, 1.0, rate=0.0),
        lambda: Survey(Count(), 10, 1.0, "subset:2x"),
        lambda: Survey(Mean(0, 1), 10, 1.0, "dary"),
        lambda: Survey(Histogram(5), 10, 1.0, "dary:3"),
        lambda: Survey(HeavyHitters(24), 10, 1.0, "hash:4", rounds=3),
        lambda: Survey(Distribution(0, 1, 2048), 10, 1.0, "tree:4"),
    ],
)
def test_bad_descriptions_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_a_survey_without_reports_has_no_answer():
    with pytest.raises(InvalidParameter, match="reports"):
        Survey(Count(), 10, 1.0).estimate(np.zeros(0, dtype=np.int64))


def test_shares_in_the_wrong_order_are_pooled():
    """The nearest non-decreasing numbers, as another implementation finds them."""
    chance = np.random.default_rng(9)
    for size in (1, 2, 7, 60):
        shares = np.cumsum(chance.normal(0.02, 0.2, size))
        nearest = np.clip(optimize.isotonic_regression(shares).x, 0.0, 1.0)
        nearest[-1] = 1.0
        np.testing.assert_allclose(non_decreasing(shares), nearest, atol=1e-14)


@given(text=st.text(), bits=st.integers(8, 64))
def test_any_string_is_read_back_as_far_as_it_fits(text, bits):
    from dpcheckin.survey.questions.strings import AnyString

    coder = AnyString(bits)
    (word,) = coder.encode(np.array([text], dtype=object))
    (read,) = coder.decode(np.array([word]))
    widths = [
        5 if c in "abcdefghijklmnopqrstuvwxyz -" else 9 if c in "0123456789" else 10 if "A" <= c <= "Z" else
        21 if ord(c) < 0x10000 else 42
        for c in text
    ]  # fmt: skip
    fit = next((i for i in range(len(text)) if sum(widths[: i + 1]) > bits), len(text))
    assert read == text[:fit]


@given(word=st.integers(0, 2**64 - 1), bits=st.integers(8, 64))
def test_every_candidate_has_some_string(word, bits):
    from dpcheckin.survey.questions.strings import AnyString

    (read,) = AnyString(bits).decode(np.array([word >> (64 - bits)], dtype=np.uint64))
    assert isinstance(read, str) and "\ufffd" not in read
    read.encode()  # no half of a pair


def test_heavy_hitters_find_strings_that_no_alphabet_lists():
    words = ["café"] * 700 + ["Tea 2 go"] * 500 + ["東京都"] * 400 + [f"w{i:05}" for i in range(800)]
    query = HeavyHitters(64, 3, alphabet="any")
    survey = Survey(query, len(words), 6.0, "hash:8", rounds=query.stages)
    assert simulate(survey, words, seed=3).estimate.names == ("café", "Tea 2 go", "東京都")
    assert query.encode_any("\N{SNOWMAN} in any case").shape == (1,) and query.encode_any(None).tolist() == [0]
