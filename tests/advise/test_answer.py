from __future__ import annotations

import csv
import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.advise.answer import (
    Answer,
    contradictions,
    idle_rows,
    share_of_recorded,
    what_if,
)
from include.advise.bill import bound_of, cost_of, whole_hosts
from include.advise.candidates import fixed, settings_of, tried
from include.advise.case import Case, load_of, seeded
from include.advise.cluster import ReplayLease, leases_of
from include.advise.outcomes import outcome, recorded_outcome, replayed
from include.advise.page import page_of
from include.advise.ranking import HIGHER_LOAD, PolicyRow, money
from include.advise.replay import ReplayConditions
from include.advise.request import SUITABLE
from include.cli.advise import advice_table
from include.experiment.prices import price_book
from include.experiment.prices.books import book_of
from include.model.billing import MONTH_S
from tests.advise.synthetic import case_of, small_request, write_small_recording
from tests.builders_prices import BOOK
from tests.command_line import refused, said

CONDITIONS = ReplayConditions(instances_at_start=4, max_instances=8)


def test_leases_follow_the_counts_and_the_last_leased_ends_first() -> None:
    leases = leases_of(np.array([2.0, 3.0, 1.0, 1.0, 2.0]), 10.0)

    ends = sorted((one.ordered_s, one.ends_s) for one in leases)
    assert ends == [(0.0, 20.0), (0.0, 50.0), (10.0, 20.0), (40.0, 50.0)]


def test_a_month_costs_what_the_book_bills_for_the_leases() -> None:
    book = price_book("btu10")
    leases = [ReplayLease(0.0, 600.0, 601.0), ReplayLease(0.0, 600.0, 600.0)]

    assert cost_of(leases, book, 1200.0, 15.0) == pytest.approx(3 * MONTH_S / 1200)


def test_a_host_that_is_held_throughout_is_one_lease_of_a_month() -> None:
    book = book_of(BOOK | {"per_hour": 0.0242, "cap_per_month": 15.0}, "capped")
    throughout = ReplayLease(0.0, 3600.0, 17.5 * 3600)

    assert cost_of([throughout], book, 17.5 * 3600, 15.0) == pytest.approx(15.0)
    hour = ReplayLease(3600.0, 7200.0, 7200.0)
    cost = cost_of([throughout, hour], book, 17.5 * 3600, 15.0)
    assert cost == pytest.approx(15.0 + 0.0242 * 730 / 17.5)


def fewest_by_brute_force(load: list[float], each: float, share: float, carried: float) -> float:
    """Whole hosts by step, every combination; a host carries so much of the step before it."""
    most = [math.ceil(one / each) for one in load]
    enough = share * sum(load) - 1e-9
    return min(
        float(sum(hosts))
        for hosts in itertools.product(*(range(n + 1) for n in most))
        if sum(
            min(one, n * each + carried * each * after)
            for one, n, after in zip(load, hosts, (*hosts[1:], 0), strict=True)
        )
        >= enough
    )


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.floats(0.5, 1.0),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_no_whole_hosts_process_the_share_for_less_than_the_bound(
    load: list[int], share: float, carried: float
) -> None:
    bound = float(whole_hosts(np.array(load, dtype=float), 10.0, share, carried).sum())

    least = fewest_by_brute_force([float(one) for one in load], 10.0, share, carried)
    assert bound <= least + 1e-6
    if not carried:
        assert bound > least - 1 - 1e-6  # the relaxation splits one host at most


@pytest.mark.parametrize(
    ("lag_each_items", "by_operator", "of_the_job"),
    [
        (185.4, False, {"keda, 185 records"}),
        (185.4, True, {"keda, 185 records", "tide, end to end"}),
        (math.nan, False, set()),
    ],
)
def test_policies_that_are_tried_have_names_of_their_own_and_limits(
    lag_each_items: float, by_operator: bool, of_the_job: set[str]
) -> None:
    settings = settings_of(lag_each_items, by_operator=by_operator)
    policies = tried(CONDITIONS, settings=settings)

    names = [one.name for one in policies]
    assert len(set(names)) == len(names)
    assert {"tide", "flink-autoscaler"} <= set(names)
    assert {name for name in names if "records" in name or "end" in name} == of_the_job
    assert {one.controller for one in policies} == {*SUITABLE} - {"fixed"}
    limits = [one.options["max_instances"] for one in policies if "max_instances" in one.options]
    assert set(limits) == {8}
    assert len(limits) >= 5


@pytest.fixture
def case(tmp_path: Path) -> Case:
    controllers = ("hpa", "tide", "fixed")
    return case_of(small_request(tmp_path, max_instances=8, seeds=2, controllers=controllers))


