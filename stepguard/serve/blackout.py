"""Black out the keys that the server knows in everything it sends, in every encoding in which a response may hold them.

A key is covered by as many asterisks, so that no length changes. Those of the operator are looked for in every
response, those of the caller in errors, which quote requests; there also what shows a part of the operator's: half of
one, in any case, or ``sk-ab***yz``.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import parse_qsl, quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST: Final = 8
"""A shorter text is a word like others, such as ``ollama`` or ``dummy``, and no secret."""

_TELLING_LETTERS: Final = 4
"""How many letters of a key are enough to recognise it."""
_LONGEST: Final = 1000
"""Longer keys are only searched for verbatim and encoded as a whole: their pattern would take too long to compile."""
_KEY_HEADERS: Final = (b"authorization", b"x-api-key", b"api-key", b"proxy-authorization")
_KEY_PARAMETERS: Final = frozenset({"key", "api-key", "api_key", "apikey", "token", "access_token"})
_PART: Final = rb"(?<![\w/+~-])%b[\w/+~-]{0,200}+(?:\*+|\.{3,}|\xe2\x80\xa6|(?:\xe2\x80\xa2)+)[\w/+=~*.-]{0,200}+"
"""A word that begins like a key, with a mark for the rest. It is tried once per word, whatever the word repeats."""
_HALF: Final = rb"(?i:%b[\w/+=~*.-]{0,200}+|%b)"
"""Half of a key, of which the rest was cut off, or stands in another line."""


class Mask:
    """Covers secrets in bytes.

    Args:
        secrets: those that are long enough to be some.
        spelled: whether to look for them also with signs written as in JSON, addresses and HTML. Patterns of that take
            a while to make: they are for the keys of the operator, which are known beforehand.
        parts: whether to cover also what shows half of one, or the beginning and a mark for the rest.
    """

    def __init__(self, secrets: Iterable[str], *, spelled: bool = True, parts: bool = False) -> None:
        # Longest first: covering a key that is part of another would leave the rest of that one readable.
        known = sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True)
        self._plain: Final = tuple(form for each in known for form in _encoded(each))
        patterns = [b"".join(map(_spelled, each)) for each in known if spelled and len(each) <= _LONGEST]
        if parts:
            for each in (each for each in known if len(each) >= 4 * _TELLING_LETTERS):
                half = len(each) // 2
                ends = (re.escape(end.encode()) for end in (each[:half], each[-half:]))
                patterns += [_PART % re.escape(each[:_TELLING_LETTERS].encode()), _HALF % tuple(ends)]
        self._patterns: Final = [re.compile(pattern) for pattern in patterns]
        # A character may be written as \\u002d; what is shown in part is bounded by its pattern.
        self.reach: Final = max((16 * len(each) for each in known), default=0) + (1000 if parts else 0)

    def __call__(self, data: bytes) -> bytes:
        """The same bytes, as many, without the secrets."""
        for form in self._plain:
            data = data.replace(form, b"*" * len(form))
        for pattern in self._patterns:
            data = pattern.sub(lambda match: b"*" * len(match[0]), data)
        return data

    def text(self, text: str) -> str:
        """The same for text."""
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _encoded(secret: str) -> Iterator[bytes]:
    """A secret as it is, in an address, in base 64, wherever in a longer text it stands, and in base 16."""
    raw = secret.encode()
    yield raw
    yield quote(secret, safe="").encode()
    # Base64 of a key depends on how many bytes stand before it, modulo 3; the ends depend on the neighbours and are
    # cut.
    for before in range(3):
        start, end = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(b"\0" * before + raw)[start:end]
    yield raw.hex().encode()
    yield raw.hex().upper().encode()


def _spelled(character: str) -> bytes:
    """A pattern of a character, as JSON, addresses and HTML may write it."""
    if character.isalnum():
        return character.encode()
    code = ord(character)
    digits = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{code:02x}")
    return (
        rf"(?:\\{{0,8}}{re.escape(character)}|\\{{1,8}}u00{digits}|%(?:25)?{digits}|&#(?:0*{code}|[xX]0*{digits});|&[a-z]{{2,6}};)"
    ).encode()


def keys_of(scope: Scope) -> Iterator[str]:
    """The keys that a request shows."""
    for name, value in scope["headers"]:
        if name.lower() in _KEY_HEADERS:
            header = value.decode("latin-1").strip()
            # "Bearer KEY", quoted as a whole or as the key alone.
            yield from {header, header.rpartition(" ")[2]}
    query = scope.get("query_string", b"").decode("latin-1")
    for name, value in parse_qsl(query) if "=" in query else ():
        if name.lower() in _KEY_PARAMETERS:
            yield value


class Blackout:
    """An application whose responses hold no key."""

    def __init__(self, app: ASGIApp, secrets: Iterable[str]) -> None:
        known = tuple(secrets)
        self._app: Final = app
        self._always: Final = Mask(known)
        self._errors: Final = Mask(known, parts=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        masks = [self._always]
        reach = self._always.reach
        held = b""

        def cover(data: bytes) -> bytes:
            for mask in masks:
                data = mask(data)
            return data

        async def send_covered(message: Message) -> None:
            nonlocal reach, held
            if message["type"] == "http.response.start":
                if message["status"] >= 400:
                    # Only errors quote requests; building patterns for the caller's keys on every response would cost
                    # too much.
                    masks[:] = self._errors, Mask(keys_of(scope), spelled=False)
                    reach = max(mask.reach for mask in masks)
                message = {**message, "headers": [(name, cover(value)) for name, value in message.get("headers", ())]}
            elif message["type"] == "http.response.body" and reach:
                more = message.get("more_body", False)
                data = cover(held + message.get("body", b""))
                # No form of a key goes over the end of a line: what stands before it can go.
                cut = max(len(data) - reach, data.rfind(b"\n") + 1, 0) if more else len(data)
                held = data[cut:]
                message = {**message, "body": data[:cut]}
            await send(message)

        await self._app(scope, receive, send_covered)
