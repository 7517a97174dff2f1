import pytest

from service.issuer_world import use_pooled_keys


@pytest.fixture(autouse=True)
def pooled_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    use_pooled_keys(monkeypatch)
