"""How fast are surveys: simulated reports, decoding, and does the cost grow with the population?

    python benchmarks/survey_speed.py [--reports 1000000] [--json FILE]

Wall-clock time on one core. Targets: a million simulated reports of a 915-category histogram in
3 s, 100,000 small reports decoded and counted in a second by the library and by the deployed
analyzer (opening their seals, which is the curve's arithmetic, is shown apart), and the same work
for the same number of check-ins whatever the population.
"""

from __future__ import annotations

import _timing  # noqa: F401  (one thread for every library)

# isort: split
import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.deployment.tasks import analyzer_task
from dpcheckin.randomizers import SecureSource
from dpcheckin.service.analyzer.batches import BatchReader, ReportRows
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.reports import make_envelope
from dpcheckin.service.wire.documents import PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import OpeningKey, new_private_key
from dpcheckin.service.wire.payloads import octets_payload
from dpcheckin.survey import Count, Histogram, Mean, Survey, one_round, simulate

CATEGORIES = 915


def took(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def deployed(population: int) -> tuple[Survey, PlanDocument, Any]:
    """The survey of an analyzer's settings, its plan, and the task that counts its reports."""
    plan = {"population": population, "rounds": 1, "rate": 0.5, "delta": 1e-8}
    plan |= {"epsilon_budget": 20.0, "round_seconds": 60.0}
    settings = AnalyzerSettings(
        Path("/nowhere"), "http://127.0.0.1:1", "", None, plan,
        {"name": "dary", "local_epsilon": 9.0}, {"kind": "histogram", "categories": CATEGORIES},
    )  # fmt: skip
    settings, task, size = analyzer_task(settings)
    return task.survey, settings.plan_document(size), task  # type: ignore[union-attr]


def analyzer(some: int, done: dict[str, float]) -> None:
    """What the analyzer does with the reports of a round."""
    draw = np.random.default_rng(2)
    for people in (10**5, 10**6, 10**7):
        survey, _, _ = deployed(people)
        reports = survey.randomizer.randomize(draw.integers(CATEGORIES, size=some), SecureSource())
        form = survey.query.report_format(survey.randomizer)
        payloads = [octets_payload(one) for one in form.encode(reports)]

        def counted(survey: Survey = survey, payloads: list[bytes] = payloads) -> Any:
            rows = ReportRows(survey.randomizer)
            for payload in payloads:
                rows.take(payload)
            return survey.estimate(rows.rows())

        seconds, _ = took(counted)
        done[f"analyzer, decoded a second, of {people}"] = some / seconds
        print(f"analyzer: {some / seconds:,.0f} opened reports decoded and counted a second, population {people:,}")
    survey, plan, _ = deployed(10**5)
    key = OpeningKey(plan.suite, new_private_key(plan.suite))
    model = bytes(32)
    said = RoundDocument(plan.id.hex(), 0, model.hex(), key.key_id.hex(), 0.0, 1.0)
    source = SecureSource()
    answer = np.array([3])
    envelopes = [  # all different: a copy is dropped
        make_envelope(plan, survey.randomizer, 0, model, key.public_key, answer, source) for _ in range(5000)
    ]

    def opened() -> Any:
        reader = BatchReader(plan, said, key)
        for envelope in envelopes:
            reader.add(envelope)
        return reader.result()

    seconds, result = took(opened)
    assert result.reports == len(envelopes)
    done["analyzer, opened and decoded a second"] = len(envelopes) / seconds
    print(f"analyzer: {len(envelopes) / seconds:,.0f} sealed reports opened and decoded a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reports", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    draw, done = np.random.default_rng(1), dict[str, float]()
    for name, local in (("dary", 9.0), ("subset:3", 7.0), ("hadamard", 4.0)):
        values = draw.integers(915, size=given.reports)
        survey = Survey(Histogram(915), given.reports, local, name)
        seconds, _ = took(lambda survey=survey, values=values: simulate(survey, values))
        done[f"simulated, {name}"] = seconds
        print(f"{given.reports:,} reports of 915 categories by {name}: {seconds:.2f} s")
    some = min(given.reports, 200_000)
    for name, query, local, values in (
        ("histogram", Histogram(915), 9.0, draw.integers(915, size=some)),
        ("mean", Mean(0, 1), 6.0, draw.random(some)),
        ("count", Count(), 4.0, draw.integers(2, size=some)),
    ):
        survey = Survey(query, some, local, "levels:8" if name == "mean" else None)
        reports = one_round(survey, query.encode(values), 0, 0)
        payloads = query.report_format(survey.randomizer).encode(reports)
        seconds, (rows, _) = took(lambda s=survey, p=payloads: s.query.decode(p, s.plan))
        more, _ = took(lambda s=survey, r=rows: s.estimate(r))
        done[f"decoded a second, {name}"] = some / (seconds + more)
        print(f"{name}: {some / (seconds + more):,.0f} reports decoded and counted a second")
    analyzer(some, done)
    for people in (10**5, 10**6, 10**7):
        values = draw.integers(915, size=people)  # memory that was written: zeros are not there yet
        survey = Survey(Histogram(915), people, 5.0, rate=10_000 / people)
        encoded = survey.query.encode(values)
        seconds, _ = took(lambda s=survey, e=encoded: one_round(s, e, 0, 0))
        done[f"10,000 check-ins of {people}"] = seconds
        print(f"10,000 check-ins of {people:,} clients: {1000 * seconds:.1f} ms")
    if given.json:
        given.json.write_text(json.dumps(done, indent=1) + "\n")


if __name__ == "__main__":
    main()
