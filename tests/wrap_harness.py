"""What the tests of `wrap` share: wrapped clients at a server of the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from openai_harness import GOOD, KEY

from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.openai.client import wrap as wrap_client

VALUES = "inputs: x, y\nx = 12\ny = 7\n"
ASKED: list[dict[str, str]] = [{"role": "user", "content": f"{VALUES}t2 = x + y\nt1 = t2 * 3"}]
TRUST = Trust(procedures=("user",), inputs=("user",))
CHAT = [{"role": "user", "content": "Tell me of patient John Doe."}]
WRONG = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}'
Create = Callable[..., Any]


def wrap(client: Any, **options: Any) -> Any:
    """A wrapped client whose users are trusted with procedures and inputs, where nothing else is said."""
    return wrap_client(client, **{"trust": TRUST, **options})


@pytest.fixture(params=["sync", "async"])
def create(request: pytest.FixtureRequest, chat_server: ChatServer) -> Callable[..., Create]:
    """Makes ``create`` of a wrapped client at the server, blocking or awaited; options are those of `wrap`."""
    options_of_client: dict[str, Any] = {"base_url": chat_server.url, "api_key": KEY}

    def make(**options: Any) -> Create:
        if request.param == "sync":
            client = openai.OpenAI(**options_of_client)
            request.addfinalizer(client.close)
            return wrap(client, **options).chat.completions.create  # type: ignore[no-any-return]

        async def main(arguments: dict[str, Any]) -> Any:
            async with openai.AsyncOpenAI(**options_of_client) as client:
                return await wrap(client, **options).chat.completions.create(**arguments)

        return lambda **arguments: asyncio.run(main(arguments))

    return make


@pytest.fixture
def client(chat_server: ChatServer) -> Iterator[openai.OpenAI]:
    chat_server.play(Reply(completion_body(GOOD)))
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as made:
        yield made
