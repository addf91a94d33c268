"""What the tests of LangChain share: agents behind the middleware, at a server of the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest
from conftest import ChatServer
from openai_harness import KEY

from stepguard.integrations.chat.trust import Trust

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_openai import ChatOpenAI
from langgraph.types import Command

from stepguard.integrations.langchain import GuardMiddleware as Middleware

WRONG = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}'
FIXED = '{"t1": "19 * 3 = 57"}'
ORDER = "# John Doe\ninputs: x, y\nx = 12\ny = 7\nt2 = x + y\nt1 = t2 * 3"
ASKED: list[Any] = [{"role": "user", "content": ORDER}]
CHAT: list[Any] = [{"role": "user", "content": "Tell me of John Doe."}]
TRUST = Trust(procedures=("user",), inputs=("user",))


def GuardMiddleware(**options: Any) -> Middleware:  # noqa: N802
    """The middleware of a host that trusts its users, where nothing else is said."""
    return Middleware(**{"trust": TRUST, **options})


Invoke = Callable[..., dict[str, Any]]


@pytest.fixture(params=["sync", "async"])
def agent(request: pytest.FixtureRequest, chat_server: ChatServer) -> Callable[..., Invoke]:
    """Makes an agent at the server, and gives what invokes it, blocking or awaited."""

    def make(*middleware: AgentMiddleware[Any, Any], retries: int = 0, **options: Any) -> Invoke:
        def made(**http: Any) -> Any:
            model: Any = chat_model(chat_server, max_retries=retries, **http)
            return create_agent(model, middleware=middleware, **options)

        def invoke(messages: Any, **more: Any) -> dict[str, Any]:
            state = messages if isinstance(messages, Command) else {"messages": messages}
            if request.param == "sync":
                with blocking_http() as http:
                    return dict(made(http_client=http).invoke(state, **more))

            async def main() -> dict[str, Any]:
                async with async_http() as http:
                    return dict(await made(http_async_client=http).ainvoke(state, **more))

            return asyncio.run(main())

        return invoke

    return make


def blocking_http() -> Any:
    return openai.DefaultHttpxClient(verify=False)  # reading certificates takes longer than a test


def async_http() -> Any:
    return openai.DefaultAsyncHttpxClient(verify=False)


def chat_model(server: Any, **options: Any) -> ChatOpenAI:
    """LangChain's client at a server; clients that are not given are never used, and not made either."""
    given: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "model": "gpt-x", "max_retries": 0}
    unused = {"http_client": blocking_http(), "http_async_client": async_http()}
    return ChatOpenAI(**{**given, **unused, **options})
