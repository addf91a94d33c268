"""Convert settings of checks and defaults from text to Python objects, and checks back to text."""

from __future__ import annotations

import inspect
import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Final, get_args

from stepguard.errors import StepguardError
from stepguard.language.digits import format_exact
from stepguard.language.expressions import RESERVED, Expression, Negate, Number, format_expression, format_value
from stepguard.language.terms.operands import ListTerm, LiteralTerm, RecordTerm
from stepguard.language.unseen import UNSEEN
from stepguard.language.value_types import ValueType
from stepguard.procedure.check_registry import CHECKS, call_check

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# What nobody sees is printed as an escape, or a reader would miss it.
_VISIBLE: Final = re.compile(rf"[^{UNSEEN}\ud800-\udfff\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff]*\Z")


def quoted(text: str) -> str:
    """A text in quotes, as JSON writes it; characters that cannot be seen are written as escapes."""
    return json.dumps(text, ensure_ascii=_VISIBLE.match(text) is None)


def check_setting(tree: Expression) -> object:
    """Convert an argument of a check to a value, the name of a variable, or the text of an expression."""
    match tree:
        case Number(value):
            return value if isinstance(value, int) else _decimal(value)
        case LiteralTerm(value, text):
            return value if text is None else text
        case ListTerm(items):
            return [check_setting(each) for each in items]
        case RecordTerm(fields):
            return {key: check_setting(each) for key, each in fields}
    return format_expression(tree)


def constant(tree: Expression, kind: ValueType | None = None) -> object:
    """The value that stands for itself in a text, as a caller gives it for a type.

    Raises ValueError: it is an expression, or a number where a text is meant, which would lose its zeros.
    """
    match tree:
        case Number():
            if kind is not None and kind.kind == "text":
                raise ValueError(f"{format_value(tree)} is a number, and a text is meant: write it in quotes")
            plain = kind is not None and kind.kind != "percent"
            return format_exact(tree.value) if plain else format_value(tree)
        case Negate(operand) if isinstance(operand, LiteralTerm) and operand.text is not None:
            return f"-{operand.text}"
        case LiteralTerm(value, text):
            return value if text is None else text
        case ListTerm(items):
            return [constant(each, None if kind is None else kind.items) for each in items]
        case RecordTerm(fields):
            record = None if kind is None else kind.record
            return {key: constant(each, None if record is None else record.get(key)) for key, each in fields}
    raise ValueError(
        f"{format_expression(tree)[:60]!r} has to be worked out: write a value; a text, or a measure such as "
        '"2 mol/l", stands in quotes'
    )


def _decimal(value: Fraction) -> object:
    text = format_exact(value)
    return text if "/" in text else Decimal(text)


def write_check(check: object) -> str | None:
    """A check as it stands behind a step; None where text cannot hold it."""
    name = getattr(check, "name", None)
    if not isinstance(name, str) or CHECKS.own(name) is not type(check):
        return None
    values, options = _arguments_of(check)
    text = ", ".join([*map(_literal, values), *(f"{key}={_literal(value)}" for key, value in options.items())])
    written = f"{name}({text})" if text else name
    try:
        reread = call_check(name, [_read_back(each) for each in values], {k: _read_back(v) for k, v in options.items()})
    except StepguardError:
        return None
    # Attributes need not tell all that a check was made with: it is only printed where that gives an equal one.
    return written if reread == check else None


def _arguments_of(check: object) -> tuple[list[object], dict[str, object]]:
    """The arguments of a check, as far as its attributes tell: values by position, options by name."""
    values: list[object] = []
    options: dict[str, object] = {}
    for name, each in inspect.signature(type(check)).parameters.items():
        value = getattr(check, name, each.default)
        if each.kind is each.VAR_POSITIONAL:
            values += [value] if isinstance(value, str) else list(value)
        elif value is not each.default and value != each.default:
            if each.kind is each.POSITIONAL_OR_KEYWORD and each.default is each.empty and not options:
                values.append(value)
            else:
                options[name] = value
    return values, options


def _literal(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | Fraction():
            return format_exact(value)
        case Decimal():
            return f"{value:f}"
        case str():
            return value if _NAME.match(value) and value not in RESERVED else quoted(value)
        case list() | tuple():
            return f"[{', '.join(map(_literal, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_literal(each)}' for key, each in value.items())}}}"
        case frozenset():
            return f"[{', '.join(sorted(map(_literal, value)))}]"
    return format_expression(value) if isinstance(value, get_args(Expression)) else quoted(str(value))


def _read_back(value: object) -> object:
    """The value that `check_setting` reads from a printed one."""
    match value:
        case bool() | int() | str() | Decimal():
            return value
        case Fraction():
            return _decimal(value)
        case list() | tuple() | frozenset():
            return [_read_back(each) for each in value]
        case dict():
            return {key: _read_back(each) for key, each in value.items()}
    return format_expression(value) if isinstance(value, get_args(Expression)) else str(value)
