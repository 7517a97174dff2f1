"""What must survive at the analyzer: checkpoint, opening keys, identity."""

from pathlib import Path

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer import state
from dpcheckin.service.analyzer.state import AnalyzerState, CheckpointDamaged, KeyRing
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.canonical import digest
from service.plans import plan


def test_a_checkpoint_comes_back_whole_and_damage_is_noticed(tmp_path: Path) -> None:
    one = AnalyzerState(plan().to_object(), TaskState(b"m", b"\0p", {"a": 0.5}), 3, {"x": 1}, 2, np.ones(3), 7)
    state.save(tmp_path, one)
    again = state.load(tmp_path)
    assert again is not None
    assert again.to_bytes() == one.to_bytes()
    content = bytearray(one.to_bytes())
    content[50] ^= 1
    (tmp_path / state.FILE).write_bytes(content)
    with pytest.raises(CheckpointDamaged):
        state.load(tmp_path)
    with pytest.raises(CheckpointDamaged, match="another version"):
        AnalyzerState.from_bytes(digest(b"{}") + b"{}")


def test_keys_survive_and_unreadable_ones_are_named(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, 1)
    first = ring.for_round(0).key.key_id
    assert ring.rotate(5).from_round == 5
    assert ring.rotate(5) is ring.keys[-1]
    again = KeyRing(tmp_path, 1)
    assert again.for_round(4).key.key_id == first
    assert again.for_round(5).key.key_id != first
    with pytest.raises(InvalidParameter, match="from_round"):
        again.rotate(3)
    assert again.forget_before(4) == 0
    assert again.forget_before(5) == 1
    assert again.by_id(first) is None
    assert KeyRing(tmp_path, 1).by_id(first) is None
    (tmp_path / "from-0000000009.key").write_text("zz")
    with pytest.raises(InvalidParameter, match="a key of suite 1"):
        KeyRing(tmp_path, 1)


def test_the_identity_is_made_once(tmp_path: Path) -> None:
    one, two = load_identity(tmp_path), load_identity(tmp_path)
    assert one.private_bytes_raw() == two.private_bytes_raw()
    assert (tmp_path / "identity.key").stat().st_mode & 0o077 == 0
    (tmp_path / "identity.key").write_text("short")
    with pytest.raises(InvalidParameter, match="identity"):
        load_identity(tmp_path)
