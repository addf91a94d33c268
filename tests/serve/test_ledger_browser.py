"""The pages of a ledger in Debian's Chromium: read, followed, searched and walked through as people do it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from ledger_harness import CHAIN, LOOP, SURE, change_ledger, payment

from stepguard import Guard, Policy, Procedure
from stepguard.backends import Completion, Request
from stepguard.ledger import Ledger
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.slow

playwright: Any = pytest.importorskip(
    "playwright.sync_api", reason="no playwright: the pages are not seen by a browser"
)
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no chromium: the pages are not seen by a browser", allow_module_level=True)

ARGUMENTS: Final = ("--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run")
QUIET: Final = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
WIDTHS: Final = (1400, 400)
ODD: Final = 'a/../<img src=x onerror=alert(1)>%2e & "ü" ' + "x" * 90
TOKEN: Final = "token-SECRET-1"
UNREADABLE: Final = """() => {
  const light = color => {
    const parts = color.match(/[\\d.]+/g).map(Number).map(v => v / 255);
    const [r, g, b] = parts.map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (color !== 'rgba(0, 0, 0, 0)' && color !== 'transparent') return color;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('body *')].filter(element =>
    [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()) && element.tagName !== 'OPTION'
  ).filter(element => {
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  }).map(element => element.outerHTML.slice(0, 120));
}"""
"""The elements whose text has a contrast below 4.5 to what is behind it."""


class Held:
    """A model that answers each call when it is let."""

    def __init__(self) -> None:
        self.may = threading.Semaphore(0)

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        assert self.may.acquire(timeout=120)
        return SURE.complete(request)


@contextmanager
def shown(path: Path, token: str | None = None) -> Iterator[str]:
    """The address of `stepguard ui` as its own process."""
    script = "import sys; from stepguard.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "ui", str(path), "--port", "0"]
    environment = {**os.environ, **({} if token is None else {"STEPGUARD_UI_TOKEN": token})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().rpartition(" at ")[2].strip().rstrip("/")
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser."""
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *QUIET])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a run that waits, one that failed, one with a hostile name, one with rounds, and a conversation."""
    path = tmp_path_factory.mktemp("pages") / "runs.db"
    with Ledger(path, full_sync=False) as ledger:
        guard = Guard(SURE, ledger=ledger)
        guard.run(payment([], approval=True), {"x": 3}, run_id="waits")
        hostile = Procedure.parse("name: </style><script>alert(2)</script>\ninputs: t: text, n\nm = n + 1")
        guard.run(hostile, {"t": "<svg onload=alert(3)>" + "y" * 5_000, "n": 1}, run_id=ODD)
        guard.run(Procedure.parse(LOOP), {"items": [1, 2, 3]}, run_id="loop")
        wrong = ScriptedBackend(*[{"total": f"12 + 1 = {n}"} for n in range(20, 24)])
        closing = Procedure.parse("name: closing\ninputs: a\ntotal = a + 1\nlast = total * 2")
        Guard(wrong, repair=2, ledger=ledger).run(closing, {"a": 12}, run_id="stopped")
        gate = Policy.parse("tool pay(to: text)\nbefore pay: at most once").gate(ledger=ledger, run_id="talk")
        gate.offer("pay", {"to": "<b>"}, id="1")
        gate.close()
    return path


@pytest.fixture
def pages(path: Path) -> Iterator[str]:
    """The address of its pages."""
    with shown(path) as address:
        yield address


@pytest.fixture
def page(chromium: Any, pages: str) -> Iterator[Any]:
    """A tab that notes what should never happen: a script, a message of the console, a request to elsewhere."""
    tab, odd = chromium.new_page(), list[str]()
    tab.on("console", lambda message: odd.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: odd.append(f"error: {error}"))
    tab.add_init_script("alert = words => console.log(words)")
    tab.on("request", lambda request: None if request.url.startswith(f"{pages}/") else odd.append(request.url))
    yield tab
    tab.close()
    assert odd == []


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_legible(page: Any, pages: str, width: int) -> None:
    """Nothing is beyond the edge, every text stands out by day and by night, and states are words and not colours."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{pages}/")
    addresses = [
        "/",
        "/?q=nobody",
        *page.locator(".runs a").evaluate_all("all => all.map(e => e.getAttribute('href'))"),
    ]
    assert len(addresses) == 7
    for address in addresses:
        page.goto(pages + address)
        for opened in page.locator("summary").all():
            if opened.is_visible():
                opened.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(UNREADABLE) == [], (address, scheme)
        page.emulate_media(forced_colors="active")
        assert page.locator("h1").is_visible()
        page.emulate_media(forced_colors="none", color_scheme="light")


