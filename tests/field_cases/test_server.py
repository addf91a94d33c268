"""A server that holds: cases from the field, one row each, and generated ones of their kinds."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from conftest import ChatServer, Reply, completion_body
from hypothesis import given
from hypothesis import strategies as st
from serve_harness import GOOD, KEY, MODEL, VALUES, WRONG, Answer, Served, fixtures_of_a_server, serving

from stepguard import Procedure
from stepguard.errors import StepguardError
from stepguard.serve import Limits, create_app
from stepguard.serve.blackout import Blackout
from stepguard.serve.errors import HttpProblem
from stepguard.serve.paths import encode, one_path

OWN, UPSTREAM = "own-key-of-the-operator-1", "sk-up/key+of=operator-2"
MESSAGES: Any = [{"role": "user", "content": "Hi"}]
PLAIN = {"model": "m", "messages": MESSAGES}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


endpoint, chat_server, running, served = fixtures_of_a_server(
    reply=Reply(completion_body("hello")), api_key=OWN, upstream_key=UPSTREAM
)


def ask(served: Served, body: object = PLAIN, path: str = "/v1/chat/completions", method: str = "POST") -> Answer:
    """One request with the key of the server."""
    return served.request(method, path, body, {"Authorization": f"Bearer {OWN}"})


# Paths


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/..%2fadmin", "/v1/../admin", "/v1/%2e%2e/admin", "/v1/.%2e/admin", "/v1/models/..%2f..%2fadmin"),
        *("/v1/models/%252e%252e%252fadmin", "/v1/models/a%00", "/v1/models/a%0d%0aX:%20y", "/v1/models/a;b"),
        *("/v1/models/a%3bb", "/v1/models/..%5cadmin", "/v1/models/a%5c..%5cb", "/v1/models/./x", "/v1/models/%20"),
        *(
            *("/v1/models/%c0%ae%c0%ae/admin", "/v1/models/%ef%bc%8e%ef%bc%8e/x", "/v1/models/a%3fkey=1"),
            "/v1/models/a%23",
        ),
        *("/v1/models/a%zz", "/v1/models/a%", "/v1/chat%2fcompletions", "/v1/Chat/Completions", "/V1/models", "/admin"),
        *("/v1/admin", "/v1/files", "/v1/files/f/content", "/v1/organization/api_keys", "/v1/batches", "/v1/threads"),
        *(
            *("/v1/responses/r1", "/v1", "/", "/v1/chat/completions/x", "/v1/models/a%2f", "/v1/models/..."),
            "//x/v1/models",
        ),
        "/v1/fine_tuning/jobs",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_s02_no_other_path(chat_server: ChatServer, served: Served, path: str, method: str) -> None:
    """S02: a path that others may read otherwise, or that is not on the list, is not found and never sent on."""
    answer = ask(served, None if method == "GET" else PLAIN, path, method)
    assert answer.status in (404, 405)
    assert answer.error["code"] == "unknown_path"
    assert not chat_server.requests


@pytest.mark.parametrize(
    ("method", "written", "sent"),
    [
        ("POST", "/v1/chat/completions/", "/v1/chat/completions"),
        ("POST", "/v1//embeddings?api-version=1", "/v1/embeddings?api-version=1"),
        ("GET", "/v1/models/org%2Fmodel:free", "/v1/models/org/model:free"),
        ("GET", "/v1/models/@cf/meta/llama-3.1", "/v1/models/@cf/meta/llama-3.1"),
        ("GET", "/v1/models/caf%C3%A9", "/v1/models/caf%C3%A9"),
    ],
)
def test_s02_right_paths(chat_server: ChatServer, served: Served, method: str, written: str, sent: str) -> None:
    """S02: what is on the list is passed on, each at its one path, with its query."""
    assert ask(served, None if method == "GET" else PLAIN, written, method).status == 200
    assert [each.path for each in chat_server.requests] == [sent]


WORDS = st.sampled_from(
    ["v1", "models", "..", ".", "%2e", "%2f", "%5c", "%25", ";", "\\", "%00", "a", "é", "%C3%A9", "~"]
)


@given(st.lists(WORDS | st.just("/"), max_size=12).map("".join))
def test_s02_one_reading(written: str) -> None:
    """S02: a path that is accepted is one for whoever reads its escapes once more, or folds its dots and slashes."""
    with contextlib.suppress(HttpProblem):
        path = one_path(written)
        assert unquote(path) == path == unquote(encode(path))
        assert path == "/" or all(word.strip(". ") for word in path[1:].split("/"))
        assert not set(path) & set("%\\;?#")
        assert one_path(encode(path)) == path


def test_s02_an_operator_adds_paths(chat_server: ChatServer) -> None:
    """S02: what the operator adds is passed on by that method alone; of callers' headers none chooses an account."""
    added = ["GET /files/{id}/content"]
    with serving(chat_server.url, api_key=OWN, upstream_key=UPSTREAM, more_paths=added) as served:
        headers = {
            "Authorization": f"Bearer {OWN}",
            "OpenAI-Organization": "other",
            "Cookie": "a=b",
            "X-Goog-Api-Key": "k",
        }
        assert served.request("GET", "/v1/files/f/content", None, headers).status == 200
        assert ask(served, PLAIN, "/v1/files/f/content").status == 405
        assert ask(served, None, "/v1/files/f%2fx/content", "GET").status == 404
    (received,) = chat_server.requests
    assert received.headers["authorization"] == f"Bearer {UPSTREAM}"
    assert not {"openai-organization", "cookie", "x-goog-api-key"} & received.headers.keys()


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions"])
def test_s02_what_no_address_can_hold_is_the_callers(served: Served, path: str) -> None:
    """S02: behind the ? nothing goes on that the address of the upstream cannot hold, and that is told."""
    answer = ask(served, PLAIN, f"{path}?a={'x' * 70_000}", "GET" if path.endswith("models") else "POST")
    assert (answer.status, answer.body.count(b"query_too_long")) == (414, 1)


