"""The owner's panel and the example site, as people meet them: light, dark, on a phone; and docs/browser.md."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from web.conftest import MODULE, PATIENCE, ROOT

PICTURES = ROOT / "build" / "screenshots"
MEASURE = (ROOT / "tests" / "dashboard" / "measure.js").read_text(encoding="utf-8").strip()
STATE = {
    "status": "taking part in round 3", "stopped": False, "taken": 4, "plans": 2, "counts": {},
    "plan": {"rate": 0.25, "population": 10_000, "issuer": "ab", "randomizer": {"local_epsilon": 1.5}},
    "question": {
        "kind": "histogram", "about": "a topic with a long name", "answers": 12,
        "details": {
            "categories": ["red", "green", "a category whose name is long", *(f"number {i}" for i in range(40))],
        },
    },
    "spent": {"epsilon": 0.123456, "local_epsilon": 5.9999, "delta": 1e-6},
    "limits": {"total_epsilon": 1.0, "total_local_epsilon": 12.0, "total_delta": 1e-4},
}  # fmt: skip
SHOW = """async (state) => {
    await import("/clients/web/owner.js");
    const client = Object.assign(new EventTarget(), {
        state: () => state,
        stop: async () => {
            state = { ...state, stopped: true, status: "stopped by the owner" };
            client.dispatchEvent(new Event("change"));
        },
        resume: async () => { state = { ...state, stopped: false, status: "waiting" }; },
    });
    document.body.innerHTML = "<dpcheckin-owner></dpcheckin-owner>";
    document.querySelector("dpcheckin-owner").client = client;
}"""
INSIDE = """() => {
    const all = [...document.querySelector("dpcheckin-owner").shadowRoot.querySelectorAll("*")];
    const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const read = (text) => text.match(/[\\d.]+/g).map(Number);
    const ground = light(read(getComputedStyle(all.find((e) => e.matches("section"))).backgroundColor));
    return all.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
        const ink = light(read(getComputedStyle(e).color));
        return [e.textContent.slice(0, 30), (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)];
    });
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1000, 390])
def test_the_panel_is_readable_and_stays_in_its_place(browser: Any, files: str, dark: bool, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light")
    page = context.new_page()
    page.goto(f"{files}/tests/web/empty.html")
    page.evaluate(SHOW, STATE)
    panel = page.locator("dpcheckin-owner section")
    text = panel.inner_text()
    for said in (
        "What am I asked?",
        "a topic with a long name",
        "and 19 more",
        "25% of the time",
        "epsilon 1.5",
        "10,000",
    ):
        assert said in text
    for said in ("0.124 of 1", "6 of 12", "4 of at most 12 rounds", "sums over 2 surveys"):  # rounded up
        assert said in text
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"owner-{width}{'-dark' if dark else ''}.png", full_page=True)
    ratios = page.evaluate(INSIDE)
    assert len(ratios) > 20
    assert [pair for pair in ratios if pair[1] < 4.5] == []
    context.close()


def test_the_button_stops_and_takes_part_again(browser: Any, files: str) -> None:
    page = browser.new_page()
    page.goto(f"{files}/tests/web/empty.html")
    page.evaluate(SHOW, STATE)
    panel = page.locator("dpcheckin-owner section")
    panel.get_by_role("button", name="Stop").click()
    assert "Stopped by the owner" in panel.inner_text()
    panel.get_by_role("button", name="Take part again").click()
    panel.get_by_role("button", name="Stop").wait_for()
    page.close()


def test_a_name_in_a_plan_is_text_and_no_markup(browser: Any, files: str) -> None:
    page = browser.new_page()
    page.goto(f"{files}/tests/web/empty.html")
    hostile = "<img src=x onerror=window.hit=1>"
    question = {**STATE["question"], "about": hostile, "details": {"categories": [hostile, "b"]}}
    page.evaluate(SHOW, {**STATE, "question": question, "status": hostile})
    assert page.locator("dpcheckin-owner section").inner_text().count("<img") >= 2
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    page.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The example site, as docs/browser.md starts it, on a free port."""
    log = tmp_path_factory.mktemp("site") / "log"
    command = [sys.executable, "-u", str(ROOT / "examples" / "web-survey" / "serve.py"), "--port", "0"]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "OMP_NUM_THREADS": "1"})
    end, found = time.monotonic() + 300, None
    while found is None and process.poll() is None and time.monotonic() < end:
        time.sleep(0.2)
        found = re.search(r"open (http://localhost:\d+)", log.read_text())
    if found is None:
        process.kill()
        pytest.fail(log.read_text()[-2000:])
    yield found[1]
    parties = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    assert len(parties.split()) == 4
    process.send_signal(signal.SIGTERM)  # of whoever stops it, as Ctrl-C does
    assert process.wait(60) == 0, log.read_text()[-2000:]
    left = subprocess.run(["ps", "-o", "args=", "-p", ",".join(parties.split())], capture_output=True, text=True).stdout
    assert left == "", "its parties go on"


def test_no_page_of_the_example_site_may_be_framed(site: str) -> None:
    for path in ("/", "/site.js", "/nothing"):
        assert "frame-ancestors 'none'" in httpx.get(site + path, trust_env=False).headers["content-security-policy"]


def test_a_stranger_answers_on_the_example_site(browser: Any, site: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    context.set_default_timeout(PATIENCE)
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: "404" in said.text or complaints.append(said.text))
    page.goto(site)
    page.check("input[value='bicycle']")
    panel = page.locator("dpcheckin-owner section")
    panel.filter(has_text="dealt with").wait_for()
    page.reload()  # the answer, the membership and what was spent are there again
    panel.filter(has_text=re.compile("[1-9] of at most 8 rounds")).wait_for()
    assert page.is_checked("input[value='bicycle']")
    page.locator("dpcheckin-owner").get_by_role("button", name="Stop").click()
    page.wait_for_selector("#result tbody tr")
    assert complaints == []
    context.close()


def test_the_script_of_the_page_is_a_script(node: str, tmp_path: Path) -> None:
    (text,) = re.findall(r"```js\n(.*?)```", (ROOT / "docs" / "browser.md").read_text(encoding="utf-8"), re.S)
    file = tmp_path / "page.mjs"
    file.write_text(text, encoding="utf-8")
    subprocess.run([node, "--check", file], check=True)


def test_the_module_asks_nobody_but_its_parties() -> None:
    """No import, no address, and one call of fetch."""
    text = MODULE.read_text(encoding="utf-8")
    assert not re.findall(r"^import |import\(|https?://[a-z]", text, flags=re.M)
    assert text.count("fetch(...asked)") == 1
