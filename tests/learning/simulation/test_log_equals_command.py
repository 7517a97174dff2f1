"""The epsilon that training logs is the one `dpcheckin epsilon` prints for the rounds run."""

import json

import pytest
from typer.testing import CliRunner

from dpcheckin.cli import application
from dpcheckin.protocols.questions import PROTOCOLS, protocol_name

TRAIN = ["train", "--json", "--threads", "1", "--evaluate-every", "5", "--delta", "1e-5"]
PRICE = ["epsilon", "--json", "--delta", "1e-5", "--population", "1437"]
CASES = {
    "shuffled-check-in": (
        ["--randomizer", "ldp-sgd", "--rate", "0.1", "--rounds", "5"],
        ["--randomizer", "hemisphere", "--rate", "0.1", "--rounds", "5"],
    ),
    "subsampled-shuffle": (
        ["--randomizer", "ldp-sgd", "--rate", "0.1", "--rounds", "5"],
        ["--randomizer", "hemisphere", "--cohort", "144", "--rounds", "5"],
    ),
    "full-shuffle": (["--randomizer", "ldp-sgd", "--rounds", "3"], ["--randomizer", "hemisphere", "--rounds", "3"]),
    "random-check-ins-fixed": (
        ["--randomizer", "ldp-sgd", "--slots", "600", "--minibatch", "30"],
        ["--randomizer", "hemisphere", "--slots", "600"],
    ),
    "random-check-ins-averaged": (
        ["--randomizer", "ldp-sgd", "--slots", "12"],
        ["--randomizer", "hemisphere", "--slots", "12"],
    ),
    "random-check-ins-sliding": (
        ["--randomizer", "ldp-sgd", "--slots", "1400", "--minibatch", "19"],
        ["--randomizer", "hemisphere", "--slots", "1400"],
    ),
    "distributed-check-in": (
        ["--randomizer", "gaussian", "--rate", "0.1", "--rounds", "5"],
        ["--noise-multiplier", "1.0", "--rate", "0.1", "--rounds", "5"],
    ),
    "local-only": (
        ["--randomizer", "ldp-sgd", "--rate", "0.1", "--rounds", "5"],
        ["--randomizer", "hemisphere", "--rate", "0.1", "--rounds", "5"],
    ),
    "central": (
        ["--noise-multiplier", "1.0", "--rate", "0.1", "--rounds", "5"],
        ["--noise-multiplier", "1.0", "--rate", "0.1", "--rounds", "5"],
    ),
}
WITHOUT_LOCAL_EPSILON = ("distributed-check-in", "central")


def said(arguments):
    result = CliRunner().invoke(application(), arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("protocol", CASES)
def test_the_log_and_the_command_agree(protocol):
    how, price = CASES[protocol]
    trained = said([*TRAIN, "--protocol", protocol, "--local-epsilon", "2", *how])
    local = [] if protocol in WITHOUT_LOCAL_EPSILON else ["--local-epsilon", "2"]
    priced = said([*PRICE, "--protocol", protocol, *local, *price])
    epsilon = priced["epsilon"]
    upper = epsilon["upper"] if isinstance(epsilon, dict) else epsilon
    assert trained["epsilon"] == pytest.approx(upper, rel=1e-12)


def test_no_protocol_is_left_out():
    """Every protocol that training knows is compared above."""
    assert {protocol_name(name) for name in CASES} == set(PROTOCOLS)


def test_privunit_is_priced_by_the_very_cap_that_is_sampled():
    """The command asks the randomizer itself."""
    how = ["--rate", "0.1", "--rounds", "5", "--local-epsilon", "4"]
    trained = said([*TRAIN, "--randomizer", "privunit", *how])
    priced = said([*PRICE, "--randomizer", "privunit:2410", *how])
    epsilon = priced["epsilon"]
    upper = epsilon["upper"] if isinstance(epsilon, dict) else epsilon
    assert trained["epsilon"] == pytest.approx(upper, rel=1e-12)
