import numpy as np
import pytest
import torch

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import Bootstrapped, GroupedByOwner, OneRecordEach

INPUTS, TARGETS = torch.arange(12.0).view(6, 2), torch.arange(6)


def test_one_record_each():
    inputs, targets, mask = OneRecordEach(INPUTS, TARGETS).records(np.array([4, 1]))
    assert targets.tolist() == [4, 1] and inputs.tolist() == [[8, 9], [2, 3]] and mask is None


def test_bootstrapped_clients_keep_their_record_and_spread_evenly():
    """Ten million clients cost nothing to have; each holds one fixed record."""
    fleet = Bootstrapped(INPUTS, TARGETS, population=10_000_000)
    clients = np.arange(0, 10_000_000, 100)
    targets = fleet.records(clients)[1]
    assert torch.equal(targets, fleet.records(clients)[1])
    counts = np.bincount(targets.numpy(), minlength=6)
    assert abs(counts - len(clients) / 6).max() < 6 * np.sqrt(len(clients) / 6)


def test_owners_records_are_grouped_and_masked():
    owners = np.array([7, 3, 7, 3, 7, 9])
    fleet = GroupedByOwner(INPUTS, TARGETS, owners, most_records=2)
    assert fleet.population == 3
    inputs, targets, mask = fleet.records(np.array([0, 1, 2]))
    assert mask.tolist() == [[1, 1], [1, 1], [1, 0]]
    assert targets[0].tolist() == [1, 3] and targets[1].tolist() == [0, 2]
    assert targets[2, 0].item() == 5 and inputs.shape == (3, 2, 2)


def test_owners_must_match_records():
    with pytest.raises(InvalidParameter, match="owners"):
        GroupedByOwner(INPUTS, TARGETS, np.array([1, 2]))
