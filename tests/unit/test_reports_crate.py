"""A published experiment is a Workflow Run RO-Crate, the same one whenever it is packed.

The rules are those that the profiles say with MUST (https://w3id.org/ro/wfrun/workflow/0.5,
https://w3id.org/ro/wfrun/process/0.5, https://w3id.org/workflowhub/workflow-ro-crate/1.0 and
https://w3id.org/ro/crate/1.1). roc-validator has them as shapes, but no version of it goes with
the version of rich that Airflow's packages are pinned with.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from rocrate.rocrate import ROCrate

from include.model.errors import PublishError, SpecError
from include.results.reports.crate import METADATA, pack_crate
from include.results.reports.publish import publish
from include.results.reports.removal import remove_runs
from include.results.tables.staged import keep_sources, sources_of
from include.runs import stages
from tests.builders import run_spec
from tests.builders_staged import let_pass, stage
from tests.command_line import refused, said

SPEC = run_spec(experiment="demo", duration_min=10)
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5",
    "https://w3id.org/ro/wfrun/workflow/0.5",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
}
ISO_8601 = r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?"
Graph = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with a run that was really measured."""
    root = tmp_path_factory.mktemp("once")
    stages.run_all(SPEC, root)
    folder = let_pass(stage(root / "demo", SPEC.run_id))
    keep_sources(folder, sources_of(folder, [SPEC.run_id]))
    (folder / "data_docs" / "index.html").write_text("the gate writes it")
    publish(folder, f"sqlite:///{root / 'results.db'}")
    return folder


@pytest.fixture
def folder(once: Path, tmp_path: Path) -> Path:
    """A copy that keeps the times of the files, as archives do."""
    return Path(shutil.copytree(once, tmp_path / "demo"))


@pytest.fixture(scope="module")
def graph(once: Path) -> Graph:
    return graph_of((once / METADATA).read_bytes())


def graph_of(content: bytes) -> Graph:
    return {item["@id"]: item for item in json.loads(content)["@graph"]}


