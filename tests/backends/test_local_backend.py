"""A GGUF file in this process: what is refused before it is loaded, and what becomes of llama.cpp's answers."""

from __future__ import annotations

import _thread
import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepguard import Guard
from stepguard.backends.base import Completion, Message, Request
from stepguard.backends.circuit import CircuitBreaker
from stepguard.backends.local import LocalBackend
from stepguard.core.usage import Usage
from stepguard.engine.stopping import WrongStepWatch
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, ConfigError
from stepguard.procedure import Procedure
from stepguard.replies.formats import EquationFormat


class TestLoading:
    @pytest.mark.parametrize("content", [b"", b"import os", b"GGM"])
    def test_no_gguf(self, tmp_path: Path, content: bytes) -> None:
        """A file of another kind is refused, with what it starts with."""
        file = tmp_path / "model.gguf"
        file.write_bytes(content)
        with pytest.raises(ConfigError, match="is not a GGUF file"):
            LocalBackend(file)

    def test_cut_off_file(self, tmp_path: Path) -> None:
        """A GGUF file that llama.cpp cannot load is named."""
        pytest.importorskip("xllamacpp")
        file = tmp_path / "model.gguf"
        file.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(50))
        with pytest.raises(ConfigError, match=r"llama\.cpp cannot load"):
            LocalBackend(file)


class LlamaDouble:
    """Stands for xllamacpp: a server that streams `pieces`, and keeps the parameters and the last request."""

    def __init__(self, pieces: Sequence[dict[str, Any]], *, pause: float = 0.0) -> None:
        self.pieces = pieces
        self.pause = pause
        self.params: Any = None
        self.body: dict[str, Any] = {}
        self.sent = 0

    def CommonParams(self) -> SimpleNamespace:  # noqa: N802 - the name in xllamacpp
        cpu = SimpleNamespace
        return SimpleNamespace(model=SimpleNamespace(path=""), cpuparams=cpu(), cpuparams_batch=cpu())

    def Server(self, params: Any) -> LlamaDouble:  # noqa: N802 - the name in xllamacpp
        self.params = params
        return self

    def handle_chat_completions(self, body: dict[str, Any], callback: Callable[[dict[str, Any]], bool]) -> None:
        self.body = body
        for piece in self.pieces:
            time.sleep(self.pause)
            self.sent += 1
            if callback(piece):
                return


def piece(text: str, finish: str | None = None) -> dict[str, Any]:
    """One piece of a streamed answer."""
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}], "system_fingerprint": "b1"}


USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}},
}
HELLO = (Message("user", "hello"),)


