"""What the pages tell a reader to type is there, and the files they show are good."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from include.cli import app
from include.controllers import CONTROLLERS
from include.controllers.tide.controller import Tide
from include.experiment.prices.books import load_book
from include.experiment.run import resolve
from include.experiment.spec import ExperimentSpec, load_spec
from include.model.errors import command
from include.results.quality.expectations import suite_of
from include.studies.provenance import read_seen
from include.testbeds import TESTBEDS
from include.workloads.topologies import load_topology
from tests.docs.pages import PAGES, REPOSITORY, Code, blocks, named

LEDGERS = sorted((REPOSITORY / "include").rglob("*.md"))


def test_every_command_line_parses() -> None:
    lines = named(r"tidebench \w")
    assert len(lines) > 8
    group = get_command(app)
    for _, name, *given in lines:
        called = getattr(group, "commands")[name]  # noqa: B009 (a click group, says typer)
        complete = {"calibrate": ["--out", "FILE"], "run": ["SPEC.yaml"], "bound": ["SPEC.yaml"]}
        if given or name in complete:  # a name alone only has to be one
            called.make_context(name, given or complete[name])


def test_a_command_that_is_printed_is_the_installed_one_and_can_be_pasted() -> None:
    assert shlex.split(command("report", Path("my runs"))) == ["tidebench", "report", "my runs"]
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert settings["project"]["scripts"]["tidebench"] == "include.cli:main"
    folders = ("include", "plugins", "dags", "sql")
    files = (path for name in folders for path in (REPOSITORY / name).rglob("*.*"))
    texts = {path: path.read_bytes() for path in files if path.suffix != ".pyc"}
    printed = {path.name for path, text in texts.items() if b"-m include.cli" in text}
    assert printed == {"__init__.py", "__main__.py"}, "they say that this is the same"


def test_every_module_that_is_named_is_there() -> None:
    lines = named(r"python3? -m ")
    assert lines
    for _, _, module, *_ in lines:
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
    assert missing == []


@pytest.mark.parametrize(
    "page", [*PAGES, *LEDGERS], ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_every_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    lost = []
    for link in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", page.read_text()):
        name, _, heading = link.partition("#")
        to = page.parent / name if name else page
        if not to.exists() or (heading and heading not in headings(to)):
            lost.append(link)
    assert lost == []


def headings(page: Path) -> set[str]:
    """What a link into a page may name, as GitHub spells it."""
    text = page.read_text()
    titles = (
        title.replace("`", "").lower() for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    )
    anchors = (re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles)
    return {*anchors, *re.findall(r'<a id="([^"]+)">', text)}


def test_a_reader_finds_every_field_of_a_spec() -> None:
    text = "".join((REPOSITORY / name).read_text() for name in ("README.md", "docs/adding.md"))
    unsaid = [
        name for name in ExperimentSpec.model_fields if not re.search(rf"\b{name}\b[`:]", text)
    ]
    assert unsaid == []


def test_a_reader_finds_every_controller() -> None:
    names = ("reproduction", "autoscalers", "tide")
    text = "".join((REPOSITORY / "docs" / f"{name}.md").read_text() for name in names)
    assert [name for name in CONTROLLERS if f"`{name}`" not in text] == []


def yaml_blocks() -> Mapping[str, tuple[Code, Any]]:
    """By what they are: the name of an experiment, else their first key."""
    loaded = [(code, yaml.safe_load(code.text)) for code in blocks("yaml")]
    first = [next(iter(values)) for _, values in loaded]
    labels = [v["name"] if f == "name" else f for f, (_, v) in zip(first, loaded, strict=True)]
    return {f"{one[0].page}: {label}": one for label, one in zip(labels, loaded, strict=True)}


def write(folder: Path, name: str, block: str) -> Path:
    """A YAML block as the file that its reader would write."""
    (folder / name).write_text(yaml_blocks()[block][0].text)
    return folder / name


def spec(folder: Path, **values: Any) -> Path:
    """A small experiment around the block."""
    small = {"name": "small", "controllers": "threshold", "duration_min": 10, "btus_min": 10}
    (folder / "small.yaml").write_text(yaml.safe_dump(small | values))
    return folder / "small.yaml"


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
    points = list(load_spec(write(tmp_path, "mine.yaml", "README.md: mine")).points())
    assert len([resolve(point) for point in points]) == 3 * 2 * 3


def test_the_advisors_of_the_docs_are_some(tmp_path: Path) -> None:
    (point,) = load_spec(write(tmp_path, "mine.yaml", "docs/monitoring.md: advised")).points()
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
    for trace in ("nasa", "twitter_trace"):
        (tmp_path / f"{trace}.csv").write_text("\n".join(["time_s,requests_per_s", *rows]))
    points = list(load_spec(write(tmp_path, "days.yaml", "docs/notes/tide.md: tide_days")).points())
    assert len(points) == 2 * 4 * 3 * 6
    assert max(set(resolve(points[0]).levels_of.values()).pop().levels) == 8


def test_the_small_hosts_of_tide_are_an_experiment(tmp_path: Path) -> None:
    points = list(
        load_spec(write(tmp_path, "small.yaml", "docs/notes/tide.md: small_hosts")).points()
    )
    assert len(points) == 2 * 12
    assert {point.testbed for point in points} == {"simulated"}


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
