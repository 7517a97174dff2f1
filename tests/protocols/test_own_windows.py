"""Windows of the clients' own, and windows that are repeated: cohorts and prices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpcheckin.accounting import WindowRound, binary_response, compose
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import ClientWindows, OwnWindows, RandomCheckIns, Window
from dpcheckin.randomizers import LdpSgd

LDP = LdpSgd(1.0, 10)
E0 = 1.2


def _choices(window, probability):
    yield None, 1 - probability
    for slot in window:
        yield slot, probability / len(window)


def _report(bit, answer):
    keep = math.exp(E0) / (1 + math.exp(E0))
    return keep if bit == answer else 1 - keep


def _output_law(target_bit, windows, probabilities, bits, slots):
    """Exact law of the binary answers of all slots, by going through everybody's choices."""
    law = dict.fromkeys(itertools.product((0, 1), repeat=slots), 0.0)
    data = [target_bit, *bits]
    everybody = [_choices(w, p) for w, p in zip(windows, probabilities, strict=True)]
    for chosen in itertools.product(*(list(one) for one in everybody)):
        chance = math.prod(p for _, p in chosen)
        there = [[j for j, (s, _) in enumerate(chosen) if s == i] for i in range(slots)]
        for asked in itertools.product(*(clients or [None] for clients in there)):
            share = chance / math.prod(len(clients) or 1 for clients in there)
            held = [0 if j is None else data[j] for j in asked]
            for answers in law:
                pieces = (_report(b, a) for b, a in zip(held, answers, strict=True))
                law[answers] += share * math.prod(pieces)
    return law


@pytest.mark.parametrize(
    "windows,probabilities",
    [
        (([0, 1], [1, 2], [0, 1, 2]), (0.7, 1.0, 0.4)),
        (([0, 2], [0], [2]), (1.0, 0.5, 0.5)),
        (([1], [0, 1, 2], [0, 1]), (0.3, 1.0, 1.0)),
    ],
)
def test_a_client_s_own_window_prices_it_whatever_the_others_do(windows, probabilities):
    """Exact enumeration of all choices and answers never passes the bound of the own window."""
    one = WindowRound(len(windows[0]), binary_response(E0), probabilities[0])
    run = compose([(one, 1)])
    closest = 0.0
    for bits in itertools.product((0, 1), repeat=2):
        laws = [_output_law(b, windows, probabilities, bits, 3) for b in (0, 1)]
        assert sum(laws[0].values()) == pytest.approx(1.0)
        for epsilon in (0.0, 0.1, 0.3, 0.6, 1.0):
            exact = max(sum(max(p[y] - math.exp(epsilon) * q[y], 0.0) for y in p) for p, q in (laws, laws[::-1]))
            bound = run.delta(epsilon).upper
            assert exact <= bound + 1e-12
            closest = max(closest, exact / bound if bound > 1e-6 else 0.0)
    assert closest > 0.3  # the comparison is not with something far away


def test_the_worst_window_prices_the_plan():
    """Shortest window, highest probability; a longer window of another client changes nothing."""
    windows = ClientWindows([range(0, 40), range(10, 90), range(0, 90)], [0.5, 0.8, 0.2])
    plan = OwnWindows(100, LDP, windows, minibatch=10)
    assert plan.rounds == 10 and plan.population == 3
    worst = compose([(WindowRound(40, LDP.pair, 0.8), 1)]).epsilon(1e-5).upper
    assert plan.guarantee(1e-5).epsilon.upper == worst
    part = compose([(WindowRound(40, LDP.pair, 0.8, 20), 1)]).epsilon(1e-5).upper
    assert plan.epsilon(1e-5, 2).upper == part < worst
    assert plan.epsilon(1e-5, 4).upper == plan.epsilon(1e-5, 9).upper == worst
    assert plan.guarantee(1e-5, 0).epsilon.upper == 0


