"""What the pages tell a reader to type is there, and the files they show are good."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from include.cli import app
from include.controllers.tide.controller import Tide
from include.experiment.prices.books import load_book
from include.experiment.run import resolve
from include.experiment.spec import load_spec
from include.results.quality.expectations import suite_of
from include.studies.seen import read_seen
from include.testbeds import TESTBEDS
from include.workloads.topologies import load_topology
from tests.docs.pages import PAGES, REPOSITORY, Code, blocks, commands, named

# Every command of a shell block, and the file whose tests run it or, as said beside, a part of it.
HERE = "tests/docs/test_commands.py"
RUN_BY = {
    "make demo": "tests/e2e/test_experiment_dag.py",
    ".venv/bin/python -m include.cli run include/experiment/specs/demo.yaml": HERE,
    ".venv/bin/python -m include.cli report var/demo": HERE,
    "ls var/demo/runs/*/ var/demo/measurements": HERE,
    ".venv/bin/python -m include.cli bound include/experiment/specs/demo.yaml": HERE,
    ".venv/bin/python -m include.cli bound var/demo": HERE,
    ".venv/bin/python -m include.cli bound var/demo --no-floor --parts": (
        "tests/bounds/test_parts.py"
    ),
    ".venv/bin/python -m include.cli run include/experiment/specs/tide.yaml": HERE,  # cut
    ".venv/bin/python -m include.cli report var/tide": HERE,  # as of var/demo
    ".venv/bin/python -m include.cli run include/experiment/specs/tide_walks.yaml": HERE,  # cut
    ".venv/bin/python -m include.cli report var/tide_walks": HERE,  # as of var/demo
    ".venv/bin/python -m include.cli run include/experiment/specs/tide_care.yaml": HERE,  # cut
    ".venv/bin/python -m include.cli bound var/tide_care --no-floor": HERE,  # as of var/demo
    ".venv/bin/python -m include.cli report var/tide_care": HERE,  # as of var/demo
    ".venv/bin/python -m include.cli figure var/tide_care --front --fitted stepwise "
    "--out docs/images/tide.svg": "tests/unit/test_reports_front.py",
    ".venv/bin/python -m include.cli run include/experiment/specs/autoscalers.yaml": HERE,  # cut
    ".venv/bin/python -m include.cli report var/autoscalers": HERE,  # as of var/demo
    ".venv/bin/python -m include.results.reports.autoscalers docs/images/autoscalers": (
        "tests/unit/test_reports_autoscalers.py"  # one of them, cut
    ),
    ".venv/bin/python -m include.cli remove var/demo RUN": "tests/unit/test_reports_removal.py",
    '.venv/bin/python -m include.cli advise recording.csv --objective "latency p95 < 2 s" '
    "--prices book.yaml": "tests/advise/test_answer.py",
    ".venv/bin/python -m include.cli backtest fit.csv --against seen.csv --controller hpa "
    "--set target_cpu=0.35 --set max_instances=24": "tests/advise/test_backtest.py",
    ".venv/bin/python -m include.cli backtest fit.csv --against operator.csv --controller "
    "flink-autoscaler --set target_share=0.35 --set boundary=0.15 --set stabilise_s=120 --set "
    "window_s=60 --set restart_s=60 --set catch_up_s=300 --set scale_down_after_s=0 --set "
    "up_grace_s=3600 --set key_groups=24 --set max_instances=24": "tests/advise/test_backtest.py",
    ".venv/bin/python -m include.cli metrics": "tests/monitoring/test_endpoint.py",
    "curl -s http://127.0.0.1:9464/metrics": "tests/monitoring/test_endpoint.py",  # by httpx
    ".venv/bin/python -m include.cli operators recording.csv "
    '--edges "source>map>sink, map>other"': "tests/advise/test_operators.py",
    "export $(infra/objects/swift.sh up)": "tests/live/test_object_store.py",
    '.venv/bin/python -m include.cli copy var/demo "s3://lab/demo?endpoint_override='
    '127.0.0.1:16080&scheme=http&allow_bucket_creation=true"': "tests/live/test_object_store.py",
    '.venv/bin/python -m include.cli report "s3://lab/demo?endpoint_override=127.0.0.1:16080'
    '&scheme=http"': "tests/live/test_object_store.py",
    "infra/objects/swift.sh down": "tests/live/test_object_store.py",
    "make reproduce": "tests/studies/test_conduct.py",  # a study of small runs
    ".venv/bin/python -m include.cli paper henge": HERE,  # that it is there; it takes minutes
    "python -m include.cli paper preprint": "tests/studies/preprint/test_study.py",  # its verdict
    "python -m include.studies.peerj141.sensitivity --seeds 1,2": (
        "tests/studies/peerj141/test_sensitivity.py"
    ),
    ".venv/bin/python -m include.cli check mine.yaml": HERE,
    ".venv/bin/python -m include.cli run mine.yaml": HERE,  # two of its 18 runs
    ".venv/bin/python -m include.cli report var/mine": HERE,
    "python infra/compare/checkouts.py ../before . --seeds 1 --minutes 20 --runs 4": (
        "tests/unit/test_compare_checkouts.py"
    ),
    "make tournament": "tests/e2e/test_tournament.py",  # cut
    "make bench": "tests/bench/test_benches.py",
    ".venv/bin/python -m include.cli crate var/demo --out demo.zip": HERE,
    '.venv/bin/python -m include.cli results export var/demo --out demo.json --by "Our lab"': HERE,
    ".venv/bin/python -m include.cli results import theirs.json": HERE,
    ".venv/bin/python -m include.cli results compare var/demo": HERE,
    "make airflow": "tests/docs/test_airflow.py",
    "make compose-secrets": "tests/security/test_deployment.py",
    "infra/compose/local.sh up": "tests/docs/test_scripts.py",  # what it says without .venv
    "make live": "tests/live/test_testbed.py",  # the testbed; the two runs take twelve minutes
    "make live-down": "tests/live/test_testbed_reap.py",
    "make openstack-up": "tests/openstack/conftest.py",
    "make openstack-down": "tests/openstack/conftest.py",
    "make live-guests": "tests/openstack/test_guests.py",  # a run that loses a guest
    "make live-openstack": "tests/openstack/test_dags.py",
}
NOT_RUN = {
    "make setup": "has been done",
    "make check": "comes before this",
    "make test": "runs this",
    "TIDEBENCH_SCHEDULES=reap,nightly_reproducibility make airflow": "make airflow is; "
    "tests/dags/test_policy.py has what the variable does",
    "make test-openstack": "is a group of tests",
    "make test-guests": "is one, too",
    'airflow dags test advise --conf \'{"name": "mine", "recording": "/data/job.csv", '
    '"prices": "btu60"}\'': "tests/e2e/test_advise_dag.py runs it with a recording",
    'AIRFLOW__OPENLINEAGE__TRANSPORT=\'{"type": "file", "log_file_path": "/tmp/events", '
    '"append": true}\' airflow dags test experiment': "tests/e2e/test_lineage.py runs it",
    "apt-get install docker.io debootstrap iproute2 iptables": "changes the machine",
    "docker buildx imagetools inspect python:3.11.13-slim-bookworm": "asks a registry of images",
    "BASE_IMAGE=python:3.11.13-slim-bookworm@sha256:... docker compose build": "the same",
    "make compose-up": "builds an image for minutes; test_deployment.py checks what it starts",
    "make compose-try": "needs compose-up; test_airflow.py runs its script against an Airflow",
    "make compose-up compose-try": "as these two",
    "make compose-leaks": "needs compose-up; test_deployment.py tests the search",
    "make compose-down": "needs compose-up",
    "infra/compose/local.sh run make compose-up compose-try": "needs its engine and base images",
    "infra/compose/local.sh run make compose-down": "the same",
    "infra/compose/local.sh purge": "deletes what it has built",
}


def test_every_command_of_a_shell_block_is_run_or_said_why_not() -> None:
    assert sorted(commands()) == sorted([*RUN_BY, *NOT_RUN])
    assert not [file for file in RUN_BY.values() if not (REPOSITORY / file).is_file()]


def test_every_command_line_parses() -> None:
    lines = named(r"python3? -m include\.cli ")
    assert len(lines) > 8
    group = get_command(app)
    for _, _, _, *arguments in lines:
        name, *given = arguments
        command = getattr(group, "commands")[name]  # noqa: B009 (a click group, says typer)
        complete = {"calibrate": ["--out", "FILE"], "run": ["SPEC.yaml"], "bound": ["SPEC.yaml"]}
        command.make_context(name, given or complete.get(name, []))


def test_every_module_that_is_named_is_there() -> None:
    for _, _, module, *_ in named(r"python3? -m "):
        file = REPOSITORY / module.replace(".", "/")
        assert file.with_suffix(".py").is_file() or (file / "__main__.py").is_file(), module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    text = page.read_text()
    folders = r"(?:include|infra|tests|plugins|sql|dags|docs|\.ci)"
    named_files = {
        path
        for path in re.findall(rf"`({folders}/[\w./-]+)`", text)
        if "mine" not in path  # the reader's own
    }
    missing = [path for path in sorted(named_files) if not (REPOSITORY / path).exists()]
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    missing += [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def yaml_blocks() -> Mapping[str, tuple[Code, Any]]:
    """By what they are: their first key."""
    loaded = [(code, yaml.safe_load(code.text)) for code in blocks("yaml")]
    return {f"{code.page}: {next(iter(values))}": (code, values) for code, values in loaded}


def write(folder: Path, name: str, block: str) -> Path:
    """A YAML block as the file that its reader would write."""
    (folder / name).write_text(yaml_blocks()[block][0].text)
    return folder / name


def spec(folder: Path, **values: Any) -> Path:
    """A small experiment around the block."""
    small = {"name": "small", "controllers": "threshold", "duration_min": 10, "btus_min": 10}
    (folder / "small.yaml").write_text(yaml.safe_dump(small | values))
    return folder / "small.yaml"


def test_the_yaml_blocks_are_those_that_are_tested() -> None:
    assert list(yaml_blocks()) == [
        "README.md: name",
        "docs/adding.md: name",  # two: a topology, then a cluster of tenants
        "docs/adding.md: run_with",
        "docs/adding.md: patterns",  # two: a trace, then another recording
        "docs/adding.md: every_run",
        "docs/monitoring.md: name",
        "docs/openstack.md: image",
        "docs/prices.md: provider",
        "docs/reproduction.md: entries",
        "docs/tide.md: name",
    ]
    assert len(blocks("yaml")) == 12


@pytest.mark.spark
def test_the_checks_of_a_table_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    _, entries = yaml_blocks()["docs/adding.md: every_run"]
    monkeypatch.setattr("include.results.quality.expectations.read_sql_yaml", lambda *_: entries)
    severities = [one.severity.value for one in suite_of("runs", ["r"])]
    assert severities == ["critical"] * (3 + 2 + 4 + 1 + 1) + ["warning"] * 2


def test_the_seen_file_of_the_docs_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", "seen.yaml", "docs/reproduction.md: entries")
    found = read_seen("mine", tmp_path)
    assert found.withheld == ("two_level",)
    assert found.entries[0].seeds == (1, 2)


def of_adding(folder: Path) -> None:
    """The two files of docs/adding.md that have a name, as it tells to call them."""
    for code in blocks("yaml"):
        if code.page == "docs/adding.md" and code.text.startswith("name:"):
            (folder / f"{yaml.safe_load(code.text)['name']}.yaml").write_text(code.text)


def test_the_experiment_of_the_readme_is_one(tmp_path: Path) -> None:
    of_adding(tmp_path)
    (tmp_path / "load.csv").write_text("time_s,level\n0,3\n600,9\n")
    points = list(load_spec(write(tmp_path, "mine.yaml", "README.md: name")).points())
    assert len([resolve(point) for point in points]) == 3 * 2 * 3


def test_the_advisors_of_the_docs_are_some(tmp_path: Path) -> None:
    (point,) = load_spec(write(tmp_path, "mine.yaml", "docs/monitoring.md: name")).points()
    table = (REPOSITORY / "docs" / "monitoring.md").read_text()
    for label in resolve(point).build_advisors():
        assert f"| {label} " in table


def test_the_topology_and_the_tenants_are_ones(tmp_path: Path) -> None:
    of_adding(tmp_path)
    assert load_topology(str(tmp_path / "sensors.yaml")).operator_names == ("parse", "store")
    (point,) = load_spec(spec(tmp_path, topology="my_cluster.yaml")).points()
    assert point.testbed == "flow"
    assert len(resolve(point).topology.tenants) == 6


def test_what_a_topology_may_say_of_its_runs_can_be_said(tmp_path: Path) -> None:
    of_adding(tmp_path)
    _, values = yaml_blocks()["docs/adding.md: run_with"]
    topology = yaml.safe_load((tmp_path / "sensors.yaml").read_text()) | values
    (tmp_path / "sensors.yaml").write_text(yaml.safe_dump(topology))
    (tmp_path / "small.yaml").write_text(
        "{name: small, topology: sensors.yaml, controllers: fixed}"
    )
    for point in load_spec(tmp_path / "small.yaml").points():
        assert resolve(point).spec.testbed == "flow"
        assert point.duration_min == values["run_with"]["duration_min"]


def test_the_trace_is_one(tmp_path: Path) -> None:
    first, other = (
        yaml.safe_load(code.text) for code in blocks("yaml") if code.text.startswith("patterns:")
    )
    (tmp_path / "own_trace.csv").write_text("time_s,level\n0,3\n")
    (tmp_path / "requests.csv").write_text("at,n\n0,2000\n30,\n60,4000\n120,\n")
    (point,) = load_spec(spec(tmp_path, **first)).points()
    assert set(resolve(point).levels_of.values()).pop().levels == (3.0,)
    points = list(load_spec(spec(tmp_path, **other)).points())
    assert len(points) == 7
    assert set(resolve(points[0]).levels_of.values()).pop().levels == (1.0, 2.0, 2.0)


def test_the_options_of_tide_have_the_defaults_that_its_page_says() -> None:
    text = (REPOSITORY / "docs" / "tide.md").read_text()
    text = text.partition("## Options")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \| \S+ \| ", text, re.MULTILINE))
    defaults = {one.name: one.default for one in fields(Tide) if one.name != "setting"}
    assert {name: float(value) for name, value in told.items()} == defaults


def test_the_days_of_tide_are_an_experiment(tmp_path: Path) -> None:
    rows = [f"{minute * 60},{1 + minute % 7}" for minute in range(6 * 1440)]
    (tmp_path / "requests.csv").write_text("\n".join(["time_s,requests_per_s", *rows]))
    points = list(load_spec(write(tmp_path, "days.yaml", "docs/tide.md: name")).points())
    assert len(points) == 4 * 3 * 6
    assert max(set(resolve(points[0]).levels_of.values()).pop().levels) == 8


def test_the_price_book_is_one(tmp_path: Path) -> None:
    file = write(tmp_path, "mine.yaml", "docs/prices.md: provider")
    assert load_book(file).cap_per_month == 15
    (point,) = load_spec(
        spec(tmp_path, patterns="constant", price_books=["btu10", "mine.yaml"])
    ).points()
    assert [book.name for book in resolve(point).price_books] == ["btu10", "somebody_small"]


def test_the_calibration_of_a_cloud_is_one(tmp_path: Path) -> None:
    file = write(tmp_path, "mine.yaml", "docs/openstack.md: image")
    calibration = TESTBEDS["openstack"].parameters().load_calibration(str(file))
    assert calibration.model_dump(mode="json")["networks"] == ["elastic"]
    given = {"testbed": "openstack", "calibration": "mine.yaml", "flavor": "docker-4cpu-7gb"}
    assert [resolve(point) for point in load_spec(spec(tmp_path, **given)).points()]
