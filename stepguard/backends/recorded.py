"""Replies that are kept: asked once, and from then on answered without model or network.

`RecordedBackend` keeps every request and reply of a model in one SQLite file. What is in it is answered from it, what
is not is asked and kept; without a model it only replays. A reply belongs to everything that shaped it (the messages,
the form of the reply, temperature, token limit, seed, and the settings of the model), so a changed prompt is a miss
with a clear error, never a stale answer. `RecordedBackend.export` writes a compact text file without the requests, to
ship and to replay.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from stepguard.backends.base import Backend, Completion, Request, SyncBackend, ToolCall, ask, endpoint_of, session_of
from stepguard.backends.reply_store import ReplyStore
from stepguard.core.closing import Closing
from stepguard.core.usage import Usage
from stepguard.errors import ConfigError, ReplyMissing

__all__ = ["RecordedBackend", "RecordedReply", "signature_of"]

_FORMAT: Final = "stepguard recording 1"


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply and where it came from.

    Attributes:
        completion: the reply.
        seconds: how long the model took for it, when it was asked.
        replayed: whether it was in the recording; False where the model was asked now.
    """

    completion: Completion
    seconds: float
    replayed: bool


class RecordedBackend(Closing):
    """Answers from a recording, and asks a model for what is not in it.

    Equal greedy requests (temperature 0) are asked once, also at the same time, and whatever their seeds: greedy
    decoding is not repeatable on real servers. Requests at another temperature belong to their seed; without a seed
    they are always asked and never kept. Errors are not kept. It may be shared between threads and event loops.

    Args:
        path: the SQLite file, made where it is not there; ``":memory:"`` keeps nothing; a file ending in ``.jsonl``,
            as `export` writes it, can only be replayed.
        backend: the model to ask for what is missing; None replays only, and leaves the file as it is.
        requests: keep the text of each request beside its reply; without it the file is smaller and holds no prompts.

    Raises:
        ConfigError: the file is no recording, or of another model, other settings or another version of stepguard
            than what is to be added.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | Path, backend: Backend | None = None, *, requests: bool = True) -> None:
        self._backend: Final = backend
        self._requests: Final = requests
        self._lock: Final = threading.Lock()
        self._asking: Final[dict[str, threading.Lock]] = {}
        self._awaiting: Final[dict[tuple[object, str], asyncio.Lock]] = {}
        self._spent = self._replayed = Usage()
        self.path: Final = str(path)
        if backend is None and self.path != ":memory:" and not Path(path).is_file():
            raise ConfigError(f"there is no recording at {path}: give a backend to make one", option="path")
        text = self.path.endswith(".jsonl")
        if text and backend is not None:
            raise ConfigError(f"{path} can only be replayed: record into a file of another kind", option="path")
        path_of_store = ":memory:" if text else self.path
        self._store: Final = ReplyStore(path_of_store, read_only=backend is None and path_of_store != ":memory:")
        weakref.finalize(self, self._store.close)
        if text:
            _import(self._store, Path(path))
        self.signature: Final = self._agreed()
        self.name: Final = str(self.signature.get("model", "recorded"))
        self.can_stop: Final = backend is None or bool(getattr(backend, "can_stop", False))

    def _agreed(self) -> Mapping[str, Any]:
        """What shaped the replies, the same for all of a recording."""
        known = self._store.about("signature")
        if self._backend is None:
            return dict(json.loads(known)) if known is not None else {}
        mine = {**signature_of(self._backend), "stepguard": _version()}
        if known is None:
            self._store.tell("signature", json.dumps(mine, sort_keys=True))
            return mine
        theirs: dict[str, Any] = json.loads(known)
        # Through JSON, as the kept one went: a tuple comes back as a list.
        if theirs != json.loads(json.dumps(mine)):
            odd = sorted(name for name in {*theirs, *mine} if theirs.get(name) != mine.get(name))
            changes = ", ".join(f"{name} was {theirs.get(name)!r} and is {mine.get(name)!r}" for name in odd)
            raise ConfigError(
                f"{self.path} was recorded with other settings ({changes}): use another file", option="path"
            )
        return mine

    @property
    def spent(self) -> Usage:
        """What the calls of the model cost that were made now."""
        return self._spent

    @property
    def replayed(self) -> Usage:
        """What the replies that came from the recording had cost when they were made."""
        return self._replayed

    def __len__(self) -> int:
        """How many replies there are."""
        return len(self._store)

    def complete(self, request: Request) -> Completion:
        return self.reply(request).completion

    async def acomplete(self, request: Request) -> Completion:
        return (await self.areply(request)).completion

    def reply(self, request: Request) -> RecordedReply:
        """The reply, from the recording or from the model.

        Raises:
            ReplyMissing: it is not in the recording, and there is no model to ask.
            ConfigError: the model can only be awaited.
            BackendError: the model did not answer.
        """
        wanted = _ReplyKey.of(request)
        backend = self._backend
        if not isinstance(backend, SyncBackend):
            reply = self._find(wanted)
            if reply is None:
                raise ConfigError("this backend can only be awaited: use `await guard.arun(...)`", option="backend")
            return reply
        with self._lock:
            turn = self._asking.setdefault(wanted.key, threading.Lock()) if wanted.key else nullcontext()
        with turn:
            reply = self._find(wanted)  # where another thread has asked the same meanwhile, it is there now
            if reply is None:
                started = time.monotonic()
                reply = self._keep(wanted, backend.complete(request), time.monotonic() - started)
        # Whoever holds this lock, or makes another one from here on, finds the reply.
        self._asking.pop(wanted.key, None)
        return reply

    async def areply(self, request: Request) -> RecordedReply:
        """The reply, without blocking the event loop; see `reply`."""
        wanted = _ReplyKey.of(request)
        # A lock of asyncio belongs to one event loop.
        turn_key = asyncio.get_running_loop(), wanted.key
        turn = self._awaiting.setdefault(turn_key, asyncio.Lock()) if wanted.key else nullcontext()
        async with turn:
            reply = self._find(wanted)
            if reply is None:
                assert self._backend is not None
                started = time.monotonic()
                reply = self._keep(wanted, await ask(self._backend, request), time.monotonic() - started)
        self._awaiting.pop(turn_key, None)
        return reply

    @property
    def endpoint(self) -> str:
        return "" if self._backend is None else endpoint_of(self._backend)

    def session(self) -> AbstractAsyncContextManager[Any]:
        """A session of the model, where it has one."""
        return session_of(self._backend)

    def export(self, path: str | Path) -> None:
        """Write the replies without the requests to a text file that can be replayed: JSON lines, sorted.

        Raises:
            ConfigError: the name of the file does not end in ``.jsonl``.
        """
        if not str(path).endswith(".jsonl"):
            raise ConfigError(f"a recording to ship is called NAME.jsonl, not {path}", option="path")
        head = {"format": _FORMAT, "signature": dict(self.signature)}
        lines = [json.dumps(head, sort_keys=True)]
        for key, completion, seconds in self._store.all():
            entry = {"key": key, "seconds": round(seconds, 3), "completion": _compact(json.loads(completion))}
            lines.append(json.dumps(entry, sort_keys=True))
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _find(self, wanted: _ReplyKey) -> RecordedReply | None:
        kept = self._store.get(wanted.key) if wanted.key else None
        if kept is None:
            if self._backend is None:
                why = "its prompt or settings are not those that were recorded" if wanted.key else "it has no seed"
                raise ReplyMissing(f"no reply to the request for {wanted.asked} in {self.path}: {why}")
            return None
        completion = _completion(json.loads(kept[0]))
        with self._lock:
            self._replayed = self._replayed + completion.usage
        return RecordedReply(completion, kept[1], replayed=True)

    def _keep(self, wanted: _ReplyKey, completion: Completion, seconds: float) -> RecordedReply:
        with self._lock:
            self._spent = self._spent + completion.usage
        if wanted.key:
            self._store.put(wanted.key, wanted.text if self._requests else "", json.dumps(asdict(completion)), seconds)
        return RecordedReply(completion, seconds, replayed=False)


@dataclass(frozen=True, slots=True)
class _ReplyKey:
    """What a reply belongs to, as text, and its hash; no key where equal requests are to be answered anew each time."""

    text: str
    key: str
    asked: str

    @classmethod
    def of(cls, request: Request) -> _ReplyKey:
        model = request.response_model
        shape = {
            "messages": [[message.role, message.content] for message in request.messages],
            "schema": None if model is None else model.model_json_schema(),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": None if request.temperature == 0 else request.seed,
        }
        if request.stop is not None:
            shape["stop_early"] = True
        text = json.dumps(shape, sort_keys=True)
        free = request.temperature != 0 and request.seed is None
        asked = ", ".join(step.id for step in request.steps) or "no steps"
        return cls(text, "" if free else hashlib.sha256(text.encode()).hexdigest(), asked)


def signature_of(backend: object) -> Mapping[str, Any]:
    """What shapes the replies of a backend beside the request: its `signature`, or at least its name."""
    given = getattr(backend, "signature", None)
    if isinstance(given, Mapping):
        return given
    return {"model": str(getattr(backend, "name", type(backend).__name__))}


def _version() -> str:
    try:
        return version("stepguard")
    except PackageNotFoundError:
        return "unknown"


def _compact(completion: dict[str, Any]) -> dict[str, Any]:
    usage = {name: value for name, value in completion["usage"].items() if value}
    return {**{name: value for name, value in completion.items() if value not in (None, [], ())}, "usage": usage}


def _completion(data: dict[str, Any]) -> Completion:
    calls = tuple(ToolCall(**call) for call in data.get("tool_calls", ()))
    return Completion(
        **{"text": None, "finish_reason": None, **data, "tool_calls": calls, "usage": Usage(**data["usage"])}
    )


def _import(store: ReplyStore, path: Path) -> None:
    """Fill a store from what `RecordedBackend.export` wrote."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
                if number == 1:
                    if entry["format"] != _FORMAT:
                        raise ValueError("another format")
                    store.tell("signature", json.dumps(entry["signature"], sort_keys=True))
                else:
                    store.put(entry["key"], "", json.dumps(entry["completion"]), entry["seconds"])
            except (ValueError, KeyError, TypeError) as error:
                why = f"it has no {error}" if isinstance(error, KeyError) else error
                raise ConfigError(f"{path} is no recording: line {number}: {why}", option="path") from None
