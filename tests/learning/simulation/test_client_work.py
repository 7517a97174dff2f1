import numpy as np
import pytest
import torch
from torch import nn

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import ClientWork, OneRecordEach, Reports
from dpcheckin.learning.models import cross_entropy
from dpcheckin.learning.simulation.client_work import HEAD_CHUNK, get_parameters, set_parameters
from dpcheckin.randomizers import ClipOnly, Gaussian, LInfinityBit, PrivUnit

SIZE = 5 * 10 + 10
MORE = HEAD_CHUNK + 100


def work(randomizer, reports=Reports.SUM, per_tensor=False, scale=1.0, records=600):
    torch.manual_seed(0)
    fleet = OneRecordEach(scale * torch.randn(records, 5), torch.randint(0, 10, (records,)))
    return ClientWork(nn.Linear(5, 10), cross_entropy, fleet, randomizer, reports, per_tensor)


def run(job, clients, seed=(1,)):
    return [job.chunk(c) for c in job.chunks(np.arange(clients), seed)]


def test_chunks_cover_the_cohort_once_with_seeds_of_their_own():
    job = work(Gaussian(1.0), records=MORE)
    chunks = job.chunks(np.arange(MORE), (3, 4))
    assert np.array_equal(np.concatenate([c.clients for c in chunks]), np.arange(MORE))
    assert [c.seed for c in chunks] == [(3, 4, 0), (3, 4, 1)]
    assert job.chunks(np.arange(0), (3, 4)) == []


def test_a_chunk_is_a_function_of_its_seed():
    """Run twice, in another order, by another worker: the same bits; another seed: others."""
    one, other = (work(PrivUnit(2.0, SIZE), records=MORE) for _ in range(2))
    first = run(one, MORE)
    chunks = other.chunks(np.arange(MORE), (1,))
    last, again = other.chunk(chunks[1]), other.chunk(chunks[0])
    assert torch.equal(first[0].estimate_sum, again.estimate_sum)
    assert torch.equal(first[1].estimate_sum, last.estimate_sum)
    assert not torch.equal(first[0].estimate_sum, run(one, MORE, (2,))[0].estimate_sum)


@pytest.mark.parametrize("reports", list(Reports))
def test_without_noise_the_sum_is_that_of_clipped_gradients(reports):
    """Both modes; the clip binds for some clients and not for others."""
    job = work(ClipOnly(2.0), reports)
    rows = []
    for x, y in zip(job.fleet.inputs, job.fleet.targets, strict=True):
        loss = cross_entropy(job.module(x[None]), y[None]).sum()
        grads = torch.autograd.grad(loss, job.module.parameters())
        row = torch.cat([g.flatten() for g in grads])
        rows.append(row * min(1.0, 2.0 / float(row.norm())))
    results = run(job, 600)
    total = sum(r.estimate_sum for r in results)
    assert torch.allclose(total, torch.stack(rows).sum(0), atol=1e-3)
    assert sum(r.clients for r in results) == 600
    assert 0 < sum(r.clipped for r in results) < 600


def test_each_report_and_only_the_sum_agree_in_mean_and_energy():
    """The two modes differ in cost, not in law: same mean, same noise energy."""
    clean = sum(r.estimate_sum for r in run(work(ClipOnly(1.0)), 100))
    spread = {}
    for mode in Reports:
        job = work(PrivUnit(3.0, SIZE), mode)
        sums = torch.stack([run(job, 100, (s,))[0].estimate_sum for s in range(300)])
        deviation = (sums.mean(0) - clean) / (sums.std(0) / 300**0.5)
        assert float(deviation.abs().max()) < 5.5
        spread[mode] = float(((sums - clean) ** 2).sum(1).mean())
    assert spread[Reports.EACH] == pytest.approx(spread[Reports.SUM], rel=0.08)


def test_per_tensor_clipping_gives_each_tensor_its_share():
    """With every gradient large, each of two tensors ends at clip/√2."""
    job = work(ClipOnly(1.0), Reports.SUM, per_tensor=True, scale=100.0)
    total = run(job, 1)[0].estimate_sum
    assert float(total[:50].norm()) == pytest.approx(0.5**0.5, rel=1e-4)
    assert float(total[50:].norm()) == pytest.approx(0.5**0.5, rel=1e-4)


def test_a_randomizer_without_a_short_cut_needs_each_report():
    with pytest.raises(InvalidParameter, match="each"):
        work(LInfinityBit(1.0, SIZE), Reports.SUM)
    result = run(work(LInfinityBit(1.0, SIZE), Reports.EACH), 10)[0]
    assert result.estimate_sum.shape == (SIZE,)


def test_dummies_are_reports_about_zero():
    job = work(PrivUnit(4.0, SIZE), Reports.EACH)
    dummies = torch.stack([job.dummies(50, (9, s)) for s in range(200)])
    assert float((dummies.mean(0) / (dummies.std(0) / 200**0.5)).abs().max()) < 5.5
    assert float(dummies.norm(dim=1).mean()) > 1.0


def test_parameters_survive_a_round_trip():
    module = nn.Linear(3, 2)
    flat = torch.arange(8.0)
    set_parameters(module, flat)
    assert torch.equal(get_parameters(module), flat)
