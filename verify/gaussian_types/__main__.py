"""`python -m gaussian_types make|verify`, in the folder `verify`: prove the table, or prove it again."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from dpcheckin.accounting.pairs.gaussian import TABLE
from gaussian_types.claim import Claim
from gaussian_types.search import Proof, close_proposal, proposal, prove
from gaussian_types.table import read, shipped_lines, stored, verified, written

STEPS = 64  # diameters are 2^(k/64): neighbours differ by 1.1%
CLOSE_STEPS, FIRST_CLOSE = 128, 16  # close types: 2^(k/128) from 1.09 on, below it fails


def main() -> int:
    """Parse the command line and run one of the two commands."""
    parser = argparse.ArgumentParser(prog="python -m gaussian_types", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="search for proofs and append them to a file")
    make.add_argument("--smallest", type=float, default=0.125, help="smallest diameter")
    make.add_argument("--largest", type=float, default=2.0, help="largest diameter")
    make.add_argument("--every", type=int, default=1, help="only every so many-th diameter")
    make.add_argument("--table", type=Path, default=Path(TABLE), help="file to append to")
    verify = commands.add_parser("verify", help="prove the entries of a table again")
    verify.add_argument("--table", type=Path, help="file to read (the shipped table if left out)")
    verify.add_argument("--smallest", type=float, default=0.0, help="smallest diameter")
    verify.add_argument("--largest", type=float, default=100.0, help="largest diameter")
    verify.add_argument("--share", type=float, default=1.0, help="part of the cells, at random")
    verify.add_argument("--seed", type=int, default=0, help="seed of that choice")
    options = parser.parse_args()
    if options.command == "make":
        return _make(options.smallest, options.largest, options.every, options.table)
    return _verify(options)


def _make(smallest: float, largest: float, every: int, table: Path) -> int:
    known = stored(table)
    failed = 0
    for claim in (one for one in _proposals(every) if smallest <= one.diameter <= largest):
        if any(proof.claim == claim for proof in known):
            continue
        start = time.process_time()
        proof = prove(claim, _neighbour(known, claim))
        seconds = time.process_time() - start
        shown = f"s = {claim.diameter:.6f}, s' = {claim.scale:.6f}"
        if proof is None:
            failed += 1
            print(f"{shown}: not proved ({seconds:.0f} s)", flush=True)
            continue
        known.append(proof)
        with table.open("a", encoding="utf-8") as file:
            file.write(written(proof) + "\n")
        cells = proof.tree.count("0")
        print(f"{shown}: proved with {cells:,} cells ({seconds:.0f} s)", flush=True)
    return 1 if failed else 0


def _proposals(every: int) -> list[Claim]:
    """What is worth proving, by diameter: claims for all α, and those with close types."""
    wide = [2.0 ** (k / STEPS) for k in range(-8 * STEPS, STEPS + 1) if k % every == 0]
    close = [2.0 ** (k / CLOSE_STEPS) for k in range(FIRST_CLOSE, CLOSE_STEPS + 1) if k % every == 0]
    return [*map(proposal, wide), *map(close_proposal, close)]


def _neighbour(known: list[Proof], claim: Claim) -> str | None:
    """The tree of the nearest known claim, if it is near enough to be a good start."""

    def apart(one: Proof) -> tuple[bool, float]:
        other_kind = len(one.claim.tilts) != len(claim.tilts)
        return other_kind, abs(one.claim.diameter / claim.diameter - 1)

    best = min((one for one in known if apart(one)[1] < 0.05), key=apart, default=None)
    return best.tree if best else None


def _verify(options: argparse.Namespace) -> int:
    proofs = stored(options.table) if options.table else list(read(shipped_lines()))
    proofs = [one for one in proofs if options.smallest <= one.claim.diameter <= options.largest]
    bad = 0
    for proof in proofs:
        examined, failing = verified(proof, options.share, options.seed)
        claim = proof.claim
        bad += failing
        verdict = "holds" if failing == 0 else f"FAILS in {failing} cells"
        print(
            f"s = {claim.diameter:.6f}, s' = {claim.scale:.6f}, smoothing {claim.smoothing:g}, "
            f"alpha up to {claim.largest_alpha:.4f}: {verdict} ({examined:,} cells)",
            flush=True,
        )
    print(f"{len(proofs):,} entries, {bad:,} failing cells")
    return 1 if bad or not proofs else 0


if __name__ == "__main__":
    sys.exit(main())
