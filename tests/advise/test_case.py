from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from include.advise.answer import advise
from include.advise.bill import bound_of
from include.advise.candidates import fixed
from include.advise.case import (
    WHAT_SCALED,
    Case,
    fixed_sizes,
    keep_case,
    load_of,
    open_case,
    seeded,
)
from include.advise.form import request_from_params
from include.advise.margins import HOLDS, share_range, verdict
from include.advise.outcomes import (
    measure_recorded,
    outcome,
    recorded_outcome,
    require_replayed,
)
from include.advise.request import AdviceRequest
from include.cli import app
from include.experiment.spec import require_name
from include.files.whole import write_json
from include.model.errors import SetupError, SpecError, StoreError
from include.workloads.recordings import Recording
from tests.advise.synthetic import case_of, job, small_request
from tests.builders_prices import BOOK, write_book
from tests.command_line import refused
from tests.full_disk import no_file_above
from tests.problems import problems_told


@pytest.fixture
def request_(tmp_path: Path) -> AdviceRequest:
    return small_request(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"recording": "none.csv", "objective": "fast", "prices": "gold", "per_host": 0,
             "seeds": 101, "controllers": ("hpa", "hpaa", "mine:Own")},
            ["none.csv", "'fast'", "'gold'", "per_host", "seeds", "Did you mean 'hpa'",
             "mine:Own cannot be imported"],
        ),
        ({"columns": "speed=x", "objective": "soon"}, ["'speed'.*columns are: time_s", "'soon'"]),
        ({"columns": "time", "edges": "a>b"}, ["'time' maps nothing"]),
        (
            {"columns": "time=when", "edges": "a>b"},
            ["no column 'when' for time.*columns are: time_s"],
        ),
        ({"recording": "none.csv", "edges": "a>b"}, ["there is no file none.csv"]),
        ({"platform": "esc"}, ["unknown platform 'esc'. Did you mean 'ecs'"]),
        ({"recorded": "hpa, CPU 3 %"}, [r"--recorded.*\n.*Did you mean 'hpa, CPU 35 %'"]),
        ({"recorded": "hpa"}, ["Did you mean 'hpa, CPU 35 %' or .*; hpa, CPU 70 %; "]),
        ({"recorded": "hpa target=1"}, ["target_cpu"]),
        ({"recorded": "hpa 0.4"}, ["NAME=VALUE"]),
        ({"recorded": "hpa target_cpu=0.4 target_cpu=0.5"}, ["given twice"]),
        ({"recorded": "fixed instances_each=6"}, ["4 to 4 instances were recorded"]),
        ({"recorded": "fixed interval_s=30"}, ["4 to 4 instances were recorded"]),
        ({"recorded": " "}, ["or write a controller"]),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_with_a_request_is_told_at_once(
    request_: AdviceRequest, changes: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(SpecError) as caught:
        case_of(replace(request_, **changes))
    told = str(caught.value)
    assert all(re.search(one, told) for one in said), told
    assert len(caught.value.problems) == len(said)


def test_a_percentile_of_latency_tells_nothing_of_a_higher_one(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    path = tmp_path / "job.csv"
    path.write_text(path.read_text().replace("latency_ms", "latency_p95_ms", 1))
    case_of(request_), case_of(replace(request_, objective="latency p95 < 1 s"))
    with pytest.raises(SpecError, match=r"latency_p95_ms is p95: up to 5 % .* p99 cannot be told"):
        case_of(replace(request_, objective="latency p99 < 1 s"))


@pytest.mark.parametrize(
    ("column", "percentile"),
    [
        ("latency_p95_ms", 95.0), ("p999@ms", 99.9), ("latencyP50", 50.0), ("latency_median", 50.0),
        ('latency{quantile="0.99",pod="job-p50"}', 99.0), ("latency_p99.9", 99.9),
        ("latency_p99_9_s", 99.9), ("latency_p95ms", 95.0), ("orders_p10_latency", None),
        ("latency_p95_5m", 95.0), ('lag{partition="p75"}', None),
        ("quantile_over_time(0.95, x[5m])", 95.0), ("histogram_quantile(0.95,sum(x)by(le))", 95.0),
        ("latency_s", None), ("http200_latency", None), ("latency_avg", None),
        ("latency_95th_percentile", 95.0), ("Latency (99.9 percentile)", 99.9), ("q95_ms", 95.0),
        ("latency_pct99", 99.0), ("latency pctl 95", 95.0), ("faq90_latency", None),
        ("orders_q10_latency", None),
    ],
)  # fmt: skip
def test_a_column_says_its_percentile(column: str, percentile: float | None) -> None:
    recording = Recording(
        name="a", times_s=np.zeros(1), readings={}, began_at=None, notes=(), latency_column=column
    )
    assert recording.latency_percentile == (percentile and pytest.approx(percentile))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("latency_ms", "latency_ms does not say of which percentile it is, and is taken for p90"),
        ("latency_avg_ms", "latency_avg_ms is a mean, so some records of every reading are later"),
        ("latency_p95_ms", ""),
    ],
)
def test_a_latency_without_a_percentile_is_said(
    column: str, said: str, tmp_path: Path, request_: AdviceRequest
) -> None:
    path = tmp_path / "job.csv"
    path.write_text(path.read_text().replace("latency_ms", column, 1))
    notes = [one for one in case_of(request_).job.notes if "percentile it" in one or "mean," in one]
    assert [said in one for one in notes] == ([True] if said else []), notes


