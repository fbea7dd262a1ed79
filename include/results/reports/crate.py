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
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from include.files.whole import digest, json_bytes, new_file, read_json, write_bytes
from include.model.errors import PublishError, SpecError, command
from include.results.quality.verdict import verdict_path
from include.results.reports.database import origins_of
from include.results.reports.integrity import changes, published_manifest, require_outside
from include.results.tables.staged import KEPT
from include.runs.measurements.origin import Origin

if TYPE_CHECKING:
    from rocrate.model import ContextEntity, File
    from rocrate.rocrate import ROCrate

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
_RO_CRATE = "1.1"
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
    write_bytes(folder / METADATA, json_bytes(_Description(folder, manifest).to_json()))
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
    described = _Description(folder, manifest, licence).to_json()
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
    from include.runs.measurements.store import RunStore

    for row in manifest["runs"]:
        store = RunStore(folder, folder.name, row["run"])
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
    from include.runs.measurements.store import RunStore

    stores = [RunStore(folder, folder.name, row["run"]) for row in manifest["runs"]]
    kept = [store.run_id for store in stores if _is_kept(store)]
    return {origin.run: origin for origin in origins_of(folder, kept)}


def _is_kept(store: RunStore) -> bool:
    """Whether all that the crate says of a run is there; earlier versions kept no code.json."""
    return all((store.home / name).is_file() for name in KEPT if name != "code.json")


def _kept_code() -> list[Path]:
    """The code that every run goes through, and which packages are pinned where they are."""
    pinned = _REPOSITORY / "requirements.txt"
    stages = _REPOSITORY / "include" / "runs" / "stages.py"
    return [stages, *([pinned] if pinned.is_file() else [])]


