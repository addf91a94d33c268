"""The worker process of `stepguard.formulas.worker`: reads requests as JSON lines, answers each with one.

It is run as a script and imports nothing of stepguard. A request holds formulas as nested lists (see
`stepguard.formulas.deciding`); only what stands in the tables here becomes a sympy object, and no text is ever parsed
or evaluated. An answer says ``true`` only of what was proved.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from typing import Any

_MAX_LINE = 1 << 20  # a longer request is cut, and then no JSON


def main() -> None:
    """Answer requests until the other side is gone."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started this one
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that prints can break the protocol
    _limit_memory(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    try:
        import sympy  # noqa: F401
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side has to hear of it
        _answer(out, {"error": f"sympy cannot be imported: {error}"})
        return
    _answer(out, {"ready": True})
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        line = lines.get()
        try:
            request = json.loads(line)
            _limit_time(float(request["seconds"]))
            answer = _OPERATIONS[request["op"]](request)
        # The process is not trusted any more: an allocation that failed may have left sympy's caches half written.
        except MemoryError:
            _answer(out, {"error": "it takes too much memory"})
            os._exit(1)
        except RecursionError:
            answer = {"error": "it is nested too deeply"}
        except Exception as error:  # noqa: BLE001 - sympy raises anything
            answer = {"failed": f"{type(error).__name__}: {error}"[:200]}
        _answer(out, answer)


def _listen(lines: queue.SimpleQueue[bytes]) -> None:
    # Read in a thread of its own, so that the end of the other side ends this process even in the middle of work.
    for line in iter(lambda: sys.stdin.buffer.readline(_MAX_LINE), b""):
        lines.put(line)
    os._exit(0)


def _answer(out: Any, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        # Running into the limit of CPU time would otherwise leave a core file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if size:
            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _limit_time(seconds: float) -> None:
    """A second limit, should the first one be gone with the program that keeps it."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        # CPU time is counted since the start, so the limit moves with every request.
        soft = int(used.ru_utime + used.ru_stime + 2 * seconds) + 5
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


class _Builder:
    """Formulas as sympy objects."""

    def __init__(self, assumptions: dict[str, str]) -> None:
        self._assumptions = assumptions
        self._symbols: dict[str, Any] = {}

    def symbol(self, name: str) -> Any:
        import sympy

        if name not in self._symbols:
            kind = self._assumptions.get(name, "real")
            options = {"positive": {"positive": True}, "integer": {"integer": True}}
            options["natural"] = {"integer": True, "positive": True}
            # A prefix keeps them apart from sympy's own names, in whatever form they may come back.
            self._symbols[name] = sympy.Symbol(f"v_{name}", **options.get(kind, {"real": True}))
        return self._symbols[name]

    def build(self, data: Any) -> Any:
        import sympy

        match data:
            case ["n", int(over), int(under)]:
                return sympy.Rational(over, under)
            case ["v", str(name)]:
                return self.symbol(name)
            case ["c", "pi"]:
                return sympy.pi
            case ["c", "e"]:
                return sympy.E
            case ["+", *terms]:
                return sympy.Add(*(self.build(term) for term in terms))
            case ["*", *factors]:
                return sympy.Mul(*(self.build(factor) for factor in factors))
            case ["^", base, exponent]:
                return sympy.Pow(self.build(base), self.build(exponent))
            case ["f", "cbrt", argument]:
                inner = self.build(argument)
                # The real root; sympy's own power of 1/3 is the principal, complex one.
                return sympy.sign(inner) * sympy.Abs(inner) ** sympy.Rational(1, 3)
            case ["f", str(function), argument] if function in _FUNCTIONS:
                return getattr(sympy, _FUNCTIONS[function])(self.build(argument))
        raise ValueError("no formula")


_FUNCTIONS = {
    "abs": "Abs", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos",
    "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "factorial": "factorial",
}  # fmt: skip


def _zero(request: dict[str, Any]) -> dict[str, Any]:
    """Whether a formula is zero for all values of its symbols."""
    builder = _Builder(request.get("assume", {}))
    return {"proved": _is_zero(builder.build(request["tree"]))}


def _is_zero(tree: Any) -> bool:
    import sympy

    def bad(result: Any) -> bool:
        return bool(result.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo))

    if bad(tree):
        return False
    # None, where sympy does not know, proves nothing.
    if tree.is_zero:
        return True
    steps = [
        sympy.expand, sympy.cancel, sympy.sqrtdenest, sympy.radsimp, sympy.trigsimp, sympy.simplify, _exponential,
        sympy.expand_log, lambda result: sympy.simplify(sympy.expand_log(result)),
    ]  # fmt: skip
    if tree.is_number and tree.is_algebraic:
        steps = [sympy.expand, sympy.sqrtdenest, sympy.radsimp, _minimal, sympy.simplify]
    for step in steps:
        try:
            result = step(tree)
        # What sympy's rewriting steps raise on formulas they were not made for; the next one may still succeed.
        except (NotImplementedError, ValueError, TypeError, AttributeError, ZeroDivisionError):
            continue
        if not bad(result) and result.is_zero:
            return True
    return False


def _exponential(tree: Any) -> Any:
    import sympy

    return sympy.simplify(sympy.expand(tree.rewrite(sympy.exp), func=True))


def _minimal(tree: Any) -> Any:
    """Replace an algebraic number by zero where its minimal polynomial is that of zero."""
    import sympy

    unknown = sympy.Dummy()
    return sympy.Integer(0) if sympy.minimal_polynomial(tree, unknown) == unknown else tree


def _ratio(request: dict[str, Any]) -> dict[str, Any]:
    """Whether one formula is a constant other than zero times another."""
    import sympy

    builder = _Builder(request.get("assume", {}))
    left, right = builder.build(request["left"]), builder.build(request["right"])
    ratio = sympy.simplify(left / right)
    constant = ratio.is_number and ratio.is_finite and ratio.is_nonzero
    # simplify() may have assumed something on the way: the ratio is checked against the formulas themselves.
    return {"proved": bool(constant and _is_zero(left - ratio * right))}


def _factors(request: dict[str, Any]) -> dict[str, Any]:
    """Whether every factor is a number or an irreducible polynomial without a common factor in its coefficients."""
    import sympy

    builder = _Builder(request.get("assume", {}))
    for data in request["factors"]:
        tree = builder.build(data)
        if tree.is_number:
            continue
        polynomial = sympy.Poly(tree, *sorted(tree.free_symbols, key=str), domain="QQ")
        content, primitive = polynomial.clear_denoms(convert=True)[1].primitive()
        if abs(content) != 1 or not primitive.is_irreducible:
            return {"proved": False, "factor": str(tree).replace("v_", "")[:100]}
    return {"proved": True}


def _simplest(request: dict[str, Any]) -> dict[str, Any]:
    """How many operations a formula has, and how many its simplified form."""
    import sympy

    builder = _Builder(request.get("assume", {}))
    tree = builder.build(request["tree"])
    return {"operations": int(min(sympy.simplify(tree).count_ops(), sympy.factor(tree).count_ops()))}


def _definite(request: dict[str, Any]) -> dict[str, Any]:
    """Whether a definite integral has a value."""
    import sympy

    builder = _Builder(request.get("assume", {}))
    tree = builder.build(request["tree"])
    low, high, value = (builder.build(request[key]) for key in ("low", "high", "value"))
    found = sympy.integrate(tree, (builder.symbol(request["variable"]), low, high))
    # Unevaluated, or with conditions that nobody has checked.
    if found.has(sympy.Integral, sympy.Piecewise):
        return {"proved": False}
    return {"proved": _is_zero(found - value)}


def _solve(request: dict[str, Any]) -> dict[str, Any]:
    """How many real solutions an equation has, and whether each claimed one is among them; null where unknown."""
    import sympy

    builder = _Builder(request.get("assume", {}))
    unknown = builder.symbol(request["variable"])
    found = sympy.solveset(builder.build(request["tree"]), unknown, sympy.S.Reals)
    if found is sympy.S.EmptySet:
        return {"count": 0, "matched": 0}
    if not isinstance(found, sympy.FiniteSet):
        return {"count": None}
    claimed = [builder.build(data) for data in request["claimed"]]
    matched = sum(any(_is_zero(each - claim) for claim in claimed) for each in found)
    return {"count": len(found), "matched": matched}


_OPERATIONS = {
    "zero": _zero,
    "ratio": _ratio,
    "factors": _factors,
    "simplest": _simplest,
    "definite": _definite,
    "solve": _solve,
}


if __name__ == "__main__":
    main()
