"""How far off predictions may be: what backtests have shown, and what follows for a verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.advise.backtest_errors import read_scaled
from include.advise.candidates import fixed, policy
from include.advise.case import Question, seeded
from include.advise.margins import (
    ROUNDING,
    BacktestError,
    errors_csv,
    errors_text,
    margin_of,
    read_errors,
    scaler_kind,
    share_range,
    verdict,
)
from include.advise.objective import LatencyObjective
from include.advise.outcomes import measure_policy, outcome, read_outcomes, recorded_outcome
from include.advise.ranking import ranked
from include.advise.replay import ReplayConditions
from include.advise.request import AdviceRequest
from include.experiment.prices import price_book
from include.model.errors import SpecError
from tests.advise.synthetic import (
    STEP_S,
    Truth,
    case_of,
    csv,
    daily,
    job,
    recording,
    small_request,
)
from tests.advise.test_ranking import row
from tests.builders_prices import write_book
from tests.command_line import refused, said


def error(
    predicted: float, recorded: float, limit: float = 2.0, under: str = "cpu", fitted: str = "a"
) -> BacktestError:
    """A backtest of a recording of a fixed size, with a mean of 10 instances where 8 were."""
    return BacktestError(
        fitted=fitted, fitted_under="fixed", against="b", under=under, limit_over_rest=limit,
        predicted_share=predicted, recorded_share=recorded, predicted_instances=10.0,
        recorded_instances=8.0,
    )  # fmt: skip


def test_a_margin_is_the_largest_error_widened_by_how_few_backtests_there_are() -> None:
    one = margin_of([error(0.95, 0.93)], "fixed", "cpu", 2.0)
    assert one.share == pytest.approx(2 * 0.02)
    assert one.cost == pytest.approx(2 * 0.2)
    three = [error(0.95, 0.93, fitted=name) for name in "abc"]
    assert margin_of(three, "fixed", "cpu", 2.0).share == pytest.approx(4 / 3 * 0.02)
    assert margin_of(three, "fixed", "cpu", 2.0).backtests == 3


def test_backtests_of_the_same_kinds_count_and_all_of_them_where_there_is_none() -> None:
    errors = [error(0.95, 0.93), error(0.9, 0.6, under="busy time", fitted="c")]
    assert margin_of(errors, "fixed", "cpu", 2.0).share == pytest.approx(2 * 0.02)
    assert margin_of(errors, "fixed", "busy time", 2.0).share == pytest.approx(2 * 0.3)
    assert margin_of(errors, "fixed", "other", 2.0).share == pytest.approx(1.5 * 0.3)
    assert margin_of(errors, None, "other", 2.0).share == pytest.approx(1.5 * 0.3)
    assert margin_of(errors, "cpu", "cpu", 2.0).share == pytest.approx(2 * 0.02)
    redeployed = replace(error(0.9, 0.5, fitted="d"), fitted_under="busy time")
    errors.append(redeployed)
    assert margin_of(errors, "fixed", "cpu", 2.0).share == pytest.approx(2 * 0.02)
    assert margin_of(errors, "busy time", "cpu", 2.0).share == pytest.approx(2 * 0.4)
    assert margin_of(errors, None, "cpu", 2.0).share == pytest.approx(1.5 * 0.4)


def test_models_of_every_operator_have_backtests_of_their_own() -> None:
    errors = [error(0.95, 0.93), replace(error(0.95, 0.9, fitted="c"), by_operator=True)]
    whole = margin_of(errors, "fixed", "cpu", 2.0)
    each = margin_of(errors, "fixed", "cpu", 2.0, by_operator=True)
    assert (whole.share, each.share) == pytest.approx((2 * 0.02, 2 * 0.05))
    assert margin_of(errors[:1], "fixed", "cpu", 2.0, by_operator=True) == whole


def test_limits_on_both_sides_of_the_one_that_is_asked_for_count() -> None:
    errors = [error(0.9, 0.8, 1.5), error(0.9, 0.85, 2.0), error(0.9, 0.89, 5.0)]

    def share(limit: float) -> float:
        return margin_of(errors, "fixed", "cpu", limit).share / 2

    assert [share(one) for one in (1.7, 2.0, 3.0, 60.0)] == pytest.approx([0.1, 0.1, 0.05, 0.01])
    assert margin_of(errors, "fixed", "cpu", 1.1).share == 1, "nearer to rest than any backtest"


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5),
    st.floats(0, 0.5),
    st.floats(0, 1),
)
def test_a_verdict_is_for_certain_or_there_is_none(
    shares: list[tuple[float, float]], margin: float, asked: float
) -> None:
    known = [min(pair) for pair in shares]
    possible = [max(pair) for pair in shares]
    low, high = share_range(known, possible, margin)
    assert 0 <= low <= min(known)
    assert max(possible) <= high <= 1
    if verdict(asked, low, high) == "yes":
        assert min(known) >= asked - ROUNDING
    if verdict(asked, low, high) == "no":
        assert max(possible) < asked


def test_what_is_ranked_says_what_would_tell() -> None:
    rows = ranked(
        [
            row(1, "sure", 50, 0.99, share_margin=0.05, cost_margin=0.1),
            row(2, "near", 40, 0.92, share_margin=0.05),
            row(3, "busier", 30, 0.99, known_share=0.4),
            row(7, "both", 35, 0.92, known_share=0.4, share_margin=0.05),
            row(4, "scales", 20, 0.95, known_share=0.0, possible_share=1.0),
            row(5, "near below", 10, 0.88, share_margin=0.05),
            row(6, "late", 10, 0.8, share_margin=0.05),
        ]
    )
    assert [(one.policy, one.holds, one.to_record) for one in rows] == [
        ("sure", "yes", ""),
        ("scales", "cannot tell", "scalings"),
        ("busier", "cannot tell", "a higher load of each instance"),
        ("both", "cannot tell", "a day under both"),
        ("near", "cannot tell", "a day under near"),
        ("near below", "cannot tell", "a day under near below"),
        ("late", "no", ""),
    ]
    assert rows[0].lowest_cost == pytest.approx(45)
    assert rows[0].highest_cost == pytest.approx(55)
    assert rows[0].lowest_share == pytest.approx(0.94)


def a_question(max_instances: int) -> Question:
    return Question(
        objective=LatencyObjective(0.9, 2.0),
        book=price_book("per_second"),
        conditions=ReplayConditions(instances_at_start=4, max_instances=max_instances),
    )


def test_a_load_of_an_instance_that_nobody_recorded_is_no_answer() -> None:
    """Four instances have 5,000 records each, two 10,000, of which nothing is known above 6,000."""
    known = replace(job(most_per_s=20_000.0), known_to_per_s=6_000.0)
    load = np.full(400, 20_000.0)
    question = seeded(a_question(max_instances=8), 1)
    four, two = (outcome(known, load, question, fixed(n)) for n in (4, 2))
    assert (four.known_share, four.share_within, four.possible_share) == (1, 1, 1)
    assert (two.known_share, two.share_within, two.possible_share) == (0, 1, 1)


def test_without_a_restart_nothing_is_known_of_what_scales() -> None:
    question = a_question(max_instances=20)
    hpa = policy("hpa", {"target_cpu": 0.35}, question.conditions)
    found = outcome(job(), daily(hours=3), seeded(question, 1), hpa)
    assert found.scalings_per_day > 0
    assert (found.known_share, found.possible_share) == (0, 1)


def test_nor_of_what_scales_for_a_minute_only() -> None:
    question = seeded(a_question(max_instances=20), 1)
    hasty = policy("hpa", {"target_cpu": 0.5, "stabilise_s": 0.0}, question.conditions)
    load = np.full(400, 20_000.0)
    load[101:105] = 45_000.0
    found = outcome(job(), load, question, hasty)
    assert found.scalings_per_day == pytest.approx(2 * 86_400 / (400 * STEP_S))
    assert (found.known_share, found.possible_share) == (0, 1)


def test_of_the_policy_that_was_recorded_the_recording_says_what_it_holds(tmp_path: Path) -> None:
    case = case_of(small_request(tmp_path, controllers=("fixed",), max_instances=8, seeds=2))
    as_run = recorded_outcome(case.read, case.question)
    at = [one.name for one in case.policies].index("fixed, 4")
    measure_policy(case, at, tmp_path)
    (recorded,) = ranked(read_outcomes(tmp_path))

    replayed = outcome(case.job, case.read.load_per_s, seeded(case.question, 1), fixed(4))
    ends = sorted((as_run.share_within, replayed.share_within))
    assert [recorded.lowest_share, recorded.highest_share] == pytest.approx(ends)
    assert recorded.share_margin == 0


def test_kinds_are_what_scalers_decide_by() -> None:
    kinds = {name: scaler_kind(name, {}) for name in ("fixed", "hpa", "ds2", "keda", "tide")}
    assert kinds == {
        "fixed": "fixed",
        "hpa": "cpu",
        "ds2": "busy time",
        "keda": "other",
        "tide": "other",
    }
    assert scaler_kind("tide", {"end_to_end": 0.5}) == "end to end"
    assert scaler_kind("tide", {"end_to_end": 0.0}) == "other"


def test_the_table_that_comes_with_the_project_is_read_and_others_are_refused(
    tmp_path: Path,
) -> None:
    errors = read_errors(errors_text(""), "table")
    assert read_errors(errors_csv(errors), "again") == errors
    assert {one.under for one in errors} == {"fixed", "cpu", "busy time", "end to end", "other"}
    (tmp_path / "bad.csv").write_text("fitted,error\na,1\n")
    with pytest.raises(SpecError, match="is no table of backtest errors"):
        case_of(small_request(tmp_path, errors=str(tmp_path / "bad.csv")))
    nothing_ran = errors_csv([replace(error(0.9, 0.8), predicted_instances=0.0)])
    with pytest.raises(SpecError, match="predicted_instances: input should be greater than 0"):
        read_errors(nothing_ran, "table")


def test_a_table_of_ones_own_recordings_is_made_and_taken(tmp_path: Path) -> None:
    restarts = tuple(range(200, 2800, 250))
    for name, seed in (("a.csv", 1), ("b.csv", 2)):
        (tmp_path / name).write_text(csv(recording(Truth(restarts=restarts, seed=seed), daily())))
    listed = tmp_path / "mine.yaml"
    listed.write_text(
        "- {recording: a.csv, job: j, controller: fixed, options: {instances_each: 20}}\n"
        "- {recording: b.csv, job: j, controller: fixed, options: {instances_each: 20}}\n"
    )
    table = tmp_path / "errors.csv"
    said("backtest-errors", str(listed), "--out", str(table))
    errors = read_errors(table.read_text(), "mine")
    assert {(one.fitted, one.against) for one in errors} == {
        ("a.csv", "b.csv"),
        ("b.csv", "a.csv"),
        ("a.csv, first half", "a.csv, second half"),
        ("b.csv, first half", "b.csv, second half"),
    }
    assert margin_of(errors, "fixed", "fixed", 2.0).share < 0.05
    request = AdviceRequest(recording=str(tmp_path / "a.csv"), objective="90 % within 2 s")
    case = case_of(replace(request, controllers=("hpa",), errors=str(table)))
    assert case.errors == errors
    assert "name the file" in refused("backtest-errors", str(listed), "--out", str(tmp_path))
    listed.write_text("[]\n")
    assert "names no recording" in refused("backtest-errors", str(listed))


def test_a_recording_that_gives_no_model_is_held_against_and_paths_are_those_of_the_list(
    tmp_path: Path,
) -> None:
    whole = recording(Truth(restarts=tuple(range(200, 2800, 250))), daily())
    (tmp_path / "lists").mkdir()
    for name, of in (("whole.csv", whole), ("short.csv", whole.at(slice(60)))):
        (tmp_path / "lists" / name).write_text(csv(of))
    write_book(tmp_path / "lists" / "book.yaml")
    listed, table = tmp_path / "lists" / "mine.yaml", tmp_path / "errors.csv"
    fixed_20 = "job: j, controller: fixed, options: {instances_each: 20}, prices: book.yaml"
    listed.write_text(
        f"- {{recording: whole.csv, {fixed_20}}}\n"
        f"- {{recording: short.csv, {fixed_20}, per_host: 4}}\n"
    )
    read = read_scaled(listed)
    assert [one.recorded.job.instances_per_host for one in read] == [None, 4]
    assert {one.scaler.book.name for one in read} == {"mine"}
    told = said("backtest-errors", str(listed), "--out", str(table))
    assert "short.csv gives no model" in told
    assert "the second half of whole.csv against its first" in told
    errors = read_errors(table.read_text(), "mine")
    assert {(one.fitted, one.against) for one in errors if "half" not in one.fitted} == {
        ("whole.csv", "short.csv")
    }
    listed.write_text(
        "- {recording: no.csv, job: j, controller: hpaa, prices: gone.yaml, edges: none.yaml}\n"
        "- {recording: short.csv, job: j, controller: fixed, prices: btu61}\n"
    )
    wrong = refused("backtest-errors", str(listed))
    everything = ("no.csv", "hpaa", "gone.yaml", "none.yaml", "short.csv", "btu61")
    assert all(one in wrong for one in everything)
    assert "is no table of backtest errors" in refused(
        "backtest-errors", str(listed), "--out", str(listed)
    )
    assert "hpaa" in listed.read_text()
    listed.write_text(f"- {{recording: whole.csv, {fixed_20}, per_host: 0}}\n")
    assert "entry 1, per_host" in refused("backtest-errors", str(listed))


def test_the_margins_of_the_docs_are_those_of_the_table() -> None:
    errors = read_errors(errors_text(""), "table")
    page = (Path(__file__).parents[2] / "docs" / "advise.md").read_text()
    kinds = [("fixed", under, False) for under in ("fixed", "cpu", "busy time", "other")]
    kinds += [
        (of, under, True)
        for of in ("fixed", "busy time")
        for under in ("busy time", "end to end", "other")
    ]
    for recorded, under, each in kinds:
        margins = [
            margin_of(errors, recorded, under, limit, by_operator=each)
            for limit in (1.76, 2.5, 4.0)
        ]
        shares = " | ".join(f"{100 * one.share:.1f} points" for one in margins)
        first = margins[0]
        assert f" | {first.backtests} | {shares} | {100 * first.cost:.1f} % |" in page


def test_errors_within_the_margins_of_others_are_those_of_the_docs() -> None:
    errors = [
        one
        for one in read_errors(errors_text(""), "table")
        if not one.by_operator and not one.fitted.startswith("manufacturing")
    ]
    shares = costs = 0
    for one in errors:
        apart = [other for other in errors if backtest_of(other) != backtest_of(one)]
        margin = margin_of(apart, one.fitted_under, one.under, one.limit_over_rest)
        shares += abs(one.predicted_share - one.recorded_share) <= margin.share
        costs += abs(one.recorded_instances / one.predicted_instances - 1) <= margin.cost
    of = f"of {len(errors)}"
    told = f"{shares} {of} errors of the share and {costs} {of} of the cost"
    page = (Path(__file__).parents[2] / "docs" / "advise.md").read_text()
    assert told in " ".join(page.split())


def backtest_of(error: BacktestError) -> tuple[str, str]:
    return error.fitted, error.against
