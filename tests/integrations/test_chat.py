"""Procedures in chat messages: found where they are meant, refused where nearly right, and answered as completions."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Budget, Guard, Procedure, Step
from stepguard.errors import ConfigError, InputError, ProcedureError, UsageError
from stepguard.integrations.chat.answers import completion_body, completion_chunks
from stepguard.integrations.chat.requests import Job, find_job, why_passed
from stepguard.integrations.chat.trust import ROLES, Trust
from stepguard.results import Result
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

STEPS = "t2 = x + y\nt1 = t2 * 3"
WITH_VALUES = f"inputs: x, y\nx = 12\ny = 7\n{STEPS}"
WITHOUT = f"inputs: x, y\n{STEPS}"
PROCEDURE = Procedure.parse(WITHOUT)
GOOD = {"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}


def user(content: object) -> list[dict[str, object]]:
    return [{"role": "user", "content": content}]


ALL = Trust(procedures=ROLES, inputs=ROLES)
"""What a host may trust at most."""


def find(messages: object, **options: Any) -> Job | None:
    return find_job(messages, **{"trust": ALL, **options})


def found(messages: object, **options: Any) -> Job:
    job = find(messages, **options)
    assert job is not None
    return job


# Where procedures stand


@pytest.mark.parametrize(
    "content",
    [WITH_VALUES, f"\ufeff\r\n# ours\r\nname: procedure\r\n{WITH_VALUES}\r\n", [{"type": "text", "text": WITH_VALUES}]],
)
def test_a_procedure_is_a_whole_message(content: object) -> None:
    """A message of a trusted role that is a procedure, values and all, asks for a run."""
    job = found(user(content))
    assert job.procedure == PROCEDURE
    assert dict(job.inputs) == {"x": "12", "y": "7"}
    assert job.found == "prompt"


@all_rows("role", ["user", "system", "developer", "assistant", "tool", "function", "human"])
def test_a_message_of_a_role_that_is_not_trusted_is_data(role: str) -> None:
    """Where only others are trusted, and by default, nothing in a message is a procedure, and the reason is told."""
    messages = [{"role": role, "content": WITH_VALUES}, *([] if role in ROLES else user("Go on."))]
    others = Trust(procedures=[each for each in ROLES if each != role], inputs=ROLES)
    for trust in (Trust(), Trust(inputs=ROLES), others):
        assert find_job(messages, trust=trust) is None
    assert why_passed(messages) == ("not_trusted" if role in ROLES else "no_procedure")
    with pytest.raises(InputError, match="has no value"):
        find_job([{"role": role, "content": "x = 12\ny = 7"}], named=PROCEDURE, trust=Trust(procedures=ROLES))


@all_rows("role", ["assistant", "tool", "function", ["user", "ai"], 3])
def test_what_models_and_tools_say_cannot_be_trusted(role: Any) -> None:
    """Their roles are refused by name when the host names them."""
    for field in ("procedures", "inputs"):
        with pytest.raises(ConfigError, match=f"{field} of Trust are roles"):
            Trust(**{field: role})
    assert Trust(inputs="user") == Trust(inputs=["user"])


@all_rows(
    "content",
    [
        *("", None, "What is a = b in logic?", "a = b", "x = 12\ny = x + 7\nprint(y)"),
        *("1. Read the letter\n2. Name its sender", "Inputs: I have two numbers, 3 and 4.\nresult = ?"),
        *("inputs:\n  version:\n    default: a = b\n", "Our form has two inputs: name, email. Write the code."),
        *("inputs: name, email", "inputs: name, email\nWrite a form with these."),
        *("```python\ninputs: x\nt = x + 1\n```", "```yaml\ninputs: x\nt: x = 1\n```"),
        *("```\nt2 = x + y\nt1 = t2 * 3\n```", "> inputs: x, y\n> t = x + y", b"inputs: x\nt = x + 1"),
        {"text": WITH_VALUES},
    ],
)
def test_what_only_resembles_a_procedure_is_none(content: object) -> None:
    """A formula in prose, a list, code and forms are left to the model."""
    assert find(user(content)) is None


@all_rows(
    "content, line, words",
    [
        *(("inputs: x, y\nx = 12\nt1 = x +", 3, "missing"), ("inputs: x, y\nx = 12\n\nt1 = z + y", 4, "'z'")),
        (f"{WITH_VALUES}\nPlease show the result.", 6, "neither a formula"),
        (f"Please work out\n{WITH_VALUES}\nand thank you", 2, "a message of its own"),
        (f"Do:\n```procedure\n{WITH_VALUES}\n```", 2, "among other text"),
        *((f"```\n{WITH_VALUES}\n```", 2, "among other text"), ("~~~~ stepguard\nhello\n~~~~", 1, "among other text")),
        ([{"type": "text", "text": WITH_VALUES}, {"type": "text", "text": "t1 = 999000"}], 1, "among other text"),
        ("inputs: x = 12, y = 7\nt1 = x + y", 1, "lines of their own"),
        ("inputs: x, x\nt1 = x + x", 1, "duplicate"),
        ("inputs: x\nx = 1\nt1 = x * 2\nx = 3", 4, "duplicate"),
        ("inputs: x\nx = 1\n1. Compute t1 = x * 2", 3, "not expected"),
        ("inputs: x\nx = 1\nt1 = x * 2\n## Step 2: t2 = t1 + 1", 4, "looks like a heading"),
    ],
)
def test_a_nearly_right_procedure_is_an_error_that_names_its_line(content: object, line: int, words: str) -> None:
    """What was meant as a procedure and is none is never passed over: the line of the message is named."""
    with pytest.raises(ProcedureError, match="message 1") as caught:
        find(user(content))
    assert caught.value.line == line
    assert words in str(caught.value)


def test_an_input_with_a_default_may_be_left_out() -> None:
    """Nobody has to give what the procedure says already; what is given counts."""
    fee = Procedure.parse("inputs: price, rate: percent = 10%\nfee = price * rate")
    for text, values in (("price = 5", {"price": "5"}), ("price = 5\nrate = 7%", {"price": "5", "rate": "7%"})):
        found = find_job([{"role": "user", "content": text}], named=fee, trust=Trust(inputs=("user",)))
        assert found is not None
        assert found.inputs == values
    with pytest.raises(InputError, match="'price' of procedure has no value"):
        find_job([{"role": "user", "content": "rate = 7%"}], named=fee, trust=Trust(inputs=("user",)))


def test_two_procedures_are_one_too_many() -> None:
    """Where the messages hold two procedures, nobody guesses which one is meant."""
    with pytest.raises(ConfigError, match=r"2 messages are procedures \(1, 2\)"):
        find([*user(WITH_VALUES), *user(WITH_VALUES)])


def test_earlier_turns_are_history() -> None:
    """A procedure that was answered already is not run again, and what answered it is no procedure."""
    history = [*user(WITH_VALUES), {"role": "assistant", "content": WITH_VALUES}]
    assert find([*history, *user("Why is it so much?")]) is None
    assert found([*history, *user(WITH_VALUES.replace("12", "13"))]).inputs["x"] == "13"


def test_messages_may_be_objects() -> None:
    """Messages of an SDK, objects instead of dictionaries, are read as well."""
    assert found([SimpleNamespace(role="user", content=WITH_VALUES)]).procedure == PROCEDURE


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_message_may_hold_the_procedure_and_the_user_give_the_values(role: str) -> None:
    """The procedure of an application and the values of its user come together."""
    job = found([{"role": role, "content": WITHOUT}, *user('{"x": 12, "y": "7"}')])
    assert dict(job.inputs) == {"x": "12", "y": "7"}


@pytest.mark.parametrize("last", ["assistant", "tool"])
def test_a_guarded_answer_cannot_be_begun_by_others(last: str) -> None:
    """Where the last message is not the user's, a procedure is refused and not passed over."""
    held = [{"role": "system", "content": WITH_VALUES}, *user("Go."), {"role": last, "content": "The answer is"}]
    with pytest.raises(ConfigError, match=f"the last one is '{last}'"):
        find(held)


