"""The owner's file: what is read, and which mistakes are named."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.client.config import ClientConfig, Limits, read_config
from service.every_setting import blocks_of

GOOD = """
[shuffler]
address = "https://shuffler.example:8440"
token_file = "client.token"
[analyzer]
identity = "{identity}"
[limits]
rate = 0.3
clip = 1
local_epsilon = 4.0
total_epsilon = 10.0
total_local_epsilon = 120.0
total_delta = 1e-4
[agent]
state = "state"
[data]
file = "records.npz"
"""


def written(folder: Path, text: str) -> Path:
    (folder / "client.token").touch(mode=0o600)
    (folder / "client.token").write_text("secret\n")
    file = folder / "client.toml"
    file.write_text(text.replace("{identity}", "ab" * 32))
    return file


def test_the_owners_file_is_read(tmp_path: Path) -> None:
    config, data = read_config(written(tmp_path, GOOD))
    assert config.token == "secret"
    assert config.identity == bytes.fromhex("ab" * 32)
    assert config.limits.clip == 1.0
    assert config.state == tmp_path / "state"
    assert data == {"file": "records.npz"}
    assert config.shuffler_identity is None
    limits = config.limits
    assert (limits.minimum_population, limits.require_cover, limits.rounds) == (2, False, None)


def test_the_page_lists_every_entry(tmp_path: Path) -> None:
    """docs/deploying.md: its block is read as it stands, and names every limit and setting."""
    block = next(one for one in blocks_of("deploying.md") if "[limits]" in one and "void_rounds" in one)
    for name in (*(one.name for one in fields(Limits)), "arrival", "poll_seconds", "model_bytes", "plan"):
        assert f"\n{name} = " in block, name
    (tmp_path / "issuer.token").touch(mode=0o600)
    (tmp_path / "issuer.token").write_text("t\n")
    config, _ = read_config(written(tmp_path, re.sub(r'"\w*…"', f'"{"ab" * 32}"', block)))
    assert isinstance(config, ClientConfig) and config.issuer is not None and config.plan is not None


def test_what_an_owner_may_say_beyond_that(tmp_path: Path) -> None:
    more = GOOD.replace("[agent]", "minimum_population = 1000\nrequire_cover = true\n[agent]")
    more = more.replace("[agent]", "minimum_batch = 7\nminimum_compute_seconds = 2\n[agent]")
    more = more.replace("[agent]", "rounds = 500\nvoid_rounds = 9\n[agent]\nmodel_bytes = 5000")
    more = more.replace("[analyzer]", f'identity = "{"cd" * 32}"\n[analyzer]')
    config, _ = read_config(written(tmp_path, more))
    limits = config.limits
    assert (limits.minimum_population, limits.require_cover) == (1000, True)
    assert (limits.rounds, limits.void_rounds, config.model_bytes) == (500, 9, 5000)
    assert (limits.minimum_batch, limits.minimum_compute_seconds) == (7, 2.0)
    assert config.shuffler_identity == bytes.fromhex("cd" * 32)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('address = "https', 'address = "http', "shuffler.address"),
        ("rate = 0.3", "rate = 1.3", "limits.rate"),
        ("rate = 0.3", "rate = nan", "limits.rate"),
        ("rate = 0.3", "rate = 'x'", "limits.rate"),
        ("clip = 1\n", "", "limits.clip"),
        ("clip = 1\n", "clip = inf\n", "limits.clip"),
        ("clip = 1\n", "clip = true\n", "limits.clip"),
        ("total_delta = 1e-4", "total_delta = 1.0", "limits.total_delta"),
        ('"{identity}"', '"abcd"', "analyzer.identity"),
        ('"{identity}"', '"zz"', "analyzer.identity"),
        ('state = "state"', 'state = "state"\nplan = "abcd"', "agent.plan"),
        ('state = "state"', 'state = "state"\npoll_seconds = 0', "agent.poll_seconds"),
        ("total_epsilon", "total_epsilon = 1\ntotal_espilon", "total_espilon"),
        ("[data]", "[date]", "date.file"),
        ('token_file = "client.token"', 'token_file = "none"', "shuffler.token_file"),
        ('token_file = "client.token"', "", "shuffler.token"),
        ("[limits]", "[limits", "config"),
        ("[limits]", "[limits]\nminimum_population = 1", "limits.minimum_population"),
        ("[limits]", "[limits]\nminimum_population = 9.5", "limits.minimum_population"),
        ("[limits]", "[limits]\nrequire_cover = 1", "limits.require_cover"),
        ("[limits]", "[limits]\nrounds = 0", "limits.rounds"),
        ("[limits]", "[limits]\nminimum_batch = -1", "limits.minimum_batch"),
        ("[limits]", "[limits]\nminimum_compute_seconds = -1.0", "limits.minimum_compute_seconds"),
        ("[limits]", "[limits]\nminimum_compute_seconds = nan", "limits.minimum_compute_seconds"),
        ("[limits]", "[limits]\nvoid_rounds = true", "limits.void_rounds"),
        ("[agent]", "[agent]\nmodel_bytes = 0", "agent.model_bytes"),
        ("[shuffler]", "[shuffler]\nidentity = 'abcd'", "shuffler.identity"),
        ("[data]\nfile", "[x]\ny = 1\n[agent.more]\nz", "agent.more"),
    ],
)
def test_a_mistake_in_the_owners_file_is_named(tmp_path: Path, old: str, new: str, named: str) -> None:
    assert old in GOOD
    with pytest.raises(InvalidParameter, match=named.replace(".", r"\.")):
        read_config(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="config"):
        read_config(tmp_path / "none.toml")


def test_a_misspelt_limit_is_named_beside_the_one_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter) as missing:
        read_config(written(tmp_path, GOOD.replace("rate = 0.3", "raet = 0.3")))
    assert str(missing.value) == "limits.rate is missing: expected a float (there is raet)"
    with pytest.raises(InvalidParameter) as missing:
        read_config(written(tmp_path, GOOD.replace("rate = 0.3\n", "")))
    assert str(missing.value) == "limits.rate is missing: expected a float"


@pytest.mark.parametrize("bits", [0o644, 0o604, 0o602])
def test_a_token_that_others_may_read_is_refused_wherever_it_stands(tmp_path: Path, bits: int) -> None:
    file = written(tmp_path, GOOD)
    (tmp_path / "client.token").chmod(bits)
    with pytest.raises(InvalidParameter, match=r"^shuffler\.token_file = .*chmod 600"):
        read_config(file)
    file = written(tmp_path, GOOD.replace('token_file = "client.token"', 'token = "secret"'))
    file.chmod(bits)
    with pytest.raises(InvalidParameter, match=r"^shuffler\.token = .*client\.toml.*chmod 600"):
        read_config(file)
    file.chmod(0o600)
    assert read_config(file)[0].token == "secret"
