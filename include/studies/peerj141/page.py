"""What the page of the reproduction shows: which policy, how sure, where it fails, over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Any

from include.results.reports.comparison import PublishedFigure
from include.results.tables.staged import Rows, gathered, grouped
from include.studies.page import PageSection, Tile
from include.studies.peerj141.calibration import JUDGING_SEEDS
from include.studies.peerj141.errata import columns, implied_items
from include.studies.peerj141.figures import draw_curves, draw_tradeoff, scale_of_curves
from include.studies.peerj141.judgement import JUDGEMENT_COLUMNS, shortfalls
from include.studies.peerj141.metrics import mean_curves
from include.studies.peerj141.published import METRICS, CellKey, approach_of, published_cells
from include.studies.peerj141.specs import controllers, patterns
from include.studies.peerj141.verdict import summary

CASE = itemgetter("pattern", "controller", "btu_min")
_LENGTH_MIN = 120
_COMPARED = ("near_real_time_compliance", "resource_cost", "near_real_time_total_cost")
_SURE = (
    "pattern", "controller", "btu_min", "metric",
    "difference", "ci95_low", "ci95_high", "welch_p", "hedges_g",
)  # fmt: skip
_MOST_DRIFT = 20

CLAIMS = (
    "Every claim is asked of each pattern that it is about and of both readings of the BTU-based "
    "approach, btu-runtime after the source code and btu after the text; each answer counts. rt, "
    "nrt and rel are the levels real-time, near real-time and relaxed. Figures such as 49/52/53 "
    "are at BTUs of 10, 30 and 60 minutes; two are at the BTUs of the claim."
)
POLICY = (
    "Up and to the left is better: more items near real-time on cheaper hosts. A line joins the "
    "BTUs (10, 30, 60 minutes) of a controller, bars are one standard deviation over seeds, hollow "
    "marks are the published figures."
)
SURE = (
    "BTU-based minus threshold on the same arrivals, paired over seeds: mean difference with its "
    "95 % confidence interval, p of Welch's test and effect size (Hedges' g). Few seeds make wide "
    "intervals; comparison.csv has every pair of controllers and every metric."
)
REPRODUCED = (
    "The paper is reproduced: the errors of the controllers that stand for its prototype are "
    "surely within their limits. Cells that differ by more than chance are named below; they do "
    "not decide, because with small standard deviations any simulation differs significantly "
    "somewhere."
)
NOT_REPRODUCED = "The paper is not reproduced by the controllers that stand for its prototype:"
JUDGED = (
    "Mean absolute errors against the published means. The interval is that of {seeds} seeds, "
    f"drawn with replacement; {JUDGING_SEEDS} are needed to judge. With none of them was a value "
    "searched; choices of readings have seen some. An error keeps its limit where its interval "
    "ends below it."
)
TOLERANCE = (
    "The tolerance of a cell is the 95 % confidence interval of a mean of three published runs, "
    "with the printed standard deviations pooled over the cells of a controller and kind of "
    "figure, plus what rounding hides. What our runs scatter by does not widen it. A cell is "
    "inside if the 95 % interval of its error ends within the tolerance, so an error below the "
    "tolerance can be outside. Errors are points for compliance and percent for cost; the "
    "published threshold compliance has no BTU."
)
ELASTICITY = (
    "Supply of instances against demand, means over operators and seeds (Herbst et al.): how much "
    "is missing (u, under) or superfluous (o, over) relative to the demand, for which share of the "
    "time, how long "
    "supply moves otherwise than demand, and how many more changes than needed per minute. For all "
    "but the last, 0 is best."
)
ITEMS = (
    "Penalty and compliance together say how many items a run processed. The arrivals of a pattern "
    "are the same for every column, so the ranges that rounding allows should overlap within a "
    "pattern; where they do not, the runs did not process the same number of items."
)


def tiles(verdict: Rows) -> tuple[Tile, ...]:
    """How many published cells are within their tolerance."""
    inside = sum(row["inside"] for row in verdict)
    return (Tile("published cells reproduced", inside, len(verdict), "inside their tolerance"),)


def sections(
    tables: Mapping[str, Rows], staged: Mapping[str, Rows], drift_sentences: Sequence[str]
) -> list[PageSection]:
    """The page behind its claims; ``tables`` are those of the study, ``staged`` of the platform."""
    errors = summary(tables["verdict"])
    judgement, missed = tables["judgement"], shortfalls(tables["judgement"])
    cells = [_beside(row) for row in tables["verdict"]]
    moved = [_without_key(row) for row in tables["drift"] if row["state"] != "same"]
    return [
        PageSection(
            name="cells",
            title="Which policy, at what cost",
            text=[POLICY],
            figures={"": draw_tradeoff(tables["cells"], list(_published_rows()), patterns())},
            rows=list(_policies(tables["cells"])),
            folded=True,
        ),
        PageSection(
            name="comparison",
            title="How sure",
            text=[SURE],
            rows=[
                _without_key({name: row[name] for name in _SURE})
                for row in tables["comparison"]
                if _is_shown(row)
            ],
        ),
        PageSection(
            name="judgement",
            title="Whether it is reproduced",
            text=[
                *([NOT_REPRODUCED, *missed] if missed else [REPRODUCED]),
                JUDGED.format(seeds=judgement[0]["seeds"] if judgement else 0),
            ],
            rows=[{name: row[name] for name in JUDGEMENT_COLUMNS} for row in judgement],
        ),
        PageSection(name="errors", title="Errors by pattern", rows=errors),
        PageSection(
            name="outside",
            title="Cells outside their tolerance",
            text=[TOLERANCE] if any(not row["inside"] for row in cells) else [TOLERANCE, "None."],
            rows=[_without_inside(row) for row in cells if not row["inside"]],
        ),
        PageSection(name="verdict", title="Published beside measured", rows=cells, folded=True),
        PageSection(
            name="time",
            title="Load, hosts and instances over time",
            text=["The counterparts of Figs. 8-11, means over seeds."],
            figures=_figures(staged),
        ),
        PageSection(
            name="elasticity",
            title="Elasticity",
            text=[ELASTICITY],
            rows=_mean_elasticity(tables["elasticity"]),
        ),
        PageSection(
            name="items",
            title="Items behind the published figures",
            text=[ITEMS],
            rows=list(_items(published_cells())),
            folded=True,
        ),
        PageSection(
            name="drift",
            title="Drift",
            text=[
                *(drift_sentences or ["There is no baseline yet; set one with --set-baseline."]),
                *([f"{_MOST_DRIFT} of {len(moved)}:"] if len(moved) > _MOST_DRIFT else []),
            ],
            rows=moved[:_MOST_DRIFT],
        ),
    ]


def policy(controller: str, btu_min: float | None) -> str:
    """A controller and its BTU, where it has one."""
    return f"{controller} BTU{btu_min:g}" if btu_min else controller


def _published_rows() -> Iterator[dict[str, Any]]:
    """Published cells as rows; those of the BTU-based approach stand with the main controller."""
    names = {approach_of(name): name for name in reversed(controllers())}
    for (pattern, approach, btu_min, metric), figure in published_cells().items():
        values = {"mean": figure.mean, "sigma": figure.sigma}
        place = {"pattern": pattern, "controller": names[approach], "btu_min": btu_min}
        yield {**place, "metric": metric, **values}


def _policies(cells: Rows) -> Iterator[dict[str, Any]]:
    """One row per pattern, controller and BTU with every metric."""
    for own in gathered((CASE(row), row) for row in cells).values():
        means = {row["metric"]: _spread(row["mean"], row["sigma"]) for row in own}
        yield _place(own[0]) | {metric: means.get(metric, "") for metric in METRICS}


def _place(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"pattern": row["pattern"], "policy": policy(row["controller"], row["btu_min"])}


def _spread(mean: float, sigma: float | None) -> str:
    return f"{mean:.2f}" if sigma is None else f"{mean:.2f}\u00a0±\u00a0{sigma:.2f}"


def _is_shown(row: Mapping[str, Any]) -> bool:
    """The page shows BTU-based against threshold; comparison.csv has every pair."""
    pair = {row["controller"], row["other_controller"]}
    return pair == {controllers()[0], "threshold"} and row["metric"] in _COMPARED


def _without_key(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its policy in the place of controller and BTU."""
    rest = {name: row[name] for name in row if name not in ("pattern", "controller", "btu_min")}
    return _place(row) | rest


