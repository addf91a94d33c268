"""The report of a benchmark: well-formed, self-contained, escaped, and telling what the outcomes tell."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from html_harness import Page
from tables import all_rows

from stepguard.cli import main
from stepguard.core.markup import cut, tag
from stepguard.evaluation import statistics
from stepguard.evaluation.arms import TaskOutcome
from stepguard.evaluation.families import Arithmetic
from stepguard.evaluation.report import charts
from stepguard.evaluation.report.examples import choose_failed, choose_guarded, make_task, mark, replay
from stepguard.evaluation.report.figures import bound, make_headline, make_studies, percent
from stepguard.evaluation.report.html_report import make_report, write_reports
from stepguard.evaluation.statistics import compare, wilson

pytestmark = pytest.mark.once

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "qwen2.5-coder-1.5b-arithmetic"


def recorded() -> tuple[list[TaskOutcome], dict[str, Any]]:
    lines = (RECORDED / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    outcomes = [TaskOutcome.from_dict(json.loads(line)) for line in lines]
    return outcomes, json.loads((RECORDED / "results.json").read_text(encoding="utf-8"))


OUTCOMES, RESULTS = recorded()
META: dict[str, Any] = RESULTS["meta"]
FEW = [each for each in OUTCOMES if each.seed in sorted({other.seed for other in OUTCOMES})[:2]]
"""Two programs of each length in every arm."""


@pytest.fixture(name="few_draws")
def draw_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals are drawn roughly: they take time, and no place."""
    monkeypatch.setattr(statistics, "_BOOTSTRAP_DRAWS", 40)


few_draws = pytest.mark.usefixtures("few_draws")


@cache
def few_reported() -> str:
    """The report of a few outcomes, with intervals that are drawn roughly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "_BOOTSTRAP_DRAWS", 40)
        return make_report(FEW, META)


def outcome(arm: str, *, right: bool = True, length: int = 5, **changed: Any) -> TaskOutcome:
    guard = arm == "guard"
    made = TaskOutcome(
        arm=arm,
        task="arithmetic",
        length=length,
        seed=0,
        status="verified" if guard else "completed",
        right=right,
        right_lenient=right,
        trace_right=right,
        steps_right=length if right else length // 2,
        verified=guard and right,
        abstained=guard and not right,
        silent_errors=0,
        error=None,
        calls=1,
        input_tokens=10,
        output_tokens=5,
        cached_tokens=0,
        seconds=0.5,
        deviations={},
        stopped_at=None,
        texts=("text",),
    )
    return replace(made, **changed)


def series(arm: str, rights: Sequence[bool], *, length: int = 5, **changed: Any) -> list[TaskOutcome]:
    return [outcome(arm, right=right, seed=seed, length=length, **changed) for seed, right in enumerate(rights)]


def read(outcomes: Sequence[TaskOutcome], **meta: Any) -> tuple[str, Page]:
    document = make_report(outcomes, {"model": "m", **meta})
    return document, Page(document)


def words(outcomes: Sequence[TaskOutcome], **meta: Any) -> str:
    return "".join(read(outcomes, **meta)[1].words)


def headline(outcomes: Sequence[TaskOutcome]) -> str:
    (study,) = make_studies(outcomes)
    found = make_headline(study)
    return " ".join((found.main, *found.rest))


# The recorded run


@pytest.mark.slow
def test_the_headline_of_the_recorded_run() -> None:
    """The first sentence says what the guard recovers at the longest length, with the intervals of results.json."""
    assert headline(OUTCOMES) == (
        "At 50 steps the guard ends 100% [80, 100] of the programs right where the best unguarded arms, direct, cot, "
        "trace and chunk alike, end 0% [0, 20]: +100 points [+71, +100] (n = 15). Recovered accuracy, the part of the "
        "wrong answers of chunk that the guard removes: 100% [100, 100] (an interval without width, which tells "
        "nothing: every resample gave the same ratio). It got every program right at that length: there was nothing to "
        "abstain from. Of the 750 steps that are right there it had 1 rephrased, 10 rewritten and 4 split; all others "
        "were asked plainly, once or again. 0 of 55 guarded runs, all lengths together, were silently wrong (at most "
        "5.4%, one-sided 95% bound)."
    )
    assert headline(OUTCOMES).split(" Recovered")[0] in words(OUTCOMES)


def test_the_figures_are_those_of_the_results() -> None:
    """Every share, interval and contrast of results.json stands in the report's studies."""
    (study,) = make_studies(OUTCOMES)
    for row in RESULTS["rows"]:
        cell = study.cells[row["arm"], row["length"]]
        right, traces = cell.count(lambda each: each.right), cell.count(lambda each: each.trace_right)
        assert (cell.n, right / cell.n) == (row["n"], row["accuracy"])
        assert (traces / cell.n if cell.traced else None) == row["trace_accuracy"]
        assert wilson(right, cell.n) == tuple(row["interval"])
        assert dict(cell.deviations) == row["deviations"]
    found = {(each.first, each.second, each.length): each.paired for each in study.contrasts}
    for pair in RESULTS["paired"]:
        paired = found[pair["arm"], pair["baseline"], pair["length"]]
        for name in ("difference", "p_value", "rescued", "harmed", "recovered", "n"):
            assert getattr(paired, name) == pair[name]
        assert paired.interval == tuple(pair["interval"])
    assert ("chunk", "trace", 50) in found


