"""The accuracy-by-length chart as a PNG file, for papers and slides. It needs matplotlib, the extra ``report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from stepguard.errors import MissingExtraError
from stepguard.evaluation.arms import Outcome
from stepguard.evaluation.report.charts import LINEAR, look
from stepguard.evaluation.report.figures import GUARD, Study, make_studies
from stepguard.evaluation.statistics import wilson

__all__ = ["load_figure", "write_plots"]

_MARKERS: Final = ("o", "s", "^", "D", "x", "v")
_DASHES: Final = ("-", "--", ":", "-.", (0, (5, 5)), (0, (1, 4)))
_COLOURS: Final = ("#0b57d0", "#b3410e", "#6b2fa8", "#00695c", "#a1136a", "#4d4d4d")


def load_figure() -> Any:
    """matplotlib's class of figures; pyplot, with its state and windows, is not touched.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingExtraError("a PNG chart", extra="report") from error
    return Figure


def write_plots(folder: Path, outcomes: Sequence[Outcome], meta: Mapping[str, Any]) -> list[Path]:
    """Write one chart for each task family into a folder, and say where they are.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure_class = load_figure()
    studies = make_studies(outcomes)
    paths: list[Path] = []
    for study in studies:
        figure = figure_class(figsize=(6.4, 4.2), dpi=200, layout="constrained")
        _draw(figure.add_subplot(), study, meta)
        name = "accuracy.png" if len(studies) == 1 else f"accuracy-{len(paths) + 1}.png"
        figure.savefig(folder / name, metadata={"Software": None})
        paths.append(folder / name)
    return paths


def _draw(axes: Any, study: Study, meta: Mapping[str, Any]) -> None:
    logarithmic = study.lengths[-1] / study.lengths[0] > LINEAR
    reach = study.lengths[-1] - study.lengths[0]
    others = [arm for arm in study.arms if arm != GUARD]
    for number, arm in enumerate(study.arms):
        colour, mark = look(0 if arm == GUARD else 1 + others.index(arm))
        # Side by side, or equal values would hide each other.
        aside = 0.012 * (number - (len(study.arms) - 1) / 2)
        counts = [(cell.length, cell.count(lambda each: each.right), cell.n) for cell in study.of(arm)]
        bounds = [wilson(right, n) for _, right, n in counts]
        shares = [right / n for _, right, n in counts]
        axes.errorbar(
            [length * (1 + 2 * aside) if logarithmic else length + reach * aside for length, *_ in counts],
            shares,
            yerr=[
                [max(0.0, share - low) for share, (low, _) in zip(shares, bounds, strict=True)],
                [max(0.0, high - share) for share, (_, high) in zip(shares, bounds, strict=True)],
            ],
            label=_plain(arm),
            color=_COLOURS[colour],
            marker=_MARKERS[mark],
            linestyle=_DASHES[mark],
            capsize=3,
            elinewidth=1,
        )
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xticks(study.lengths, [str(length) for length in study.lengths])
    axes.minorticks_off()
    axes.set_xlabel("steps (logarithmic scale)" if logarithmic else "steps")
    axes.set_ylabel("answers right, with 95% intervals")
    model = "SIMULATED MODEL" if meta.get("simulated") else str(meta.get("model", "unknown model"))
    axes.set_title(_plain(f"{study.task} on {model}"), wrap=True)
    axes.grid(axis="y", alpha=0.3)
    axes.legend()


def _plain(text: str) -> str:
    """Text that matplotlib takes as it stands: no formulas, nothing that a font cannot draw."""
    ascii_only = text.encode("ascii", "replace").decode("ascii")
    return "".join(char if char.isprintable() else "?" for char in ascii_only).replace("$", r"\$")