def _beside(row: Mapping[str, Any]) -> dict[str, Any]:
    """A published cell beside the measured one."""
    return {
        **_place(row),
        "metric": row["metric"],
        "published": _spread(row["published_mean"], row["published_sigma"]),
        "measured": _spread(row["measured_mean"], row["measured_sigma"]),
        **{name: row[name] for name in ("error", "tolerance", "inside")},
    }


def _without_inside(row: Mapping[str, Any]) -> dict[str, Any]:
    """A cell of which it is clear that it is outside."""
    return {name: row[name] for name in row if name != "inside"}


def _figures(staged: Mapping[str, Rows]) -> dict[str, str]:
    """Per pattern, the curves of the policies that Figs. 8-11 show."""
    labels = {
        run["run"]: [(run["pattern"], policy(run["controller"], btu_min))]
        for run in staged["runs"]
        for btu_min in [run["btu_min"] if run["controller"] == controllers()[0] else None]
        if btu_min or run["controller"] == "threshold"
    }
    means = mean_curves(staged["timeline"], labels)
    of_pattern = {
        pattern: {label: means[place, label] for place, label in sorted(means) if place == pattern}
        for pattern in patterns()
    }
    scale = scale_of_curves(means.values(), _LENGTH_MIN)
    return {name: draw_curves(name, lines, scale) for name, lines in of_pattern.items() if lines}


def _mean_elasticity(rows: Rows) -> list[dict[str, Any]]:
    """The overall rows, means over seeds, in the order of Fig. 7 and of the matrix."""
    known = (*patterns(), *controllers())

    def place(name: str) -> tuple[int, str]:
        return known.index(name) if name in known else len(known), name

    overall = grouped(
        (row for row in rows if row["scope"] == "overall"),
        lambda row: (place(row["pattern"]), place(row["controller"]), row["btu_min"]),
    )
    first, *_ = overall.values()
    numbers = [name for name in first[0] if isinstance(first[0][name], float) and name != "btu_min"]
    return [
        _place(own[0]) | {name: fmean(row[name] for row in own) for name in numbers}
        for own in overall.values()
    ]


def _items(published: Mapping[CellKey, PublishedFigure]) -> Iterator[dict[str, Any]]:
    """Per published column, how many million items its penalty and compliance speak of."""
    for column in columns(published):
        pattern, approach, btu_min = column
        ranges = {
            level: f"{low / 1e6:.2f}-{high / 1e6:.2f}"
            for level, (low, high) in implied_items(published, column).items()
        }
        yield {"pattern": pattern, "column": policy(approach, btu_min), **ranges}