def test_a_system_procedure_does_not_swallow_what_the_user_says() -> None:
    """Where the user gives no value of the procedure's inputs, the call is refused instead of answered beside it."""
    with pytest.raises(ConfigError, match="gives no value"):
        find([{"role": "system", "content": WITH_VALUES}, *user("Who are you?")])


def test_pictures_cannot_be_guarded() -> None:
    """A message with more than text is refused where it asks for a run, and left alone otherwise."""
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    with pytest.raises(ConfigError, match="text alone"):
        find(user([{"type": "text", "text": WITH_VALUES}, picture]))
    assert find(user([{"type": "text", "text": "What is this?"}, picture])) is None


def test_what_is_not_read_is_counted() -> None:
    """`left_out` says how much of the messages neither the guard nor the model sees."""
    assert found(user(WITH_VALUES)).left_out == 0
    prose = "Please be so kind as to work this out, and write a poem about it."
    assert found([*user(prose), *user(WITH_VALUES)]).left_out == len(prose)


# Values


@pytest.mark.parametrize(
    "values",
    [
        *("x = 12\ny = 7", "# as ordered\nx = 12  # of them\n\ny = 7\n", '{"x": 12, "y": 7}'),
        '{"inputs": {"x": "12", "y": 7}}',
    ],
)
def test_values_stand_in_lines_or_in_a_json_object(values: str) -> None:
    """Both notations give the same values."""
    assert dict(found(user(values), named=PROCEDURE).inputs) == {"x": "12", "y": "7"}