class TestCalls:
    @pytest.fixture
    def local(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[LocalBackend, LlamaDouble]]:
        """A backend over a double that streams these pieces."""
        file = tmp_path / "tiny.gguf"
        file.write_bytes(b"GGUF")

        def start(pieces: Sequence[dict[str, Any]], **options: float) -> tuple[LocalBackend, LlamaDouble]:
            double = LlamaDouble(pieces, **options)
            monkeypatch.setitem(sys.modules, "xllamacpp", double)
            return LocalBackend(file, threads=2, context=512, parallel=3), double

        return start

    def test_answer(self, local: Callable[..., tuple[LocalBackend, LlamaDouble]]) -> None:
        """The pieces of an answer are put together, with its usage, and llama.cpp is kept silent and locked."""
        backend, double = local([piece("hel"), piece("lo"), piece("", "stop"), USAGE])
        completion = backend.complete(Request(HELLO, temperature=0.5, max_tokens=9, seed=4))
        assert completion == Completion(
            "hello",
            usage=Usage(calls=1, input_tokens=7, output_tokens=2, cached_tokens=5),
            model="tiny",
            fingerprint="b1",
        )
        assert double.body["messages"] == [{"role": "user", "content": "hello"}]
        assert (double.body["temperature"], double.body["max_tokens"], double.body["seed"]) == (0.5, 9, 4)
        assert "response_format" not in double.body
        assert (double.params.n_ctx, double.params.n_parallel, double.params.cpuparams.n_threads) == (1536, 3, 2)
        assert double.params.verbosity == -1
        assert double.params.api_keys

    def test_constrained(self, local: Callable[..., tuple[LocalBackend, LlamaDouble]]) -> None:
        """The reply is constrained to exactly the asked steps."""
        backend, double = local([piece("{}", "stop")])
        steps = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 * 2").steps
        backend.complete(Request(HELLO, steps=tuple(steps), reply_format=EquationFormat()))
        schema = double.body["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == schema["required"] == ["t1", "t2"]
        assert schema["additionalProperties"] is False

    def test_wrong_step(self, local: Callable[..., tuple[LocalBackend, LlamaDouble]]) -> None:
        """A reply that may be stopped ends at its first wrong step, with the tokens that llama.cpp has counted."""
        said = ['{"t1": "1 + 1 =', ' 3"', ', "t2": ', '"3 * 2 = 6"}']
        pieces = [
            {**piece(text), "timings": {"prompt_n": 4, "cache_n": 3, "predicted_n": 5 * at + 5}}
            for at, text in enumerate(said)
        ]
        backend, double = local([*pieces, piece("", "stop"), USAGE])
        steps = tuple(Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 * 2").steps)
        request = Request(HELLO, steps, {"x": 1}, EquationFormat())
        assert backend.complete(request).finish_reason == "stop"
        stopped = backend.complete(replace(request, stop=WrongStepWatch(steps, {"x": 1}, EquationFormat())))
        assert (stopped.text, stopped.finish_reason) == ('{"t1": "1 + 1 = 3"', "stopped_early")
        assert stopped.usage == Usage(calls=1, input_tokens=7, output_tokens=10, cached_tokens=3)
        assert double.sent == 6 + 2

    @pytest.mark.parametrize("given", [{}, {"stop_early": False}])
    def test_the_guard_stops_replies_unless_told_not_to(
        self, local: Callable[..., tuple[LocalBackend, LlamaDouble]], given: dict[str, Any]
    ) -> None:
        """Nothing speaks against it here: replies are streamed in any case, and those that were stopped are counted."""
        said = ['{"t1": "1 + 1 = 3"', ', "t2": "3 * 2 = 6"}']
        pieces = [
            {**piece(text), "timings": {"prompt_n": 4, "predicted_n": 9 * at + 9}} for at, text in enumerate(said)
        ]
        backend, double = local([*pieces, {**piece("", "stop"), "timings": {"prompt_n": 4, "predicted_n": 19}}])
        procedure = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 * 2")
        for model in (backend, CircuitBreaker(backend)):
            result = Guard(model, repair=0, **given).run(procedure, {"x": 1})
            assert (result.status, result.attempts[0].deviations[0].kind) == ("abstained", "wrong_value")
            assert result.usage.output_tokens == (19 if given else 9)
            assert double.body.get("timings_per_token", False) is not bool(given)

    def test_timeout(self, local: Callable[..., tuple[LocalBackend, LlamaDouble]]) -> None:
        """A time-out stops the model at its next token."""
        backend, double = local([piece("a")] * 100, pause=0.02)
        with pytest.raises(BackendTimeout):
            backend.complete(Request(HELLO, timeout=0.05))
        assert double.sent < 50

    def test_cancelled(self, local: Callable[..., tuple[LocalBackend, LlamaDouble]]) -> None:
        """Cancelling an awaited call stops the model at its next token."""
        backend, double = local([piece("a")] * 100, pause=0.02)

        async def cancel() -> None:
            task = asyncio.create_task(backend.acomplete(Request(HELLO)))
            while not double.sent:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        assert 0 < double.sent < 50

    @pytest.fixture
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C raises, as in a program in the foreground: a job in the background starts with it ignored."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    @pytest.mark.usefixtures("interruptible")
    def test_interrupted(self, local: Callable[..., tuple[LocalBackend, LlamaDouble]]) -> None:
        """Ctrl-C during a call is raised, and stops the model at its next token."""
        backend, double = local([piece("a")] * 100, pause=0.02)
        timer = threading.Timer(0.1, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            backend.complete(Request(HELLO))
        timer.join()
        assert 0 < double.sent < 50

    @pytest.mark.parametrize(
        ("pieces", "error", "retryable"),
        [
            ([{"error": {"code": 400, "message": "too long"}}], BackendRejected, False),
            ([{"error": {"code": 500, "message": "broken"}}], BackendError, True),
            ([piece("cut")], BackendError, True),
            ([{"choices": ["odd"]}], BackendError, True),
        ],
    )
    def test_errors(
        self,
        local: Callable[..., tuple[LocalBackend, LlamaDouble]],
        pieces: list[dict[str, Any]],
        error: type[BackendError],
        retryable: bool,
    ) -> None:
        """What llama.cpp refuses is not asked again, what broke may be."""
        backend, _ = local(pieces)
        with pytest.raises(error) as caught:
            backend.complete(Request(HELLO))
        assert caught.value.retryable is retryable

    def test_closed(self, local: Callable[..., tuple[LocalBackend, LlamaDouble]]) -> None:
        """A closed backend says so."""
        backend, _ = local([piece("a", "stop")])
        with backend:
            backend.complete(Request(HELLO))
        with pytest.raises(BackendError, match="tiny is closed"):
            backend.complete(Request(HELLO))
