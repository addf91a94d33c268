"""One session of an MCP client with a server, with the gate of a policy between them. It does no I/O itself.

Of everything that passes, requests of ``tools/call`` alone are judged. One that is let through goes on with the
arguments that the rules have read and with its key in ``_meta``; one that is not is answered here. What the server
answers passes untouched, and is told to the gate. So notifications, progress, errors, resources, prompts and whatever a
later version of the protocol adds are those of the server.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from stepguard.engine.budget import Budget
from stepguard.errors import ValueRefused
from stepguard.guard import Guard
from stepguard.integrations.fact_judge import FactJudge, JudgedFact
from stepguard.integrations.mcp_gate.asking import PersonAtClient, PersonQuestion, can_ask, declared_capabilities
from stepguard.integrations.mcp_gate.messages import (
    CALL_KEYS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MESSAGE_KEYS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ambiguous_key,
    error_message,
    one_line,
    plain_id,
    plain_params,
    read_message,
    result_text,
    text_result,
)
from stepguard.language.strict_json import JsonObject, encode
from stepguard.language.values import show_value
from stepguard.policy.decisions import Decision, FactQuestion
from stepguard.policy.gate import PolicyGate

IDEMPOTENCY_KEY: Final = "stepguard/idempotency-key"
"""The key of a call in the ``_meta`` of its parameters."""
_QUESTION: Final = "stepguard"
_MOST_ROUNDS: Final = 20
"""How many rounds of judgements one call may take: each may bring the next question."""


class Routed(NamedTuple):
    """A message on its way, a line for the log of the host, or the name of a judgement to be made (`judge`)."""

    to: Literal["client", "server", "log", "judge"]
    text: str


class _CallRequest(NamedTuple):
    """A request of ``tools/call`` as it came, with its identifier, its parameters and its arguments."""

    id: str | int
    line: str
    params: JsonObject
    tool: str
    arguments: JsonObject


class _Judging(NamedTuple):
    """A call that waits for facts to be judged, with the number of rounds so far."""

    call: _CallRequest
    questions: tuple[FactQuestion, ...]
    rounds: int


class _Flying(NamedTuple):
    """A call passed on to the server, with its arguments."""

    call: str
    tool: str
    request: str


class GatedSession:
    """Routes the messages of a session. It is not safe for several threads at once.

    Args:
        gate: the gate of this session, which is one conversation.
        clock: the moment; by default the time of this machine.
        ask: the roles and facts for which the person at the client answers, where the client can ask them
            (elicitation); where it cannot, or others have to be asked, the model is told that the call waits.
        handshake: whether a client is to begin with ``initialize``: ``server/discover`` is then answered as unknown.
        guard: judges the facts that are declared as ``judged``; what it cannot verify is asked as without it.
        budget: the calls, tokens and money of all judgements of the session together. None: there is no limit.
    """

    def __init__(
        self,
        gate: PolicyGate,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        ask: Iterable[str] = (),
        handshake: bool = False,
        guard: Guard | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.gate = gate
        self._person = PersonAtClient(gate, ask)
        self._can_ask = False
        self._asked: dict[str, tuple[_CallRequest, PersonQuestion]] = {}
        self._clock = clock
        self._handshake = handshake
        self._own = secrets.token_hex(6)  # its identifiers are others than those of an earlier session
        # Calls that the server has, by the identifiers of their requests.
        self._flying: dict[str | int, _Flying] = {}
        # Requests of `tools/list`: only their answers say what the server offers.
        self._listing: set[str | int] = set()
        self._undeclared: set[str] = set()
        # Calls for which the server has asked for more, by what they come again with.
        self._paused: dict[str, str] = {}
        self._judge = None if guard is None else FactJudge(guard, gate.policy, budget)
        self._judging: dict[str, _Judging] = {}

    # ---- from the client

    def from_client(self, line: str) -> list[Routed]:
        """Route a message of the client, given without its line end."""
        message = read_message(line)
        if not isinstance(message, JsonObject):
            # A batch could hide a call among other messages; the protocol has dropped batches, too.
            if isinstance(message, list):
                return [Routed("client", error_message(None, INVALID_REQUEST, "send each message by itself"))]
            return [Routed("client", error_message(None, PARSE_ERROR, "a JSON object was expected"))]
        id, method = plain_id(message), message.get("method")
        unclear = ambiguous_key(message, MESSAGE_KEYS)
        # The gate and the server could read two different messages in it.
        if unclear is not None:
            return [Routed("client", error_message(id, INVALID_REQUEST, f"the key {unclear[:40]!r} is not clear"))]
        if method is None and isinstance(id, str) and id in self._asked:
            call, question = self._asked.pop(id)
            self._person.answered(question, message.get("result"))
            return self._judged(call)
        if method == "tools/call":
            return self._call(message, id, line)
        params = message.get("params")
        if method == "notifications/cancelled" and isinstance(params, JsonObject):
            self._cancelled(plain_id({"id": params.get("requestId")}))
        elif method == "initialize" and isinstance(params, JsonObject):
            self._can_ask = can_ask(params.get("capabilities"))
        elif method == "tools/list" and id is not None:
            self._listing.add(id)
        elif method == "server/discover" and self._handshake:
            return [Routed("client", error_message(id, METHOD_NOT_FOUND, "begin with initialize"))]
        return [Routed("server", one_line(line))]

    def _call(self, message: JsonObject, id: str | int | None, line: str) -> list[Routed]:
        if id is None:
            if "id" not in message:
                return [Routed("log", "a call of a tool without an identifier was not passed on")]
            return [Routed("client", error_message(None, INVALID_REQUEST, "an id is text or a whole number"))]
        params = message.get("params")
        if not isinstance(params, JsonObject) or not isinstance(name := params.get("name"), str):
            return [Routed("client", error_message(id, INVALID_PARAMS, "the name of a tool was expected"))]
        unclear = ambiguous_key(params, CALL_KEYS)
        arguments = params.get("arguments")
        given = JsonObject([]) if arguments is None else arguments
        if unclear is not None or not isinstance(given, JsonObject):
            wrong = "arguments are an object" if unclear is None else f"the key {unclear[:40]!r} is not clear"
            return [Routed("client", error_message(id, INVALID_PARAMS, wrong))]
        # The answer to one could not be told from the answer to the other.
        if id in self._flying or any(call.id == id for call in self._waiting()):
            return [Routed("client", error_message(id, INVALID_REQUEST, "a call with this id is not answered yet"))]
        # A task answers at once and does its work later, where no result of it comes by here.
        if params.get("task") is not None and not self.gate.observe:
            return [
                Routed(
                    "client",
                    text_result(
                        id, f"The call to {name[:60]} was refused and nothing was done. Call it without a task."
                    ),
                )
            ]
        asked = params.get("requestState")
        if isinstance(asked, str) and asked in self._asked:
            responses = params.get("inputResponses")
            response = responses.get(_QUESTION) if isinstance(responses, JsonObject) else None
            self._person.answered(self._asked.pop(asked)[1], response)
            others = [pair for pair in params.pairs if pair[0] not in ("requestState", "inputResponses")]
            # They answer a question of the gate, which the server has never asked.
            params = JsonObject(others)
        return self._judged(_CallRequest(id, line, params, name, given))

    def _waiting(self) -> list[_CallRequest]:
        """The calls that wait for a person, or for a judgement."""
        return [*(call for call, _ in self._asked.values()), *(each.call for each in self._judging.values())]

    def _judged(self, call: _CallRequest, rounds: int = 0) -> list[Routed]:
        try:
            request = f"{json.dumps(call.tool)} {encode(call.arguments)}"
        except ValueError as error:
            return [Routed("client", error_message(call.id, INVALID_PARAMS, str(error)))]
        # The server asked for more and gets the same call again: it goes on under its first identifier.
        known = self._paused.pop(f"{request} {call.params.get('requestState')!r}", f"{self._own}.{json.dumps(call.id)}")
        decision = self.gate.offer(call.tool, call.arguments, id=known, now=self._clock())
        if not decision.allowed and not self.gate.observe:
            if rounds < _MOST_ROUNDS and (questions := self._for_judgement(decision)):
                name = secrets.token_hex(8)
                self._judging[name] = _Judging(call, questions, rounds)
                return [Routed("judge", name)]
            question = self._person.question(decision)
            asking = [] if question is None else self._ask(call, question)
            answer = asking or [Routed("client", text_result(call.id, decision.message))]
            return [Routed("log", _decision_text(decision)), *answer]
        log = [] if decision.allowed else [Routed("log", _decision_text(decision))]
        if decision.number is not None:
            self._flying[call.id] = _Flying(decision.call, call.tool, request)
        return [*log, Routed("server", one_line(call.line) if self.gate.observe else _passed_on(call, decision))]

    # ---- judgements, which take the time of a model: whoever makes them holds up nothing else meanwhile

    def _for_judgement(self, decision: Decision) -> tuple[FactQuestion, ...]:
        judge = self._judge
        return () if judge is None else tuple(each for each in decision.questions if judge.decides(each))

    def judge(self, name: str) -> list[tuple[FactQuestion, JudgedFact | None]]:
        """Ask the model of the guard; from any thread, for one judgement at a time. `judged` takes what came of it."""
        waiting = self._judging.get(name)
        if waiting is None or self._judge is None:
            return []  # the call was cancelled
        return [(each, self._judge.judge(each)) for each in waiting.questions]

    async def ajudge(self, name: str) -> list[tuple[FactQuestion, JudgedFact | None]]:
        waiting = self._judging.get(name)
        if waiting is None or self._judge is None:
            return []
        return [(each, await self._judge.ajudge(each)) for each in waiting.questions]

    def judged(self, name: str, verdicts: Iterable[tuple[FactQuestion, JudgedFact | None]]) -> list[Routed]:
        """Route a call for which facts were judged, or could not be; a cancelled one goes nowhere."""
        log: list[Routed] = []
        for question, verdict in verdicts:
            if verdict is not None:
                self.gate.learn(question.fact, *question.keys, value=verdict.value, strength=verdict.strength)
                outcome = f"{show_value(verdict.value)} ({verdict.strength})"
            else:
                outcome = f"not verified ({'' if self._judge is None else self._judge.why_not(question)})"
            log.append(Routed("log", " ".join(f"judged {question.fact}: {outcome}".split())))
        waiting = self._judging.pop(name, None)
        return log if waiting is None else [*log, *self._judged(waiting.call, waiting.rounds + 1)]

    def _ask(self, call: _CallRequest, question: PersonQuestion) -> list[Routed]:
        """Ask the person at the client, as its version of the protocol does; nothing where it cannot."""
        own = declared_capabilities(call.params.get("_meta"))
        token = f"stepguard-{secrets.token_hex(16)}"
        request = {"method": "elicitation/create", "params": question.params}
        if can_ask(own):
            result = {"resultType": "input_required", "inputRequests": {_QUESTION: request}, "requestState": token}
            sent: dict[str, Any] = {"jsonrpc": "2.0", "id": call.id, "result": result}
            # The request is answered with this; another one under an identifier of its own brings the answer.
            self._asked[token] = (call._replace(id=token), question)
        elif own is None and self._can_ask:
            sent = {"jsonrpc": "2.0", "id": token, **request}
            self._asked[token] = (call, question)
        else:
            return []
        return [Routed("client", json.dumps(sent))]

    def _cancelled(self, id: str | int | None) -> None:
        """A call that was cancelled is not answered, and may have done something; one that waits is not made."""
        for token in [token for token, (call, _) in self._asked.items() if call.id == id]:
            del self._asked[token]
        for name in [name for name, waiting in self._judging.items() if waiting.call.id == id]:
            del self._judging[name]
        flying = None if id is None else self._flying.pop(id, None)
        if flying is not None:
            self.gate.failed(flying.call)

    # ---- from the server

    def from_server(self, line: str) -> list[Routed]:
        """Route a message of the server, given without its line end: it passes, and the gate is told."""
        passed = Routed("client", line)
        message = read_message(line)
        if not isinstance(message, JsonObject) or "method" in message or (id := plain_id(message)) is None:
            return [passed]
        # The list of tools passes untouched; it is only compared with the policy.
        if id in self._listing:
            self._listing.discard(id)
            return [passed, *self._compared(message.get("result"))]
        flying = self._flying.pop(id, None)
        if flying is None:
            return [passed]
        return [passed, *self._answered(flying, message)]

    def _answered(self, flying: _Flying, message: JsonObject) -> list[Routed]:
        result = message.get("result")
        if message.repeated or not isinstance(result, JsonObject) or result.repeated:
            self.gate.failed(flying.call)
        elif result.get("resultType") == "input_required":
            self._paused[f"{flying.request} {result.get('requestState')!r}"] = flying.call
        # Neither done nor failed: rules that wait for its outcome stay unanswered.
        elif result.get("resultType", "complete") != "complete" or "task" in result:
            return [Routed("log", f"{flying.tool} goes on as a task, which is not followed: its outcome stays unknown")]
        elif result.get("isError", False) is not False:
            self.gate.failed(flying.call)
        else:
            value: str | None = None
            with suppress(ValueError):  # nested too deeply: it is done, and no rule reads it
                value = result_text(result, self.gate.policy.tools[flying.tool].result)
            self.gate.result(flying.call, value)
        return []

    def _compared(self, result: object) -> list[Routed]:
        """The tools that a server offers and the policy does not declare, each said once."""
        tools = result.get("tools") if isinstance(result, JsonObject) else None
        names = [each.get("name") for each in tools if isinstance(each, JsonObject)] if isinstance(tools, list) else []
        new = [
            name
            for name in names
            if isinstance(name, str) and name not in self.gate.policy.tools and name not in self._undeclared
        ]
        self._undeclared.update(new)
        return [Routed("log", f"the policy declares no tool {name[:60]!r}: calls of it are refused") for name in new]


def _passed_on(call: _CallRequest, decision: Decision) -> str:
    """The request that the server gets: what the rules have read, under the key of the call."""
    others: Mapping[str, Any] = {}
    try:
        others = plain_params({key: value for key, value in call.params.items() if key != "arguments"})
    except ValueRefused:  # beside the arguments there is nothing that a call needs
        others = {"name": decision.tool}
    meta = others.get("_meta")
    own = {**(meta if isinstance(meta, dict) else {}), IDEMPOTENCY_KEY: decision.key}
    sent = {**others, "arguments": dict(decision.arguments), "_meta": own}
    return json.dumps({"jsonrpc": "2.0", "id": call.id, "method": "tools/call", "params": sent})


def _decision_text(decision: Decision) -> str:
    """A decision for the log, on one line."""
    words = "; ".join(dict.fromkeys(reason.words for reason in decision.reasons))
    return " ".join(f"{decision.outcome} {decision.tool}: {words}".split())