def test_runs_say_where_they_stand(page: Any, pages: str) -> None:
    """One that waits asks its question where it stands, one that failed says why, and every call has its verdict."""
    page.goto(f"{pages}/")
    page.get_by_role("link", name="waits").click()
    assert page.title() == "waits: procedure: waiting"
    page.get_by_role("link", name="Go to where it stands").click()
    assert page.locator("#stop").inner_text() == "WAITING at approve_receipt: Approve the call pay(amount=6)?"
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="stopped").click()
    assert "STOPPED at total in 3 tries: wrong_value: a + 1 is 13, not 22" in page.locator("#stop").inner_text()
    calls = page.locator("#calls ~ ol li").all_inner_texts()
    assert len(calls) == 3
    assert all("rejected" in call and "wrong_value at total: a + 1 is 13" in call for call in calls)
    assert "3 calls" in page.get_by_role("img", name="tokens in").locator("title").text_content()
    page.goto(f"{pages}/?q=onerror")
    page.locator(".runs a").click()
    assert page.locator("h1").inner_text().startswith('a/../<img src=x onerror=alert(1)>%2e & "ü" xxx')


def test_a_live_run_is_followed(page: Any, pages: str, path: Path) -> None:
    """The page of a run that is under way shows each step when it is there, and rests when the run has ended."""
    model = Held()
    guard = Guard(model, segment=2, ledger=path)
    run = threading.Thread(target=guard.run, args=(CHAIN, {"x": 12}), kwargs={"run_id": "live"})
    run.start()
    try:
        model.may.release()
        page.goto(f"{pages}/?status=running")
        page.get_by_role("link", name="Refresh every").click()
        page.locator(".runs a", has_text="live").click(timeout=60_000)  # it comes by itself
        page.get_by_role("link", name="Refresh every").click()
        page.get_by_text("RUNNING: now at t3 (2 steps completed)").wait_for(timeout=60_000)
        page.evaluate("scrollTo(0, 150)")
        model.may.release()
        page.get_by_text("RUNNING: now at t5 (4 steps completed)").wait_for(timeout=60_000)
        assert page.evaluate("scrollY") == 150
        model.may.release()
        page.get_by_text("VERIFIED: 6 steps completed").wait_for(timeout=60_000)
        assert page.get_by_role("link", name="refreshing").count() == 0
    finally:
        model.may.release(9)
        run.join()


def test_the_keyboard_is_enough(page: Any, pages: str) -> None:
    """The first stop leads past the search, each stop is marked, and a run is opened and left without a mouse."""
    page.goto(f"{pages}/")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert (skip.inner_text(), skip.bounding_box()["x"] >= 0) == ("Skip to the runs", True)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == page.locator(".runs a").first.inner_text()
    page.goto(f"{pages}/")
    order = []
    for _ in range(6):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.name || document.activeElement.innerText"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert order == ["Skip to the runs", "q", "status", "Show", "Spend by day", "Refresh every 5 seconds"]
    page.get_by_label("Search").focus()
    page.keyboard.type("stopped")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=stopped*")
    page.locator(".runs a").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/run?id=stopped")
    page.get_by_text("The last replies").focus()
    page.keyboard.press("Enter")
    assert page.locator("#stop li").count() == 3
    page.goto(page.url)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "All runs"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{pages}/")


def test_ten_thousand_runs_are_turned_over_and_searched(chromium: Any, tmp_path: Path) -> None:
    """A page holds fifty of them; the last ones, and the one that is looked for, are a click away."""
    path = tmp_path / "runs.db"
    with Ledger(path) as ledger:
        Guard(SURE, ledger=ledger).run(Procedure.parse("a = 1 + 1"), run_id="first")
    columns = "salt, epoch, procedure, title, status, completed, total, calls, tokens, place, reason, started, updated"
    change_ledger(
        path,
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9999)"
        f" insert into runs (name, {columns}) select 'night/' || i, {columns} from n, runs where number = 1",
    )
    with shown(path) as pages:
        page = chromium.new_page(viewport={"width": 400, "height": 900})
        page.goto(f"{pages}/")
        assert page.get_by_text("10,000 runs").is_visible()
        assert page.locator(".runs > li").count() == 50
        page.get_by_role("link", name="Older").click()
        assert page.locator(".runs a").first.inner_text() == "night/9949"
        page.get_by_role("link", name="Oldest").click()
        page.wait_for_load_state()  # of half a page the last run is another one
        assert page.locator(".runs a").last.inner_text() == "first"
        page.get_by_label("Search").fill("night/77")
        page.get_by_label("Status").select_option("verified")
        page.get_by_role("button", name="Show").click()
        assert page.get_by_text("111 runs").is_visible()
        page.get_by_role("link", name="Older").click()
        assert "page 2 of 3" in page.locator("main > p").first.inner_text()
        page.close()


def test_a_token_is_asked_for(chromium: Any, path: Path) -> None:
    """With a token nothing is shown to a browser that does not give it, and everything to one that does."""
    with shown(path, TOKEN) as pages:
        for password, status in ((f"{TOKEN}2", 401), (TOKEN, 200)):
            page = chromium.new_page(http_credentials={"username": "me", "password": password})
            assert page.goto(f"{pages}/run?id=waits").status == status
            assert ("approve_receipt" in page.content()) is (status == 200)
            page.close()