def row(name: str, cost: float, *, scalings: float = 0, won: float = 0, rank: int = 1) -> PolicyRow:
    return PolicyRow(
        rank=rank, policy=name, controller=name.partition(",")[0], holds="yes", to_record="",
        guessed=False,
        cost_per_month=cost, lowest_cost=cost, highest_cost=cost, regret=2.0, share_within=0.95,
        lowest_share=0.95, highest_share=0.95, share_margin=0.0, worst_hour_share=0.9,
        scalings_per_day=scalings, mean_instances=4.0, seeds=2, share_cheapest=won,
    )  # fmt: skip


def answered(case: Case, *rows: PolicyRow) -> Answer:
    best, idle = rows[0], idle_rows(rows, 4)
    policy = next(one for one in case.policies if one.name == best.policy)
    load = load_of(case.read, 1)
    return Answer(
        case=case,
        as_run=row("as it was run", recorded_outcome(case.read, case.question).cost_per_month),
        rows=tuple(one for one in rows if one not in idle),
        idle=tuple(idle),
        recommended=best,
        policy=policy,
        bound=bound_of(case, load),
        shown=replayed(case.job, load, seeded(case.question, 1).conditions, policy),
        what_if=(),
        fidelity=(("median latency, s", 1.0, math.nan),),
    )


def test_policies_that_never_scaled_are_one_line_with_the_reason(case: Case) -> None:
    lasting = row("fixed, 4", 400.0)
    idle = row("hpa, CPU 70 %", 400.0)
    moved = row("tide", 399.0)
    answer = answered(case, row("hpa, CPU 50 %", 100.0, scalings=9, won=1.0), lasting, idle, moved)

    assert [one.policy for one in answer.idle] == ["hpa, CPU 70 %"]
    for text in (advice_table(answer), page_of(answer, "told", "pasted")):
        assert "1 policy never scaled (hpa, CPU 70 %), but kept 4 instances" in text
        assert "which holds the objective at 400.00 cost units a month" in text
    assert sum("hpa, CPU 70 %" in line for line in advice_table(answer).splitlines()) == 1
    assert idle_rows([idle, lasting], 4) == []  # the first row is always shown
    assert idle_rows([lasting, idle], 5) == []


def test_the_table_names_the_currency_and_a_page_has_no_nan(case: Case, tmp_path: Path) -> None:
    answer = answered(case, row("hpa, CPU 50 %", 100.0, won=1.0))
    head = advice_table(answer).splitlines()[3].split()

    assert head[:4] == ["policy", "holds", "cost", "units/month"]
    assert "other seeds" not in advice_table(answer)
    page = page_of(answer, "told", "pasted")
    assert "not recorded" in page
    assert ">nan<" not in page


def test_where_seeds_disagree_the_others_are_named_with_what_they_cost(case: Case) -> None:
    answer = answered(case, row("hpa, CPU 50 %", 100.0, won=0.5), row("tide", 102.0, won=0.5))

    for text in (advice_table(answer), page_of(answer, "told", "pasted").replace("&#43;", "+")):
        assert "With other seeds the cheapest is tide (+2.0 %): choose by scalings" in text


def test_the_first_policy_is_told_beside_the_job_as_it_was_run(case: Case) -> None:
    answer = answered(case, row("hpa, CPU 50 %", 110.0))
    answer = replace(answer, as_run=replace(answer.as_run, cost_per_month=100.0))
    answer = replace(answer, as_run=replace(answer.as_run, share_within=0.9385))

    assert answer.trade == (
        "As it was run the job costs 100.00 cost units a month, with 93.85 % of the records within "
        "1 s; hpa, CPU 50 % costs 110.00 (+10.00, +10.0 %), with 95 % (95 % to 95 %)."
    )
    for text in (advice_table(answer), page_of(answer, "told", "pasted").replace("&#43;", "+")):
        assert answer.trade in text
    unchanged = replace(answer, case=replace(answer.case, recorded=answer.policy))
    assert "other days may be outside it" in unchanged.trade
    assert "As it was run the job costs" not in page_of(unchanged, "told", "pasted")


def test_the_page_has_the_ranks_of_the_table_and_says_what_is_known(case: Case) -> None:
    first = replace(row("hpa, CPU 50 %", 100.0, scalings=9), holds="cannot tell")
    answer = answered(case, first, row("tide", 400.0, scalings=1, rank=5))

    page = page_of(replace(answer, recommended=None), "told", "pasted")
    assert "5 · tide" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "<span>Holds the objective</span><b>cannot tell</b>" in page
    assert "; cheapest with" not in page
    assert "; cheapest with 0 of 2 seeds" in page_of(answer, "told", "pasted")


