import json
import math
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torch

from dpcheckin.accounting import CheckInRound, SubsampleRound, compose, hemisphere
from dpcheckin.errors import InvalidParameter, NumericalFailure, Unreachable
from dpcheckin.learning.options import Settings
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.learning.simulation.runs import build


def final(options, out=None):
    trainer = build(options, out)
    outcome = trainer.run()
    return get_parameters(outcome.module), outcome


def test_digits_are_learned_within_the_budget(tiny):
    """A short private run beats guessing by far and reports a certified epsilon."""
    _, outcome = final(tiny({"learning_rate": 1.0, "averaging": 0.9}, rounds=150, rate=0.2, epsilon_budget=8.0))
    assert outcome.accuracy > 0.75
    assert outcome.guarantee.epsilon.upper <= 8.0


def test_the_run_stops_before_the_round_that_would_pass_the_budget(tiny):
    """One round more would have cost more than the budget, the rounds run do not."""
    trainer = build(tiny(rounds=500, epsilon_budget=1.0))
    outcome = trainer.run()
    plan = trainer.plan
    assert outcome.stopped_by_budget and 0 < outcome.rounds < 500
    assert plan.epsilon(1e-5, outcome.rounds).upper <= 1.0
    assert plan.epsilon(1e-5, outcome.rounds + 1).upper > 1.0


def test_a_budget_below_one_round_is_unreachable(tiny):
    with pytest.raises(Unreachable, match="first round"):
        build(tiny(local_epsilon=8.0, epsilon_budget=0.001)).run()


def test_epsilon_in_the_log_is_that_of_the_rounds_run(tiny):
    """Every log row's epsilon is what accounting says for that many rounds."""
    trainer = build(tiny(randomizer="ldp-sgd", local_epsilon=2.0))
    log = trainer.run().log
    assert [row["round"] for row in log] == [4, 8, 12]
    one = CheckInRound(trainer.plan.population, 0.1, hemisphere(2.0))
    for row in log:
        assert row["epsilon"] == compose([(one, row["round"])]).epsilon(1e-5).upper
    trainer = build(tiny(protocol="subsampled-shuffle", randomizer="ldp-sgd", local_epsilon=2.0))
    one = SubsampleRound(trainer.plan.population, trainer.plan.cohort_size, hemisphere(2.0))
    last = trainer.run().log[-1]
    assert last["epsilon"] == compose([(one, 12)]).epsilon(1e-5).upper


def test_equal_options_give_equal_models_and_other_seeds_do_not(tiny):
    one, _ = final(tiny())
    again, _ = final(tiny())
    other, _ = final(tiny({"seed": 1}))
    assert torch.equal(one, again) and not torch.equal(one, other)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_run_taken_up_again_ends_with_the_same_bits(tiny, tmp_path, optimizer):
    """Interrupt between any two rounds, also between checkpoints: same model, same log."""
    settings = {"optimizer": optimizer, "momentum": 0.5, "averaging": 0.8}
    straight, outcome = final(tiny(settings))

    class Stop(Exception):
        pass

    def stop_at(limit):
        def watch(row):
            if "accuracy" not in row and row["round"] == limit:
                raise Stop

        return watch

    for limit in (2, 7, 11):
        trainer = build(tiny(settings), tmp_path)
        trainer.on_round = stop_at(limit)
        with pytest.raises(Stop):
            trainer.run()
    resumed, after = final(tiny(settings), tmp_path)
    assert torch.equal(straight, resumed)
    assert after.log == outcome.log
    assert json.loads((tmp_path / "log.json").read_text()) == outcome.log


SCRIPT = """
import sys
from pathlib import Path
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.options import Settings
from dpcheckin.learning.simulation.runs import build
settings = Settings(evaluate_every=20, checkpoint_every=7, momentum=0.5)
options = RunOptions(rounds=120, rate=0.3, threads=1, reports="each", settings=settings)
build(options, Path(sys.argv[1])).run()
"""


def test_resume_after_kill_9_gives_the_uninterrupted_model(tmp_path):
    """Killed at random moments without warning, the run ends in the same bits."""
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    command = [sys.executable, "-c", SCRIPT]
    subprocess.run([*command, str(straight)], check=True)
    chance, kills = random.Random(os.getpid()), 0
    for _ in range(2):
        process = subprocess.Popen([*command, str(killed)])
        deadline = time.monotonic() + 60
        while not (killed / "checkpoint.pt").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.4))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    subprocess.run([*command, str(killed)], check=True)
    one = torch.load(straight / "checkpoint.pt", weights_only=True)
    other = torch.load(killed / "checkpoint.pt", weights_only=True)
    assert kills > 0, "the run was never interrupted: it proves nothing"
    assert torch.equal(one["parameters"], other["parameters"])
    assert torch.equal(one["average"], other["average"])
    assert one["rounds"] == other["rounds"] == 120 and one["log"] == other["log"]


def test_a_folder_of_another_run_is_refused(tiny, tmp_path):
    """What the run there has otherwise is said; how it was computed does not matter."""
    final(tiny(), tmp_path)
    there = r"out = .*\(the one there has rate 0\.1, learning-rate 0\.5\)$"
    with pytest.raises(InvalidParameter, match=there):
        build(tiny({"learning_rate": 0.1}, rate=0.2), tmp_path).run()
    final(tiny(threads=2), tmp_path)


