"""What the README shows is what happens."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ChatServer, Received, Reply, completion_body

from stepguard import Guard, Procedure
from stepguard.backends import Completion, Request
from stepguard.cli import main
from stepguard.evaluation.arms import Outcome
from stepguard.evaluation.report.results_file import make_results
from stepguard.testing import SimulatedModel, Slips

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_every_python_block_prints_what_stands_below_it() -> None:
    """The Python blocks run one after the other, and each prints the text block that follows it."""
    namespace: dict[str, object] = {}
    ran = 0
    for (kind, code), (after, shown) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        printed = shown_by(code, namespace)
        ran += 1
        if after == "text":
            assert printed == shown
    assert ran >= 2


def shown_by(code: str, namespace: dict[str, object]) -> str:
    """What a block prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), namespace)
    return out.getvalue()


def first_example() -> dict[str, object]:
    """The names that the first Python block leaves behind, which the drop-ins go on with."""
    namespace: dict[str, object] = {}
    shown_by(next(code for kind, code in BLOCKS if kind == "python"), namespace)
    return namespace


@pytest.fixture
def own_loop() -> Iterator[None]:
    """Frameworks whose synchronous face makes an event loop for the thread leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


DROP_INS = [
    (kind.partition("=")[2], code, BLOCKS[at + 1])
    for at, (kind, code) in enumerate(BLOCKS)
    if kind.startswith("python extra=")
]


@pytest.mark.usefixtures("own_loop")
@pytest.mark.parametrize(("library", "code", "below"), DROP_INS, ids=[each[0] for each in DROP_INS])
def test_every_drop_in_prints_what_stands_below_it(library: str, code: str, below: tuple[str, str]) -> None:
    """A section of a framework has at most ten lines of code, and runs where the framework is installed."""
    pytest.importorskip(library)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    assert ("text", shown_by(code, {**first_example(), "asyncio": asyncio})) == below


def test_the_clients_print_what_stands_below_them(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapped client and the one with another base URL answer as shown, against a server with a model's replies."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    blocks = {kind: (code, below) for (kind, code), below in itertools.pairwise(BLOCKS)}
    namespace = first_example()
    code, below = blocks["python server"]
    said = {"subtotal": "5 * 2 = 10", "tax": "10 * 8.25 / 100 = 0.83", "total": "10 + 0.83 = 10.83"}
    chat_server.play(Reply(completion_body(json.dumps(said))))
    assert ("text", shown_by(code, namespace)) == below

    serving = pytest.importorskip("serve_harness").serving
    code, below = blocks["python serve"]
    right = SimulatedModel(slips=Slips.none())
    invoice = Procedure.load(ROOT / "examples" / "invoice.txt")

    def answer(received: Received) -> Reply:
        asked = received.body["response_format"]["json_schema"]["schema"]["properties"]
        return Reply(completion_body(replies[tuple(asked)]))

    watched: list[Request] = []
    order = {"unit_price": "12.50", "quantity": 3, "discount": "10%", "shipping": "4.95", "tax_rate": "19%"}

    class Watched:
        def complete(self, request: Request) -> Completion:
            watched.append(request)
            return right.complete(request)

    assert Guard(Watched(), seed=1).run(invoice, order).verified
    replies = {tuple(step.id for step in each.steps): right.complete(each).text for each in watched}
    chat_server.play(answer)
    with serving(chat_server.url, procedures=ROOT / "examples") as served:
        assert ("text", shown_by(code.replace("http://127.0.0.1:8000/v1", served.url), namespace)) == below


def test_the_example_with_a_real_model_names_what_exists() -> None:
    """The block that needs a key compiles and uses only names that the package has."""
    (code,) = [code for kind, code in BLOCKS if kind == "python no-run"]
    tree = compile(code, "README.md", "exec")
    import stepguard

    assert {"Guard", "Budget"} <= set(tree.co_names) & set(stepguard.__all__)


def test_the_procedure_in_the_readme_parses() -> None:
    """The notation that the README shows is the one that is read."""
    (text,) = [shown for kind, shown in BLOCKS if kind == "text" and shown.startswith("inputs:")]
    assert Procedure.parse(str(Procedure.parse(text))) == Procedure.parse(text)


def test_the_first_command_runs_without_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's first command runs its example to a verified end, and says that the model is simulated."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(ROOT)
    (command,) = [code for kind, code in BLOCKS if kind == "bash" and "stepguard run" in code]
    words = shlex.split(command.split("&&")[1])
    assert words[0] == "stepguard"
    assert main(words[1:]) == 0
    printed = capsys.readouterr()
    assert "SIMULATED MODEL" in printed.err
    assert "VERIFIED" in printed.out


def test_the_commands_of_the_readme_are_those_that_ci_runs() -> None:
    """What is promised is what is tested: both commands of the README stand in the CI script."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for kind, code in BLOCKS:
        if kind == "bash" and "pip install" in code:
            for part in code.strip().split(" && "):
                wanted = part.replace("pip install", "python -m pip install --quiet")
                assert wanted in script


