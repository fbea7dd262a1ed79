"""A published experiment as a Workflow Run RO-Crate: its folder, described in one JSON-LD file.

The folder of the experiment is the crate. ``ro-crate-metadata.json`` at its top names every file
that a reader needs to judge or repeat the results, with its SHA-256, and which action made it of
what. Nothing in it depends on when or by whom it is written: the only times are those at which
runs were complete and tables were checked.

Profiles: Process Run Crate 0.5, Workflow Run Crate 0.5 (https://w3id.org/ro/wfrun/), Workflow
RO-Crate 1.0, all of RO-Crate 1.1.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from include.files.whole import digest, json_bytes, new_file, read_json, write_bytes
from include.model.errors import PublishError, SpecError, command
from include.results.quality.verdict import verdict_path
from include.results.reports.integrity import changes, published_manifest, require_outside
from include.results.tables.staged import KEPT
from include.runs.measurements.origin import Origin, origin_of
from include.runs.measurements.store import RunStore

METADATA = "ro-crate-metadata.json"
KEPT_CODE = "workflow"
"""Folder of the crate with what comes from the project and not from the experiment."""
PROFILES: Mapping[str, tuple[str, str]] = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
TERMS = "https://w3id.org/ro/terms/workflow-run/context"
NO_LICENCE = "No licence is stated for these results; ask whoever gave them to you."
RO_CRATE = "https://w3id.org/ro/crate/1.1"
COMPLETED = "http://schema.org/CompletedActionStatus"
Link = dict[str, str]
"""How one entity refers to another: by its id."""
INPUT: Link = {"@id": "#input-run"}
OUTPUT: Link = {"@id": "#output-measurements"}
"""What goes into the workflow and comes out of it."""
_REPOSITORY = Path(__file__).resolve().parents[3]
_KINDS = {
    ".csv": "text/csv", ".html": "text/html", ".json": "application/json", ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet", ".py": "text/x-python", ".tex": "text/x-tex",
    ".txt": "text/plain",
}  # fmt: skip
_FIRST_OF_ZIP = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP file can say; any fixed one does."""


def write_crate(folder: Path) -> Path | None:
    """Make the folder of a published experiment a crate, and return its metadata file.

    None, with nothing written, when nothing is kept of the published runs: without them there is
    no run to describe.
    """
    manifest = read_json(folder / "published" / "manifest.json")
    if not _kept_runs(folder, manifest):
        return None
    for source in _kept_code():
        write_bytes(folder / KEPT_CODE / source.name, source.read_bytes())
    write_bytes(folder / METADATA, json_bytes(_described(folder, manifest)))
    return folder / METADATA


def pack_crate(folder: Path, out: Path, licence: str = "", *, overwrite: bool = False) -> int:
    """Write the crate of a published experiment as one ZIP file; returns how many files it has.

    ``licence`` is a URL or a sentence about the results; the folder stays as it is. The same
    published experiment gives the same bytes. Raises SpecError when ``out`` lies in the folder or,
    without ``overwrite``, is there already, PublishError when it was not published, when nothing is
    kept of its runs, or when what is there is not what was published; every such file is named.
    """
    manifest = published_manifest(folder)
    require_outside(out, folder)
    if out.exists() and not overwrite:
        raise SpecError("--out", [f"{out} is there already; --overwrite replaces it"])
    if problems := [*changes(folder, manifest), *_measured_anew(folder, manifest)]:
        raise PublishError("\n".join([f"{folder} cannot be packed:", *problems]))
    described = _described(folder, manifest, licence)
    files = sorted(unquote(entity["@id"]) for entity in described["@graph"] if "sha256" in entity)
    with new_file(out) as draft, zipfile.ZipFile(draft, "w") as target:
        target.writestr(zip_entry(METADATA), json_bytes(described))
        for name in files:
            target.writestr(zip_entry(name), _file_of(folder, name).read_bytes())
    return 1 + len(files)


def zip_entry(name: str) -> zipfile.ZipInfo:
    """An entry that says nothing of when it was written or by whom."""
    entry = zipfile.ZipInfo(name, _FIRST_OF_ZIP)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _file_of(folder: Path, name: str) -> Path:
    """Where a file of the crate lies: what comes from the project is taken from there."""
    code = {f"{KEPT_CODE}/{source.name}": source for source in _kept_code()}
    return code.get(name, folder / name)