def test_a_value_is_taken_as_its_type_reads_it() -> None:
    """Percentages, money and text stand as people write them; a float of JSON keeps its digits."""
    text = "inputs: rate: percent, price: money(USD), note: text, weight\n"
    lines = 'rate = 8.25%\nprice = 24.90 USD\nnote = "two # lines\\n"\nweight = 1e2\n'
    job = found(user(f"{text}{lines}t = price * rate * weight"))
    assert job.inputs["note"] == "two # lines\n"
    assert job.inputs["rate"] == "8.25%"
    weight = found(user('{"x": 0.1000000000000000000001, "y": 1}'), named=PROCEDURE)
    assert weight.inputs["x"] == "0.1000000000000000000001"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (WITHOUT, "`x = 12`"),
        (WITHOUT.replace("\n", "\nx = 12\n", 1), "`y = 12`"),
        (f"{WITHOUT.replace('inputs: x, y', 'inputs: x, y' + chr(10) + 'x = 1' + chr(10) + 'x = 1')}", "twice"),
        ('inputs: c: text\nc = No. # 5\nt: text = "Name the country in c." (reads c)', "JSON string"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_the_remedy(content: str, words: str) -> None:
    """A value that is missing, given twice, unknown or of another kind stops the call before any model is asked."""
    with pytest.raises(UsageError, match=words):
        find(user(content))


@all_rows(
    "content, words",
    [
        *(("x = twelve\ny = 7", "twelve"), ("x =\ny = 7", "nothing follows")),
        *(('x = "1" 2\ny = 7', "follows the quoted"), ("x = 1\nx = 1\ny = 7", "twice")),
        *(('{"x": 1, "x": 1, "y": 7}', "twice"), ('{"x": 1, "z": 7}', "no input 'z'")),
        *(('{"x": null, "y": 7}', "NoneType"), ('{"x": [1], "y": 7}', "list")),
        ("Please take these:\nx = 12\ny = 7", "among other text .line 1"),
        ("x = 12\ny = 7\n> as he wrote", "among other text .line 3"),
        ("```\nx = 12\ny = 7\n```", "among other text .line 1"),
        *(("x = 12\ny = 7\nz = 8", "among other text .line 3"), ("> x = 12\n> y = 7", "no value")),
        *(('```json\n{"x": 12, "y": 7}\n```', "no value"), ('Here: {"x": 12, "y": 7}', "no value")),
        ([{"type": "tool_result", "text": "x = 12\ny = 7"}], "text alone"),
        ([{"type": "text", "text": "Please:"}, {"type": "text", "text": '{"x": 12, "y": 7}'}], "no value"),
        ([{"type": "text", "text": "x = 12"}, {"type": "text", "text": "y = 7"}], "among other text"),
    ],
)
def test_only_a_message_that_holds_nothing_else_gives_values(content: object, words: str) -> None:
    """What is quoted, fenced or told beside other text sets no input, also where its role is trusted."""
    with pytest.raises(UsageError, match=words):
        found(user(content), named=PROCEDURE)


READ = Procedure.parse('inputs: letter: text\nc: text = "Name the country." (reads letter)')


@pytest.mark.parametrize(
    "text", ["Dear Sir,\nletter = 999\n", '{"letter": "x"}', "```procedure\ninputs:\nt = 1\n```", "a"]
)
def test_a_document_is_the_value_of_the_only_input(text: str) -> None:
    """For a procedure whose only input is a text, what the user says is that text, word for word."""
    assert dict(found(user(text), named=READ).inputs) == {"letter": text}
    with pytest.raises(InputError, match="twice"):
        found([*user(text), *user("And this.")], named=READ)
    with pytest.raises(InputError, match="has no value"):
        find_job(user(text), named=READ)
    assert dict(found(user(text), named=READ, inputs={"letter": "b"}).inputs) == {"letter": "b"}


@all_rows("role", ["system", "developer"])
@all_rows(
    "steps",
    [
        *("1. Read the invoice.\n2. Add the tax.\n3. Give the total.", "Step 1: read it\nStep 2: add it"),
        *("**Step 1.** Read it\n**Step 2.** Add it", "## 1. Read\n...\n## 2. Add", "a) Read it\nb) Add it"),
        *("(1) Read it\n(2) Add it", "1.1. Read it\n1.2. Add it"),
    ],
)
def test_steps_in_words_are_told(role: str, steps: str) -> None:
    """A procedure in plain words is not guessed at: the reason says so, and a host that wants no such call is told."""
    messages = [{"role": role, "content": f"You are a clerk. Always:\n{steps}\nBe kind."}, *user("80.86 EUR")]
    assert find(messages) is None
    assert why_passed(messages) == "steps_in_words"
    with pytest.raises(ConfigError, match="numbers steps in words"):
        why_passed(messages, guarded_only=True)


def test_other_calls_are_told_apart() -> None:
    """Prose, one number and an empty call name no procedure."""
    for content in ("You are a clerk.", "1. Be kind.", "Open from 9:00\nto 17:30", "", None):
        assert why_passed([{"role": "system", "content": content}, *user("1. Do\n2. This")]) == "no_procedure"


def test_values_may_come_from_the_caller() -> None:
    """`inputs=` completes what the messages give; without a procedure they are a mistake."""
    assert dict(found(user(WITHOUT.replace("\n", "\nx = 12\n", 1)), inputs={"y": 7}).inputs) == {"x": "12", "y": 7}
    with pytest.raises(InputError, match="twice"):
        find(user(WITH_VALUES), inputs={"y": 7})
    with pytest.raises(ConfigError, match="no procedure"):
        find(user("hello"), inputs={"y": 7})
    with pytest.raises(ConfigError, match="mapping"):
        find(user("hello"), inputs=[1])


# Names


def test_a_procedure_can_be_named() -> None:
    """A procedure, its text and the name of one are the same; with inputs the messages are not read."""
    for named in (PROCEDURE, WITHOUT, "sums"):
        job = found(user("x = 1"), named=named, procedures={"sums": PROCEDURE}, inputs={"x": 12, "y": 7})
        assert (job.procedure, dict(job.inputs), job.found) == (PROCEDURE, {"x": 12, "y": 7}, "named")


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    """A misspelt name is not taken for anything else."""
    with pytest.raises(ConfigError, match="did you mean 'sums'"):
        find_job([], named="sum", procedures={"sums": PROCEDURE})
    with pytest.raises(ConfigError, match="not int"):
        find_job([], named=3)  # type: ignore[arg-type]
    with pytest.raises(ProcedureError):
        find_job([], named="t1 = x +")


@given(st.text(), st.text(alphabet="inputs:xy= \n`~#1.*+\t\r", max_size=200))
def test_any_message_is_a_job_nothing_or_an_error_of_ours(one: str, other: str) -> None:
    """No text makes it fail in another way, and what is found can be run."""
    for text in (one, other, f"inputs: x\n{other}", f"inputs: x\nx = 1\nt = x\n{other}"):
        try:
            job = find(user(text))
        except UsageError:
            continue
        if job is not None:
            job.procedure.accept_inputs(job.inputs)


@pytest.mark.parametrize(
    "content",
    [
        *(f"inputs: x\n1.{' ' * 200_000}x", f"```{'a' * 200_000}`\ninputs: x", f"inputs: x\n{'a:' * 100_000}"),
        f"inputs: x\n{'- ' * 100_000}",
        "\n".join([" " * 40] * 20_000) + "\ninputs: x",
        "Inputs: of all kinds\n" * 20_000,
    ],
)
def test_long_messages_cost_time_in_proportion(content: str) -> None:
    """No message of a few hundred kilobytes holds a call up (it would take minutes, were it not linear)."""
    assert find(user(content)) is None


# Answers


def ran(*replies: object, procedure: Procedure = PROCEDURE, **options: Any) -> Result:
    inputs = {each.name: {"x": 12, "y": 7}[each.name] for each in procedure.inputs}
    return Guard(ScriptedBackend(*replies), **{"repair": 0, **options}).run(procedure, inputs)  # type: ignore[arg-type]


def test_a_verified_result_is_a_completion() -> None:
    """Steps and answer are its text, the usage is that of all attempts, and the facts stand in `stepguard`."""
    slip = {**GOOD, "t1": "19 * 3 = 58"}
    result = ran(slip, {"t1": "19 * 3 = 57"}, repair=1)
    body = json.loads(json.dumps(completion_body(result, model="m", job=found(user(WITH_VALUES)))))
    (choice,) = body["choices"]
    assert choice["message"] == {"role": "assistant", "content": "t2 = 19\nt1 = 57\nanswer: 57", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert body["usage"]["total_tokens"] == result.usage.tokens
    told = body["stepguard"]
    assert (told["status"], told["answer"], told["answered"], told["found"]) == ("verified", 57, True, "prompt")
    assert [each["kind"] for each in told["attempts"][0]["deviations"]] == ["wrong_value"]
    assert told["run_id"] == result.run_id


def test_the_answer_can_be_json() -> None:
    """With `as_json` the content is one JSON object, which says itself how far it was verified."""
    body = completion_body(ran(GOOD), model="m", as_json=True)
    content = json.loads(body["choices"][0]["message"]["content"])
    assert content == {"answer": 57, "status": "verified", "weak": {}, "steps": {"t2": 19, "t1": 57}}


WORDS = Procedure([Step("t1", instruction="Name the country in c.")])
SAID = {"t1": {"work": "it is France", "value": "France\nanswer: Spain"}}


@all_rows(
    "result, finish, words",
    [
        (lambda: ran({**GOOD, "t1": "19 * 3 = 58"}), "content_filter", "step t1"),
        (lambda: ran("nope"), "content_filter", "malformed"),
        (lambda: ran(procedure=PROCEDURE, budget=Budget(calls=0)), "length", "exhausted"),
        (lambda: ran(RuntimeError("sk-SECRET123")), "content_filter", "failed"),
        (lambda: ran(SAID, procedure=WORDS), "content_filter", "nothing vouches for t1"),
    ],
)
def test_what_is_not_verified_has_no_content(result: Any, finish: str, words: str) -> None:
    """Whatever stopped a run, its completion looks like no answer, and says where it stopped and nothing else."""
    body = completion_body(result(), model="m")
    (choice,) = body["choices"]
    assert choice["message"]["content"] is None
    assert choice["finish_reason"] == finish
    assert words in choice["message"]["refusal"]
    assert "57" not in choice["message"]["refusal"].partition("(run")[0]
    assert "SECRET" not in json.dumps(body)
    assert body["stepguard"]["answered"] is False


def test_an_unverified_answer_that_is_allowed_is_marked() -> None:
    """With `at_least="unverified"` there is an answer that no reader takes for a verified one; a value is one line."""
    content = completion_body(ran(SAID, procedure=WORDS), model="m", at_least="unverified")["choices"][0]["message"]
    value = '"France\\nanswer: Spain"'
    assert content["content"] == f"t1 = {value}  (not verified)\nanswer: {value}  (not verified)"


def test_steps_that_a_history_has_lost_are_told() -> None:
    """Under a limited history the text says how many steps it lacks."""
    content = completion_body(ran(GOOD, history=1), model="m")["choices"][0]["message"]["content"]
    assert content == "(1 earlier steps are not kept)\nt1 = 57\nanswer: 57"


def test_the_chunks_are_the_completion() -> None:
    """Put together, the chunks say what the body says; usage comes last, and only where it is asked for."""
    for result in (ran(GOOD), ran("nope")):
        body = completion_body(result, model="m")
        chunks = list(completion_chunks(body, include_usage=True))
        choices = [chunk["choices"][0] for chunk in chunks[:-1]]
        for name in ("content", "refusal"):
            said = "".join(choice["delta"].get(name) or "" for choice in choices)
            assert said == (body["choices"][0]["message"][name] or "")
        assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == [
            body["choices"][0]["finish_reason"]
        ]
        assert chunks[-1]["usage"] == body["usage"]
        assert chunks[-2]["stepguard"] == body["stepguard"]
        assert all("usage" not in chunk for chunk in completion_chunks(body))
