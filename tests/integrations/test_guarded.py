"""`guarded`: a function that asks a model, called with the inputs of a procedure."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from tables import all_rows

from stepguard import Budget, Procedure
from stepguard.backends import Completion
from stepguard.core.usage import Usage
from stepguard.errors import ConfigError, InputError, ProcedureError, RunFailed, StepNotVerified
from stepguard.integrations.decorator import guarded

TEXT = "inputs: x, y\nt2 = x + y\nt1 = t2 * 3"
GOOD = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}'
WRONG = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}'


def test_a_function_that_asks_a_model_becomes_a_procedure(chat_server: ChatServer) -> None:
    """Called with inputs it returns a `Result`; the function itself is called with messages, once for each request."""
    chat_server.play([Reply(completion_body(WRONG)), Reply(completion_body('{"t1": "19 * 3 = 57"}'))])
    with openai.OpenAI(base_url=chat_server.url, api_key="sk-SECRET123") as client:

        @guarded(TEXT)
        def sums(messages: Any) -> str | None:
            """Adds up."""
            return client.chat.completions.create(model="m", messages=messages).choices[0].message.content

        result = sums(x=12, y=7)
    assert (result.status, result.answer, result.usage.calls) == ("verified", 57, 2)
    assert len(chat_server.requests) == 2
    assert [message["role"] for message in chat_server.requests[0].body["messages"]][-1] == "user"


def test_the_decorated_function_tells_what_it_takes() -> None:
    """Name and documentation are the function's, the signature is that of the procedure's inputs."""

    @guarded(TEXT)
    def sums(messages: list[dict[str, str]]) -> str:
        """Adds up."""
        return GOOD

    assert (sums.__name__, sums.__doc__) == ("sums", "Adds up.")
    assert str(inspect.signature(sums)) == "(*, x, y)"
    assert sums.__wrapped__([]) == GOOD  # type: ignore[attr-defined]


def test_an_input_with_a_default_may_be_left_out_of_a_call() -> None:
    """The signature shows it, and the call takes it."""

    @guarded("inputs: x, rate: percent = 10%\nfee = x * rate")
    def ask(messages: object) -> str:
        return '{"fee": "50 * 0.1 = 5"}'

    assert inspect.signature(ask).parameters["rate"].default == Fraction(1, 10)
    assert ask(x=50).status == "verified"


def test_an_async_function_stays_async() -> None:
    """It is awaited, and many of its runs go on at once."""

    @guarded(Procedure.parse(TEXT))
    async def sums(messages: list[dict[str, str]]) -> str:
        await asyncio.sleep(0)
        return GOOD

    async def main() -> None:
        assert inspect.iscoroutinefunction(sums)
        results = await asyncio.gather(*(sums(x=12, y=7) for _ in range(5)))
        assert all(result.verified for result in results)

    asyncio.run(main())


def test_an_object_that_is_awaited_when_called_is_async_too() -> None:
    """Objects with an async __call__ are functions like any other."""

    class Model:
        async def __call__(self, messages: object) -> str:
            return GOOD

    assert asyncio.run(guarded(TEXT)(Model())(x=12, y=7)).answer == 57


@pytest.mark.parametrize("awaited", [False, True])
def test_a_prompt_holds_all_that_the_messages_say(awaited: bool) -> None:
    """With takes="prompt" the function gets one text, with every message in its order."""
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return GOOD

    async def aask(prompt: str) -> str:
        return ask(prompt)

    if awaited:
        result = asyncio.run(guarded(TEXT, takes="prompt")(aask)(x=12, y=7))
    else:
        result = guarded(TEXT, takes="prompt")(ask)(x=12, y=7)
    assert result.verified
    (prompt,) = prompts
    assert prompt.index("one JSON object") < prompt.index("Assistant: {") < prompt.index("t2 = 12 + 7")
    assert prompt.endswith("\n\nAssistant:")


def test_the_answer_alone_is_a_verified_one() -> None:
    """With returns="answer" the value comes, or the error that holds the result."""

    @guarded(TEXT, returns="answer", repair=0)
    def sums(messages: object) -> str:
        return replies.pop(0)

    replies = [GOOD, WRONG]
    assert sums(x=12, y=7) == 57
    with pytest.raises(StepNotVerified, match="t1") as caught:
        sums(x=12, y=7)
    assert caught.value.result.values["t2"] == 19


def test_what_counts_as_an_answer_can_be_told() -> None:
    """Steps that no check vouches for give an answer only where that is allowed."""

    def ask(messages: object) -> str:
        return '{"t1": {"work": "as it says", "value": "France"}}'

    words = 'inputs: c: text\nt1: text = "Name the country in c." (reads c)'
    with pytest.raises(ConfigError, match="t1 can be unverified at most"):
        guarded(words, returns="answer")
    assert guarded(words)(ask)(c="Lyon, France").status == "unverified"
    assert guarded(words, returns="answer", at_least="unverified")(ask)(c="Lyon, France") == "France"


def test_a_method_is_decorated_like_a_function() -> None:
    """What the function needs in front of the messages is given by position."""

    class Clerk:
        replies = (GOOD,)

        @guarded(TEXT)
        def sums(self, messages: object) -> str:
            return self.replies[0]

    assert Clerk().sums(x=12, y=7).verified
    assert str(inspect.signature(Clerk().sums)) == "(*, x, y)"
    with pytest.raises(TypeError, match="behind 1 by position"):
        Clerk.sums(x=12, y=7)


def test_what_the_function_raises_ends_the_run_with_everything_kept() -> None:
    """The error is the cause, and what was verified before it is there."""

    def ask(messages: object) -> str:
        if not replies:
            raise OSError("no connection")
        return replies.pop(0)

    replies = ['{"t2": "12 + 7 = 19"}']
    result = guarded(TEXT, segment=1)(ask)(x=12, y=7)
    assert (result.status, result.values["t2"], result.usage.calls) == ("failed", 19, 2)
    with pytest.raises(RunFailed, match="no connection"):
        result.raise_for_status()


def test_a_completion_tells_what_it_cost() -> None:
    """A function may return a `Completion` with usage instead of text; options of the guard hold."""

    @guarded(TEXT, budget=Budget(calls=1), segment=2)
    def sums(messages: object) -> Completion:
        return Completion(GOOD, usage=Usage(calls=1, input_tokens=11, output_tokens=3))

    result = sums(x=12, y=7)
    assert (result.usage.tokens, result.usage.calls) == (14, 1)


def test_cancelling_propagates() -> None:
    """A cancelled call is cancelled, and leaves no task behind."""
    started = asyncio.Event()

    @guarded(TEXT)
    async def sums(messages: object) -> str:
        started.set()
        await asyncio.sleep(60)
        return GOOD

    async def main() -> None:
        task = asyncio.create_task(sums(x=12, y=7))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_threads_share_a_decorated_function() -> None:
    """Runs in several threads keep their values apart."""

    @guarded("inputs: x\nt1 = x + 1", returns="answer")
    def following(messages: list[dict[str, str]]) -> str:
        x = int(messages[-1]["content"].removeprefix("Steps:\nt1 = ").removesuffix(" + 1"))
        return f'{{"t1": "{x} + 1 = {x + 1}"}}'

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda x: following(x=x), range(40))) == list(range(1, 41))


def test_wrong_inputs_call_no_model() -> None:
    """Missing and unknown inputs, and values given by position, are mistakes of the caller."""

    @guarded(TEXT)
    def sums(messages: object) -> str:
        raise AssertionError("never called")

    with pytest.raises(InputError, match="'y'"):
        sums(x=12)
    with pytest.raises(InputError, match="'z'"):
        sums(x=12, y=7, z=1)
    with pytest.raises(TypeError, match="keyword arguments"):
        sums(12, 7)


def ask(messages: object) -> str:
    return GOOD


def ask_nothing() -> str:
    return GOOD


def ask_more(messages: object, *, model: str) -> str:
    return GOOD


def ask_text(prompt: str) -> str:
    return GOOD


@all_rows(
    "decorate, words",
    [
        (lambda: guarded(ask), "not the function"),  # type: ignore[call-overload]
        (lambda: guarded(3), "not int"),  # type: ignore[call-overload]
        (lambda: guarded(TEXT, takes="text"), "takes"),  # type: ignore[call-overload]
        (lambda: guarded(TEXT, returns="value"), "returns"),  # type: ignore[call-overload]
        (lambda: guarded(TEXT, at_least="grounded"), "returns"),  # type: ignore[call-overload]
        (lambda: guarded(TEXT, returns="answer", at_least="sure"), "at_least"),  # type: ignore[call-overload]
        (lambda: guarded(TEXT, observe=True), "observe"),  # type: ignore[call-overload]
        (lambda: guarded(TEXT, segment=0)(ask), "segment"),
        (lambda: guarded(TEXT)(ask_nothing), r"def ask_nothing\(messages\)"),
        (lambda: guarded(TEXT)(ask_more), "it also needs model"),
        (lambda: guarded(TEXT)(ask_text), 'takes="prompt"'),
        (lambda: guarded(TEXT)(dict), "not type"),
        (lambda: guarded(TEXT)(staticmethod(ask)), "not staticmethod"),
    ],
)
def test_what_cannot_work_is_told_when_the_function_is_decorated(decorate: Any, words: str) -> None:
    """A wrong option or function is an error where it is written, not when it is called."""
    with pytest.raises(ConfigError, match=words):
        decorate()


def test_a_wrong_procedure_is_told_with_its_line() -> None:
    """The text is read when the function is decorated."""
    with pytest.raises(ProcedureError, match="line 2"):
        guarded("inputs: x\nt1 = x + z")
