"""What the tests of OpenAIBackend share: a procedure, a request for it, and a backend at the scripted server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ChatServer, Received, Reply, completion_body

from stepguard import Procedure
from stepguard.backends import Completion, Message, Request
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.sdk_backend import SdkBackend
from stepguard.errors import BackendError
from stepguard.replies.formats import EquationFormat

KEY = "sk-SECRET123"
PROCEDURE = Procedure.parse("inputs: x, y\nt2 = x + y\nt1 = t2 * 3")
STEPS = tuple(PROCEDURE.steps)
INPUTS = {"x": 12, "y": 7}
GOOD = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}'
MESSAGES = (
    Message("system", "Answer with one JSON object. {{ x }} \\frac{1}{2}"),
    Message("user", "first\n"),
    Message("user", "  second: \u2212\u00e9\U0001f600\t{% raw %}"),
)
REQUEST = Request(MESSAGES, STEPS, reply_format=EquationFormat(), timeout=20)

Ask = Callable[[SdkBackend, Request], Completion]
"""One face of the backend: ask it, blocking or awaited."""


def backend_at(server: ChatServer, **options: Any) -> OpenAIBackend:
    return OpenAIBackend("some-model", base_url=server.url, api_key=KEY, **options)


def failure(ask: Ask, backend: SdkBackend, request: Request = REQUEST) -> BackendError:
    with pytest.raises(BackendError) as caught:
        ask(backend, request)
    return caught.value


def good_answer(received: Received) -> Reply:
    """A right answer to `PROCEDURE`, from the values in the prompt: it, its usage and its delay show whose it is."""
    given = re.search(r"^(?:t2|x) = (\d+)(?: \+ (\d+))?$", received.body["messages"][-1]["content"], re.MULTILINE)
    assert given is not None
    x, y = int(given[1]), int(given[2] or 7)
    body = completion_body(json.dumps({"t2": f"{x} + {y} = {x + y}", "t1": f"{x + y} * 3 = {3 * (x + y)}"}))
    body["usage"] |= {"prompt_tokens": 1000 + x, "total_tokens": 1005 + x}
    return Reply(body, delay=0.01 if x % 2 else 0.0)