def test_a_folder_of_a_run_that_did_not_say_its_options_is_refused(tiny, tmp_path):
    """Checkpoints written before options were kept with them."""
    final(tiny(), tmp_path)
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    del saved["chosen"]
    torch.save(saved, tmp_path / "checkpoint.pt")
    with pytest.raises(InvalidParameter, match=r"of exactly these settings$"):
        build(tiny(rate=0.2), tmp_path).run()
    final(tiny(), tmp_path)


def test_processes_give_the_local_result(tiny):
    """Two worker processes, one local process: the same model, bit for bit."""
    local, _ = final(tiny(rate=0.8, rounds=3))
    trainer = build(tiny(rate=0.8, rounds=3, backend="processes", workers=2))
    try:
        shared = get_parameters(trainer.run().module)
    finally:
        trainer.backend.close()
    assert torch.equal(local, shared)


def test_a_diverging_run_says_so(tiny):
    with pytest.raises(NumericalFailure, match="learning_rate"):
        build(tiny({"learning_rate": 3e38, "momentum": 0.9, "schedule": "constant"})).run()


@pytest.mark.parametrize("per_tensor", [False, True])
@pytest.mark.parametrize("randomizer", ["gaussian", "ldp-sgd", "privunit"])
def test_every_randomizer_trains(tiny, randomizer, per_tensor):
    _, outcome = final(tiny(randomizer=randomizer, per_tensor=per_tensor, rounds=4))
    assert outcome.rounds == 4 and math.isfinite(outcome.guarantee.epsilon.upper)


def test_ten_million_clients_train_in_the_time_of_a_thousand(tiny):
    """P0's federated setting on digits: population 10⁷, rate 10⁻⁴."""
    _, outcome = final(tiny(population=10_000_000, rate=1e-4, rounds=4))
    assert 800 < outcome.log[-1]["check_ins"] < 1200


@pytest.mark.parametrize(
    "change,name",
    [
        ({"optimizer": "lion"}, "optimizer"),
        ({"schedule": "zigzag"}, "schedule"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"evaluate_every": 0}, "evaluate_every"),
    ],
)
def test_bad_settings_are_refused_by_name(change, name):
    with pytest.raises(InvalidParameter, match=name):
        Settings(**change)


def test_schedules():
    """Linear and cosine fall to zero over the run, steps follow their table, warm-up rises."""
    assert Settings(learning_rate=2.0, schedule="linear").rate_at(5, 10) == 1.0
    assert Settings(learning_rate=2.0, schedule="cosine").rate_at(5, 10) == pytest.approx(1.0)
    steps = Settings(learning_rate=2.0, schedule="steps", steps=((3, 0.5), (6, 0.1)))
    rates = [steps.rate_at(i, 10) for i in (0, 3, 9)]
    assert rates == pytest.approx([2.0, 1.0, 0.2])
    assert Settings(learning_rate=2.0, schedule="constant", warmup=4).rate_at(0, 10) == 0.5


def test_every_protocol_and_randomizer_that_can_be_named_can_be_made(tiny):
    """The lists that options are checked against are those of what can be built."""
    from dpcheckin.learning.simulation.runs import make_plan, make_randomizer
    from dpcheckin.protocols.questions import PROTOCOL_OF
    from dpcheckin.randomizers import VectorRandomizer, registry

    for name in PROTOCOL_OF:
        options = tiny(protocol=name, randomizer="gaussian", rate=0.1, rounds=3)
        plan = make_plan(options, 50, make_randomizer(options, 10))
        assert plan.population == 50 and len(plan.cohort(0, 0).clients) <= 50
    kinds = [kind for kind in registry.kinds().values() if issubclass(kind, VectorRandomizer)]
    assert len(kinds) > 7
    for kind in kinds:
        for name in (kind.name, *kind.aliases):
            made = make_randomizer(tiny(randomizer=name), 10)
            assert type(made) is kind and made.clip == 1.0
    with pytest.raises(InvalidParameter, match="vectors"):
        tiny(randomizer="dary:3")


def test_what_is_said_of_rates_is_priced_and_played(tiny):
    """Rates that differ were taken for equal ones, at two thirds of their price."""
    from dpcheckin.accounting import CheckInRound, compose, gaussian
    from dpcheckin.learning.simulation.runs import make_plan, make_randomizer

    options = tiny(randomizer="gaussian", noise_multiplier=4.0, rate=0.5, lowest_rate=0.3, rounds=3)
    plan = make_plan(options, 1_437, make_randomizer(options, 10))
    price = compose([(CheckInRound(1_437, 0.5, gaussian(4.0), lowest_rate=0.3), 3)]).epsilon(1e-5).upper
    assert plan.guarantee(1e-5).epsilon.upper == pytest.approx(price, rel=1e-9)
    assert "each client's rate lies between 0.3 and 0.5" in str(plan.guarantee(1e-5))
    reported = sum(len(plan.cohort(0, i).clients) for i in range(40)) / (40 * 1_437)
    assert 0.38 < reported < 0.42