@pytest.mark.slow
@few_draws
def test_the_recorded_report_shows_every_row() -> None:
    """The tables hold the recorded shares, and both runs are shown step by step."""
    text = words(OUTCOMES, **META)
    for row in RESULTS["rows"]:
        low, high = row["interval"]
        assert f"{row['accuracy']:.0%} [{100 * low:.0f}, {100 * high:.0f}]" in text
    assert "wrong_value: t20 + t21 is -299, not -309" in text
    assert "t23 = t20 + t21 = -257 + (-42) = -309" in text
    assert "right is -299" in text
    assert META["prompt_hash"] in text
    assert "stepguard bench --model qwen2.5-coder-1.5b --task arithmetic --lengths 5,20,50 -n 20,20,15" in text


def test_every_recorded_guarded_run_can_be_replayed() -> None:
    """The guard goes the recorded way again; with other options it does not, and that is noticed."""
    guarded = [each for each in OUTCOMES if each.arm == "guard"]
    assert all(replay(each, META) is not None for each in guarded)
    assert replay(replace(guarded[0], deviations={"empty": 1}), META) is None
    assert replay(next(each for each in guarded if each.length == 20), {**META, "segment": 3}) is None
    assert replay(replace(guarded[0], task="unheard"), META) is None


def test_the_runs_to_browse_are_chosen_by_rule() -> None:
    """The verified run with most deviations is shown, and the failed transcript of the same program."""
    chosen = choose_guarded(OUTCOMES)
    assert chosen is not None
    assert (chosen.length, chosen.seed, sum(chosen.deviations.values())) == (50, 7, 14)
    failed = choose_failed(OUTCOMES, chosen)
    assert failed is not None
    assert (failed.arm, failed.length, failed.seed) == ("cot", 50, 7)
    last = choose_guarded([replace(each, status="abstained", verified=False, abstained=True) for each in OUTCOMES])
    assert last is not None
    assert last.abstained
    assert choose_guarded([]) is None
    assert choose_failed([], None) is None


# Marking a transcript

PROGRAM = Arithmetic().make(0, 5)


def transcript(text: str, steps_right: int, *, right: bool = False) -> TaskOutcome:
    return outcome("cot", right=right, steps_right=steps_right, texts=(text,))


def test_a_wrong_step_is_told_from_one_that_follows_from_it() -> None:
    """t1 = x - y, t2 = t1 * 2, t3 = y * 5, t4 = t2 - x, t5 = t3 + t4: t1 slips, and its error is carried to the end."""
    text = "t1 = 80 - 30 = 40\nt2 = 40 * 2 = 80\n**t3** = 150\n\nt4 = none\nt5 = 150\nAnswer: 150"
    found = mark(transcript(text, 1), PROGRAM)
    assert found is not None
    lines, missing = found
    assert [line.judged for line in lines] == ["slip", "carried", "right", None, "unread", "slip", None]
    assert lines[0].note == "right is 50"
    assert missing == []


