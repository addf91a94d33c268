"""A GGUF file as a model, run in this process by llama.cpp (``pip install "stepguard[local]"``)."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from stepguard.backends.base import Completion, Request, Stopping, about_to_send
from stepguard.backends.chat_completions import read_completion
from stepguard.backends.completion_streams import CompletionStream
from stepguard.backends.request_shapes import chat_form
from stepguard.core.arguments import check_count
from stepguard.core.closing import Closing
from stepguard.core.deadlines import awithin
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, ConfigError, MissingExtraError

__all__ = ["LocalBackend"]

_MAGIC: Final = b"GGUF"
_SILENT: Final = -1
_LISTEN_SECONDS: Final = 0.5
"""How long Windows may take to notice Ctrl-C; elsewhere it is noticed at once."""


class LocalBackend(Closing):
    """Asks a model that runs in this process. The reply is constrained to the request's response model.

    Loading takes seconds and holds the interpreter meanwhile; afterwards any number of threads may share the backend.
    llama.cpp opens a loopback port of its own, which nothing here uses; it is locked with a random key.

    Args:
        path: the GGUF file.
        threads: threads that compute; None leaves it to llama.cpp, which takes the physical cores.
        context: tokens that one request and its reply may take together.
        parallel: requests that are answered at the same time; further ones wait. Memory grows with it.

    Raises:
        ConfigError: the file is missing or no GGUF file, an option cannot work, or llama.cpp cannot load the file.
        MissingExtraError: xllamacpp is not installed.
    """

    can_stop: Final = True
    """Whether replies can be stopped early."""
    stopping: Final[Stopping] = "always"
    """They are streamed in any case, and their tokens are counted one by one."""

    def __init__(self, path: str | Path, *, threads: int | None = None, context: int = 8192, parallel: int = 1) -> None:
        check_count(threads, "threads", optional=True)
        check_count(context, "context", least=256)
        check_count(parallel, "parallel")
        file = Path(path).expanduser()
        _require_gguf(file)
        self.name: Final = file.stem
        self.signature: Final[Mapping[str, object]] = {
            "model": self.name,
            "bytes": file.stat().st_size,
            "context": context,
        }
        self._server: Any = _start(file, threads, context, parallel)

    def complete(self, request: Request) -> Completion:
        """Answer one request.

        A time-out, like Ctrl-C, takes effect at the next token: nothing can stop llama.cpp while it reads the prompt.

        Raises:
            BackendTimeout: the time-out of the request has passed.
            BackendRejected: llama.cpp refuses the request, for instance because it does not fit the context.
            BackendError: llama.cpp failed.
        """
        about_to_send(self.name)
        stop = threading.Event()
        if threading.current_thread() is not threading.main_thread():
            return self._complete(request, stop)
        # Ctrl-C arrives in the main thread, and would be swallowed inside llama.cpp's callback.
        with ThreadPoolExecutor(max_workers=1) as pool:
            call = pool.submit(self._complete, request, stop)
            try:
                while not wait([call], timeout=_LISTEN_SECONDS).done:
                    pass
            finally:
                stop.set()
            return call.result()

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request in a thread; cancelling stops the model at its next token. See `complete`."""
        about_to_send(self.name)
        stop = threading.Event()
        try:
            # Not torn away when the program ends: at its next token the model has stopped.
            return await awithin(None, lambda: self._complete(request, stop), name="stepguard-local", daemon=False)
        finally:
            stop.set()

    def close(self) -> None:
        """Unload the model; the backend cannot be used afterwards. A call in flight ends first."""
        # The server's destructor stops its threads and frees the memory.
        self._server = None

    def _complete(self, request: Request, stop: threading.Event) -> Completion:
        server = self._server
        if server is None:
            raise BackendError(f"{self.name} is closed", retryable=False)
        reply = _LocalReply(request, stop)
        try:
            server.handle_chat_completions(_body(request), reply.take)
        except (ValueError, RuntimeError) as error:
            # Requests that llama.cpp cannot even read come out as exceptions, the others as error objects.
            raise BackendRejected(f"{self.name}: {error}") from error
        return reply.completion(self.name)


class _LocalReply:
    """Collects the pieces of a streamed answer, and says when to stop.

    Args:
        request: what was asked.
        stop: set when nobody waits for the answer any more.
    """

    def __init__(self, request: Request, stop: threading.Event) -> None:
        self._request = request
        self._stream = CompletionStream(request)
        self._stop = stop
        self._deadline = None if request.timeout is None else time.monotonic() + request.timeout
        self._late = False
        self._fault: BackendError | None = None

    def take(self, piece: dict[str, Any]) -> bool:
        """Take in one piece; True ends the generation. It must not raise: that would be swallowed."""
        try:
            enough = self._stream.take(piece)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            self._fault = BackendError(f"llama.cpp sent something unexpected: {error!r}", retryable=False)
            return True
        self._late = not self._stream.finished and self._deadline is not None and time.monotonic() > self._deadline
        return enough or self._late or (self._stop.is_set() and not self._stream.finished)

    def completion(self, model: str) -> Completion:
        """The whole answer.

        Raises:
            BackendError: there is none.
        """
        if self._fault is not None:
            raise self._fault
        if self._late:
            late = BackendTimeout(f"{model} did not answer within {self._request.timeout:g} s")
            late.usage = self._stream.usage()
            raise late
        asked = sum(len(message.content) for message in self._request.messages)
        completion = read_completion(self._stream.body(), lambda words: f"{model}: {words}", asked=asked)
        return replace(completion, text=completion.text or "", model=model)


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": request.chat(),
        "stream": True,  # only a streamed answer can be stopped on the way
        "stream_options": {"include_usage": True},
    }
    if request.stop is not None:
        body["timings_per_token"] = True  # or the tokens of a stopped reply would not be known
    for name in ("temperature", "max_tokens", "seed"):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    shape = request.response_model
    return body if shape is None else {**body, **chat_form(shape, "json_schema", True)}


def _require_gguf(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(_MAGIC))
    except OSError as error:
        raise ConfigError(f"cannot read the model file {file}: {error.strerror or error}", option="path") from error
    if magic != _MAGIC:
        raise ConfigError(
            f"{file} is not a GGUF file (it starts with {magic!r}): llama.cpp needs a model in that format",
            option="path",
        )


def _start(file: Path, threads: int | None, context: int, parallel: int) -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingExtraError("running a GGUF file", extra="local") from error
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.verbosity = _SILENT  # its log would go to stdout and stderr
    params.n_parallel = parallel
    # llama.cpp shares its context out among the parallel requests.
    params.n_ctx = context * parallel
    if threads is not None:
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [secrets.token_hex(16)]
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ConfigError(
            f"llama.cpp cannot load {file}: it is cut off, of an unknown architecture, or too large for the memory",
            option="path",
        ) from error