def many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def behind(graph: Graph, entity: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The entities that a property refers to; KeyError where one is not described."""
    return [graph[item["@id"]] for item in many(entity.get(name)) if "@id" in item]


def of_type(graph: Graph, kind: str) -> list[dict[str, Any]]:
    return [item for item in graph.values() if kind in many(item["@type"])]


def main(graph: Graph) -> dict[str, Any]:
    (workflow,) = behind(graph, graph["./"], "mainEntity")
    return workflow


def types(graph: Graph, entity: dict[str, Any], name: str) -> set[str]:
    return {kind for item in behind(graph, entity, name) for kind in many(item["@type"])}


RULES: dict[str, Callable[[Graph], bool]] = {
    "RO-Crate: the metadata file is about the root and conforms to RO-Crate": lambda g: (
        g[METADATA]["about"] == {"@id": "./"}
        and {"@id": "https://w3id.org/ro/crate/1.1"} in many(g[METADATA]["conformsTo"])
    ),
    "RO-Crate: the root is a Dataset with name, description, license and a date": lambda g: (
        g["./"]["@type"] == "Dataset"
        and all(g["./"].get(name) for name in ("name", "description", "license"))
        and re.fullmatch(ISO_8601, g["./"]["datePublished"]) is not None
    ),
    "RO-Crate: every file is a part of the root": lambda g: (
        {item["@id"] for item in of_type(g, "File")} == {item["@id"] for item in g["./"]["hasPart"]}
    ),
    "RO-Crate: what is referred to is described": lambda g: all(
        reference["@id"] in g or reference["@id"].startswith("http")
        for entity in g.values()
        for value in entity.values()
        for reference in many(value)
        if isinstance(reference, dict)
    ),
    "Workflow Run Crate: the root conforms to the profiles, which are described": lambda g: (
        {item["@id"] for item in behind(g, g["./"], "conformsTo")} >= PROFILES
        and types(g, g["./"], "conformsTo") == {"CreativeWork"}
    ),
    "Workflow RO-Crate: the main entity is a workflow and says its language": lambda g: (
        set(main(g)["@type"]) >= {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
        and types(g, main(g), "programmingLanguage") == {"ComputerLanguage"}
    ),
    "Workflow Run Crate: an action ran the main entity": lambda g: any(
        main(g) in behind(g, item, "instrument") for item in of_type(g, "CreateAction")
    ),
    "Process Run Crate: every action has a tool, what it took and what came out": lambda g: all(
        types(g, item, "instrument") & {"SoftwareApplication", "ComputationalWorkflow"}
        and behind(g, item, "object")
        and behind(g, item, "result")
        for item in of_type(g, "CreateAction")
    ),
    "Process Run Crate: the root mentions every action": lambda g: (
        {item["@id"] for item in of_type(g, "CreateAction")}
        == {item["@id"] for item in g["./"]["mentions"]}
    ),
    "Workflow Run Crate: input and output are parameters with a type and their files": lambda g: (
        types(g, main(g), "input") == types(g, main(g), "output") == {"FormalParameter"}
        and all(
            item["additionalType"] and types(g, item, "workExample") == {"File"}
            for item in of_type(g, "FormalParameter")
        )
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_it_keeps_the_rules_of_the_profiles(graph: Graph, rule: str) -> None:
    assert RULES[rule](graph)


def test_it_has_inputs_measurements_tables_checks_and_code_of_the_run(graph: Graph) -> None:
    run = f"runs/{SPEC.run_id}"
    action = graph[f"#measured-{SPEC.run_id}"]
    assert {item["@id"] for item in action["object"]} >= {f"{run}/run.json", "#seed-1"}
    results = {item["name"] for item in behind(graph, action, "result")}
    assert any(name.endswith("rows of lease") for name in results)
    (code,) = (
        item
        for item in behind(graph, action, "instrument")
        if item["@type"] == "SoftwareApplication"
    )
    assert re.fullmatch(r"[0-9a-f]{64}", code["softwareVersion"])
    needs = {item["name"] for item in behind(graph, code, "softwareRequirements")}
    assert needs == {"python", "numpy", "numba", "pyarrow", "pydantic"}
    tables = {item["@id"] for item in graph["#tables"]["result"]}
    assert "published/outcomes.parquet" in tables
    assert {"@id": "data_docs/verdict.json"} in graph["#checks"]["result"]


def test_every_file_of_the_archive_is_the_one_that_is_described(
    folder: Path, tmp_path: Path
) -> None:
    assert pack_crate(folder, tmp_path / "demo.zip") > 70
    with zipfile.ZipFile(tmp_path / "demo.zip") as archive:
        described = of_type(graph_of(archive.read(METADATA)), "File")
        names = {item["@id"].replace("%3D", "=") for item in described}
        assert {METADATA, *names} == set(archive.namelist())
        for item in described:
            content = archive.read(item["@id"].replace("%3D", "="))
            assert sha256(content).hexdigest() == item["sha256"]
        page = archive.read("published/report.html").decode()
    links = re.findall(r'href="([^"#:]+)"', page)
    assert {posixpath.normpath(f"published/{name}") for name in links} <= names


def test_the_library_reads_it_again(folder: Path) -> None:
    crate = ROCrate(folder)
    assert crate.mainEntity.id == "workflow/stages.py"


def test_the_same_experiment_gives_the_same_bytes_later_and_elsewhere(
    once: Path, folder: Path, tmp_path: Path
) -> None:
    pack_crate(once, tmp_path / "first.zip")
    publish(folder, f"sqlite:///{tmp_path / 'results.db'}")
    pack_crate(folder, tmp_path / "again.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "again.zip").read_bytes()


def test_a_run_without_its_arrivals_is_published_and_not_described(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "runs" / SPEC.run_id / "arrivals.csv").unlink()
    keep_sources(folder, sources_of(folder, [SPEC.run_id]))
    assert publish(folder, f"sqlite:///{tmp_path / 'results.db'}")
    with pytest.raises(PublishError, match=f"run {SPEC.run_id} was published and is not kept"):
        pack_crate(folder, tmp_path / "demo.zip")


def test_a_licence_is_what_the_author_says_and_the_folder_stays_as_it_was(
    folder: Path, tmp_path: Path
) -> None:
    url = "https://creativecommons.org/licenses/by/4.0/"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    pack_crate(folder, tmp_path / "demo.zip", url)
    with zipfile.ZipFile(tmp_path / "demo.zip") as archive:
        assert graph_of(archive.read(METADATA))["./"]["license"] == url
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert "No licence" in graph_of((folder / METADATA).read_bytes())["./"]["license"]


@pytest.mark.parametrize(
    "name", ["run.json", "arrivals.csv", "code.json", "manifest.json", "verdict.json"]
)
@pytest.mark.parametrize("edit", ["changed", "gone"])
def test_a_file_that_was_edited_is_named_and_nothing_is_packed(
    folder: Path, tmp_path: Path, name: str, edit: str
) -> None:
    home = folder / "runs" / SPEC.run_id
    path = folder / "data_docs" / name if name == "verdict.json" else home / name
    if edit == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(PublishError, match=re.escape(f"{path} is not the file that the tables")):
        pack_crate(folder, tmp_path / "demo.zip")
    assert not (tmp_path / "demo.zip").exists()


NO_RUN = {"experiment": "", "edition": "", "runs": [1], "sha256": {}, "versions": {}}


@pytest.mark.parametrize("content", ["{}", "[]", "", '{"sha256": {}}', json.dumps(NO_RUN)])
def test_a_damaged_manifest_is_named(folder: Path, tmp_path: Path, content: str) -> None:
    (folder / "published" / "manifest.json").write_text(content)
    with pytest.raises(PublishError, match=r"manifest\.json is damaged; publish again"):
        pack_crate(folder, tmp_path / "demo.zip")


@pytest.mark.parametrize("name", ["published/report.html", "new.zip", "runs/../published/x.zip"])
def test_nothing_is_written_among_the_files_that_are_packed(folder: Path, name: str) -> None:
    before = sorted(folder.rglob("*")), (folder / "published" / "report.html").read_bytes()
    with pytest.raises(SpecError, match="is in the folder of the experiment"):
        pack_crate(folder, folder / name)
    assert before == (
        sorted(folder.rglob("*")), (folder / "published" / "report.html").read_bytes()
    )  # fmt: skip


def test_a_file_that_is_there_is_replaced_only_when_asked_to(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.zip"
    out.write_text("other")
    asked = ["crate", str(folder), "--out", str(out)]
    why = refused(*asked)
    assert f"{out} is there already; --overwrite replaces it" in why
    assert out.read_text() == "other"
    said(*asked, "--overwrite")
    assert zipfile.is_zipfile(out)


def test_everything_that_is_not_as_published_is_named_at_once(folder: Path, tmp_path: Path) -> None:
    (folder / "published" / "cost.csv").write_text("other")
    lease = next(folder.glob("measurements/lease/*/*/*.parquet"))
    lease.unlink()
    with pytest.raises(PublishError) as caught:
        pack_crate(folder, tmp_path / "demo.zip")
    assert "cost.csv is not the file that was published" in str(caught.value)
    assert f"{lease} is not the file that run" in str(caught.value)
    assert not (tmp_path / "demo.zip").exists()


def test_with_its_last_run_the_crate_goes(folder: Path) -> None:
    remove_runs(folder, [SPEC.run_id], f"sqlite:///{folder.parent / 'results.db'}")
    assert not (folder / METADATA).exists()
    assert not (folder / "workflow").exists()


def test_the_command_takes_the_url_of_a_licence_only(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.zip"
    message = refused("crate", folder, "--out", out, "--license", "not a url")
    assert "give its URL, such as https://creativecommons.org" in message
    assert not out.exists()