def test_a_transcript_of_another_program_is_not_marked() -> None:
    """Where the reading differs from the recorded one, the truth is not this transcript's."""
    assert mark(transcript("t1 = 50", 4), PROGRAM) is None
    assert mark(transcript("t1 = 50\nAnswer: 170", 1), PROGRAM) is None
    assert "could not be marked" in words([transcript("t1 = 50", 4)])


def test_a_step_with_two_values_is_wrong() -> None:
    """Taking back a value leaves none, as in the benchmark's reading; what was never written is listed."""
    found = mark(transcript("t1 = 50\nt1 = 49", 0), PROGRAM)
    assert found is not None
    lines, missing = found
    assert [line.judged for line in lines] == [None, "slip"]
    assert missing == ["t2", "t3", "t4", "t5"]


def test_structured_replies_are_marked_by_their_entries() -> None:
    """Without a free transcript the unchecked segments are shown, a line for each entry."""
    wrong = next(each for each in OUTCOMES if each.arm == "chunk" and not each.right)
    task = make_task(wrong)
    assert task is not None
    found = mark(wrong, task)
    assert found is not None
    assert sum(line.judged == "right" for line in found[0]) == wrong.steps_right
    assert "by chunk" in words([each for each in OUTCOMES if each.arm == "chunk"])


# Boundaries of the headline


def test_nothing_to_recover_is_not_applicable() -> None:
    """Where the best unguarded arm is always right there is no ratio."""
    said = headline([*series("cot", [True] * 4), *series("guard", [True] * 4)])
    assert "ends 100% [51, 100] of the programs right where the best unguarded arm, cot, ends 100% [51, 100]" in said
    assert ": 0 points [" in said
    assert "recovered accuracy n/a" in said
    assert "nothing to abstain from" in said
    assert "n/a" in words([*series("cot", [True] * 4), *series("guard", [True] * 4)])


def test_the_guard_may_be_worse() -> None:
    """A negative difference is said as it is."""
    said = headline([*series("cot", [True] * 4), *series("guard", [True, False, False, True])])
    assert "-50 points [" in said
    assert "50% abstained" in said


@all_rows(
    "outcomes, said",
    [
        (series("guard", [True]), "No unguarded arm was run"),
        (series("cot", [True, False]), "No guarded arm was run"),
        ([*series("guard", [True]), outcome("cot", seed=9)], "No unguarded arm ran the same programs"),
        ([*series("guard", [True]), outcome("offload", calls=0)], "No unguarded arm was run"),
        ([*series("guard", [True]), outcome("guard(segment=2)", verified=True)], "No unguarded arm was run"),
        ([*series("guard", [True], length=1), *series("cot", [False], length=1)], "At 1 step the guard"),
        ([*series("guard", [True]), *series("guard", [False], length=9), *series("cot", [False])], "At 5 steps"),
    ],
)
def test_the_headline_at_its_boundaries(outcomes: list[TaskOutcome], said: str) -> None:
    """Missing arms, arms without a model, other guards, single steps and uneven lengths are told, not guessed."""
    assert said in headline(outcomes)
    read(outcomes)


def test_a_silent_error_is_loud() -> None:
    """One wrong value that the guard vouched for is said first and marked."""
    wrong = outcome("guard", right=False, seed=1, silent_errors=1, abstained=False, verified=True)
    outcomes = [*series("guard", [True]), wrong, *series("cot", [False, False])]
    assert "It vouched for wrong values: 1 of 2 guarded runs was silently wrong" in headline(outcomes)
    assert "50% ended wrong" in headline(outcomes)
    assert "it named" not in headline(outcomes)
    assert any(each.get("class") == "alarm" for each in read(outcomes)[1].all("span"))


def test_errors_are_told_apart_from_abstentions() -> None:
    """A guarded run that failed is no abstention."""
    failed = outcome("guard", right=False, seed=1, abstained=False, status="failed", error="no reply")
    assert "50% ended in an error" in headline([*series("guard", [True]), failed, *series("cot", [False, False])])


