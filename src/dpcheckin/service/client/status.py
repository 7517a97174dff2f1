"""What an owner can see of a client without asking anybody: whether it runs, what is spent, what the limits leave."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.daemon import LEDGER, OUTBOX
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.storage.files import InUse, take_lock


def status(config: ClientConfig) -> dict[str, Any]:
    """Facts, plans and totals of the agent with an owner's `config`; how coins fell is not among them."""
    file, lock = config.state / LEDGER, config.state / f"{LEDGER}.lock"
    running = False
    try:
        if lock.exists():
            os.close(take_lock(lock))
    except InUse:
        running = True
    ledger = ClientLedger(file, look=True)
    last = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat("T", "seconds") if file.exists() else "never"
    spent, limits = ledger.totals(), config.limits
    figures = (
        ("epsilon, shuffler honest", spent.epsilon, limits.total_epsilon),
        ("epsilon, shuffler colluding", spent.local_epsilon, limits.total_local_epsilon),
        ("delta", spent.delta, limits.total_delta),
    )
    return {
        "agent": "running" if running else "not running",
        "last_written": last,
        "to_be_sent": "an envelope" if (config.state / OUTBOX).exists() else "nothing",
        "plans": [
            {"plan": plan, "rounds": rounds, "void": void, **cost.to_json()}
            for plan, (rounds, void, cost) in ledger.plans().items()
        ],
        "totals": [
            {"of": name, "spent": value, "limit": float(limit), "left": max(0.0, limit - value)}
            for name, value, limit in figures
        ],
    }