def test_s05_a_byte_order_mark_changes_nothing(chat_server: ChatServer, served: Served) -> None:
    """S05: a body that a tool of Windows wrote is read, guarded or not."""
    sent = {"model": "sums@m", "messages": [], "inputs": {"x": 12, "y": 7}}
    marked = b"\xef\xbb\xbf" + json.dumps(sent).encode()
    answer = served.request("POST", "/v1/chat/completions", marked, {"Authorization": f"Bearer {OWN}"})
    assert b"byte" not in answer.body
    assert b"read exactly" not in answer.body


# Keys


def spelled(key: str) -> list[str]:
    """A key in the forms in which errors quote it."""
    return [
        key,
        f"Bearer {key}",
        json.dumps(key).replace("/", "\\/"),
        "".join(f"\\u{ord(sign):04x}" if not sign.isalnum() else sign for sign in key),
        quote(key, safe=""),
        quote(quote(key, safe=""), safe=""),
        key.replace("/", "&#x2F;").replace("+", "&#43;"),
        base64.b64encode(key.encode()).decode(),
        base64.urlsafe_b64encode(f"Bearer {key}".encode()).decode(),
        base64.b64encode(f"user:{key}".encode()).decode(),
        key.encode().hex(),
        f"{key[:9]}*****{key[-4:]}",
        f"{key[:6]}...{key[-4:]}",
        key[:-3],
        key[: len(key) // 2 + 2] + "\n",
        key[:-4].upper(),
    ]


FORMS = spelled(UPSTREAM)


@pytest.mark.parametrize("form", FORMS)
def test_s03_keys_of_the_operator(chat_server: ChatServer, served: Served, form: str) -> None:
    """S03: whatever form an error of the upstream quotes the operator's key in, no client reads any of it."""
    words = f"Incorrect API key provided: {form}. See the account."
    for kind in ("error", "text", "header", "event", "guarded"):
        body: Any = {"error": {"message": words, "type": "t", "param": None, "code": "invalid_api_key"}}
        if kind == "event":
            raw = json.dumps({"choices": [{"delta": {"content": "a"}}]})
            said = words if form in FORMS[:11] else "no"  # a part is looked for in errors alone
            chat_server.play(Reply(events=[raw, json.dumps({"error": {"message": said}})]))
        elif kind == "header":
            chat_server.play(Reply(body, status=401, headers={"X-Debug": form.replace("\n", "")}))
        else:
            chat_server.play(Reply(words if kind == "text" else body, status=401))
        model = "sums@m" if kind == "guarded" else "m"
        answer = ask(
            served, {"model": model, "messages": MESSAGES, "stream": kind == "event", **GIVEN[kind == "guarded"]}
        )
        seen = answer.body.decode() + "".join(answer.headers.values())
        assert answer.status == (200 if kind == "event" else 401)
        for each in (*FORMS[:11], "operator-2", "up/key"):
            assert each not in seen
            assert each.upper() not in seen
        if form in FORMS[11:] and kind != "event":
            assert UPSTREAM[-4:] not in seen


GIVEN: dict[bool, dict[str, Any]] = {True: {"inputs": {"x": 12, "y": 7}}, False: {}}


@given(st.sampled_from(FORMS[:11]), st.lists(st.integers(0, 120), max_size=8), st.sampled_from([200, 401]))
def test_s03_in_any_parts(form: str, cuts: list[int], status: int) -> None:
    """S03: however a response is cut into parts, the key in it is covered, and no other byte is changed or lost."""
    before, after = b'data: {"x": "', b'"}\n\ndata: [DONE]\n\n'
    whole = before + form.encode() + after
    at = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    parts = [whole[start:end] for start, end in itertools.pairwise(at)]
    sent: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"x-a", form.encode())]})
        for number, part in enumerate(parts, 1):
            await send({"type": "http.response.body", "body": part, "more_body": number < len(parts)})

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        assert form.encode() not in b"".join(value for _, value in message.get("headers", ()))

    asyncio.run(Blackout(app, [UPSTREAM])({"type": "http", "headers": []}, None, send))  # type: ignore[arg-type]
    answer = b"".join(sent)
    assert len(answer) == len(whole)
    assert answer.startswith(before)
    assert answer.endswith(after)
    assert UPSTREAM.encode() not in answer
    assert form.encode() not in answer


