"""`dpcheckin audit`: attack the running code and report a lower bound on epsilon.

This file holds the command's arguments, its progress bar and what it prints; the attacks are in `dpcheckin.audit`. Exit
code 0: the claim is not violated, and the audit saw enough to say so (with --mutants: all were caught). 1: it is
violated. 2: bad input. 3: inconclusive, too little was seen.
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

from dpcheckin.cli.arguments import AUDITED_RANDOMIZERS, options_from
from dpcheckin.console import waiting
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.options import listed, option
from dpcheckin.protocols.questions import PLANNED, PROTOCOLS

if TYPE_CHECKING:
    from dpcheckin.audit.budget import Budget
    from dpcheckin.audit.examination import Check, Progress
    from dpcheckin.audit.finding import Finding
    from dpcheckin.audit.requests import Request

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
        None, f"{listed([name for name in PLANNED if 'rounds' in PROTOCOLS[name].fields])}.", section=_SYSTEM
    )
    randomizer: str | None = option(None, f"{AUDITED_RANDOMIZERS} (default dary:3).", section=_SYSTEM)
    population: int | None = option(None, "Number of clients (1000).", section=_SYSTEM)
    rate: float | None = option(None, "Probability of checking in (0.1).", section=_SYSTEM)
    local_epsilon: float | None = option(None, "Epsilon of one report (4; none for gaussian).", section=_SYSTEM)
    rounds: int | None = option(None, "Number of rounds (8).", section=_SYSTEM)
    slots: int | None = option(None, "Slots of a random check-in window.", section=_SYSTEM)
    delta: float | None = option(None, "Delta of claim and audit (0.001).", section=_SYSTEM)
    claim: str | None = option(None, "A published figure: p1-table2-approach2, … ('list' lists them).", section=_SYSTEM)
    arrival: str | None = option(
        None,
        "With service or data-dependent-failure: the target's report arrives first (default), last or anywhere.",
        section=_SYSTEM,
    )
    question: str | None = option(None, "With influence: histogram, mean, … (all kinds).", section=_SYSTEM)
    colluding_clients: int | None = option(None, "With influence: how many lie (20).", section=_SYSTEM)
    fast_coins: bool = option(
        False, "Draw cohorts and orders in batches of the audit's own, not by the shipped code.", section=_SYSTEM
    )
    budget: str = option("30s", "Time (30s, 10m, 2h), processor time (20m-cpu) or pairs of runs.", section=_COST)
    confidence: float = option(0.99, "Confidence of the lower bound.", section=_COST)
    seed: int | None = option(None, "Repeat an audit exactly.", section=_COST)
    workers: int | None = option(None, "Worker processes (default: up to 2).", section=_COST)
    out: Path | None = option(None, "Folder for report, picture and state.", section=_COST)
    resume: bool = option(False, "Go on with the audit in --out.", section=_COST)
    json: bool = option(False, "Print one JSON object.", section=_COST)
    mutants: bool = option(False, "Audit broken systems.", section=_TABLES)
    repetitions: int = option(1, "Audits of each mutant.", section=_TABLES)
    tightness: bool = option(False, "Audited against certified, each cell within the budget.", section=_TABLES)


@options_from(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Attack the implementation; without arguments, eight rounds of check-ins in half a minute."""
    o = options
    _check_folder(o.out, o.resume)
    if o.mutants and o.tightness:
        raise Superfluous("tightness", True, "leave it out with --mutants")
    if o.mutants:
        _mutants(o)
    elif o.tightness:
        _tightness(o)
    elif o.claim == "list":
        from dpcheckin.papers.claims import claim_names

        typer.echo("\n".join(claim_names()))
    else:
        _attack(o)


def _attack(o: AuditOptions) -> None:
    from dpcheckin.audit.requests import Request

    request = Request(**{field.name: getattr(o, field.name) for field in fields(Request)})
    if o.attack == "one-run":
        _one_run(request, o)
        return
    if o.attack == "influence":
        _influence(request, o)
        return
    for name, given in (("question", o.question), ("colluding-clients", o.colluding_clients)):
        if given is not None:
            raise Superfluous(name, given, "leave it out without --attack influence")
    _examined(request, o)


def _check_folder(out: Path | None, resume: bool) -> None:
    """Refuse at once what would be found out after hours of plays."""
    if out is None:
        return
    if out.exists() and not out.is_dir():
        raise InvalidParameter("out", str(out), "a folder")
    if not resume and (out / "audit.json").exists():
        raise InvalidParameter("out", str(out), "a folder without an audit (--resume goes on)")


