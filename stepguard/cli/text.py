"""Text from models and files: read, and made safe for a terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from stepguard.errors import ConfigError


def read_text(path: str) -> str:
    """The text of a file, or of stdin where the path is ``-``.

    Raises:
        OSError: it cannot be read, such as a stdin that is closed.
        ValueError: it is not UTF-8 text.
    """
    if path != "-":
        return Path(path).read_text(encoding="utf-8-sig")
    if sys.stdin is None:
        raise OSError("stdin is closed")
    # As a file is read: UTF-8 whatever the locale, its mark left out, and any end of line.
    return io.TextIOWrapper(io.BytesIO(sys.stdin.buffer.read()), encoding="utf-8-sig").read()


def read_argument(path: str, option: str) -> str:
    """The text of the file that an option of a command names. Raises ConfigError: it cannot be read."""
    try:
        return read_text(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}", option=option) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: it is not UTF-8 text (byte {error.start})", option=option) from error


def printable(text: str) -> str:
    """The text on one line, with control characters written as escapes: a reply must not command the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut in the middle."""
    if len(text) <= limit:
        return text
    head = (limit - 5) // 2  # the dots and blanks between take five
    return f"{text[:head]} ... {text[len(text) - (limit - 5 - head) :]}"
