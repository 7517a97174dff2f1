"""How fast the analyzer opens reports of 100 KB, beside raw HPKE on the same bytes in the same run.

    python benchmarks/service_open.py [--reports 400] [--repeats 25]

Raw HPKE is one call of `cryptography` for each sealed part. The analyzer also checks sizes, header,
round and key, reads the payload, refuses what no honest client could have sent, and adds up. The
ratio is taken of CPU times, in alternating repeats, so that other work on the machine hits both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable

import numpy as np

from dpcheckin.service.analyzer.batches import BatchReader
from dpcheckin.service.wire import envelope, payloads
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import HEADER_BYTES, OpeningKey, new_private_key

DIMENSION = 25_600  # 100 KB of float32
MODEL = digest(b"model")


def plan() -> PlanDocument:
    said = {
        "type": "plan",
        "format": 1,
        "protocol": "shuffled-check-in",
        "population": 1000,
        "minimum_present": 1000,
        "colluding": 0.0,
        "dropout": 0.0,
        "minimum_batch": 0,
        "rate": 0.1,
        "rounds": 10,
        "randomizer": {"name": "gaussian", "noise_multiplier": 1.0, "dimension": DIMENSION, "clip": 1.0, "encoding": 1},
        "delta": 1e-5,
        "epsilon_budget": 8.0,
        "round_seconds": 60.0,
        "compute_seconds": 18.0,
        "suite": 1,
        "cover": True,
        "task": {},
        "nonce": "00" * 16,
    }
    return PlanDocument.from_object(said)


def timed(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reports", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=25)
    options = parser.parse_args()
    document, key = plan(), OpeningKey(1, new_private_key(1))
    round_document = RoundDocument(document.id.hex(), 0, MODEL.hex(), key.key_id.hex(), 0.0, 1.0)
    source = np.random.default_rng(1)
    sealed = [
        envelope.seal(document, key.public_key, 0, MODEL, payloads.vector_payload(source.standard_normal(DIMENSION)))
        for _ in range(options.reports)
    ]
    header = sealed[0][:HEADER_BYTES]
    info = envelope.bound_to(document.id, MODEL, header)
    parts = [one[HEADER_BYTES:] for one in sealed]
    suite, secret = envelope._SUITES[1], key._key

    def raw() -> None:
        for part in parts:
            suite.decrypt(part, secret, info)

    def analyzer() -> None:
        reader = BatchReader(document, round_document, key)
        for one in sealed:
            reader.add(one)
        found = reader.result()
        assert (found.reports, found.dropped) == (options.reports, 0)

    raw(), analyzer()  # warm up
    pairs = [(timed(raw), timed(analyzer)) for _ in range(options.repeats)]
    bare, whole = min(a for a, _ in pairs), min(b for _, b in pairs)
    print(
        json.dumps(
            {
                "report_bytes": len(sealed[0]),
                "raw_hpke_per_second": round(options.reports / bare),
                "analyzer_per_second": round(options.reports / whole),
                "ratio": round(bare / whole, 3),
                "median_ratio": round(statistics.median(a / b for a, b in pairs), 3),
                "cpus": os.cpu_count(),
            }
        )
    )


if __name__ == "__main__":
    main()
