"""The pages of docs/: their code does what they show, and their links lead somewhere."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from conftest import ChatServer, Received, Reply, completion_body
from documentation_harness import ROOT, blocks_of, shown_by
from tables import all_rows

from stepguard import Guard, Procedure
from stepguard.backends import Completion, Request
from stepguard.testing import SimulatedModel, Slips

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NAMES = [str(page.relative_to(DOCS)) for page in PAGES]


@pytest.fixture
def own_loop() -> Iterator[None]:
    """Frameworks whose synchronous face makes an event loop for the thread leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


@pytest.mark.usefixtures("own_loop")
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_page_prints_what_it_shows(page: Path, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks of a page run one after the other, and each prints the text block below it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    order = {"subtotal": "5 * 2 = 10", "tax": "10 * 8.25 / 100 = 0.83", "total": "10 + 0.83 = 10.83"}
    chat_server.play(Reply(completion_body(json.dumps(order))))
    namespace: dict[str, object] = {}
    for block in blocks_of(page):
        kind = block.kind.partition(" ")[2]
        if not block.kind.startswith("python"):
            continue
        if kind == "no-run":
            compile(block.code, page.name, "exec")
            continue
        if kind == "serve":
            with answering(chat_server) as url:
                printed = shown_by(block.code.replace("http://127.0.0.1:8000/v1", url), namespace, page.name)
        else:
            if block.library is not None:
                pytest.importorskip(block.library)
            printed = shown_by(block.code, namespace, page.name)
        if block.output is not None:
            assert printed == block.output
    namespace.clear()
    if chat_server.requests:  # pages close no clients: nobody else is to find them
        with warnings.catch_warnings(action="ignore"):
            gc.collect()


class answering:  # noqa: N801 - used as a context manager alone
    """`stepguard serve` over the examples, in front of a server with the replies of a model that never slips."""

    def __init__(self, upstream: ChatServer) -> None:
        right = SimulatedModel(slips=Slips.none())
        watched: list[Request] = []

        class Watched:
            def complete(self, request: Request) -> Completion:
                watched.append(request)
                return right.complete(request)

        inputs = {"unit_price": "12.50", "quantity": 3, "discount": "10%", "shipping": "4.95", "tax_rate": "19%"}
        invoice = Procedure.load(ROOT / "examples" / "invoice.txt")
        assert Guard(Watched(), seed=1).run(invoice, inputs).verified
        replies = {tuple(step.id for step in request.steps): right.complete(request).text for request in watched}

        def answer(received: Received) -> Reply:
            asked = received.body["response_format"]["json_schema"]["schema"]["properties"]
            return Reply(completion_body(replies[tuple(asked)]))

        upstream.play(answer)
        serving = pytest.importorskip("serve_harness").serving
        self._serving = serving(upstream.url, procedures=ROOT / "examples")

    def __enter__(self) -> str:
        url: str = self._serving.__enter__().url
        return url

    def __exit__(self, *failure: object) -> None:
        self._serving.__exit__(*failure)


@all_rows("page", PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    """A relative link names a file that is there, so that the pages can be read as files."""
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_page_is_in_the_navigation() -> None:
    """No page is lost: the navigation of the site holds each of them once."""
    settings = yaml.safe_load((ROOT / ".mkdocs.yml").read_text(encoding="utf-8"))

    def pages(entry: object) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, list):
            for each in entry:
                yield from pages(each)
        elif isinstance(entry, dict):
            for each in entry.values():
                yield from pages(each)

    assert sorted(pages(settings["nav"])) == NAMES