def test_clients_choose_evenly_from_their_own_slots():
    """Nobody outside its window, shares as they should be (six deviations), dummies elsewhere."""
    sets = [range(0, 4)] * 3000 + [(5, 9)] * 3000
    plan = OwnWindows(10, LDP, ClientWindows(sets, [0.5] * 3000 + [1.0] * 3000))
    found = {slot: plan.slot_clients(7, slot) for slot in range(10)}
    for slot in range(4):
        assert (found[slot] < 3000).all()
        assert abs(len(found[slot]) - 375) < 6 * math.sqrt(3000 * 0.125 * 0.875)
    for slot in (5, 9):
        assert (found[slot] >= 3000).all() and abs(len(found[slot]) - 1500) < 6 * 27.4
    assert len(found[4]) == len(found[6]) == 0
    assert len(np.unique(np.concatenate(list(found.values())))) == sum(map(len, found.values()))
    assert plan.cohort(7, 4).dummies == 1 and len(plan.cohort(7, 4).clients) == 0
    assert plan.cohort(7, 5).clients[0] in found[5]


def test_a_repeated_window_is_a_fresh_one():
    """n/m repetitions of Algorithm 1 with p = m/n: new choices, and the windows compose."""
    plan = RandomCheckIns(400, 100, LDP, Window.FIXED, 0.25, 10, repetitions=4)
    assert plan.rounds == 40
    first, second = (set(np.concatenate([plan.slot_clients(3, s, r) for s in range(100)]).tolist())
                     for r in (0, 1))  # fmt: skip
    assert first != second and 60 < len(first) < 140
    reported = [set(plan.cohort(3, r).clients.tolist()) for r in range(40)]
    assert all(client in first for r in range(10) for client in reported[r])
    assert all(client in second for r in range(10, 20) for client in reported[r])
    one = WindowRound(100, LDP.pair, 0.25, others=399)
    begun = WindowRound(100, LDP.pair, 0.25, 50, others=399)
    assert plan.epsilon(1e-5).upper == compose([(one, 4)]).epsilon(1e-5).upper
    mixed = compose([(one, 2), (begun, 1)]).epsilon(1e-5).upper
    assert plan.epsilon(1e-5, 25).upper == mixed
    assert plan.epsilon(1e-5, 20).upper < mixed < plan.epsilon(1e-5, 30).upper
    once = RandomCheckIns(400, 100, LDP, Window.FIXED, 0.25, 10)
    assert (once.cohort(3, 4).clients == plan.cohort(3, 4).clients).all()


def test_repeated_averaged_windows_compose():
    plan = RandomCheckIns(2000, 10, LDP, Window.AVERAGED, repetitions=3)
    spent = [plan.epsilon(1e-5, rounds).upper for rounds in (10, 15, 20, 30)]
    assert plan.rounds == 30 and spent == sorted(spent) and spent[0] < spent[1]
    assert plan.guarantee(1e-5, 15).epsilon.upper == spent[1]


def test_what_no_theorem_covers_is_refused():
    with pytest.raises(InvalidParameter, match="repetitions"):
        RandomCheckIns(500, 10, LDP, Window.SLIDING, repetitions=2)
    with pytest.raises(InvalidParameter, match="check_in_probability"):
        RandomCheckIns(500, 10, LDP, Window.AVERAGED, 0.5)


@pytest.mark.parametrize(
    "make,word",
    [
        (lambda: ClientWindows([]), "slots"),
        (lambda: ClientWindows([[]]), "slots"),
        (lambda: ClientWindows([[1, 1]]), "slots"),
        (lambda: ClientWindows([[-1]]), "slots"),
        (lambda: ClientWindows([[1]], 0.0), "probabilities"),
        (lambda: ClientWindows([[1]], math.nan), "probabilities"),
        (lambda: OwnWindows(1, LDP, ClientWindows([[1], [0]])), "windows"),
        (lambda: OwnWindows(4, LDP, ClientWindows([[1], [0]]), 3), "minibatch"),
        (lambda: OwnWindows(4, LDP, ClientWindows([[1]])), "population"),
    ],
    ids=range(9),
)
def test_bad_windows_are_refused(make, word):
    with pytest.raises(InvalidParameter, match=word):
        make()


def test_windows_are_equal_by_content():
    one, same, other = (ClientWindows([range(n), range(3)]) for n in (4, 4, 5))
    assert one == same and hash(one) == hash(same) and one != other and one != "windows"
    assert repr(one) == repr(same) != repr(other)
