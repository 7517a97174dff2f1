"""pure-ldp's frequency oracles on given symbols; started by `survey_accuracy.py` in an environment
that has pure-ldp. Reads one JSON object from standard input, prints one.

Input: symbols (0, …), size of the domain, local epsilons by name. Output: for every local epsilon
and mechanism the mean over the symbols of the squared error of the estimated counts.
"""

from __future__ import annotations

import json
import random
import sys

import numpy as np
import xxhash
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

_hash = xxhash.xxh32
# pure-ldp 1.2 hashes texts; today's xxhash takes bytes only
xxhash.xxh32 = lambda data, seed: _hash(data.encode() if isinstance(data, str) else data, seed=seed)


def parties(name: str, epsilon: float, size: int):
    """A client and a server of one mechanism."""
    same = {"index_mapper": lambda x: x}
    if name == "DE":
        return DEClient(epsilon, size, **same), DEServer(epsilon, size, **same)
    if name == "OUE":
        client = UEClient(epsilon, size, use_oue=True, **same)
        return client, UEServer(epsilon, size, use_oue=True, **same)
    if name == "OLH":
        client = LHClient(epsilon, size, use_olh=True, **same)
        return client, LHServer(epsilon, size, use_olh=True, **same)
    server = HadamardResponseServer(epsilon, size, **same)
    return HadamardResponseClient(epsilon, size, server.get_hash_funcs(), **same), server


def measured(name: str, epsilon: float, symbols: list[int], size: int) -> float:
    """Mean squared error of the counts of one run."""
    client, server = parties(name, epsilon, size)
    for symbol in symbols:
        server.aggregate(client.privatise(symbol))
    found = np.array([server.estimate(v, suppress_warnings=True) for v in range(size)])
    truth = np.bincount(symbols, minlength=size)
    return float(np.mean((found - truth) ** 2))


def main() -> None:
    asked = json.load(sys.stdin)
    random.seed(asked["seed"])
    np.random.seed(asked["seed"])  # noqa: NPY002 (pure-ldp draws from it)
    symbols, size = asked["symbols"], asked["size"]
    few = symbols[: asked["few"]]
    answer: dict[str, dict[str, float]] = {}
    for label, epsilon in asked["epsilons"].items():
        answer[label] = {}
        for name in ("DE", "OUE", "OLH", "HR"):
            some = few if name == "OLH" else symbols  # it hashes every symbol for every report
            try:
                answer[label][name] = measured(name, epsilon, some, size) / len(some)
            except Exception as problem:  # told, not hidden: the table says which one failed
                print(f"{name} at {epsilon}: {problem!r}", file=sys.stderr)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
