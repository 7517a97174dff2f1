"""`dpcheckin audit`: attack the running code and report a lower bound on epsilon.

This file holds the command's arguments, its progress bar and what it prints; the attacks are in
`dpcheckin.audit`. Exit code 0: the claim is not violated, and the audit saw enough to say so (with
--mutants: all were caught). 1: it is violated. 2: bad input. 3: inconclusive, too little was seen.
"""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpcheckin.cli.arguments.options import AUDITED_RANDOMIZERS, options_from
from dpcheckin.errors import InvalidParameter
from dpcheckin.options import option
from dpcheckin.waiting import waiting

if TYPE_CHECKING:
    from dpcheckin.audit.checks.requests import Request
    from dpcheckin.audit.examination import Check, Progress
    from dpcheckin.audit.finding import Finding

_SYSTEM, _COST, _TABLES = "What is audited", "Budget and output", "Tables for the documentation"


@dataclass(frozen=True)
class AuditOptions:
    """What can be said to an audit; None is what each attack has for itself."""

    attack: str = option(
        "released",
        "released (batches), report (one report), training, one-run, service, "
        "data-dependent-failure (a client whose task fails) or influence (lying clients in a "
        "survey).",
        section=_SYSTEM,
    )
    protocol: str | None = option(
        None,
        "shuffled-check-in, subsampled-shuffle, shuffle, distributed-check-in or "
        "random-check-in-fixed.",
        section=_SYSTEM,
    )
    randomizer: str | None = option(
        None, f"{AUDITED_RANDOMIZERS} (default dary:3).", section=_SYSTEM
    )
    population: int | None = option(None, "Number of clients (1000).", section=_SYSTEM)
    rate: float | None = option(None, "Probability of checking in (0.1).", section=_SYSTEM)
    local_epsilon: float | None = option(
        None, "Epsilon of one report (4; none for gaussian).", section=_SYSTEM
    )
    rounds: int | None = option(None, "Number of rounds (8).", section=_SYSTEM)
    slots: int | None = option(None, "Slots of a random check-in window.", section=_SYSTEM)
    delta: float | None = option(None, "Delta of claim and audit (0.001).", section=_SYSTEM)
    claim: str | None = option(
        None, "A published figure: p1-table2-approach2, … ('list' lists them).", section=_SYSTEM
    )
    arrival: str | None = option(
        None,
        "With service or data-dependent-failure: the target's report arrives first "
        "(default), last or anywhere.",
        section=_SYSTEM,
    )
    question: str | None = option(
        None, "With influence: histogram, mean, … (all kinds).", section=_SYSTEM
    )
    colluding_clients: int | None = option(
        None, "With influence: how many lie (20).", section=_SYSTEM
    )
    fast_coins: bool = option(
        False,
        "Draw cohorts and orders in batches of the audit's own, not by the shipped code.",
        section=_SYSTEM,
    )
    budget: str = option(
        "30s", "Time (30s, 10m, 2h), processor time (20m-cpu) or pairs of runs.", section=_COST
    )
    confidence: float = option(0.99, "Confidence of the lower bound.", section=_COST)
    seed: int | None = option(None, "Repeat an audit exactly.", section=_COST)
    workers: int | None = option(None, "Worker processes (default: up to 2).", section=_COST)
    out: Path | None = option(None, "Folder for report, picture and state.", section=_COST)
    resume: bool = option(False, "Go on with the audit in --out.", section=_COST)
    json: bool = option(False, "Print one JSON object.", section=_COST)
    mutants: bool = option(False, "Audit broken systems.", section=_TABLES)
    repetitions: int = option(1, "Audits of each mutant.", section=_TABLES)
    tightness: bool = option(
        False, "Audited against certified, each cell within the budget.", section=_TABLES
    )


