"""What the tests of the OpenAI Agents SDK share: an agent, its model in both protocols, and a tool."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from openai_harness import KEY

from stepguard import Procedure

agents: Any = pytest.importorskip("agents")
drop_in: Any = importlib.import_module("stepguard.integrations.openai_agents")
ORDER = Procedure.parse(
    "name: order\ninputs: price, quantity: integer, rate: percent\n"
    "subtotal = price * quantity\ntax: decimal(2) = subtotal * rate\ntotal: money(EUR) = subtotal + tax"
)


# The agent and its model


class Api:
    """One of the two protocols in which the SDK asks a model."""

    def __init__(self, name: str) -> None:
        self.responses = name == "responses"

    def model(self, client: openai.AsyncOpenAI) -> Any:
        kind = agents.OpenAIResponsesModel if self.responses else agents.OpenAIChatCompletionsModel
        return kind("agents-own", client)

    def says(self, text: str) -> Reply:
        if not self.responses:
            return Reply(completion_body(text))
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return _response(
            [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}]
        )

    def calls(self, name: str, *arguments: str) -> Reply:
        """A reply that calls a tool, once for each of the arguments."""
        if not self.responses:
            made = [
                {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": each}}
                for number, each in enumerate(arguments)
            ]
            return Reply(completion_body(None, tool_calls=made))
        return _response(
            [
                {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": name, "arguments": each}
                for n, each in enumerate(arguments)
            ]
        )

    def outputs(self, received: Received) -> list[str]:
        """What the model is told of the calls it made."""
        if self.responses:
            return [each["output"] for each in received.body["input"] if each.get("type") == "function_call_output"]
        return [each["content"] for each in received.body["messages"] if each["role"] == "tool"]


def _response(output: list[dict[str, Any]]) -> Reply:
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    body = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": output, "status": "completed"}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return Reply({**body, **more, "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}})


@pytest.fixture(params=["responses", "chat"])
def api(request: pytest.FixtureRequest) -> Api:
    return Api(request.param)


def client_at(url: str) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)  # reading certificates takes longer than a test
    return openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0, http_client=http)


async def run(server: ChatServer, api: Api, tool: Any, **options: Any) -> Any:
    """A run of an agent with one tool."""
    async with client_at(server.url) as client:
        agent = agents.Agent(name="clerk", model=api.model(client), tools=[tool], **options)
        return await agents.Runner.run(agent, "Go.", run_config=agents.RunConfig(tracing_disabled=True))


def told(server: ChatServer, api: Api, tool: Any, *arguments: str) -> list[str]:
    """What an agent is told that calls a tool, once for each of the arguments."""
    server.play([api.calls(tool.name, *arguments), api.says("done")])
    assert asyncio.run(run(server, api, tool)).final_output == "done"
    return api.outputs(server.requests[-1])