def test_the_best_unguarded_arm_is_compared_with() -> None:
    """The baseline is the strongest rival at that length, not the weakest."""
    outcomes = [*series("cot", [False] * 4), *series("chunk", [True, True, False, False]), *series("guard", [True] * 4)]
    assert "the best unguarded arm, chunk, ends 50%" in headline(outcomes)
    assert "+50 points" in headline(outcomes)


def test_lenient_reading_is_told_where_it_matters() -> None:
    """The headline compares lenient shares, and the table shows both."""
    outcomes = [outcome("cot", right=False, right_lenient=True, status="no_answer"), *series("guard", [True])]
    assert "cot, ends 100%" in headline(outcomes)
    assert "lenient" in "".join(read(outcomes)[1].words).split("Share of programs")[1].split("What each part adds")[0]
    assert compare([True], [True]).difference == 0


@few_draws
def test_a_simulated_model_is_said_at_the_top() -> None:
    """Nobody takes the simulated model's figures for a real one's."""
    outcomes = [*series("guard", [True]), *series("cot", [False])]
    text = words(outcomes, simulated=True)
    assert text.index("SIMULATED MODEL") < text.index("At 5 steps")
    assert "SIMULATED" not in words(outcomes, simulated=False)


def test_no_outcomes_make_a_report_that_says_so() -> None:
    """Nothing to show is no crash."""
    assert "There are no outcomes." in words([])


@all_rows(
    "value, shown", [(0, "0%"), (1, "100%"), (0.004, "0.4%"), (0.9996, ">99.9%"), (0.997, "99.7%"), (0.0001, "<0.1%")]
)
def test_a_share_is_never_rounded_to_all_or_nothing(value: float, shown: str) -> None:
    """0% and 100% mean none and all."""
    assert percent(value) == shown


def test_a_bound_is_rounded_up() -> None:
    """An upper bound that is rounded down bounds nothing."""
    assert (bound(0, 48), bound(0, 60), bound(1, 1)) == ("6.1%", "4.9%", "100%")


# The document


@few_draws
@pytest.mark.parametrize(
    "outcomes",
    [FEW, OUTCOMES[:1], [OUTCOMES[2]], [replace(each, task=f"task {each.length}") for each in FEW], []],
    ids=["recorded", "one", "one guarded", "several tasks", "none"],
)
def test_the_document_is_well_formed(outcomes: list[TaskOutcome]) -> None:
    """Tags balance, ids are unique, links inside lead somewhere, headings start once, tables and charts are named."""
    document = few_reported() if outcomes is FEW else make_report(outcomes, META)
    found = Page(document)
    assert document.startswith("<!DOCTYPE html>\n<html lang=")
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all((link["href"] or "")[1:] in ids for link in found.all("a"))
    named = re.findall(r"url\(#([\w-]+)\)", document)
    assert set(named) <= set(ids)
    assert len(found.all("h1")) == 1
    for chart in found.all("svg"):
        assert chart.get("aria-label") or chart.get("aria-hidden") == "true"
    assert all(head.get("scope") for head in found.all("th"))


