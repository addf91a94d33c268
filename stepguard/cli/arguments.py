"""What several commands take: a procedure from a file, its inputs, a price, and the options of a guard."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from stepguard.cli.text import read_text
from stepguard.core.usage import Price
from stepguard.core.verdicts import STRENGTHS
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError, InputError, ProcedureError
from stepguard.guard.options import DropInKeywords, GuardOptions
from stepguard.language.strict_json import JsonObject, decode
from stepguard.procedure.procedure import Procedure

if TYPE_CHECKING:
    from stepguard.ledger import Ledger


def add_guard(
    group: argparse._ArgumentGroup, limits: Budget | None = None, *, seconds: bool = True, stop_early: bool = True
) -> None:
    """Add the options of a guard that commands share.

    Args:
        limits: what a run may spend by default; None: there are no limits.
        seconds: whether one of them is ``--max-seconds``, of a run.
        stop_early: whether one of them is ``--stop-early``.
    """
    add = group.add_argument
    note, usual = ("", Budget()) if limits is None else (" (default: %(default)s)", limits)
    add("--segment", metavar="N", type=int, help="how many steps one call asks at most")
    add("--retries", metavar="N", type=int, help="ask a step again so often, instead of the ladder")
    add(
        "--fallback",
        metavar="NAME",
        action="append",
        help="another model, with its provider before a slash, for where the first does not answer, declines, or gives "
        "a step up; repeat for further ones, in their order",
    )
    add("--max-calls", metavar="N", type=int, default=usual.calls, help=f"stop a run after this many model calls{note}")
    add(
        "--max-tokens",
        metavar="N",
        type=int,
        default=usual.tokens,
        help=f"stop a run once this many tokens are spent{note}",
    )
    if seconds:
        add("--max-seconds", metavar="S", type=float, default=usual.seconds, help=f"stop a run after this time{note}")
    if stop_early:
        add("--stop-early", action="store_true", help="stop a streamed reply at its first wrong step")


def add_ledger(group: argparse._ActionsContainer, words: str) -> None:
    """Add ``--ledger`` and ``--keep``; `words` is what the first one's help says."""
    group.add_argument("--ledger", metavar="LEDGER", help=words)
    add_keep(group)


def add_keep(group: argparse._ActionsContainer) -> None:
    words = "what it keeps of model calls: claims, which it always does, the texts of replies too, or also the prompts"
    group.add_argument("--keep", choices=["claims", "replies", "prompts"], default="claims", help=words)


def open_ledger(options: argparse.Namespace) -> Ledger | None:
    """The ledger of ``--ledger``, None where it is not given.

    Raises:
        ConfigError: ``--keep`` is given without it.
        LedgerError: it cannot be opened.
    """
    if options.ledger is None:
        if options.keep != "claims":
            raise ConfigError("--keep says what a ledger keeps: add --ledger", option="keep")
        return None
    from stepguard.ledger import Ledger

    return Ledger(options.ledger, keep=options.keep)


def add_at_least(group: argparse._ActionsContainer, ending: str = "of an answer, which says so") -> None:
    """Add ``--at-least``; `ending` ends what its help says."""
    group.add_argument(
        "--at-least",
        choices=STRENGTHS,
        default="proved",
        help=f"what is to stand behind every step {ending} (default: %(default)s)",
    )


def add_log_level(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument(
        "--log-level", choices=["warning", "info"], default=usual, help="of the log on stderr (default: %(default)s)"
    )


def add_limits(group: argparse._ActionsContainer) -> None:
    """Add ``--requests-per-minute`` and ``--tokens-per-minute``."""
    for what in ("requests", "tokens"):
        group.add_argument(
            f"--{what}-per-minute",
            metavar="N",
            type=int,
            help=f"send an endpoint no more {what} in a minute (by default as many as it is found to bear)",
        )


@contextmanager
def declared_limits(options: argparse.Namespace) -> Iterator[None]:
    """Have the limits of `add_limits` hold for every endpoint that is asked meanwhile.

    Raises ConfigError: one is no number above 0.
    """
    requests, tokens = getattr(options, "requests_per_minute", None), getattr(options, "tokens_per_minute", None)
    if requests is None and tokens is None:
        yield
        return
    from stepguard.backends.limiter import SHARED_LIMITERS

    SHARED_LIMITERS.declare(requests_per_minute=requests, tokens_per_minute=tokens)
    try:
        yield
    finally:
        SHARED_LIMITERS.declare()


def read_guard(options: argparse.Namespace, *, seconds: float | None = None, **budget: Any) -> DropInKeywords:
    """The options of a guard that were given, by name.

    Args:
        budget: further limits, as of `stepguard.Budget`.

    Raises:
        ConfigError: one of them cannot work.
    """
    limits = Budget(calls=options.max_calls, tokens=options.max_tokens, seconds=seconds, **budget)
    given: DropInKeywords = {"segment": options.segment, "repair": options.retries, "budget": limits}
    if getattr(options, "stop_early", False):
        given["stop_early"] = True
    if options.fallback:
        given["fallback"] = options.fallback
    GuardOptions(**given)  # wrong ones are named before anything is loaded
    return given


def add_model(
    group: argparse._ArgumentGroup,
    model: str = "the model to ask, as for `stepguard run`",
    endpoint: str = "an OpenAI-compatible endpoint that has it",
) -> None:
    """Add ``--model``, ``--base-url`` and ``--gguf``; the words are the help of the first two."""
    group.add_argument("--model", metavar="NAME", help=model)
    group.add_argument("--base-url", metavar="URL", help=endpoint)
    group.add_argument("--gguf", metavar="FILE", help='a model file to run here (needs "stepguard[local]")')


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an input of the procedure; repeat for each. NAME=@FILE takes the text of a file, NAME=@- that of stdin, "
        "and a value that begins with an @ is written with two",
    )
    parser.add_argument("--inputs", metavar="FILE", help="inputs as a JSON object, by name")