def _measured_anew(folder: Path, manifest: Mapping[str, Any]) -> Iterable[str]:
    """Published runs that are missing or have other rows now, each with what to do."""
    for row in manifest["runs"]:
        store = RunStore(folder, row["run"])
        if not _is_kept(store):
            yield (
                f"- run {row['run']} was published and is not kept; publish again: "
                f"{command('report', folder)}"
            )
        elif digest(store.manifest) == manifest["made_of"].get(f"runs/{row['run']}/manifest.json"):
            for part in read_json(store.manifest)["parts"]:
                path = folder / part["path"]
                if not path.is_file() or digest(path) != part["sha256"]:
                    yield f"- {path} is not the file that run {row['run']} wrote; measure it again"


def _kept_runs(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Origin]:
    """When each published run was complete and by whom, of those whose files are kept."""
    stores = (RunStore(folder, row["run"]) for row in manifest["runs"])
    origins = (origin_of(store) for store in stores if _is_kept(store))
    return {origin.run: origin for origin in origins if origin}


def _is_kept(store: RunStore) -> bool:
    """Whether all that the crate says of a run is there."""
    return all((store.home / name).is_file() for name in KEPT)


def _kept_code() -> list[Path]:
    """The code that every run goes through, and which packages are pinned where they are."""
    pinned = _REPOSITORY / "requirements.txt"
    stages = _REPOSITORY / "include" / "runs" / "stages.py"
    return [stages, *([pinned] if pinned.is_file() else [])]


