"""Errors, limits and orders, on figures that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.cli import fidelity as command
from include.experiment.run import resolve
from include.experiment.spec import SPECS, RunSpec, load_spec
from include.model.errors import SpecError
from include.studies.fidelity import measure
from include.studies.fidelity.comparison import (
    AGAIN,
    COST,
    FITTED,
    HELD_OUT,
    SHARE,
    asked_runs,
    case_of,
    orders,
    predictions,
    recommendations,
)
from include.studies.fidelity.figures import FIGURES
from include.studies.fidelity.page import FidelityPage, stored_predictions, stored_unsound

SAME = dict.fromkeys(FIGURES, 50.0)


def rows_of(measured, predicted, seeds=(801,)):
    seen = [case for case in measured if case[-1] in seeds]
    return list(predictions("fitted.yaml", measured, predicted, seen))


def by_figure(rows):
    return {row.figure: row for row in rows}


def of_three(fitted_on, held_out):
    """Share and cost of controllers on a load: alike for all in the run that was fitted on."""
    cases = {(f"fit {name}", name, 801): fitted_on for name in held_out}
    cases |= {("walk", name, 802): figures for name, figures in held_out.items()}
    return {case: {**SAME, SHARE: share, COST: cost} for case, (share, cost) in cases.items()}


def test_an_error_is_a_share_or_points_as_its_limit_is():
    case = ("walk", "tide", 802)
    predicted = {**SAME, "instances_mean": 56.0, "strict_relaxed_percent": 47.5}
    rows = by_figure(rows_of({case: SAME}, {case: predicted}))
    assert rows["instances_mean"].error == pytest.approx(0.12)
    assert rows["instances_mean"].holds is False
    assert rows["strict_relaxed_percent"].error == pytest.approx(-2.5)
    assert rows["strict_relaxed_percent"].holds is True
    assert rows["waiting_mean_items"].holds is None


def test_a_run_says_whether_it_was_fitted_on_and_one_without_a_pair_is_left_out():
    cases = [("walk", "tide", seed) for seed in (801, 802)]
    rows = rows_of(dict.fromkeys(cases, SAME), {**dict.fromkeys(cases, SAME), ("x", "y", 1): SAME})
    assert {(row.seed, row.role) for row in rows} == {(801, FITTED), (802, HELD_OUT)}


def test_what_never_happened_and_was_not_predicted_is_no_error():
    case = ("walk", "tide", 802)
    none = {**SAME, "scalings": 0.0}
    assert by_figure(rows_of({case: none}, {case: none}))["scalings"].error == 0
    assert by_figure(rows_of({case: none}, {case: SAME}))["scalings"].holds is False


def test_the_cheapest_that_is_sure_to_hold_a_share_is_recommended():
    """One run was fitted on, so each margin is twice its error: 2 points and 10 % for all."""
    predicted = {"a": (82.5, 10.0), "b": (91.0, 20.0), "c": (93.0, 30.0)}
    measured = {"a": (79.0, 10.5), "b": (94.0, 25.0), "c": (99.0, 30.0)}
    rows = rows_of(of_three((51.0, 10.5), measured), of_three((50.0, 10.0), predicted))
    made = {one.asked_percent: one for one in recommendations(rows)}
    assert [made[asked].controller for asked in (75, 80, 85, 90, 95)] == ["a", "a", "b", "c", None]
    assert [made[asked].share_holds for asked in (75, 80, 85)] == [True, False, True]
    assert made[80].promised_percent == pytest.approx(80.5)
    assert made[80].highest_cost == pytest.approx(10 * (1 + 2 * 0.05))
    assert [made[asked].cost_holds for asked in (80, 85, 90)] == [True, False, True]


def test_a_margin_is_of_other_seeds_and_never_of_the_run_itself():
    """Off by 5 points under one seed and 1 under the other: 90 less twice 1, and less twice 5."""
    cases = [("walk", name, seed) for name in "abc" for seed in (801, 802)]
    predicted = {case: {**SAME, SHARE: 90.0} for case in cases}
    measured = {case: {**SAME, SHARE: 85.0 if case[-1] == 801 else 91.0} for case in cases}
    made = list(recommendations(rows_of(measured, predicted, seeds=())))
    assert {one.seed: one.promised_percent for one in made} == {801: 88.0, 802: 80.0}
    alone = {case: figures for case, figures in measured.items() if case[-1] == 801}
    assert not list(recommendations(rows_of(alone, predicted, seeds=())))
    none_due = {case: {COST: 50.0} if case[1] == "a" else measured[case] for case in cases}
    assert not list(recommendations(rows_of(none_due, predicted, seeds=()))), "two have a share"


def test_tau_is_that_of_the_means_over_seeds():
    """Of four controllers one pair of six changes places: tau is 1 - 2 / 6."""
    costs = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    predicted = {**costs, "b": 3.5, "c": 3.0}
    seeds = (801, 802, 803)

    def figures(values):
        return {
            ("walk", name, seed): {**SAME, "strict_total_cost": cost + seed / 1e4}
            for name, cost in values.items()
            for seed in seeds
        }

    found = {
        order.role: order
        for order in orders(rows_of(figures(costs), figures(predicted)))
        if order.figure == "strict_total_cost"
    }
    assert found[HELD_OUT].tau == pytest.approx(1 - 2 / 6)
    assert found[HELD_OUT].controllers == 4
    flat = [order for order in orders(rows_of(figures(costs), figures(costs)))
            if order.figure == "resource_cost"]  # fmt: skip
    assert all(order.tau is None for order in flat)  # all alike: there is no order


def test_the_page_counts_runs_within_a_limit_and_names_those_that_do_not_count(tmp_path):
    cases = [("walk", "tide", seed) for seed in (801, 802)]
    far = {**SAME, "instances_mean": 80.0}
    page = FidelityPage(
        rows=rows_of(dict.fromkeys(cases, SAME), dict.fromkeys(cases, far)),
        asked=["walk"] * 3 + ["cosine"] * 2,
        unsound={"tide-walk-3": "2 x host_lost"},
        command="tidebench fidelity mine",
        csv="results/fidelity.csv",
    )
    text = page.markdown()
    assert "| walk | 2 | 3 |" in text
    assert "| cosine | 0 | 2 |" in text
    assert "- tide-walk-3: 2 x host_lost" in text
    assert "60.0 % (+60.0), 0 of 1" in text
    assert len(page.csv_text().splitlines()) == 1 + 2 * len(FIGURES)
    (tmp_path / "fidelity.csv").write_text(page.csv_text())
    stored = stored_predictions(tmp_path / "fidelity.csv")
    assert replace(page, rows=stored).markdown() == text
    (tmp_path / "cut.csv").write_text(page.csv_text()[:-40])
    with pytest.raises(SpecError, match=f"1 rows, first in line {1 + 2 * len(FIGURES)}"):
        stored_predictions(tmp_path / "cut.csv")
    (tmp_path / "unsound.csv").write_text(page.unsound_csv_text())
    assert stored_unsound(tmp_path / "unsound.csv") == page.unsound
    (tmp_path / "cut.csv").write_text("run\ntide-walk-3\n")
    with pytest.raises(SpecError, match="1 rows, first in line 2"):
        stored_unsound(tmp_path / "cut.csv")
    assert stored_predictions(tmp_path / "none.csv") == []
    assert stored_unsound(tmp_path / "none.csv") == {}


def test_shares_that_one_controller_promises_are_one_line_and_what_did_not_hold_is_bold():
    """Each margin is no error at all, and ``a`` was 0.5 points below the 80 % it was asked for."""
    predicted = of_three((50, 50), {"a": (81.0, 10.0), "b": (91.0, 20.0), "c": (91.0, 30.0)})
    measured = of_three((50, 50), {"a": (79.5, 10.5), "b": (94.0, 20.0), "c": (94.0, 60.0)})
    page = FidelityPage(rows=rows_of(measured, predicted), asked=[], unsound={}, command="", csv="")
    lines = page.markdown().splitlines()
    assert (
        "| fitted.yaml | walk | 802 | a | 75, **80** | 81.0 | 79.5 | 10.0 to 10.0 | **10.5** |"
        in lines
    )
    assert "| fitted.yaml | walk | 802 | b | 85, 90 | 91.0 | 94.0 | 20.0 to 20.0 | 20.0 |" in lines
    (order,) = [line for line in lines if line.startswith("| walk | fitted.yaml | held out |")]
    assert order.count("1.00") == 1  # of hosts; the others are equal
    assert "**" not in order


def test_runs_that_are_to_come_are_those_of_the_spec():
    of_spec = load_spec(SPECS / "flink_tournament.yaml").points()
    assert len(asked_runs("flink_tournament", {})) == len(list(of_spec))
    assert asked_runs("mine", {("walk", "tide", 1): SAME}) == ["walk"]


def test_with_add_every_run_is_where_its_latest_measurement_puts_it(tmp_path, monkeypatch):
    page = tmp_path / "fidelity.md"
    first, second = (
        resolve(RunSpec(experiment="mine", controller="fixed", pattern="stepwise", btu_min=2,
                        seed=seed, duration_min=2))
        for seed in (1, 2)
    )  # fmt: skip
    for made in ("measured_figures", "predicted_figures"):
        monkeypatch.setattr(
            measure, made, lambda runs, *_: {case_of(run.spec): SAME for run in runs}
        )

    def told(counts, lost, **options):
        """Seeds with figures, and runs that do not count."""
        found = [counts], [(run, "2 x host_lost") for run in lost]
        monkeypatch.setattr(command, "_runs_of", lambda _: found)
        command.fidelity(tmp_path / "mine", ["known"], **options, out=page)
        unsound = stored_unsound(tmp_path / "results" / "fidelity_unsound.csv")
        assert all(f"- {run}: {why}" in page.read_text() for run, why in unsound.items())
        figures = stored_predictions(tmp_path / "results" / "fidelity.csv")
        return {row.seed for row in figures}, list(unsound)

    assert told(first, [second], add=False) == ({1}, [second.spec.run_id])
    assert told(second, [first], add=True) == ({2}, [first.spec.run_id])
    assert told(first, [], add=True) == ({1, 2}, [])
    assert told(first, [], add=True, fitted="2") == ({1, 2}, [])
    with pytest.raises(SpecError, match="8O1 is neither the seed nor the name of a run there"):
        told(first, [], add=True, fitted="1, 8O1")
    twice = tmp_path / "twice"
    assert told(second, [], testbed="flow", fitted="2", again=twice) == ({2}, [])
    assert {row.by for row in stored_predictions(tmp_path / "results" / "fidelity.csv")} == {
        "known on flow", AGAIN
    }  # fmt: skip
    options = "--calibration known --testbed flow --fitted 2 --again var/twice"
    assert f"fidelity var/mine {options}`" in page.read_text()


def test_stored_runs_are_predicted_anew_and_keep_what_was_measured_and_their_role(
    tmp_path, monkeypatch
):
    """Another calibration's rows stay; the runs need not be there."""
    runs = [resolve(point) for point in load_spec(SPECS / "flink_tournament.yaml").points()][:2]
    (first, second), page = [case_of(run.spec) for run in runs], tmp_path / "fidelity.md"
    measured = {first: SAME, second: SAME}
    rows = [row for by in ("known", "other")
            for row in predictions(by, measured, measured, {first})]  # fmt: skip
    written = FidelityPage(rows=rows, asked=[], unsound={}, command="", csv="")
    csv = tmp_path / "results" / "fidelity.csv"
    csv.parent.mkdir()
    csv.write_text(written.csv_text())
    twice = {name: 2 * value for name, value in SAME.items()}
    monkeypatch.setattr(
        measure, "predicted_figures", lambda runs, *_: {case_of(run.spec): twice for run in runs}
    )
    command.fidelity(tmp_path / "flink_tournament", ["known"], stored=True, out=page)
    figures = stored_predictions(csv)
    assert len(figures) == len(rows)
    for row in figures:
        anew = row.by == "known"
        assert row.measured == pytest.approx(SAME[row.figure], rel=1e-5)
        assert row.predicted == pytest.approx((1 + anew) * SAME[row.figure], rel=1e-5)
        assert row.role == (FITTED if row.case == first else HELD_OUT)
    with pytest.raises(SpecError, match="has no run of a spec of this name"):
        command.fidelity(tmp_path / "mine", ["known"], stored=True, out=page)
    folder = tmp_path / "flink_tournament"
    with pytest.raises(SpecError, match="no runs by unknown, but by known, other"):
        command.fidelity(folder, ["unknown"], stored=True, out=page)
    with pytest.raises(SpecError) as refused:
        command.fidelity(folder, ["known", "known.yaml"], stored=True, fitted="803", out=page)
    assert len(refused.value.problems) == 2
    assert stored_predictions(csv) == figures