def load_file(path: str) -> Procedure:
    """The procedure in a file, or on stdin where the path is ``-``; an error names it.

    Raises ProcedureError: the file cannot be read, or holds no procedure.
    """
    try:
        return Procedure.parse(read_text(path)) if path == "-" else Procedure.load(path)
    except ProcedureError as error:
        raise ProcedureError(f"{path}: {error}{_import_hint(path)}", step=error.step) from error
    except OSError as error:
        raise ProcedureError(
            f"cannot read {path}: {error.strerror or error}; FILE is the path of a procedure, written as text, "
            "or - for stdin"
        ) from error
    except UnicodeDecodeError as error:
        raise ProcedureError(f"{path}: it is not UTF-8 text (byte {error.start})") from error


def _import_hint(path: str) -> str:
    """Points to ``stepguard import`` where the file looks like prose: its first complaint is about a detail of it."""
    if path == "-":
        return ""
    with suppress(OSError, ValueError):
        if "=" not in read_text(path) and not path.endswith((".yaml", ".yml", ".json")):
            return f"\nIt looks like instructions as people write them: `stepguard import {path}` reads those"
    return ""


def read_inputs(pairs: Iterable[str], procedure: Procedure, path: str | None = None) -> dict[str, object]:
    """The inputs of a procedure by name, checked against the declared types.

    Args:
        given: the ``name=value`` options; ``name=@path`` takes the text of a file, ``name=@-`` that of stdin, and
            ``name=@@value`` begins with an @.
        path: a file with further ones, as a JSON object.

    Raises:
        InputError: an input is missing, unknown, given twice or not of its type, or a file cannot be read.
    """
    inputs = read_values(pairs, {} if path is None else _from_json(path))
    missing = [each for each in procedure.inputs if each.name not in inputs and each.default is None]
    if missing and inputs.keys() <= {each.name for each in procedure.inputs}:
        names = ", ".join(f"{each.name} ({each.type})" for each in missing)
        hint = " ".join(f"--input {each.name}=..." for each in missing)
        raise InputError(f"{procedure.name} needs more inputs: {names}; add {hint}", name=missing[0].name)
    procedure.accept_inputs(inputs)
    return inputs


def read_values(pairs: Iterable[str], known: Mapping[str, object] | None = None) -> dict[str, object]:
    """What ``name=value`` options say, beside what is known already; see `read_inputs`.

    Raises InputError: an input is given twice, or a file cannot be read.
    """
    inputs = dict(known or {})
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--input {pair!r}: write it as NAME=VALUE, such as --input x=12")
        if name in inputs:
            raise InputError(
                f"--input {name} is given twice: {str(inputs[name])[:60]!r} and {value[:60]!r}; keep one", name=name
            )
        if value.startswith("@"):
            value = value[1:] if value.startswith("@@") else _text_of(value[1:], f"--input {name}=@", name)
        inputs[name] = value
    return inputs


def _text_of(path: str, option: str, name: str | None = None) -> str:
    try:
        return read_text(path)
    except OSError as error:
        at = "; write @@ for an @ of its own" if name is not None else ""
        raise InputError(f"{option}{path}: it cannot be read: {error.strerror or error}{at}", name=name) from None
    except ValueError:  # no UTF-8, or no path
        raise InputError(f"{option}{path}: it is not UTF-8 text", name=name) from None


def _from_json(path: str) -> dict[str, object]:
    try:
        data = decode(_text_of(path, "--inputs "))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"--inputs {path}: not valid JSON: {error}") from None
    if not isinstance(data, JsonObject):
        raise InputError(f'--inputs {path}: a JSON object is needed, such as {{"x": 12}}')
    if data.repeated:
        raise InputError(f"--inputs {path}: {sorted(data.repeated)[0]!r} stands in it twice")
    for name, value in data.items():
        # In a row of many, null is an input that is not given; here somebody has written its name, and meant something.
        if value is None:
            raise InputError(f"--inputs {path}: {name!r} is null; leave out an input that is not given", name=name)
    return dict(data)


def read_price(price: str | None, max_cost: object = None) -> Price | None:
    """The ``--price IN,OUT`` or ``IN,OUT,CACHED`` of a million tokens; None where none is given.

    Raises ConfigError: these are no two or three amounts, or a limit has no price.
    """
    if price is None:
        if max_cost is not None:
            raise ConfigError("--max-cost needs to know what tokens cost: add --price IN,OUT", option="price")
        return None
    amounts = price.split(",")
    if not 2 <= len(amounts) <= 3:
        raise ConfigError(f"--price {price!r}: write IN,OUT or IN,OUT,CACHED", option="price")
    return Price(input=amounts[0], output=amounts[1], cached=amounts[2] if len(amounts) == 3 else None)