class _Crate:
    """Entities of one crate by their ids; the same id is the same entity."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entities: dict[str, dict[str, Any]] = {}

    def add(self, id_: str, type_: str | list[str], **about: Any) -> Link:
        """Describe an entity unless it is described already; returns a link to it."""
        self.entities.setdefault(id_, {"@id": id_, "@type": type_, **about})
        return {"@id": id_}

    def file(self, path: str, name: str, type_: str | list[str] = "File", **about: Any) -> Link:
        """Describe the file that lies at ``path`` in the crate."""
        file = _file_of(self.folder, path)
        about["sha256"], about["contentSize"] = digest(file), str(file.stat().st_size)
        kind = _KINDS.get(file.suffix, "application/octet-stream")
        return self.add(quote(path), type_, name=name, encodingFormat=kind, **about)

    def action(self, id_: str, **about: Any) -> Link:
        return self.add(id_, "CreateAction", actionStatus=COMPLETED, **about)

    def packages(self, versions: Mapping[str, str]) -> list[Link]:
        """Python and packages, each with its version."""
        return [self.package(*package) for package in sorted(versions.items())]

    def package(self, name: str, version: str) -> Link:
        project = f"https://pypi.org/project/{name}/{version}"
        url = f"https://www.python.org/#{version}" if name == "python" else project
        about = {"name": name, "softwareVersion": version, "url": {"@id": url}}
        return self.add(url, "SoftwareApplication", **about)


def _described(folder: Path, manifest: Mapping[str, Any], licence: str = "") -> dict[str, Any]:
    """The metadata file, entities in order of their ids below the two that come first."""
    crate, name = _Crate(folder), manifest["experiment"]
    origins = _kept_runs(folder, manifest)
    kept = [row for row in manifest["runs"] if row["run"] in origins]
    workflow = _workflow(crate, manifest)
    runs = [_run(crate, row, origins[row["run"]], workflow) for row in kept]
    inputs, measured = (
        [{"@id": quote(f"runs/{row['run']}/{file}")} for row in kept]
        for file in ("run.json", "manifest.json")
    )
    kind = {"additionalType": "File", "encodingFormat": "application/json"}
    crate.add(INPUT["@id"], "FormalParameter", name="run", workExample=inputs, **kind)
    crate.add(OUTPUT["@id"], "FormalParameter", name="measurements", workExample=measured, **kind)
    actions = [*runs, *_publication(crate, manifest, measured)]
    profiles = [
        crate.add(url, "CreativeWork", name=profile, version=version)
        for url, (profile, version) in PROFILES.items()
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Experiment {name}",
        "description": (
            f"{len(manifest['runs'])} runs of the experiment {name} of Tidebench with everything "
            "they were given, what was measured, the published tables and the checks they passed."
        ),
        "license": licence or NO_LICENCE,
        "datePublished": max(origin.measured_at for origin in origins.values()),
        "identifier": f"{name}, edition {manifest['edition']}",
        "conformsTo": profiles,
        "mainEntity": workflow,
        "mentions": actions,
        "hasPart": [
            {"@id": id_} for id_, about in sorted(crate.entities.items()) if "sha256" in about
        ],
    }
    metadata = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": [{"@id": RO_CRATE}, profiles[-1]],
    }
    graph = [metadata, root, *(about for _, about in sorted(crate.entities.items()))]
    # A list of one is its only value, as RO-Crate wants it.
    alone = [
        {key: value[0] if isinstance(value, list) and len(value) == 1 else value
         for key, value in entity.items()}
        for entity in graph
    ]  # fmt: skip
    return {"@context": [f"{RO_CRATE}/context", TERMS], "@graph": alone}


def _workflow(crate: _Crate, manifest: Mapping[str, Any]) -> Link:
    """The code that every run goes through."""
    url = "https://www.python.org/"
    about = {"name": "Python", "version": manifest["versions"]["python"], "url": {"@id": url}}
    python = crate.add(url, "ComputerLanguage", **about)
    stages, *pinned = (f"{KEPT_CODE}/{source.name}" for source in _kept_code())
    for path in pinned:
        crate.file(path, "Packages of the project, pinned")
    return crate.file(
        stages,
        "Stages of a run: provision, deploy, replay, windows, release",
        ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        description="The code that every run goes through, by Airflow or by command line.",
        version=manifest["git_commit"] or "unknown",
        programmingLanguage=python,
        softwareRequirements=crate.packages(manifest["versions"]),
        input=INPUT,
        output=OUTPUT,
    )


def _run(crate: _Crate, row: Mapping[str, Any], origin: Origin, workflow: Link) -> Link:
    """The action that measured a run."""
    run, by, home = row["run"], origin.by, f"runs/{row['run']}"
    kept = read_json(crate.folder / home / "manifest.json")
    requester = f"the DAG run {by.dag_run} of {by.dag_id}" if by.dag_id else "the command line"
    given = f"Everything run {run} was given, looked up"
    inputs = [
        crate.file(f"{home}/run.json", given, exampleOfWork=INPUT),
        *(
            crate.add(f"#{id_}-{row[name]}", "PropertyValue", name=name, value=row[name])
            for id_, name in (("seed", "seed"), ("spec", "spec_hash"))
        ),
    ]
    with_what = f"What run {run} measured, with what"
    results = [
        crate.file(f"{home}/manifest.json", with_what, exampleOfWork=OUTPUT),
        crate.file(f"{home}/arrivals.csv", f"Level of the arrivals of run {run} over time"),
        *(
            crate.file(
                part["path"], f"Measured: {part['rows']} rows of {part['path'].split('/')[1]}"
            )
            for part in kept["parts"]
        ),
    ]
    return crate.action(
        f"#measured-{run}",
        name=f"Measurement of run {run}",
        description=f"Asked for by {requester}, on the testbed {kept['testbed']}.",
        instrument=[workflow, _code(crate, home, kept["versions"])],
        object=inputs,
        result=results,
        endTime=origin.measured_at,
    )


def _code(crate: _Crate, home: str, versions: Mapping[str, str]) -> Link:
    """The code of Tidebench that measured a run, by the digest that is kept with it."""
    sha256 = read_json(crate.folder / home / "code.json")["sha256"]
    commit = versions.get("git_commit", "") or "unknown"
    packages = {name: version for name, version in versions.items() if name != "git_commit"}
    return crate.add(
        f"#code-{sha256}",
        "SoftwareApplication",
        name="Tidebench, the code that decides what is measured",
        softwareVersion=sha256,
        softwareRequirements=crate.packages(packages),
        description=f"Its version is the SHA-256 of the code; commit {commit}.",
    )


def _publication(
    crate: _Crate, manifest: Mapping[str, Any], measured: list[Link]
) -> Iterator[Link]:
    """The actions that came after: tables, checks, pages."""
    tables, pages = list[Link](), list[Link]()
    for name in sorted(manifest["sha256"]):
        files = tables if name.endswith(".parquet") else pages
        files.append(crate.file(f"published/{name}", f"Published: {Path(name).name}"))
    pages.append(crate.file("published/manifest.json", "What was published, with what"))
    checks = [
        crate.file(path.relative_to(crate.folder).as_posix(), f"Checks: {path.name}")
        for path in sorted(verdict_path(crate.folder).parent.rglob("*"))
        if path.is_file()
    ]
    for step, about, tool, inputs, made in (
        ("tables", "Spark SQL makes tables of the runs", "pyspark", measured, tables),
        ("checks", "The gate checks the tables", "great-expectations", tables, checks),
        ("publication", "Pages and texts are written", "python", [*tables, *checks], pages),
    ):
        package = crate.package(tool, manifest["versions"].get(tool, ""))
        made_by = {"name": step, "description": about, "instrument": package}
        yield crate.action(f"#{step}", **made_by, object=inputs, result=made)