def test_the_document_needs_nothing_else() -> None:
    """No address, no source, no font and no import: it can be read without a network."""
    document = few_reported()
    found = Page(document)
    assert not re.search(r"https?:|//[a-z]|@import|src=|url\((?!#)", document)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in found.tags}
    (policy,) = [each["content"] for each in found.all("meta") if each.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none';")


NASTY = (
    "</pre><script>alert(1)</script> & \x1b[31m \x00 \ud800 \u202e \" ' <img src=x onerror=y> \U0001f600 \u00e9 ]]> -->"
)


@few_draws
def test_foreign_text_is_escaped_everywhere(tmp_path: Path) -> None:
    """Whatever a model, a name or a fact holds stands in the file as text, and the file is ASCII."""
    outcomes = [
        replace(
            each,
            arm=each.arm if each.arm == "guard" else f"{each.arm}{NASTY}",
            task=NASTY,
            texts=(NASTY, NASTY),
            stopped_at=NASTY,
            deviations={NASTY: 2},
        )
        for each in FEW
    ]
    write_reports(tmp_path, outcomes, {NASTY: NASTY, "model": NASTY, "versions": {NASTY: [NASTY]}})
    document = (tmp_path / "report.html").read_bytes().decode("ascii")
    found = Page(document)
    assert document.count("<script") == few_reported().count("<script") == 1
    assert found.all("img") == []
    assert all("onerror" not in attributes for _, attributes in found.tags)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", document)
    assert "\\x1b[31m" in document
    assert "\\ud800" in document
    assert "\\u202e" in document
    assert "&#128512;" in document


def test_the_shown_replies_are_escaped() -> None:
    """A guarded run that can be replayed, with a nasty reply in it, is shown as it was said."""
    first = next(each for each in OUTCOMES if each.arm == "guard" and each.length == 5 and not each.deviations)
    nasty = replace(first, texts=(NASTY, *first.texts), calls=2, deviations={"malformed": 1})
    again = replay(nasty, META)
    assert again is not None
    document, found = read([nasty], **META)
    assert "request and reply as they were" in "".join(found.words)
    assert document.count("<script") == 1
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in document


@few_draws
def test_the_same_outcomes_give_the_same_bytes() -> None:
    """Nothing of the clock, the machine or chance is in it."""
    assert few_reported() == make_report(list(FEW), dict(META))


@pytest.mark.slow
@few_draws
def test_many_outcomes_and_long_texts_stay_small() -> None:
    """Ten thousand outcomes with long replies make a file of bounded size; what is cut says so."""
    long = "t1 = 1\n" * 100_000
    outcomes = [
        outcome(arm, right=seed % 3 != 0, seed=seed, texts=(long,) if seed < 3 else ("x",), deviations={"empty": 1})
        for arm in ("cot", "guard")
        for seed in range(5000)
    ]
    document, found = read(outcomes)
    assert len(document) < 200_000
    assert "more characters are left out here" in "".join(found.words)


@few_draws
def test_a_replayed_run_that_does_not_match_is_shown_as_it_came() -> None:
    """Replies of a guard that would go another way today are still there to be read."""
    changed = [replace(each, calls=each.calls, deviations={"undecided": 9}) for each in OUTCOMES if each.arm == "guard"]
    assert "did not go the same way" in words(changed, **META)


def test_markup_escapes_and_cuts() -> None:
    """The two tools that everything is written with."""
    assert tag("p", "<&", None, 3, [tag("b", "x")], class_="a", aria_label='"') == (
        '<p class="a" aria-label="&quot;">&lt;&amp;3<b>x</b></p>'
    )
    assert cut("abc", 3) == "abc"
    assert cut("abcdef", 2) == "ab\n[4 more characters are left out here]"


def test_arms_are_told_apart() -> None:
    """Twenty-five arms beside the guard have looks of their own, and none has the guard's."""
    looks = [charts.look(style) for style in range(26)]
    assert len(set(looks)) == 26
    assert all(shape and dash for shape, dash in looks[1:])


# The command


def test_the_bench_command_writes_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --out there is a report beside results.json, said to be of a simulated model."""
    assert main(["bench", "--lengths", "3", "-n", "2", "--out", str(tmp_path / "out")]) == 0
    assert "report.html" in capsys.readouterr().out
    document = (tmp_path / "out" / "report.html").read_text(encoding="ascii")
    found = Page(document)
    assert "SIMULATED MODEL" in "".join(found.words)


@few_draws
@pytest.mark.parametrize("several", [False, True], ids=["one task", "two tasks"])
def test_a_chart_is_drawn_for_each_task(tmp_path: Path, several: bool) -> None:
    """It is SVG that stands by itself: every arm and interval, the model, no reference outside and no variable."""
    short = [each for each in FEW if each.length == 5]
    other = [replace(each, task="other <task>") for each in short] if several else []
    write_reports(tmp_path, [*short, *other], {**META, "simulated": True})
    names = ["accuracy-1.svg", "accuracy-2.svg"] if several else ["accuracy.svg"]
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == names
    for name in names:
        text = (tmp_path / name).read_text(encoding="ascii")
        root = ElementTree.fromstring(text)
        shown = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {each.arm for each in OUTCOMES} <= set(shown)
        assert "SIMULATED MODEL" in str(shown[0])
        assert "var(" not in text
        assert text.count("http") == 1