@options_from(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Attack the implementation; without arguments, eight rounds of check-ins in half a minute."""
    o = options
    _check_folder(o.out, o.resume)
    from dpcheckin.audit.checks.requests import Request

    if o.mutants and o.tightness:
        raise InvalidParameter("tightness", True, "left out with --mutants")
    if o.mutants:
        _mutants(o.repetitions, o.out, o.json)
        return
    if o.tightness:
        _tightness(o.budget, o.confidence, o.workers, o.out, o.json)
        return
    if o.claim == "list":
        from dpcheckin.papers.claims import claim_names

        typer.echo("\n".join(claim_names()))
        return
    request = Request(**{one.name: getattr(o, one.name) for one in fields(Request)})
    if o.attack == "one-run":
        _one_run(request, o.seed, o.out, o.json)
        return
    if o.attack == "influence":
        _influence(request, o.question, o.colluding_clients, o.seed, o.out, o.json)
        return
    for name, given in (("question", o.question), ("colluding-clients", o.colluding_clients)):
        if given is not None:
            raise InvalidParameter(name, given, "left out without --attack influence")
    _examined(request, o.budget, o.seed, _workers(o.budget, o.workers), o.out, o.resume, o.json)


def _check_folder(out: Path | None, resume: bool) -> None:
    """Refuse at once what would be found out after hours of plays."""
    if out is None:
        return
    if out.exists() and not out.is_dir():
        raise InvalidParameter("out", str(out), "a folder")
    if not resume and (out / "audit.json").exists():
        raise InvalidParameter("out", str(out), "a folder without an audit (--resume goes on)")


def _examined(
    request: Request,
    budget: str,
    seed: int | None,
    workers: int,
    out: Path | None,
    resume: bool,
    json: bool,
) -> None:
    from dpcheckin.audit.budget import Budget
    from dpcheckin.audit.checks.verdicts import judged
    from dpcheckin.audit.examination import examine
    from dpcheckin.audit.page import write_page
    from dpcheckin.audit.picture import draw_findings

    allowed = Budget.parse(budget)
    if resume and out is None:
        raise InvalidParameter("resume", True, "used together with --out")
    if resume and seed is not None:
        raise InvalidParameter("seed", seed, "left out with --resume: the saved one goes on")
    if request.claim is None:
        check = request.check()
    else:
        from dpcheckin.papers.claims import check_claim

        check = check_claim(request)
    with _watched() as progress:
        finding = examine(
            check, allowed, seed=seed, workers=workers, progress=progress, resume=resume,
            state_path=None if out is None else out / "state.json",
            stop_when_refuted=request.claim is not None,
        )  # fmt: skip
    finding = judged(check, finding)
    report, words = _reported(request, check, finding)
    if out is not None:
        draw_findings([finding], out / "audit.png")
        write_page(finding, words, out / "audit.png", out / "report.html")
    _print_report(report, words, out, json)


def _reported(request: Request, check: Check, finding: Finding) -> tuple[dict[str, Any], str]:
    """What is written down and said of a finding, with the budget that it lacks."""
    from dpcheckin.audit.checks.verdicts import advice, needed_pairs
    from dpcheckin.audit.finding import Verdict

    report = finding.to_json()
    words = f"{finding.name}\nplayed: {finding.played}\n{finding}"
    if request.claim is not None:
        from dpcheckin.papers.claims import claimed, forecast

        report["claim"] = request.claim
        if not finding.refuted:
            needed = forecast(claimed(request).plan, finding)
            report["pairs_needed"] = needed.pairs
            words += f"\n{needed}"
            if needed.pairs is not None:  # false by computation, and not yet by attack
                report["verdict"] = Verdict.INCONCLUSIVE.value
                return report, words
    if finding.verdict is Verdict.INCONCLUSIVE:
        report["pairs_needed"] = needed_pairs(check, finding)
        words += f"\n{advice(check, finding)}"
    return report, words


def _one_run(request: Request, seed: int | None, out: Path | None, json: bool) -> None:
    from dpcheckin.audit.checks.one_run import audit_one_run, default_one_run_plan

    plan = request.sums_plan(default_one_run_plan())
    delta = 1e-5 if request.delta is None else request.delta
    finding = audit_one_run(plan, delta, request.confidence, seed=seed or 0)
    _print_report(finding.to_json(), f"{finding.name}\n{finding}", out, json)


def _influence(
    request: Request,
    question: str | None,
    clients: int | None,
    seed: int | None,
    out: Path | None,
    json: bool,
) -> None:
    """Exit code 1 when a bound fell or a malformed report was counted."""
    from dpcheckin.audit.checks.influence import InfluenceAttack
    from dpcheckin.audit.finding import Verdict

    findings = []
    with _watched() as progress:
        surveys = request.surveys(question)
        for done, (survey, values) in enumerate(surveys):
            progress(done / len(surveys), survey.query.kind)
            attack = InfluenceAttack(survey, values, 20 if clients is None else clients, seed or 0)
            findings.append(attack.play())
    worst = next(
        one for one in (Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.NOT_VIOLATED)
        if one in {finding.verdict for finding in findings}
    )  # fmt: skip
    report = {"findings": [one.to_json() for one in findings], "verdict": worst.value}
    _print_report(report, "\n".join(map(str, findings)), out, json)


def _print_report(report: dict[str, Any], words: str, out: Path | None, json: bool) -> None:
    """Print, leave the report in the folder, and exit with the code of the verdict."""
    from dpcheckin.audit.finding import Verdict

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "audit.json").write_text(json_format.dumps(report, indent=2), encoding="utf-8")
        page = out / "report.html"
        words += (
            f"\nreport: {page} (audit.json and audit.png beside it)"
            if page.exists()
            else (f"\nreport: {out / 'audit.json'}")
        )
    typer.echo(json_format.dumps(report) if json else words)
    if code := Verdict(report["verdict"]).exit_code:
        raise typer.Exit(code)


def _mutants(repetitions: int, out: Path | None, json: bool) -> None:
    """Exit code 1 when a mutant escaped or the honest system was flagged."""
    from dpcheckin.audit.tables.mutant_table import markdown, measure

    with _watched() as progress:
        rows = measure(repetitions, None if out is None else out / "mutants.json", progress)
    typer.echo(json_format.dumps([asdict(row) for row in rows]) if json else markdown(rows))
    if any(row.caught < row.repetitions or row.flagged for row in rows):
        raise typer.Exit(1)


def _tightness(
    budget: str, confidence: float, workers: int | None, out: Path | None, json: bool
) -> None:
    from dpcheckin.audit.budget import Budget
    from dpcheckin.audit.tables import tightness

    if out is None:
        raise InvalidParameter("out", None, "a folder: the figure takes long and is resumed there")
    cells = [*tightness.one_round_cells(), *tightness.composed_cells()]
    with _watched() as progress:
        results = tightness.audit_cells(
            cells, Budget.parse(budget), out / "cells.json", confidence=confidence,
            workers=_workers(budget, workers), progress=progress,
        )  # fmt: skip
    tightness.draw([r for r in results if r["cell"]["rounds"] == 1], out / "audit-tightness.png")
    done = {cell.key: result for cell, result in zip(cells, results, strict=True)}
    typer.echo(json_format.dumps(results) if json else tightness.tables(done))
    if any(result["refuted"] for result in results):
        raise typer.Exit(1)


def _workers(budget: str, given: int | None) -> int:
    from dpcheckin.audit.budget import Budget

    if given is not None:
        return given
    allowed = Budget.parse(budget)
    seconds = allowed.seconds or allowed.cpu_seconds
    if seconds is not None and seconds < 15:  # starting processes takes seconds
        return 1
    return min(2, os.cpu_count() or 1)


@contextmanager
def _watched() -> Iterator[Progress]:
    """Signs of life while an audit plays."""
    with waiting("audit") as say:
        yield lambda share, words: say(words, share)
