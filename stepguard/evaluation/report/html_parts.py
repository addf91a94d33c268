"""Pieces that the sections of a report share, and the section on how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from stepguard.core.markup import Child, Html, cut, tag
from stepguard.evaluation.arms import TaskOutcome
from stepguard.evaluation.report import charts
from stepguard.evaluation.report.figures import GUARD, Study

_ABOUT_ARMS: Final = {
    "offload": "an interpreter performs the steps; no model is asked",
    "program": "the model writes the steps down as formulas, an interpreter runs them",
    "direct": "the final value only, working forbidden",
    "cot": "free chain of thought with a demonstration; nothing is checked",
    "trace": "one structured reply with the same working; nothing is checked",
    "resample": "several chains of thought: the answer of most, or the first that is checked right",
    "chunk": "the guard's own segments and prompts with the checker off",
    "blind": "the guard's retries where it made them on another program",
    "limited": "the guard with a checker that knows less",
    "without": "asked without one decision of the guard's prompts",
    "guard": "every step checked; what is not right is asked again in a clean context, or named",
}
_LABELS: Final = {
    "model": "Model", "model_file": "Model file", "server": "Server", "simulated": "Simulated model",
    "profile": "Profile of its slips", "price": "Price of a million tokens", "task": "Task family",
    "procedure": "Procedure", "procedure_hash": "Hash of the procedure", "cases": "Cases",
    "cases_hash": "Hash of the cases", "case_ids": "Cases by seed", "truth": "Right values",
    "steps_judged": "Steps judged", "warning": "Warning", "seed": "First seed", "segment": "Steps a call, at most",
    "retries": "Retries a step", "temperature": "Temperature", "prompt_hash": "Hash of the prompts",
    "stepguard": "stepguard", "concurrency": "Programs at the same time", "machine": "Machine",
    "versions": "Versions", "date": "Date", "note": "Note", "command": "Command",
}  # fmt: skip
_LONGEST_FACT: Final = 2000


def section(name: str, title: str, content: Child) -> Html:
    """A section with its heading."""
    return tag("section", tag("h2", title, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title")


def legend(arms: Sequence[str], styles: Mapping[str, int]) -> Html:
    """Which line is which arm, and what the arm is."""
    entries = []
    for arm in arms:
        kind = "limited" if "checker=" in arm else "without" if "without=" in arm else arm.partition("(")[0]
        about = _ABOUT_ARMS.get(kind)
        text = [tag("b", arm), f": {about}" if about else None]
        entries.append(tag("li", charts.swatch(styles[arm]), tag("span", text)))
    return tag("ul", entries, class_="legend")


TableRow = Sequence[Child]


def table(
    head: Sequence[str],
    groups: Iterable[Sequence[TableRow]],
    *,
    caption: str,
    heads: int,
    titles: Sequence[Child] = (),
    guards: Callable[[TableRow], bool] = lambda row: GUARD in row[:2],
) -> Html:
    """A table that scrolls on a narrow screen.

    Args:
        groups: rows that belong together.
        heads: how many of the first columns name the row.
        titles: what stands above each group.
        guards: whether a row is the guard's; by default its arm, in one of the first two columns, says so.
    """
    top = [tag("th", text, scope="col", class_=None if at < heads else "n") for at, text in enumerate(head)]
    bodies = [
        tag(
            "tbody",
            tag("tr", tag("th", titles[at], colspan=len(head), scope="rowgroup")) if titles else None,
            [_row(cells, heads, strong=guards(cells)) for cells in rows],
            class_="first" if at else None,
        )
        for at, rows in enumerate(groups)
    ]
    # In an element of its own it can be narrower than a table that scrolls.
    made = tag("table", tag("caption", tag("span", caption)), tag("thead", tag("tr", top)), bodies)
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=f"Table: {', '.join(head)}")


def _row(cells: TableRow, heads: int, *, strong: bool) -> Html:
    written = [
        tag("th", cell, scope="row") if at < heads else tag("td", cell, class_="n") for at, cell in enumerate(cells)
    ]
    return tag("tr", written, class_="guard" if strong else None)


def about_section(outcomes: Sequence[TaskOutcome], studies: Sequence[Study], meta: Mapping[str, Any]) -> Child:
    """What made the outcomes, and how to do it again."""
    facts: list[Html] = []
    for name, value in meta.items():
        if value is not None and name != "command":
            facts += [tag("dt", _LABELS.get(name, name)), tag("dd", cut(_fact(value), _LONGEST_FACT))]
    facts += [tag("dt", "Programs"), tag("dd", [_programs(study) for study in studies])]
    return [
        tag("dl", facts),
        tag("h3", "To repeat it"),
        tag("pre", cut(str(meta.get("command") or _command(outcomes, studies, meta)), _LONGEST_FACT)),
        tag(
            "p",
            "Beside this file, results.json has every figure and outcomes.jsonl every raw reply: the same command with "
            "--resume makes the figures again without asking the model.",
        ),
    ]


def _fact(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_fact(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_fact, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _programs(study: Study) -> Child:
    parts = []
    for length in study.lengths:
        seeds = sorted(
            {each.seed for arm in study.arms for each in getattr(study.cells.get((arm, length)), "outcomes", ())}
        )
        numbers = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        parts.append(f"{length} {'step' if length == 1 else 'steps'}: {numbers}")
    return tag("div", f"{study.task}: {'; '.join(parts)}")


def _command(outcomes: Sequence[TaskOutcome], studies: Sequence[Study], meta: Mapping[str, Any]) -> str:
    """The command as far as the facts tell it; only where the model was served is not among them."""
    if not studies:
        return "stepguard bench --out DIR"
    study = studies[0]
    counts = [max(cell.n for cell in study.by_length() if cell.length == length) for length in study.lengths]
    words = ["stepguard", "bench"]
    if not meta.get("simulated"):
        words += ["--model", str(meta.get("model", "NAME"))]
    if "cases" in meta:
        words += ["--procedure", str(meta.get("procedure")), "--cases", str(meta["cases"])]
    else:
        words += ["--task", study.task, "--lengths", ",".join(map(str, study.lengths))]
    words += ["-n", ",".join(map(str, counts))]
    words += ["--arms", ",".join(dict.fromkeys(outcome.arm for outcome in outcomes))]
    for option in ("profile", "segment", "retries", "seed", "concurrency"):
        if option in meta:
            words += [f"--{option}", str(meta[option])]
    served = "" if meta.get("simulated") else " [--base-url URL]"
    return f"{shlex.join(words)} --out DIR{served}"