def test_what_is_missing_is_told_beside_the_columns_that_are_not_read(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    (tmp_path / "job.csv").write_text("time_s,rate,load,lat\n0,5,40,1\n15,6,41,1\n")
    told = "\n".join(problems_told(case_of, request_))
    for part in ("cpu=COLUMN@percent", "latency=COLUMN@s or @ms", "not read: lat, load"):
        assert part in told


@pytest.mark.parametrize(
    "prices",
    [
        "http://me:secret@host/book.yaml",
        "https://me:secret@host/book",
        "me:secret@host",
        "HTTPS://me:secret@host",
    ],
)
def test_no_message_repeats_a_password(
    tmp_path: Path, request_: AdviceRequest, prices: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["advise", request_.recording, "--objective", request_.objective, "--prices", prices]
    ran = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "out")])

    assert isinstance(ran.exception, SpecError)
    assert "address" in str(ran.exception)
    assert "secret" not in str(ran.exception) + ran.output + "".join(capsys.readouterr())
    assert not (tmp_path / "out").exists()


def test_a_moment_without_instances_ends_no_lease(tmp_path: Path, request_: AdviceRequest) -> None:
    """A job that is deployed again is away for a moment; a cloud bills its hosts on."""
    prices = write_book(tmp_path / "mine.yaml", rule="ovh", cap_per_month=None)
    case = case_of(replace(request_, prices=prices))
    whole = recorded_outcome(case.read, case.question)
    instances = case.read.instances.copy()
    instances[200:203] = 0
    away = recorded_outcome(replace(case.read, instances=instances), case.question)
    instances[200:260] = 2
    fewer = recorded_outcome(replace(case.read, instances=instances), case.question)

    assert whole.cost_per_month == pytest.approx(4 * BOOK["per_hour"] * 730)
    assert away.cost_per_month == whole.cost_per_month
    # Two hosts are there throughout; the two others are leased twice, by begun hours.
    hours = case.read.load_per_s.size * case.read.step_s / 3600
    begun = sum(np.ceil([200 * 15 / 3600, hours - 260 * 15 / 3600]))
    each = BOOK["per_hour"] * 730 * (1 + begun / hours)
    assert fewer.cost_per_month == pytest.approx(2 * each)


