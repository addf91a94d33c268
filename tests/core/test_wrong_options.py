"""Options that cannot work: whatever takes them refuses them by name at once, before anything is asked or sent."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

import pytest

from stepguard import Budget, Guard, Ladder, Procedure, RetryPolicy, Step, wrap
from stepguard.backends.limiter import EndpointLimiter, LimitedBackend
from stepguard.engine.segments import Segments
from stepguard.errors import ConfigError, InputError
from stepguard.repair.rungs import Resample, Vote
from stepguard.testing import ScriptedBackend

SUMS: Final = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
LAZY: Final = Procedure.lazy(lambda n: Step(f"t{n}", "x + 1"), 3, look_back=1, inputs=["x"])
AN_INPUT: Final = Procedure([Step("t", "x")], inputs=["x"], answer="x")
WORDS: Final = Procedure([Step("city", instruction="Name the city.")])
INPUTS: Final = {"x": 12, "y": 7}
GUARD: Final = Guard(ScriptedBackend())
CLIENT: Final = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **_: {})))
NAN: Final = float("nan")
SECONDS: Final = (10**400, float("inf"), NAN, -1, True, "5")
SHARED: Final = (("at_least", "sure"), ("on_unverified", "ignore"))
TYPED: Final = {"sums": "inputs: x"}
TOLD_BY_VALUE: Final = ("size", "rungs", "provider", "answer", "inputs", "models", "guard", "more_paths")
"""What an error says of these is what stands in them."""


def of(place: str, *given: Any, **base: Any) -> Callable[..., Any]:
    """What takes options, by its module and name; it is imported when it is tried."""
    module, _, name = f"stepguard.{place}".rpartition(".")
    return lambda **wrong: getattr(import_module(module), name)(*given, **{**base, **wrong})


TAKERS: Final[list[tuple[str, Callable[..., Any], list[tuple[Any, ...]]]]] = [
    ("", lambda **wrong: Guard(lambda messages: "", **wrong), [
        ("parallel", 0, True, "2"), ("history", 0, 2.5), ("segment", 0, 1.5), ("repair", -1, True, "twice"),
        ("budget", 40), ("retry", 3), ("check_timeout", 0, *SECONDS),
        ("observer", 3, "diary", [MagicMock(), 3], Budget, [Budget]),
    ]),
    ("", Budget, [("calls", -1, 1.5, True, "4"), ("tokens", -1, 10.0), ("seconds", -0.1, *SECONDS)]),
    ("", RetryPolicy, [
        ("retries", -1, 1.5, True), ("first_wait", -1, NAN), ("longest_wait", *SECONDS), ("timeout", 0, *SECONDS),
    ]),
    ("", Segments, [("size", 0), ("first", 0), ("longest", None), ("output", -1), ("context", 1.5)]),
    ("", Ladder, [("same", 0), ("few", 0), ("rungs", ["resample"], [Resample(), Resample()])]),
    ("", Resample, [("temperature", 2.5, NAN), ("times", 0)]),
    ("", Vote, [("ahead", 0)]),
    ("", EndpointLimiter, [("first", 0), ("most", True)]),
    ("", lambda **wrong: LimitedBackend(MagicMock(), **wrong), [("most", 0, -1, True, 2.5, "8")]),
    ("", of("backends.local.LocalBackend", "no.gguf"), [("threads", 0), ("context", 1), ("parallel", 0)]),
    ("openai", of("backends.openai.OpenAIBackend", model="m"), [
        ("model", " "), ("mode", "markdown"), ("provider", "nobody", None), ("max_tokens_parameter", "n_predict"),
        ("api_key", ""), ("extra", {"stream": True}), ("client", object()), ("api", "assistants"),
        ("reasoning_effort", " "),
    ]),
    ("openai", of("backends.openai.OpenAIBackend", "m", base_url="http://h"), [("client", MagicMock())]),
    ("openai", of("backends.openai.OpenAIBackend", "m", api="responses"), [
        ("extra", {"input": []}), ("client", object()),
    ]),
    ("instructor", of("backends.instructor.InstructorBackend", "m"), [("provider", "openai", None)]),
    ("instructor", of("backends.instructor.InstructorBackend", "m", provider="anthropic"), [
        ("mode", "tools"), ("extra", {"tools": []}), ("limiter", 3),
    ]),
    ("instructor", of("backends.instructor.InstructorBackend", "m", provider="bedrock"), [("api_key", "k")]),
    ("instructor", of("backends.instructor.InstructorBackend", client=object()), [("provider", None, "anthropic")]),
    ("openai", lambda **wrong: wrap(**{"client": CLIENT, **wrong}), [
        *SHARED, ("client", "openai/gpt-x", SimpleNamespace(chat=SimpleNamespace())), ("on_call", 3),
        ("procedures", TYPED), ("segment", 0), ("budget", 3), ("observe", True), ("mode", "xml"), ("trust", ("user",)),
    ]),
    ("langchain", of("integrations.langchain.GuardMiddleware"), [
        *SHARED, ("on_call", 3), ("settings", {}), ("procedure", "sums"), ("procedures", TYPED), ("stop_early", True),
        ("observe", True), ("parallel", 0),
    ]),
    ("langgraph", of("integrations.langgraph.procedure_node", guard=GUARD, procedure=SUMS), [
        *SHARED, ("guard", ScriptedBackend()), ("inputs", {"prize": "x"}, 3), ("answer", "status"),
    ]),
    ("langgraph", of("integrations.langgraph.procedure_node", GUARD, SUMS, on_unverified="return"), [("status", None)]),
    ("agents", of("integrations.openai_agents.procedure_tool", guard=GUARD, procedure=SUMS), [
        *SHARED, ("guard", "openai/gpt-4.1-mini", Guard(ScriptedBackend(), observe=True)), ("procedure", "sums"),
        ("on_result", 3), ("name", "work it out"), ("values", ["t3"]),
    ]),
    ("agents", of("integrations.openai_agents.verified_output", procedure=SUMS), [
        ("at_least", "sure"), ("procedure", LAZY, AN_INPUT, WORDS), ("inputs", {"z": 1}, {"x": "many"}), ("read", 3),
        ("ignore", ["t1"], "id"), ("steps", ["t3"]), ("on_wrong", "refuse"), ("on_check", 3), ("check_timeout", 0),
    ]),
    ("pydantic_ai", of("integrations.pydantic_ai.GuardedProcedures"), [
        ("at_least", "sure"), ("procedure", "sum"), ("procedures", TYPED), ("inputs", INPUTS, lambda ctx: INPUTS),
        ("mode", "json"), ("on_call", 3), ("observe", True), ("parallel", 0), ("stop_early", True),
    ]),
    ("pydantic_ai", of("integrations.pydantic_ai.GuardedProcedures", procedure=SUMS), [("inputs", {"x": 1})]),
    ("pydantic_ai", of("integrations.pydantic_ai.VerifiedOutput", SUMS, inputs=INPUTS), [
        ("at_least", "sure"), ("inputs", {"x": 1}), ("steps", ["t9"], "t1"), ("ignore", ["t1"]), ("on_check", 3),
        ("check_timeout", 0),
    ]),
    ("mcp.server.mcpserver", of("integrations.mcp.create_server"), [
        ("max_procedure", 0), ("max_transcript", True), ("max_runs", "9"), ("models", "openai/gpt-x", {"a": 5}),
        ("guard", {"observe": True}, {"segment": 0}), ("procedures", "/no/such/folder"),
    ]),
    ("prometheus_client", of("serve.create_app", "https://host/v1"), [
        ("upstream_key", "key-of-the-upstream"), ("api_key", "", "short"), ("procedures", {"a@b": SUMS}, "/no/where"),
        ("more_paths", ["GET files"], ["GET /files/../x"]), ("guard", {"segment": 0}),
    ]),
    ("prometheus_client", lambda **wrong: of("serve.create_app")(**wrong), [
        *(("upstream", each) for each in (
            "api.openai.com", "https://user:pass@host/v1", "http://[::1", "http://host:99999999/v1",
            "https://host/v1/chat/completions", "https://host/v1/responses/",
        )),
    ]),
    ("", of("serve.limits.Limits"), [
        ("body", 0), ("concurrent", 1.5), ("seconds", -1), ("wait_seconds", True), ("client_share", 1.5), ("memory", 9),
    ]),
    ("opentelemetry", of("telemetry.opentelemetry.OpenTelemetry"), [
        ("events", 0, True), ("attempts", -1), ("longest", None, 2.5), ("tracer_provider", 3),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("library", "make", "options"), TAKERS)
def test_an_option_that_cannot_work_is_refused_at_once(
    library: str, make: Callable[..., Any], options: list[tuple[Any, ...]]
) -> None:
    """The error is one of configuration that names the option or what is wrong with it, and holds no password."""
    if library:
        pytest.importorskip(library)
    for name, *values in options:
        for value in values:
            with pytest.raises((ConfigError, InputError)) as caught:
                make(**{name: value})
            said = f"{getattr(caught.value, 'option', '')} {caught.value}"
            assert name in said or name in TOLD_BY_VALUE, said
            assert "pass@" not in said
