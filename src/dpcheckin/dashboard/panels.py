"""Answers of the panels below the plot: what an attacker finds out, mixed runs, certificates.

Like those of `answers` they are functions from forms to plain data and run in worker processes.
"""

from __future__ import annotations

import math

from dpcheckin.accounting import Kind, tradeoff
from dpcheckin.accounting import guarantee as stated_guarantee
from dpcheckin.accounting.proof.certificate import as_text
from dpcheckin.dashboard.answers import Answer, answering, figure
from dpcheckin.dashboard.form import Form
from dpcheckin.errors import OutsideTheorem

# false positives at which curves are drawn
FALSE_ALARMS = (
    *(0.0, 1e-4, 2e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07),
    *(0.1 + 0.05 * i for i in range(18)),
    1.0,
)


@answering
def trade_off(form: Form) -> Answer:
    """True positives for so many false ones: at most, and by the best known attack."""
    one = form.one_round()
    if one is None or one.renyi is not None or one.is_function:
        raise OutsideTheorem("no curve of delta for this protocol yet: no trade-off is shown")
    found = tradeoff([(one, form.windows)], form.delta)
    missed = found.false_negatives(FALSE_ALARMS)
    words = f"{found.in_words[0].upper()}{found.in_words[1:]}."
    if math.isfinite(found.gdp.upper):
        words += f" As one Gaussian experiment: {found.gaussian_sentence}."
    return {
        "points": [
            _found(x, 1.0 - b, Kind.GUARANTEE)
            for x, b in zip(FALSE_ALARMS, missed.lower.tolist(), strict=True)
        ],
        "known": [
            _found(x, 1.0 - b, Kind.LOWER_BOUND)
            for x, b in zip(FALSE_ALARMS, missed.upper.tolist(), strict=True)
        ]
        if found.attacks
        else [],
        "words": words,
    }


def _found(alarms: float, share: float, kind: Kind) -> Answer:
    """True positives at so many false ones, in per cent; a guarantee is rounded up."""
    percent = 100.0 * min(max(share, 0.0), 1.0)
    return {"x": 100.0 * alarms, "y": percent, "text": f"{kind.figure(percent)}%"}


@answering
def certificate(form: Form) -> Answer:
    """The plan's certificate, as the text of its file."""
    return {"text": as_text(form.question().guarantee(form.delta).certificate())}


@answering
def mixed(forms: tuple[Form, ...]) -> Answer:
    """One statement about rounds of several kinds, at the delta they have in common."""
    rounds = []
    for form in forms:
        one = form.one_round()
        if one is None:
            raise OutsideTheorem("averaged windows compose with nothing else yet")
        rounds.append((one, form.windows))
    stated = stated_guarantee(rounds, forms[0].delta)
    return {"epsilon": figure(stated.epsilon.upper), "sentence": str(stated)}