def test_the_figure_of_costs_says_what_its_lines_are_and_the_page_links_its_files(
    case: Case,
) -> None:
    others = [row(f"p{rank}", 3e4 * rank, scalings=9, rank=rank) for rank in range(2, 9)]
    first = row("hpa, CPU 50 %", 100.0, scalings=9)
    page = page_of(answered(case, first, *others), "told", "pasted")
    assert {">objective</text>", ">bound</text>"} <= set(re.findall(r">[a-z]+</text>", page))
    assert {"advice_ranking.csv", "configuration.txt"} == set(
        re.findall(r'<a href="([^"]+)"', page)
    )
    assert "<tr><th>" not in page.replace("<thead><tr><th>", ""), "policies stay where one scrolls"
    ranks = re.findall(r"<text [^>]*font-size: 8px[^>]*>(\d)</text>", page)
    assert sorted(ranks)[1:] == [str(rank) for rank in range(1, 9)], "behind the job as it was"


def test_costs_have_cents_below_a_thousand_only() -> None:
    assert [money(cost) for cost in (532.614, 1234.56, -9855.2)] == ["532.61", "1,235", "-9,855"]
    assert money(12.5, "+") == "+12.50"


def test_two_recordings_that_say_the_opposite_of_a_policy_say_so(case: Case) -> None:
    hpa, tide = row("hpa, CPU 50 %", 100.0, scalings=9), row("tide", 200.0, scalings=9)
    answer = answered(case, hpa, tide)
    unsure = answered(case, replace(hpa, holds="cannot tell"), tide)
    opposite = answered(case, replace(hpa, holds="no", lowest_share=0.5, highest_share=0.6), tide)

    assert contradictions(answer, answer) == contradictions(answer, unsure) == []
    (told,) = contradictions(answer, opposite)
    assert "the opposite of hpa, CPU 50 %: it holds the objective (95 % to 95 %)" in told
    assert "it misses the objective (50 % to 60 %)" in told
    assert contradictions(opposite, answer) != []
    said_so = replace(answer, against=(told,))
    assert told in advice_table(said_so)
    assert "The two recordings say the opposite" in page_of(said_so, "told", "pasted")


def test_a_second_recording_is_asked_too(tmp_path: Path) -> None:
    write_small_recording(tmp_path / "job.csv")
    late = [line.split(",") for line in (tmp_path / "job.csv").read_text().splitlines()]
    for cells in late[1:]:
        cells[3] = str(20 * float(cells[3]))
    (tmp_path / "late.csv").write_text("\n".join(map(",".join, late)) + "\n")
    asked = ["--objective", "90 % within 1 s", "--seeds", "1", "--controllers", "fixed"]

    told = said(
        "advise", str(tmp_path / "job.csv"), "--beside", str(tmp_path / "late.csv"), *asked,
        "--out", str(tmp_path / "out"),
    )  # fmt: skip

    assert "The two recordings say the opposite of fixed, 4" in told
    assert "in job.csv" in told
    assert "in late.csv" in told


def test_what_is_wrong_with_a_second_recording_is_told_before_anything_is_kept(
    tmp_path: Path,
) -> None:
    write_small_recording(tmp_path / "job.csv")
    asked = "advise", tmp_path / "job.csv", "--beside", tmp_path / "none.csv", "--objective"

    for objective, problems in (("90 % within 1 s", ["none.csv"]), ("soon", ["soon", "none.csv"])):
        told = refused(*asked, objective, "--out", tmp_path / "out")
        assert all(one in told for one in problems)
    assert not (tmp_path / "out").exists()


def test_a_higher_load_that_is_to_be_recorded_is_named(case: Case) -> None:
    may_hold = replace(row("hpa, CPU 50 %", 100.0), holds="cannot tell")

    def untold(to_record: str) -> str:
        answer = answered(case, replace(may_hold, to_record=to_record))
        return replace(answer, recommended=None).untold

    load = f"{case.job.known_to_per_s:,.0f} records/s"
    more = f"{HIGHER_LOAD} (above {load}), such as with fewer of them."
    assert untold(HIGHER_LOAD).endswith(f"record {more}")
    assert untold("a day under payload").endswith("record a day under payload.")


