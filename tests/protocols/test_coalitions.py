"""What is left against whom: ordered as trust is, and never below what an attack reaches."""

import json
import math
import sys

import numpy as np
import pytest
from scipy.stats import binom

import dpcheckin as dp
from dpcheckin.accounting import CheckInRound, any_pure, compose
from dpcheckin.accounting.composition.guarantees import local_guarantee
from dpcheckin.accounting.rounds.shuffled import ShuffleRound
from dpcheckin.cli import main
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.coalitions import LOCAL, coalitions, shuffler_alone
from dpcheckin.randomizers import Gaussian

ONE = CheckInRound(2000, 0.05, any_pure(2.0))


def by_parties(**changes: object) -> dict[str, float]:
    asked = {"rounds": 20, "delta": 1e-5, "minimum_batch": 60, "tokens": True, **changes}
    found = coalitions(ONE, **asked)  # type: ignore[arg-type]
    return {one.parties: one.epsilon for one in found}


def test_whoever_joins_a_coalition_only_makes_it_stronger() -> None:
    left = by_parties()
    run = dp.guarantee([(ONE, 20)], 1e-5)
    assert run.local is not None
    assert left["analyzer"] == left["issuer"] == left["analyzer and issuer"] == run.charge()
    assert left["analyzer"] < left["shuffler"] < left["shuffler and issuer"]
    assert left["shuffler and issuer"] == left["shuffler and analyzer"] == left["all three"]
    assert left["all three"] == run.local.epsilon


def test_without_tokens_the_shuffler_alone_is_as_strong_as_with_the_analyzer() -> None:
    left = by_parties(tokens=False)
    assert "issuer" not in left
    assert left["shuffler"] == left["shuffler and analyzer"] == by_parties()["all three"]


def test_a_larger_minimum_hides_better_and_colluders_count_against_it() -> None:
    figures = [shuffler_alone(ONE, 20, 1e-5, batch)[0] for batch in (0, 1, 20, 60, 100)]
    local = local_guarantee([(ONE.pair, ONE.rate, 20)], 1e-5).epsilon
    assert figures[0] == figures[1] == local
    assert figures == sorted(figures, reverse=True)
    some = CheckInRound(2000, 0.05, any_pure(2.0), colluding=0.02)  # 40 clients
    assert shuffler_alone(some, 20, 1e-5, 100)[0] == figures[3]
    assert shuffler_alone(some, 20, 1e-5, 41) == (local, LOCAL)


def test_the_rounds_in_which_a_client_reports_are_never_too_few() -> None:
    """The basis names K rounds: more than K happen with at most half of delta."""
    for rounds, delta in ((1, 1e-2), (20, 1e-5), (500, 1e-3)):
        found, basis = shuffler_alone(ONE, rounds, delta, 100)
        if basis == LOCAL:
            continue
        most = int(basis.split("at most ")[1].split()[0])
        assert math.fsum(binom.pmf(np.arange(most + 1, rounds + 1), rounds, ONE.rate)) <= delta / 2
        shuffled = compose([(ShuffleRound(100, any_pure(2.0)), most)])
        assert found == pytest.approx(shuffled.epsilon(delta / 2).upper)


def test_the_figure_holds_against_the_shuffler_of_binary_responses() -> None:
    """The exact loss of one round: a victim's bit among 19 known ones, added up.

    The shuffler knows who reports and reads the number of ones among 20 randomized bits. That is a
    sum of two binomial laws and the victim's own bit, with no theorem in between.
    """
    epsilon_0, crowd, rate, delta = 1.0, 20, 0.4, 1e-3
    keep = math.exp(epsilon_0) / (1 + math.exp(epsilon_0))
    worst = 0.0
    for ones in range(crowd):
        others = np.convolve(
            binom.pmf(np.arange(ones + 1), ones, keep), binom.pmf(np.arange(crowd - ones), crowd - 1 - ones, 1 - keep)
        )
        laws = [np.convolve(others, [1 - p, p]) for p in (keep, 1 - keep)]
        for p, q in (laws, laws[::-1]):
            low, high = 0.0, epsilon_0
            for _ in range(60):
                middle = (low + high) / 2
                seen = rate * np.maximum(p - math.exp(middle) * q, 0.0).sum()
                low, high = (middle, high) if seen > delta else (low, middle)
            worst = max(worst, high)
    one = CheckInRound(200, rate, any_pure(epsilon_0))
    assert 0 < worst <= shuffler_alone(one, 1, delta, crowd)[0] <= epsilon_0


def test_reports_that_are_not_pure_have_their_own_noise_only() -> None:
    one = CheckInRound(2000, 0.05, Gaussian(4.0, 1.0).pair)
    found, basis = shuffler_alone(one, 5, 1e-5, 100)
    assert basis == LOCAL
    assert found == local_guarantee([(one.pair, 0.05, 5)], 1e-5).epsilon


def test_bad_questions_are_refused() -> None:
    for changes, said in (({"rounds": 0}, "rounds"), ({"minimum_batch": -1}, "minimum_batch")):
        with pytest.raises(InvalidParameter, match=said):
            by_parties(**changes)


def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    run = ["--population", "2000", "--rate", "0.05", "--local-epsilon", "2"]
    run += ["--rounds", "20", "--delta", "1e-5"]
    monkeypatch.setattr(sys, "argv", ["dpcheckin", "trust", *run, *more])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_the_command_prints_what_the_library_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = asked(monkeypatch, capsys, "--minimum-batch", "60", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["tokens"] is True
    assert {one["parties"]: one["epsilon"] for one in said["coalitions"]} == by_parties()
    _, out, _ = asked(monkeypatch, capsys, "--no-issuer")
    assert "trusted to invent no reports" in out
    code, _, err = asked(monkeypatch, capsys, "--minimum-batch", "-1")
    assert code == 2
    assert "minimum-batch = -1" in err
