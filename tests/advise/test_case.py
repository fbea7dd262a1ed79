from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from include.advise.bill import bound_of
from include.advise.case import case_of, keep_case, open_case
from include.advise.form import request_from_params
from include.advise.outcomes import forget_outcomes, measure_recorded, recorded_outcome
from include.advise.request import AdviceRequest
from include.cli import app
from include.experiment.spec import require_name
from include.model.errors import SpecError, StoreError
from tests.advise.synthetic import write_small_recording

BOOK = """\
name: mine
provider: none
region: here
instance_type: box
currency: EUR
per_hour: 0.2
as_of: 2026-01-01
source: my bill
billed_every_s: 60
minimum_s: 60
"""


@pytest.fixture
def request_(tmp_path: Path) -> AdviceRequest:
    write_small_recording(tmp_path / "job.csv")
    return AdviceRequest(recording=str(tmp_path / "job.csv"), objective="90 % within 1 s")


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    asked = AdviceRequest(
        recording=str(tmp_path / "none.csv"),
        objective="fast",
        prices="gold",
        per_host=0,
        seeds=101,
        controllers=("hpa", "hpaa"),
    )

    with pytest.raises(SpecError) as caught:
        case_of(asked)

    told = "\n".join(caught.value.problems)
    for part in ("none.csv", "'fast'", "'gold'", "per_host", "seeds", "Did you mean 'hpa'"):
        assert part in told
    assert len(caught.value.problems) == 6


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
    (tmp_path / "mine.yaml").write_text(
        BOOK.replace("billed_every_s: 60", "billed_every_s: 3600").replace(
            "minimum_s: 60", "minimum_s: 3600"
        )
    )
    case = case_of(replace(request_, prices=str(tmp_path / "mine.yaml")))
    whole = recorded_outcome(case.read, case.question)
    instances = case.read.instances.copy()
    instances[200:203] = 0
    away = recorded_outcome(replace(case.read, instances=instances), case.question)
    instances[200:260] = 2
    fewer = recorded_outcome(replace(case.read, instances=instances), case.question)

    assert whole.cost == pytest.approx(4 * 0.2 * 730)
    assert away.cost == whole.cost
    # Two hosts are there throughout; the two others are leased twice, by begun hours.
    hours = case.read.load_per_s.size * case.read.step_s / 3600
    begun = sum(np.ceil([200 * 15 / 3600, hours - 260 * 15 / 3600]))
    assert fewer.cost == pytest.approx(2 * 0.2 * 730 + 2 * 0.2 * begun * 730 / hours)


def test_a_bad_mapping_is_told_with_the_rest(request_: AdviceRequest) -> None:
    with pytest.raises(SpecError) as caught:
        case_of(replace(request_, columns="speed=x", objective="soon"))

    told = "\n".join(caught.value.problems)
    assert "'speed'" in told
    assert "'soon'" in told


def test_what_is_kept_is_what_was_asked(tmp_path: Path, request_: AdviceRequest) -> None:
    (tmp_path / "mine.yaml").write_text(BOOK)
    asked = replace(request_, prices=str(tmp_path / "mine.yaml"), seeds=2, controllers=("hpa",))

    kept = keep_case(asked, tmp_path / "out")
    (tmp_path / "job.csv").unlink()
    (tmp_path / "mine.yaml").unlink()
    opened = open_case(tmp_path / "out")

    assert opened.question == kept.question
    assert opened.job == kept.job
    assert opened.policies == kept.policies
    np.testing.assert_array_equal(opened.read.load_per_s, kept.read.load_per_s)
    assert opened.question.book.name == "mine"


def test_nothing_is_kept_of_what_is_wrong(tmp_path: Path, request_: AdviceRequest) -> None:
    with pytest.raises(SpecError):
        keep_case(replace(request_, objective="soon"), tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_a_case_that_is_damaged_is_said(tmp_path: Path, request_: AdviceRequest) -> None:
    keep_case(request_, tmp_path / "out")
    (tmp_path / "out" / "case" / "recording.parquet").write_bytes(b"PAR1")

    with pytest.raises(StoreError, match="ask for the advice again"):
        open_case(tmp_path / "out")


def test_sizes_carry_the_median_and_the_highest_load_at_half_the_cpu(
    request_: AdviceRequest,
) -> None:
    case = case_of(replace(request_, max_instances=9, controllers=("fixed",)))

    # An instance is at half its CPU with 400 records/s, the load is 480 to 1,600 records/s.
    sizes = [one.at_start for one in case.policies]
    assert sizes[-2:] == [4, 9]
    assert sizes[0] in (3, 4)


def test_only_the_controllers_that_were_asked_for_are_tried(request_: AdviceRequest) -> None:
    case = case_of(replace(request_, controllers=("tide", "keda")))

    assert [one.name for one in case.policies][:2] == ["tide", "keda"]
    assert {one.controller for one in case.policies} == {"tide", "keda"}


def test_a_book_that_bills_from_when_a_host_is_up_is_refused(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    (tmp_path / "mine.yaml").write_text(BOOK + "billed_from: active\n")

    with pytest.raises(SpecError, match="write billed_from: order"):
        case_of(replace(request_, prices=str(tmp_path / "mine.yaml")))


def test_reserved_hosts_are_in_the_bound(tmp_path: Path, request_: AdviceRequest) -> None:
    reserved = "reserved: {hosts: 4, per_hour: 0.01}\n"
    (tmp_path / "mine.yaml").write_text(BOOK + reserved)
    case = case_of(replace(request_, prices=str(tmp_path / "mine.yaml")))

    as_run = recorded_outcome(case.read, case.question)
    assert as_run.cost == pytest.approx(4 * 0.01 * 730)
    assert bound_of(case, case.read.load_per_s).cost == pytest.approx(as_run.cost)


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


def test_a_new_request_forgets_rows_and_leaves_the_page_until_its_own_is_ready(
    tmp_path: Path, request_: AdviceRequest
) -> None:
    case = keep_case(request_, tmp_path / "out")
    measure_recorded(case, tmp_path / "out")
    (tmp_path / "out" / "published").mkdir()

    keep_case(request_, tmp_path / "out")
    forget_outcomes(tmp_path / "out")

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["case", "published"]


@pytest.mark.parametrize("found", ["measurements/mine.parquet", "notes.txt", "case/notes.txt"])
def test_a_folder_with_something_else_in_it_is_left_alone(
    tmp_path: Path, request_: AdviceRequest, found: str
) -> None:
    mine = tmp_path / "thesis" / found
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    asked = ["advise", request_.recording, "--objective", request_.objective]

    for out in (tmp_path / "thesis", mine):
        ran = CliRunner().invoke(app, [*asked, "--out", str(out)])
        assert isinstance(ran.exception, SpecError)
        assert "has something else in it" in str(ran.exception)

    assert [one for one in (tmp_path / "thesis").rglob("*") if one.is_file()] == [mine]
    assert mine.read_text() == "mine"