class _Description:
    """Entities of one crate, added in a fixed order."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], licence: str = "") -> None:
        from rocrate.rocrate import ROCrate

        self.folder = folder
        self.manifest = manifest
        self.crate: ROCrate = ROCrate(version=_RO_CRATE)
        self.runs = [row["run"] for row in manifest["runs"]]
        self.origins = _kept_runs(folder, manifest)
        self.entities: dict[str, Any] = {}
        """Entities by id: the library looks through all of them for one that is not there."""
        self._root(licence)
        self.workflow = self._workflow()
        kept = [row for row in manifest["runs"] if row["run"] in self.origins]
        runs = [self._run(row) for row in kept]
        inputs, measured = (
            [self.entities[f"runs/{row['run']}/{name}"] for row in kept]
            for name in ("run.json", "manifest.json")
        )
        self._parameters(inputs, measured)
        actions = [*runs, *self._publication(measured)]
        self.crate.root_dataset["mentions"] = actions

    def to_json(self) -> dict[str, Any]:
        """The metadata file, entities in order of their ids below the two that come first."""
        content: dict[str, Any] = self.crate.metadata.generate()
        for entity in content["@graph"]:
            entity.update((name, _alone(value)) for name, value in entity.items())
        by_id = {entity["@id"]: entity for entity in content["@graph"]}
        metadata, root = by_id.pop(METADATA), by_id.pop("./")
        root["hasPart"].sort(key=itemgetter("@id"))
        content["@graph"] = [metadata, root, *sorted(by_id.values(), key=itemgetter("@id"))]
        return content

    def _root(self, licence: str) -> None:
        name, crate = self.manifest["experiment"], self.crate
        crate.metadata.extra_contexts.append(TERMS)
        crate.name = f"Experiment {name}"
        crate.description = (
            f"{len(self.runs)} runs of the experiment {name} of Tidebench with everything they "
            "were given, what was measured, the published tables and the checks they passed."
        )
        crate.license = licence or NO_LICENCE
        crate.datePublished = datetime.fromisoformat(
            max(origin.measured_at for origin in self.origins.values())
        )
        crate.root_dataset["identifier"] = f"{name}, edition {self.manifest['edition']}"
        crate.root_dataset["conformsTo"] = [
            self._context(url, "CreativeWork", name=profile, version=version)
            for url, (profile, version) in PROFILES.items()
        ]

    def _workflow(self) -> File:
        from rocrate.model.computerlanguage import ComputerLanguage

        python = self.crate.add(
            ComputerLanguage(
                self.crate,
                identifier="https://www.python.org/",
                properties={
                    "name": "Python", "version": self.manifest["versions"]["python"],
                    "url": {"@id": "https://www.python.org/"},
                },
            )
        )  # fmt: skip
        stages, *pinned = (f"{KEPT_CODE}/{source.name}" for source in _kept_code())
        about = {
            "name": "Stages of a run: provision, deploy, replay, windows, release",
            "description": "The code that every run goes through, by Airflow or by command line.",
            "version": self.manifest["git_commit"] or "unknown",
            **self._of_file(stages),
        }
        workflow = self.crate.add_workflow(
            _file_of(self.folder, stages), stages, main=True, lang=python, properties=about
        )
        workflow["softwareRequirements"] = [
            self._package(*package) for package in sorted(self.manifest["versions"].items())
        ]
        for path in pinned:
            self._file(path, "Packages of the project, pinned")
        return workflow

    def _run(self, row: Mapping[str, Any]) -> ContextEntity:
        run, origin = row["run"], self.origins[row["run"]]
        kept = read_json(self.folder / "runs" / run / "manifest.json")
        home, by = f"runs/{run}", origin.by
        inputs = self._file(f"{home}/run.json", f"Everything run {run} was given, looked up")
        seed = self._value(f"#seed-{row['seed']}", "seed", row["seed"])
        spec_hash = self._value(f"#spec-{row['spec_hash']}", "spec_hash", row["spec_hash"])
        results = [
            self._file(f"{home}/manifest.json", f"What run {run} measured, with what"),
            self._file(f"{home}/arrivals.csv", f"Level of the arrivals of run {run} over time"),
            *(self._part(part) for part in kept["parts"]),
        ]
        requester = f"the DAG run {by.dag_run} of {by.dag_id}" if by.dag_id else "the command line"
        return self._context(
            f"#measured-{run}",
            "CreateAction",
            name=f"Measurement of run {run}",
            description=f"Asked for by {requester}, on the testbed {kept['testbed']}.",
            instrument=[self.workflow, self._code(run, kept["versions"])],
            object=[inputs, seed, spec_hash],
            result=results,
            endTime=origin.measured_at,
            actionStatus="http://schema.org/CompletedActionStatus",
        )

    def _code(self, run: str, versions: Mapping[str, str]) -> ContextEntity:
        """The code of Tidebench that measured a run, by the digest that is kept with it."""
        mark = self.folder / "runs" / run / "code.json"  # earlier versions kept none
        sha256 = read_json(mark)["sha256"] if mark.is_file() else "unknown"
        commit = versions.get("git_commit", "")
        needs = [
            self._package(*package)
            for package in sorted(versions.items())
            if package[0] != "git_commit"
        ]
        return self._context(
            f"#code-{sha256}",
            "SoftwareApplication",
            name="Tidebench, the code that decides what is measured",
            softwareVersion=sha256,
            softwareRequirements=needs,
            description=f"Its version is the SHA-256 of the code; commit {commit or 'unknown'}.",
        )

    def _parameters(self, inputs: list[File], measured: list[File]) -> None:
        """What goes into the workflow and comes out of it, with the files of all runs."""
        for side, name, files in (("input", "run", inputs), ("output", "measurements", measured)):
            parameter = self._context(
                f"#{side}-{name}",
                "FormalParameter",
                name=name,
                additionalType="File",
                encodingFormat="application/json",
                workExample=files,
            )
            for file in files:
                file["exampleOfWork"] = parameter
            self.workflow[side] = [parameter]

    def _publication(self, measured: list[File]) -> list[ContextEntity]:
        """The actions that came after: tables, checks, pages."""
        versions = self.manifest["versions"]
        names = [f"published/{name}" for name in sorted(self.manifest["sha256"])]
        published = {name: self._file(name, f"Published: {Path(name).name}") for name in names}
        tables = [file for name, file in published.items() if name.endswith(".parquet")]
        pages = [file for name, file in published.items() if not name.endswith(".parquet")]
        pages.append(self._file("published/manifest.json", "What was published, with what"))
        docs = verdict_path(self.folder).parent
        checks = [
            self._file(path.relative_to(self.folder).as_posix(), f"Checks: {path.name}")
            for path in sorted(docs.rglob("*"))
            if path.is_file()
        ]
        steps = (
            ("tables", "Spark SQL makes tables of the runs", "pyspark", measured, tables),
            ("checks", "The gate checks the tables", "great-expectations", tables, checks),
            ("publication", "Pages and texts are written", "python", [*tables, *checks], pages),
        )
        return [
            self._context(
                f"#{step}",
                "CreateAction",
                name=step,
                description=name,
                instrument=self._package(tool, versions.get(tool, "")),
                object=inputs,
                result=made,
                actionStatus="http://schema.org/CompletedActionStatus",
            )
            for step, name, tool, inputs, made in steps
        ]

    def _package(self, name: str, version: str) -> ContextEntity:
        project = f"https://pypi.org/project/{name}/{version}"
        url = f"https://www.python.org/#{version}" if name == "python" else project
        return self._context(
            url, "SoftwareApplication", name=name, softwareVersion=version, url={"@id": url}
        )

    def _part(self, part: Mapping[str, Any]) -> File:
        table = part["path"].split("/")[1]
        return self._file(part["path"], f"Measured: {part['rows']} rows of {table}")

    def _value(self, id_: str, name: str, value: Any) -> ContextEntity:
        return self._context(id_, "PropertyValue", name=name, value=value)

    def _file(self, path: str, name: str) -> File:
        if path not in self.entities:
            about = {"name": name, **self._of_file(path)}
            file = self.crate.add_file(_file_of(self.folder, path), path, properties=about)
            self.entities[path] = file
        return self.entities[path]

    def _of_file(self, path: str) -> dict[str, Any]:
        file = _file_of(self.folder, path)
        kind = _KINDS.get(file.suffix, "application/octet-stream")
        size = str(file.stat().st_size)
        return {"sha256": digest(file), "contentSize": size, "encodingFormat": kind}

    def _context(self, id_: str, type_: str, **properties: Any) -> ContextEntity:
        """An entity that is no file; the same id is the same entity."""
        from rocrate.model import ContextEntity

        if id_ not in self.entities:
            entity = ContextEntity(self.crate, id_, {"@type": type_, **properties})
            self.entities[id_] = self.crate.add(entity)
        return self.entities[id_]


def _alone(value: Any) -> Any:
    """A list of one as its only value, as RO-Crate wants it."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value