def test_what_if_has_the_means_over_the_seeds_of_the_ranking(case: Case) -> None:
    hpa = next(one for one in case.policies if one.name == "hpa, CPU 70 %")
    by_seed = [
        outcome(case.job, load_of(case.read, seed), seeded(case.question, seed), hpa)
        for seed in (1, 2)
    ]
    assert by_seed[0].cost_per_month != by_seed[1].cost_per_month

    rows = [row(hpa.name, 1.0)]
    (dearer,) = (one for one in what_if(case, rows) if one.change == "prices rise by half")

    assert dearer.cost == pytest.approx(
        1.5 * (by_seed[0].cost_per_month + by_seed[1].cost_per_month) / 2
    )
    assert dearer.within == pytest.approx((by_seed[0].share_within + by_seed[1].share_within) / 2)


def test_what_the_recording_itself_says_holds_where_prices_change_and_decisions_do_not(
    case: Case,
) -> None:
    """Under tide, which weighs prices, hosts by the hour are another replay."""
    as_run = recorded_outcome(case.read, case.question).share_within
    near = replace(case.question.objective, share=as_run - 0.001)
    case = replace(case, question=replace(case.question, objective=near))
    tide = next(one for one in case.policies if one.name == "tide")
    rows = []
    for policy_ in (fixed(4), tide):
        runs = [outcome(case.job, case.read.load_per_s, seeded(case.question, seed), policy_)
                for seed in (1, 2)]  # fmt: skip
        means = {
            name: sum(getattr(run, name) for run in runs) / 2
            for name in ("share_within", "mean_instances", "scalings_per_day")
        }
        rows.append(replace(row(policy_.name, 1.0), holds="yes", **means))

    tells = {(one.policy, one.change.split()[1]): one.holds for one in what_if(case, rows)}

    unsure = "cannot tell"
    assert {tells["fixed, 4", change] for change in ("rise", "are")} == {"yes"}
    assert {tells["fixed, 8", "load"], tells["fixed, 4", "take"]} == {unsure}
    assert tells["tide", "are"] != "yes"


def test_the_share_of_the_recorded_policy_stands_beside_that_of_its_replay(case: Case) -> None:
    as_run = row("as it was run", 1.0)

    ((name, replay, recorded),) = share_of_recorded(case, as_run)

    assert name == "share within 1 s, fixed, 4"
    again = outcome(case.job, case.read.load_per_s, seeded(case.question, 1), fixed(4))
    assert replay == pytest.approx(again.share_within)
    assert recorded == as_run.share_within


def test_advise_writes_the_answer_the_table_and_what_to_paste(tmp_path: Path) -> None:
    write_small_recording(tmp_path / "job.csv")
    asked = ["--objective", "90 % within 1 s", "--max-instances", "8", "--seeds", "2"]
    asked += ["--controllers", "hpa,tide,btu,fixed"]

    result = said("advise", str(tmp_path / "job.csv"), *asked, "--out", str(tmp_path / "out"))
    assert result.startswith("Costs are in cost units of the papers; for money: --prices")
    first = next(line for line in result.splitlines() if " holds " in line)
    published = tmp_path / "out" / "published"
    page = (published / "advice.html").read_text()
    assert "holds 90 % within 1 s at the lowest cost" in first
    assert "cost units/month" in result
    assert "share within 1 s, fixed, 4" in page
    assert "Means over the 2 seeds of the ranking" in page
    assert first.split(" holds ")[0] in page
    rows = list(csv.DictReader((published / "advice_ranking.csv").read_text().splitlines()))
    assert [row["rank"] for row in rows] == [str(n) for n in range(len(rows))]
    assert rows[0]["policy"] == "as it was run"
    assert rows[0]["holds"] == "yes"
    costs = [float(row["cost_per_month"]) for row in rows[1:] if row["holds"] == "yes"]
    assert costs == sorted(costs)
    pasted = (published / "configuration.txt").read_text()
    assert pasted.startswith(f"# {first.split(' holds ')[0]}: holds 90 % within 1 s\n# ")
    assert (tmp_path / "out" / "data_docs" / "index.html").is_file()


def test_an_objective_that_nothing_holds_is_said(tmp_path: Path) -> None:
    write_small_recording(tmp_path / "job.csv")
    asked = ["--objective", "99.99 % within 50 ms", "--seeds", "1", "--controllers", "hpa,fixed"]

    result = said("advise", str(tmp_path / "job.csv"), *asked, "--out", str(tmp_path / "out"))
    assert "No policy is known to hold 99.99 % within 0.05 s" in result
    page = (tmp_path / "out" / "published" / "advice.html").read_text()
    for text in (result, page):
        assert "at rest, so no number of instances brings records within 0.05 s" in text
    assert "in the figure" not in page  # it would be empty
