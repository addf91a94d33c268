"""One library's task in `peers.py`, each in its own environment: ten small sums by one call, each value checked.

    python benchmarks/peers_arms.py LIBRARY URL [--once]

===========  ===========================================================================
bare         openai
forge        forge-guardrails (Python 3.12)
instructor   instructor
pydantic-ai  pydantic-ai-slim[openai]
mellea       mellea
stepguard    what stepguard's own installation needs
===========  ===========================================================================

A task is carried out for every line that comes in, and told of in a line of JSON. Whoever sends a refused reply back
says which value is wrong; for none but stepguard does the library itself know what a step has to be.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

STEPS = {
    "t1": "x + y", "t2": "t1 * 3", "t3": "t2 - t1", "t4": "t3 + 4", "t5": "t4 - y",
    "t6": "t5 * 2", "t7": "t6 + t5", "t8": "t7 - 11", "t9": "t8 + x", "t10": "t9 - t8",
}  # fmt: skip
INPUTS = {"x": 12, "y": 7}
SHOWN = {
    "t1": "12 + 7", "t2": "19 * 3", "t3": "57 - 19", "t4": "38 + 4", "t5": "42 - 7",
    "t6": "35 * 2", "t7": "70 + 35", "t8": "105 - 11", "t9": "94 + 12", "t10": "106 - 94",
}  # fmt: skip
EXPECTED = {"t1": 19, "t2": 57, "t3": 38, "t4": 42, "t5": 35, "t6": 70, "t7": 105, "t8": 94, "t9": 106, "t10": 12}
TEXT = "x = 12\ny = 7\nWork out every step:\n" + "\n".join(f"{name} = {formula}" for name, formula in STEPS.items())
TRIES = 5
KEY = "sk-nobody-00000000"

Task = Callable[[], str]
"""Carries out one task, and says what came of it."""


def check(values: dict[str, Any]) -> None:
    """Raise ValueError at the first value that is not what it has to be."""
    for name, expected in EXPECTED.items():
        if values.get(name) != expected:
            raise ValueError(f"{name} = {STEPS[name]} is not {values.get(name)}")


def steps_model() -> Any:
    """A pydantic model with the ten values, which checks them."""
    from pydantic import BaseModel, create_model, model_validator

    class Checked(BaseModel):
        @model_validator(mode="after")
        def values_are_right(self) -> Any:
            check(self.model_dump())
            return self

    fields: dict[str, Any] = dict.fromkeys(STEPS, (int, ...))
    return create_model("Steps", __base__=Checked, **fields)


def bare(url: str) -> Task:
    """The openai SDK and a loop by hand."""
    import openai

    client = openai.OpenAI(base_url=url, api_key=KEY, max_retries=0)
    integer = {"type": "integer"}
    schema: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(STEPS, integer), "required": list(STEPS)}
    schema["additionalProperties"] = False
    form: Any = {"type": "json_schema", "json_schema": {"name": "Steps", "schema": schema, "strict": True}}

    def task() -> str:
        messages: list[Any] = [{"role": "user", "content": TEXT}]
        for _ in range(TRIES):
            reply = client.chat.completions.create(model="m", messages=messages, response_format=form)
            text = reply.choices[0].message.content or ""
            try:
                check(json.loads(text))
            except ValueError as error:
                messages += [{"role": "assistant", "content": text}, {"role": "user", "content": str(error)}]
            else:
                return "right"
        return "given up"

    return task


def forge(url: str) -> Task:
    """A workflow whose last tool takes the values, and raises where one is wrong."""
    from forge import (
        ContextManager,
        NoCompact,
        OpenAICompatClient,
        ToolDef,
        ToolExecutionError,
        ToolSpec,
        Workflow,
        WorkflowRunner,
    )
    from pydantic import create_model

    fields: dict[str, Any] = dict.fromkeys(STEPS, (int, ...))
    spec = ToolSpec(name="give", description="Give every value", parameters=create_model("Steps", **fields))

    def give(**values: int) -> str:
        check(values)
        return "right"

    workflow = Workflow(
        name="steps",
        description="Ten steps.",
        tools={"give": ToolDef(spec=spec, callable=give)},
        required_steps=[],
        terminal_tool="give",
        system_prompt_template="Use the tool.",
    )
    loop = asyncio.new_event_loop()
    client = OpenAICompatClient(model="m", base_url=url, api_key=KEY)

    def task() -> str:
        context = ContextManager(strategy=NoCompact(), budget_tokens=100_000)
        runner = WorkflowRunner(client=client, context_manager=context, max_tool_errors=TRIES - 1)
        try:
            loop.run_until_complete(runner.run(workflow, TEXT))
        except ToolExecutionError:
            return "given up"
        return "right"

    return task


def instructor(url: str) -> Task:
    """A response model that checks its values."""
    import instructor as library
    import openai

    client = library.from_openai(openai.OpenAI(base_url=url, api_key=KEY, max_retries=0), mode=library.Mode.JSON_SCHEMA)
    model = steps_model()
    messages: Any = [{"role": "user", "content": TEXT}]

    def task() -> str:
        try:
            client.chat.completions.create(model="m", messages=messages, response_model=model, max_retries=TRIES - 1)
        except Exception as error:  # noqa: BLE001 - whichever of its classes
            return "given up" if "RetryException" in type(error).__name__ else repr(error)[:80]
        return "right"

    return task


def pydantic_ai(url: str) -> Task:
    """An agent with an output type that checks its values."""
    from pydantic_ai import Agent, UnexpectedModelBehavior
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(
        OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key=KEY)),
        output_type=steps_model(),
        retries=TRIES - 1,
    )

    def task() -> str:
        try:
            agent.run_sync(TEXT)
        except UnexpectedModelBehavior:
            return "given up"
        return "right"

    return task


def mellea(url: str) -> Task:
    """An instruction with a requirement that checks the values, sampled until it holds."""
    from mellea import MelleaSession
    from mellea.backends.openai import OpenAIBackend
    from mellea.stdlib.context import SimpleContext
    from mellea.stdlib.requirements import req, simple_validate
    from mellea.stdlib.sampling import RepairTemplateStrategy
    from pydantic import create_model

    fields: dict[str, Any] = dict.fromkeys(STEPS, (int, ...))
    model = create_model("Steps", **fields)
    backend = OpenAIBackend(model_id="m", base_url=url, api_key=KEY)

    def holds(text: str) -> tuple[bool, str]:
        try:
            check(json.loads(text))
        except ValueError as error:
            return False, str(error)
        return True, ""

    requirement = req("Every value is right", validation_fn=simple_validate(holds))
    strategy = RepairTemplateStrategy(loop_budget=TRIES)

    def task() -> str:
        session = MelleaSession(backend, ctx=SimpleContext())
        result = session.instruct(
            TEXT, requirements=[requirement], strategy=strategy, format=model, return_sampling_results=True
        )
        return "right" if result.success else "given up"

    return task


def stepguard(url: str) -> Task:
    """A guard with its defaults."""
    from stepguard import Guard, Procedure
    from stepguard.backends.openai import OpenAIBackend

    lines = (f"{name} = {formula}" for name, formula in STEPS.items())
    procedure = Procedure.parse("inputs: x, y\n" + "\n".join(lines))
    guard = Guard(OpenAIBackend("m", base_url=url, api_key=KEY))

    def task() -> str:
        result = guard.run(procedure, INPUTS)
        return "right" if result.verified else f"{result.status}, {result.completed} steps kept"

    return task


ARMS: dict[str, tuple[str, Callable[[str], Task]]] = {
    "bare": ("openai", bare),
    "forge": ("forge-guardrails", forge),
    "instructor": ("instructor", instructor),
    "pydantic-ai": ("pydantic-ai-slim", pydantic_ai),
    "mellea": ("mellea", mellea),
    "stepguard": ("stepguard", stepguard),
}


def main() -> None:
    """Carry out a task for every line, or one and end."""
    library, url = sys.argv[1:3]
    distribution, make = ARMS[library]
    lines, sys.stdout = sys.stdout, sys.stderr  # some print on the way
    task = make(url)
    if "--once" in sys.argv:
        if (end := task()) != "right":
            raise SystemExit(end)
        return
    logging.disable(logging.CRITICAL)
    print(json.dumps({"version": "" if library == "stepguard" else version(distribution)}), file=lines, flush=True)
    for _ in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        end = task()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(json.dumps({"cpu": cpu, "wall": wall, "end": end}), file=lines, flush=True)


if __name__ == "__main__":
    main()