def test_what_is_kept_is_what_was_asked(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where inputs may be in one folder only, and answers are kept in another."""
    inputs = tmp_path_factory.mktemp("inputs")
    monkeypatch.setenv("TIDEBENCH_INPUTS", str(inputs))
    prices = write_book(inputs / "mine.yaml")
    asked = small_request(inputs, prices=prices, seeds=2, controllers=("hpa",))

    kept = keep_case(asked, tmp_path / "out")
    (inputs / "job.csv").unlink()
    (inputs / "mine.yaml").unlink()
    opened = open_case(tmp_path / "out")

    assert opened.question == kept.question
    assert opened.job == kept.job
    assert opened.policies == kept.policies
    np.testing.assert_array_equal(opened.read.load_per_s, kept.read.load_per_s)
    assert opened.question.book.name == "mine"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("recording.parquet", b"PAR1"),
        ("backtest_errors.csv", b"\xff\xfe"),
        ("request.json", b'{"recording": "job.csv", "prices": 5, "controllers": []}'),
        ("request.json", b'{"recording": "job.csv", "objective": 5, "controllers": []}'),
    ],
)
def test_a_case_that_is_damaged_is_said(
    file: str, content: bytes, tmp_path: Path, request_: AdviceRequest
) -> None:
    keep_case(request_, tmp_path / "out")
    (tmp_path / "out" / "case" / file).write_bytes(content)

    with pytest.raises(StoreError, match="ask for the advice again"):
        open_case(tmp_path / "out")


def test_fixed_is_tried_at_the_fewest_instances_that_hold_the_objective_and_surely(
    request_: AdviceRequest,
) -> None:
    case = case_of(replace(request_, max_instances=40, controllers=("fixed",)))

    sizes = [one.at_start for one in case.policies]
    question, load = seeded(case.question, 1), case.read.load_per_s
    held = {count: outcome(case.job, load, question, fixed(count)) for count in range(1, 41)}
    margin = case.margin(fixed(1)).share
    fewest = min(count for count, one in held.items() if one.share_within >= 0.9)
    certain = min(count for count, one in held.items() if one.known_share >= 0.9 + margin)
    assert 2 < fewest <= certain < 40
    assert sizes == sorted({fewest, certain, 4, 40})


def test_fixed_sizes_have_the_margin_of_what_is_said_to_have_scaled_the_job(
    request_: AdviceRequest,
) -> None:
    path = Path(request_.recording)
    head, *rows = path.read_text().splitlines()
    more = [row.removesuffix("4") + "6" for row in rows[:20]]
    path.write_text("\n".join([head, *more, *rows[20:]]))
    asked = replace(request_, objective="5 % within 1 s", max_instances=9, controllers=("fixed",))
    case, said = case_of(asked), case_of(replace(asked, recorded="hpa target_cpu=0.4"))
    assert case.margin(fixed(1)).share > 0.2 > 0.02 > said.margin(fixed(1)).share
    sizes = [[one.at_start for one in of.policies if one.at_start] for of in (case, said)]
    assert sizes == [[3, 4, 6, 9], [3, 6, 9]]  # three have 12 % within the limit, four 99 %


def test_the_fewest_that_hold_are_those_that_the_ranking_says_hold(
    request_: AdviceRequest,
) -> None:
    case, step_s = case_of(replace(request_, controllers=("hpa",))), 900.0
    load = np.full(3 * 96, 20_000.0)
    load[2 * 96 : 2 * 96 + 3] = 40_000.0  # the third day, which seed 4 draws three times
    conditions = replace(case.question.conditions, instances_at_start=9, max_instances=9)
    question = replace(case.question, conditions=conditions, seeds=4)
    error = replace(
        case.errors[0], under="fixed", limit_over_rest=1.0, predicted_share=0.95,
        recorded_share=0.93,
    )  # fmt: skip
    read = replace(case.read, load_per_s=load, step_s=step_s)
    known = replace(job(latency_s=0.5), step_s=step_s)
    case = Case(question=question, job=known, read=read, errors=(error,))
    margin = case.margin(fixed(1)).share

    def held(count: int) -> str:
        shares = [
            outcome(known, load_of(read, seed), seeded(question, seed), fixed(count)).known_share
            for seed in (1, 2, 3, 4)
        ]
        return verdict(0.9, *share_range(shares, shares, margin))

    fewest = min(count for count in range(1, 10) if held(count) == HOLDS)
    assert list(fixed_sizes(case)) == [fewest, 9]


def test_an_objective_that_no_size_holds_leaves_the_start_and_the_most(
    request_: AdviceRequest,
) -> None:
    impossible = replace(request_, objective="99 % within 1 ms", max_instances=9)
    case = case_of(replace(impossible, controllers=("fixed",)))

    assert [one.at_start for one in case.policies] == [4, 9]


def test_a_replay_begins_with_no_more_instances_than_there_may_be(request_: AdviceRequest) -> None:
    case = case_of(replace(request_, max_instances=3, controllers=("hpa",)))
    assert case.question.conditions.instances_at_start == 3


def test_sizes_that_were_looked_for_once_are_kept(
    tmp_path: Path, request_: AdviceRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep_case(request_, tmp_path / "out")
    monkeypatch.setattr("include.advise.case.fixed_sizes", None)  # whoever calls it fails

    assert open_case(tmp_path / "out").policies == kept.policies


def test_the_recorded_policy_is_the_count_that_never_changed_or_what_is_named(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    asked = replace(request_, controllers=("hpa",))
    assert case_of(asked).recorded == fixed(4)
    named = case_of(replace(asked, recorded="hpa, CPU 35 %")).recorded
    assert named
    assert named.options["target_cpu"] == 0.35
    own = case_of(replace(asked, recorded="hpa target_cpu=0.4"))
    assert own.recorded in own.policies
    assert own.recorded.options["target_cpu"] == 0.4
    assert case_of(replace(asked, recorded="keda")).recorded.controller == "keda"
    assert case_of(replace(asked, recorded=" hpa  target_cpu=0.35 ")).recorded == named
    assert case_of(replace(asked, recorded="fixed instances_each=4")).recorded == fixed(4)
    assert WHAT_SCALED not in case_of(asked).job.notes
    head, *rows = (tmp_path / "job.csv").read_text().splitlines()
    fewer = [line.removesuffix(",4") + ",3" for line in rows[-60:]]
    (tmp_path / "job.csv").write_text("\n".join([head, *rows[:-60], *fewer]))
    assert case_of(asked).recorded is None
    assert WHAT_SCALED in case_of(asked).job.notes
    assert WHAT_SCALED not in case_of(replace(asked, recorded="hpa, CPU 35 %")).job.notes


def test_rows_are_sorted_where_that_is_asked_for_and_kept_so(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    whole = case_of(request_)
    head, *rows = (tmp_path / "job.csv").read_text().splitlines()
    (tmp_path / "job.csv").write_text("\n".join([head, *rows[90:], *rows[:100]]))
    with pytest.raises(SpecError, match="--sort"):
        case_of(request_)

    asked = ["advise", request_.recording, "--objective", "soon", "--sort"]
    assert "goes backwards" not in refused(*asked)
    kept = keep_case(replace(request_, sort=True), tmp_path / "out")
    for case in (kept, open_case(tmp_path / "out")):
        np.testing.assert_array_equal(case.read.load_per_s, whole.read.load_per_s)


def test_what_to_paste_is_for_the_platform_that_is_asked_for_or_recorded(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    assert case_of(request_).question.platforms == ("kubernetes",)
    assert case_of(replace(request_, platform="ecs")).question.platforms == ("ecs",)
    path = tmp_path / "job.csv"
    path.write_text(path.read_text().replace("instances", "task_managers", 1))
    keep_case(request_, tmp_path / "out")
    assert open_case(tmp_path / "out").question.platforms == ("flink",)


def test_a_book_that_bills_from_when_a_host_is_up_is_refused(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    prices = write_book(tmp_path / "mine.yaml", billed_from="active")
    with pytest.raises(SpecError, match="write billed_from: order"):
        case_of(replace(request_, prices=prices))


def test_reserved_hosts_are_in_the_bound(tmp_path: Path, request_: AdviceRequest) -> None:
    reserved = {"hosts": 4, "per_hour": 0.01}
    by_the_hour = {"rule": "ovh", "cap_per_month": None}
    prices = write_book(tmp_path / "mine.yaml", **by_the_hour, reserved=reserved)
    case = case_of(replace(request_, prices=prices))

    as_run = recorded_outcome(case.read, case.question)
    assert as_run.cost_per_month == pytest.approx(4 * 0.01 * 730)
    assert bound_of(case, case.read.load_per_s).cost == pytest.approx(as_run.cost_per_month)


def test_what_may_wait_for_long_is_bound_by_the_mean_load_alone(request_: AdviceRequest) -> None:
    case = case_of(replace(request_, objective="50 % within 10 min"))

    hosts = 0.5 * float(case.read.load_per_s.mean()) / case.job.most_per_s
    assert bound_of(case, case.read.load_per_s).hosts == pytest.approx(hosts)


def test_latency_that_is_known_at_the_beginning_alone_is_told(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    lines = (tmp_path / "job.csv").read_text().splitlines()
    head, *rows = [line.split(",") for line in lines]
    for step, row in enumerate(rows):
        row[3] = row[3] if step < 10 else ""
    text = "\n".join(",".join(row) for row in [head, *rows])
    (tmp_path / "job.csv").write_text(text + "\n")

    with pytest.raises(SpecError, match="no latency away from restarts"):
        case_of(request_)


def test_no_experiment_takes_the_folder_of_an_advice() -> None:
    name, _ = request_from_params({"name": "mine", "recording": "job.csv"})
    with pytest.raises(SpecError, match="no advice- in front"):
        require_name(name)


def test_the_form_has_what_the_command_has() -> None:
    filled = {"recording": "job.csv", "sort": True, "recorded": "hpa", "platform": "flink"}
    _, asked = request_from_params(filled)
    assert filled.items() <= asdict(asked).items()
    _, plain = request_from_params({"recording": "job.csv"})
    assert (plain.sort, plain.recorded, plain.platform) == (False, "", "")
    _, wrong = request_from_params({"recording": "job.csv", "objective": 3, "sort": "yes"})
    with pytest.raises(SpecError, match=r"sort: write true or false, got 'yes'\n.* read '3'"):
        case_of(wrong)


def test_a_new_request_forgets_rows_and_leaves_the_page_until_its_own_is_ready(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    out = tmp_path / "out"
    keep_case(request_, out)
    for name in ("measurements", "staged", "published"):
        (out / name).mkdir()
    (out / "measurements" / "007.json").write_text("[]")

    measure_recorded(keep_case(request_, out), out)

    assert sorted(path.name for path in out.iterdir()) == ["case", "measurements", "published"]
    assert [path.name for path in (out / "measurements").iterdir()] == ["000.json"]


@pytest.mark.parametrize("found", ["measurements/mine.parquet", "notes.txt", "case/notes.txt"])
def test_a_folder_with_something_else_in_it_is_left_alone(
    tmp_path: Path, request_: AdviceRequest, found: str
) -> None:
    mine = tmp_path / "thesis" / found
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    asked = ["advise", request_.recording, "--objective", request_.objective]

    for out, why in ((tmp_path / "thesis", "has something else in it"), (mine, "is a file")):
        assert why in refused(*asked, "--out", str(out))

    assert [one for one in (tmp_path / "thesis").rglob("*") if one.is_file()] == [mine]
    assert mine.read_text() == "mine"


def test_a_full_disk_is_told_before_anything_is_replayed(
    tmp_path: Path, request_: AdviceRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.advise.case.fixed_sizes", None)  # whoever calls it fails
    asked = "advise", request_.recording, "--objective", request_.objective
    with no_file_above(1000):
        assert "free some space" in refused(*asked, "--out", tmp_path / "out")


def test_a_full_disk_is_told_at_the_first_policy_that_it_has_no_room_for(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    out = tmp_path / "out"
    case = keep_case(request_, out)
    taken = out / "measurements" / "001.json"
    taken.mkdir(parents=True)
    with pytest.raises(SetupError, match=r"001\.json cannot be written"):
        advise(case, out)
    assert len(list(taken.parent.iterdir())) < len(case.policies), "the last ones are not replayed"


def test_an_advice_of_which_a_policy_was_not_replayed_is_not_ranked(
    request_: AdviceRequest, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    case = keep_case(request_, out)
    for position in range(1, len(case.policies)):
        write_json(out / "measurements" / f"{position:03d}.json", [])
    with pytest.raises(StoreError, match=f"{re.escape(case.policies[-1].name)}: not replayed"):
        require_replayed(case, out)
    write_json(out / "measurements" / f"{len(case.policies):03d}.json", [])
    require_replayed(case, out)
    keep_case(request_, out)
    assert not (out / "measurements").exists(), "they are of the request before"