def _examined(request: Request, o: AuditOptions) -> None:
    from dpcheckin.audit.budget import Budget
    from dpcheckin.audit.examination import examine
    from dpcheckin.audit.finding import draw_finding, write_page
    from dpcheckin.audit.plans import judged

    budget = Budget.parse(o.budget)
    if o.resume and o.out is None:
        raise InvalidParameter("resume", True, "used together with --out")
    if o.resume and o.seed is not None:
        raise Superfluous("seed", o.seed, "leave it out with --resume: the saved one goes on")
    if request.claim is None:
        check = request.check()
    else:
        from dpcheckin.papers.claims import check_claim

        check = check_claim(request)
    with _watched() as progress:
        finding = examine(
            check, budget, seed=o.seed, workers=_workers(budget, o.workers), progress=progress, resume=o.resume,
            state_path=None if o.out is None else o.out / "state.json",
            stop_when_refuted=request.claim is not None,
        )  # fmt: skip
    finding = judged(check, finding)
    report, words = _reported(request, check, finding)
    if o.out is not None:
        draw_finding(finding, o.out / "audit.png")
        write_page(finding, words, o.out / "audit.png", o.out / "report.html")
    _print_report(report, words, o)


def _reported(request: Request, check: Check, finding: Finding) -> tuple[dict[str, Any], str]:
    """What is written down and said of a finding, with the budget that it lacks."""
    from dpcheckin.audit.finding import Verdict
    from dpcheckin.audit.plans import advice, needed_pairs

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


def _one_run(request: Request, o: AuditOptions) -> None:
    from dpcheckin.audit.training import audit_one_run, default_one_run_plan

    plan = request.sums_plan(default_one_run_plan())
    delta = 1e-5 if request.delta is None else request.delta
    finding = audit_one_run(plan, delta, request.confidence, seed=o.seed or 0)
    _print_report(finding.to_json(), f"{finding.name}\n{finding}", o)


def _influence(request: Request, o: AuditOptions) -> None:
    """Exit code 1 when a bound fell or a malformed report was counted."""
    from dpcheckin.audit.finding import Verdict
    from dpcheckin.audit.influence import InfluenceAttack

    clients = 20 if o.colluding_clients is None else o.colluding_clients
    findings = []
    with _watched() as progress:
        surveys = request.surveys(o.question)
        for done, (survey, values) in enumerate(surveys):
            progress(done / len(surveys), survey.query.kind)
            findings.append(InfluenceAttack(survey, values, clients, o.seed or 0).play())
    verdicts = {finding.verdict for finding in findings}
    worst_first = (Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.NOT_VIOLATED)
    worst = next(verdict for verdict in worst_first if verdict in verdicts)
    report = {"findings": [finding.to_json() for finding in findings], "verdict": worst.value}
    _print_report(report, "\n".join(map(str, findings)), o)


def _print_report(report: dict[str, Any], words: str, o: AuditOptions) -> None:
    """Print, leave the report in the folder, and exit with the code of the verdict."""
    from dpcheckin.audit.finding import Verdict

    if o.out is not None:
        o.out.mkdir(parents=True, exist_ok=True)
        (o.out / "audit.json").write_text(json_format.dumps(report, indent=2), encoding="utf-8")
        page = o.out / "report.html"
        beside = f"{page} (audit.json and audit.png beside it)" if page.exists() else o.out / "audit.json"
        words += f"\nreport: {beside}"
    typer.echo(json_format.dumps(report) if o.json else words)
    if code := Verdict(report["verdict"]).exit_code:
        raise typer.Exit(code)


def _mutants(o: AuditOptions) -> None:
    """Exit code 1 when a mutant escaped or the honest system was flagged."""
    from dpcheckin.audit.tables import measure, mutants_markdown

    with _watched() as progress:
        rows = measure(o.repetitions, None if o.out is None else o.out / "mutants.json", progress)
    typer.echo(json_format.dumps([asdict(row) for row in rows]) if o.json else mutants_markdown(rows))
    if any(row.caught < row.repetitions or row.flagged for row in rows):
        raise typer.Exit(1)


def _tightness(o: AuditOptions) -> None:
    from dpcheckin.audit import tables
    from dpcheckin.audit.budget import Budget

    if o.out is None:
        raise InvalidParameter("out", None, "a folder: the figure takes long and is resumed there")
    cells = [*tables.one_round_cells(), *tables.composed_cells()]
    budget = Budget.parse(o.budget)
    with _watched() as progress:
        results = tables.audit_cells(
            cells, budget, o.out / "cells.json", confidence=o.confidence,
            workers=_workers(budget, o.workers), progress=progress,
        )  # fmt: skip
    tables.draw([r for r in results if r["cell"]["rounds"] == 1], o.out / "audit-tightness.png")
    done = {cell.key: result for cell, result in zip(cells, results, strict=True)}
    typer.echo(json_format.dumps(results) if o.json else tables.tightness_tables(done))
    if any(result["refuted"] for result in results):
        raise typer.Exit(1)


def _workers(budget: Budget, given: int | None) -> int:
    if given is not None:
        return given
    seconds = budget.seconds or budget.cpu_seconds
    if seconds is not None and seconds < 15:  # starting processes takes seconds
        return 1
    return min(2, os.cpu_count() or 1)


@contextmanager
def _watched() -> Iterator[Progress]:
    """Signs of life while an audit plays."""
    with waiting("audit") as say:
        yield lambda share, words: say(words, share)
