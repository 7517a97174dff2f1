"""Newer work: the blanket against enumeration and the theory's tables, the Gaussian approximation against truth."""

from __future__ import annotations

import itertools
import math

import pytest

from dpcheckin.accounting import Kind, ShuffleRound, any_pure, compose, dary_response, lower_bound
from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.catalogue import evaluate
from dpcheckin.papers.entry import Setting
from dpcheckin.papers.others import newer
from oracles.brute_force import as_pair, composed_epsilon, shuffle_law
from oracles.personal import response


@pytest.mark.parametrize(("reports", "exact"), [(1_000, 0.14867), (10_000, 0.04321), (100_000, 0.01243)])
def test_the_blanket_has_the_figures_of_the_theory(reports: int, exact: float) -> None:
    """Computed for the design notes by other code: any randomizer, local epsilon 1, delta 1e-6."""
    assert newer.blanket(reports, any_pure(1.0), 1e-6) == pytest.approx(exact, abs=6e-6)


def test_the_blanket_is_above_every_shuffle_of_few() -> None:
    """All values of three clients with 3-ary response, by enumeration; types are below it for many."""
    matrix, delta = response(3, 1.5), 0.01
    bound = newer.blanket(3, dary_response(1.5, 3), delta)
    for others in itertools.product(range(3), repeat=2):
        pair = as_pair(shuffle_law(matrix, [0, *others]), shuffle_law(matrix, [1, *others]))
        assert composed_epsilon(*pair, 1, delta) <= bound
    typed = compose([(ShuffleRound(5_000, any_pure(2.0)), 1)]).epsilon(1e-6).upper
    assert typed <= newer.blanket(5_000, any_pure(2.0), 1e-6)


def test_the_approximation_by_its_formula() -> None:
    """sqrt(2 / (sum - max)) of (1 - delta_i) / (1 + e^eps_i), written out for three clients."""
    epsilons, deltas = [0.5, 1.0, 3.0], [0.0, 0.1, 0.0]
    terms = [(1 - d) / (1 + math.exp(e)) for e, d in zip(epsilons, deltas, strict=True)]
    assert newer.personalised_mu(epsilons, deltas) == pytest.approx(math.sqrt(2 / (sum(terms) - max(terms))))
    with pytest.raises(InvalidParameter, match="epsilons"):
        newer.personalised_mu([1.0])
    with pytest.raises(InvalidParameter, match="epsilons"):
        newer.personalised_mu([1.0, -1.0])


def test_the_approximation_is_no_guarantee() -> None:
    """Two routes: a certified lower bound, and by hand: nobody of 9,999 lies with probability (1 - p)^n, p small."""
    n, e0, delta = 10_000, 9.0, 1e-5
    claimed = newer.personalised(n, e0, 1, delta)
    assert claimed < 5.81 < lower_bound([(ShuffleRound(n, any_pure(e0)), 1)], delta).epsilon.lower
    nobody = (1 - 1 / (math.exp(e0) + 1)) ** n  # then the one changed report is seen, and weighs e^-eps0 the other way
    by_hand = e0 + math.log1p(-delta / nobody)
    assert by_hand > 8.9 > claimed
    values = {v.name: v for v in evaluate(Setting("shuffle", n, 1, delta, local_epsilon=e0))}
    entry = values["personalised shuffle, approximately Gaussian"]
    assert entry.kind is Kind.CONJECTURE and entry.epsilon == pytest.approx(claimed)
    assert values["privacy blanket, the best decomposition"].kind is Kind.GUARANTEE


def test_where_reports_are_random_enough_it_is_no_smaller_than_the_truth() -> None:
    for n, e0 in ((1_000, 0.5), (10_000, 1.0), (50_000, 3.0)):
        low = lower_bound([(ShuffleRound(n, any_pure(e0)), 1)], 1e-6).epsilon.lower
        assert low <= newer.personalised(n, e0, 1, 1e-6)