RECORDED = sorted((ROOT / "benchmarks" / "results").glob("*-arithmetic*"))
SMALLEST = ROOT / "benchmarks" / "results" / "qwen2.5-coder-0.5b-adaptive"
OF_EACH = pytest.mark.parametrize("folder", RECORDED, ids=[folder.name for folder in RECORDED])


def share(value: float, interval: list[float]) -> str:
    return f"{value:.0%} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


@OF_EACH
def test_the_measured_table_is_the_recorded_one(folder: Path) -> None:
    """Every row of the recorded runs stands in the README as it was measured, and no placeholder is left."""
    for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))["rows"]:
        n = row["n"]
        silent = str(row["silent_errors"]) if row["arm"] == "guard" else "-"
        traces = "-" if row["trace_accuracy"] is None else share(row["trace_accuracy"], row["trace_interval"])
        cells = [str(row["length"]), row["arm"], str(n), share(row["accuracy"], row["interval"])]
        assisted = f"{sum(row['assisted'].values()) / n:.1f}" if row["arm"] == "guard" else "-"
        cells += [traces, assisted, f"{row['abstained']:.0%}", silent]
        cells += [f"{row['calls'] / n:.1f}", f"{row['output_tokens'] / n:.0f}"]
        assert f"| {' | '.join(cells)} |" in README
    assert not re.search(r"@\w+@", README)


def test_what_is_said_of_the_smallest_model_was_recorded() -> None:
    """The sentence under the table has the figures of the recorded run."""
    results = json.loads((SMALLEST / "results.json").read_text(encoding="utf-8"))
    (row,), (checked,) = results["rows"], results["probes"]["checkers"]
    n, said = row["n"], " ".join(README.split())
    low, high = (round(100 * bound) for bound in row["interval"])
    assert f"of whose claims {checked['wrong_claims'] / checked['claims']:.0%}".replace("%", " %") in said
    assert f"ended {round(n * row['accuracy'])} of {n} programs of {row['length']} steps right [{low}, {high}]" in said
    assert (row["silent_errors"], checked["wrong_accepted"]) == (0, 0)
    assert f"in {row['calls'] / n:.1f} calls and {row['output_tokens'] / n:.0f} output tokens" in said
    assert f"{sum(row['assisted'].values()) / n:.1f} of the {row['length']} steps were assisted" in said


@pytest.mark.parametrize("folder", [*RECORDED, SMALLEST], ids=lambda folder: folder.name)
def test_the_recorded_figures_follow_from_the_recorded_outcomes(folder: Path) -> None:
    """The rows and comparisons of results.json are what the raw outcomes beside it give."""
    first, *lines = (folder / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert json.loads(first)["configuration"].items() <= results["meta"].items()
    outcomes = [Outcome.from_dict(json.loads(line)) for line in lines]
    again = json.loads(json.dumps(make_results(outcomes, {})))
    assert again["rows"] == results["rows"]
    assert again["paired"] == results["paired"]