def test_s03_the_key_of_a_caller(chat_server: ChatServer, served: Served) -> None:
    """S03: a caller's own key is covered in errors; words that are no key stay as they are, also in answers."""
    chat_server.play(
        [
            Reply({"error": {"message": f"bad {KEY} for model dummy"}}, status=401),
            Reply(completion_body("a dummy Bearer of sk-up- and EMPTY words")),
        ]
    )
    with serving(chat_server.url) as open_to_all:
        answer = open_to_all.chat(model="m")
        assert (answer.status, KEY.encode() in answer.body, b"model dummy" in answer.body) == (401, False, True)
    assert b"a dummy Bearer of sk-up- and EMPTY words" in ask(served).body


# What is passed on


@pytest.mark.parametrize(
    "more",
    [
        *(b'"logit_bias": {"1": -Infinity}', b'"seed": NaN', b'"seed": 1, "seed": 2', b'"a": {"b": 1, "b": 2}'),
        *(b'"seed": %b' % (b"9" * 5000), b'"seed": 1e999', b'"x": "\\ud800"', b'"x": 1.10', b'"model":"m"'),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"])
def test_s05_bytes_stay_what_they_are(chat_server: ChatServer, served: Served, more: bytes, path: str) -> None:
    """S05: a body that asks for no procedure goes to the upstream, and its answer comes back, byte by byte."""
    sent = b'{"model": "m",  "messages": [{"role": "user", "content": "Hi"}], %b}' % more
    said = '{"choices": [], "choices": [],  "a": -Infinity, "b": 123456789012345678901234567890.10}'
    got: list[bytes] = []
    chat_server.play(Reply(said))
    read = json.loads

    def watched(body: Any, **options: Any) -> Any:
        got.append(body if isinstance(body, bytes) else b"")
        return {"model": "m"} if isinstance(body, bytes) else read(body, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conftest.json.loads", watched)
        answer = ask(served, sent, path)
    assert sent in got
    assert (answer.status, answer.body) == (200, said.encode())


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "sums@m", "model": "m", "messages": []}',
        b'{"model": "m", "mod\\u0065l": "sums@m", "messages": []}',
        b'{"model": "sums@m", "inputs": {"x": 12, "y": 7}, "inputs": {"x": 1, "y": 1}}',
        b'{"model": "m", "procedure": "inputs: x\\nt = x", "procedure": null, "messages": []}',
        b'{"model": "sums@m", "inputs": {"x": NaN, "y": 7}}',
        b'{"model": "sums@m", "temperature": 1, "temperature": 2, "inputs": {"x": 12, "y": 7}}',
        b'{"model": ["sums@m"], "messages": []}',
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_s05_no_procedure_behind_another_reading(
    chat_server: ChatServer, served: Served, body: bytes, path: str
) -> None:
    """S05: what another server may read as a request for a procedure, or as another one, is refused."""
    assert ask(served, body, path).status in (400, 404)
    assert not chat_server.requests


# What is told


def test_s09_files_name_procedures(chat_server: ChatServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S09: a file, or an entry of a mapping, names a procedure that has no name of its own."""
    (tmp_path / "sums.txt").write_text("inputs: x, y\nt2 = x + y\nt1 = t2 * 3\n", encoding="utf-8")
    (tmp_path / "other.txt").write_text("name: named\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3\n", encoding="utf-8")
    chat_server.play(Reply(completion_body(GOOD)))
    more = {"mapped": Procedure.parse("inputs: x, y\nt2 = x + y\nt1 = t2 * 3")}
    with caplog.at_level(logging.INFO, logger="stepguard"):
        for procedures, names in ((tmp_path, {"sums": "sums", "other": "named"}), (more, {"mapped": "mapped"})):
            with serving(chat_server.url, procedures=procedures) as served:
                for asked, name in names.items():
                    assert served.chat(model=f"{asked}@m").json["stepguard"]["procedure"] == name
                    assert f'stepguard_runs_total{{procedure="{name}",status="verified"}}' in served.metrics()
                    assert f"procedure='{name}'" in caplog.text


@pytest.mark.parametrize(
    ("more", "param"),
    [({"stream": "yes"}, "stream"), ({"stream": 1}, "stream"), ({"inputs": {"x": 1, "z": 2}}, "inputs")],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_s11_the_field_that_is_to_blame_is_named(served: Served, more: dict[str, Any], param: str, path: str) -> None:
    """S11: of a guarded request nothing that is no truth value is taken for one, in any protocol."""
    body = {"model": MODEL, "messages": MESSAGES, "input": "Hi", "max_tokens": 9, **GIVEN[True], **more}
    answer = ask(
        served, {name: each for name, each in body.items() if name != "max_tokens" or "messages" in path}, path
    )
    assert answer.status == 400
    assert answer.json["error"].get("param", param) == param
    assert param[:5] in answer.json["error"]["message"]


def test_s11_an_error_echoes_no_document(chat_server: ChatServer) -> None:
    """S11: a run that is no answer tells the values by name, and long ones and given texts by their size."""
    text = "Net 100.00, a secret of Jane Doe's. " * 40
    copied = Procedure.parse(
        "inputs: document: text, note: text, rate\nt = rate + 1\nquote: text = document\nu = t * 2"
    )
    said = json.dumps({"t": "2 + 1 = 3", "quote": text, "u": "3 * 2 = 7"})
    chat_server.play(Reply(completion_body(said)))
    with serving(chat_server.url, procedures={"copied": copied}, guard={"repair": 0}) as served:
        answer = served.chat(model="copied@m", inputs={"document": text, "note": "Jane Doe", "rate": 2})
    values = answer.error["stepguard"]["values"]
    assert answer.status == 422
    assert values["document"] == {"characters": len(text)}
    assert (values["note"], values["rate"], values["t"]) == ({"characters": 8}, 2, 3)
    assert b"Jane" not in answer.body


def test_s12_the_server_tells_nobody_more_than_that_it_lives(served: Served) -> None:
    """S12: without the key nothing is told but that the server lives; with it the metrics are."""
    nobody = {"Authorization": ""}
    health = served.request("GET", "/health", None, nobody)
    assert (health.status, health.json) == (200, {"status": "ok"})
    for path in ("/metrics", "/v1/models", "/v1/models/sums@m"):
        refused = served.request("GET", path, None, nobody)
        assert (refused.status, b"sums" in refused.body) == (401, False)
    assert b"stepguard_in_flight" in ask(served, None, "/metrics", "GET").body


def test_s12_metrics_at_a_port_of_their_own(chat_server: ChatServer) -> None:
    """S12: where the metrics have a port of their own they are not at that of the API."""
    with serving(chat_server.url, metrics=False) as served:
        assert served.request("GET", "/metrics").status == 404
        assert served.service.metrics.registry.get_sample_value("stepguard_in_flight") == 0


# Sizes


def deep(count: int) -> bytes:
    """A request nested so deeply."""
    return b'{"model": "m", "messages": %b%b}' % (b"[" * count, b"]" * count)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (lambda: b'{"model": "m", "messages": [%b{}]}' % (b"{}," * 1_000_000), 413),
        (lambda: b'{"model": "m", "messages": [%b""]}' % (b'"",' * 20_000), 413),
        (lambda: b'{"model": "m", "messages": [%b0]}' % (b"0," * 1_000_000), 413),
        (lambda: b'{"model": "m", "x": {%b"a": 0}}' % b"".join(b'"%d": 0,' % each for each in range(600_000)), 413),
        (lambda: deep(200), 400),
        (lambda: deep(100_000), 400),
        (lambda: b'{"model": "m", "x": "' + b'\\"' * 500_000, 400),
        (lambda: b'{"model": "m"' + b" " * 17_000_000 + b"}", 413),
        (lambda: '{"model": "m"}'.encode("utf-16"), 400),
    ],
    ids=["messages", "texts", "numbers", "names", "nested", "very-deep", "open-text", "large", "utf-16"],
)
def test_s13_bodies_are_measured_before_they_are_read(
    chat_server: ChatServer, served: Served, body: Callable[[], bytes], status: int
) -> None:
    """S13: what would take much more memory than its size, or more than there is, is refused with a reason."""
    answer = ask(served, body())
    assert (answer.status, bool(answer.error["message"])) == (status, True)
    assert not chat_server.requests
    assert ask(served).status == 200


def test_s13_large_requests_that_are_right(chat_server: ChatServer, served: Served) -> None:
    """S13: a long document with commas, brackets and quotes in it, and a list of 100,000 numbers, are passed on."""
    text = 'a "word", [or] {two}, ' * 50_000
    assert ask(served, {**PLAIN, "messages": [{"role": "user", "content": text}]}).status == 200
    assert ask(served, {"model": "e", "input": list(range(100_000))}, "/v1/embeddings").status == 200


def test_p06_many_inputs(chat_server: ChatServer) -> None:
    """P06: a procedure of thousands of inputs is read in time that grows with their number, on the caller's account."""
    names = [f"a{number}" for number in range(2000)]
    text = f"inputs: {', '.join(names)}\nt = a1 + a2"
    chat_server.play(Reply(completion_body('{"t": "1 + 1 = 2"}')))
    with serving(chat_server.url) as served:
        answer = served.chat("Go.", model="m", procedure=text, inputs=dict.fromkeys(names, 1))
        assert answer.json["stepguard"]["answer"] == 2
        assert served.chat("Go.", model="m", procedure=text, inputs={"a1": 1}).status == 400


@pytest.mark.parametrize("option", [{"client_share": 0}, {"connections": 0}, {"memory": 1000}, {"depth": 0.5}])
def test_a_limit_that_cannot_hold_is_named(option: dict[str, Any]) -> None:
    """A limit under which nothing could be served is refused by name when it is made."""
    with pytest.raises(StepguardError, match=next(iter(option))):
        create_app("http://127.0.0.1:9/v1", limits=Limits(**option))


def test_a_value_that_is_wrong_stays_out_of_errors(chat_server: ChatServer) -> None:
    """What the model said, and what is right, stand in no error of a server that tells no reasons."""
    chat_server.play(Reply(completion_body(WRONG)))
    with serving(chat_server.url, guard={"repair": 0}) as served:
        body = served.chat(VALUES, model=MODEL).body.split(b'"seconds"')[0]
        assert b"57" not in re.sub(rb"[0-9a-f]{12,}", b"", body)  # which an id may hold by chance
