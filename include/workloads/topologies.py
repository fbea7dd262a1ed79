"""Parses topology files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from include.files.inputs import beside, beside_if_file, input_text
from include.files.plain_yaml import read_yaml
from include.model.errors import SpecError, unknown_name
from include.model.topology import Keyed, Operator, Source, Topology
from include.workloads.layered import NAMES, is_layered, layered
from include.workloads.tenants.shared import shared
from include.workloads.topology_file import (
    MISSPELLED,
    RunWith,
    TenantFile,
    TenantsFile,
    TopologyFile,
)

HERE = Path(__file__).parent
PATHS = {path.stem: path for path in sorted(HERE.glob("*/*.yaml"))}
"""Topologies of the project by name, each in the folder of its workload."""
SHARES_PER_CORE = 1024
MOST_SHOWN = 300
"""Characters of a wrong name or value in a message."""


def _based_on(raw: Any, ancestors: tuple[str, ...] = ()) -> Any:
    """Merge a file with the topology it names as ``based_on``.

    Overrides single fields of sources, operators, edges (identified by both ends) and run_with.
    Raises SpecError if the base is unknown or circular.
    """
    if not isinstance(raw, dict) or "based_on" not in raw:
        return raw
    base_name = str(raw["based_on"])
    if not _is_ours(base_name) or base_name in ancestors:
        bases = [name for name in topology_names() if name not in ancestors]
        problem = f"based_on: {unknown_name('topology', base_name, bases)}"
        model = TenantsFile if "tenants" in raw else TopologyFile
        raise SpecError("topology", [problem, *problems_without_base(model, raw)])
    merged = dict(_based_on(_plain(base_name), (*ancestors, base_name)))
    for key, value in raw.items():
        if key in ("sources", "operators") and isinstance(value, dict):
            base = merged.get(key, {})  # a base of tenants has none, and the schema says so
            changed = {
                k: {**base.get(k, {}), **(v or {})} if isinstance(v, dict | None) else v
                for k, v in value.items()
            }
            merged[key] = {**base, **changed}
        elif key == "edges" and isinstance(value, list):
            merged[key] = list(
                {_ends(edge): edge for edge in [*merged.get(key, []), *value]}.values()
            )
        elif key == "run_with" and isinstance(value, dict):
            merged[key] = {**merged.get(key, {}), **value}
        elif key != "based_on":
            merged[key] = value
    return merged


def _ends(edge: Any) -> str:
    """Written out, because a file may have anything there."""
    return repr((edge.get("from"), edge.get("to")) if isinstance(edge, dict) else edge)


@cache
def topology_names() -> tuple[str, ...]:
    """Names of the topologies that come with the project."""
    return tuple(sorted([*PATHS, *NAMES]))


def _is_ours(name: str) -> bool:
    return name in topology_names() or is_layered(name)


def _is_path(name_or_path: str) -> bool:
    return Path(name_or_path).suffix in (".yaml", ".yml")


def _path_of(name_or_path: str) -> Path:
    return Path(name_or_path) if _is_path(name_or_path) else PATHS[name_or_path]


def _plain(name_or_path: str) -> Any:
    """Plain values of a topology's file, or of a generated topology."""
    if is_layered(name_or_path):
        return layered(name_or_path)
    if not _is_path(name_or_path) and name_or_path not in PATHS:
        raise SpecError("topology", [unknown_name("topology", name_or_path, topology_names())])
    return read_yaml(input_text(_path_of(name_or_path), "topology"))


def load_topology(name_or_path: str, above: tuple[Path, ...] = ()) -> Topology:
    """A topology by name, or from a YAML file of the user's own; ``above`` are those whose tenants
    led to it.

    Raises SpecError with every problem of the file at once.
    """
    if not _is_path(name_or_path) and not _is_ours(name_or_path):
        hint = "For a topology of your own give the path of its .yaml file."
        raise SpecError(
            "topology", [f"{unknown_name('topology', name_or_path, topology_names())} {hint}"]
        )
    if is_layered(name_or_path):
        return _generated(name_or_path)
    path = _path_of(name_or_path)
    text = input_text(path, "topology")
    files = (*above, path)
    if path.resolve() in (file.resolve() for file in above):
        chain = " > ".join(file.name for file in files)
        problem = f"tenants name their own file ({chain}); name another topology there"
        raise SpecError("topology", [problem])
    return parse_topology(text, source=path.name, files=files)


def run_defaults(name_or_path: str) -> Mapping[str, Any]:
    """Defaults of a topology's runs, as fields of a spec; empty if the file cannot be read.

    Relative paths start where the file is.
    """
    try:
        raw = _based_on(_plain(name_or_path))
        parsed = RunWith.model_validate(raw.get("run_with", {}))
    except (OSError, SpecError, ValidationError, yaml.YAMLError, AttributeError):
        return {}  # loading the topology reports the problems
    defaults = parsed.model_dump(exclude_none=True)
    return _located(defaults, Path(name_or_path)) if _is_path(name_or_path) else defaults


def _located(defaults: dict[str, Any], file: Path) -> dict[str, Any]:
    for pattern in defaults.get("patterns", ()):
        if isinstance(pattern, dict) and "path" in pattern:
            path = pattern["path"]
            swept = path["sweep"] if isinstance(path, dict) and "sweep" in path else None
            pattern["path"] = (
                {**path, "sweep": [beside(file, str(one)) for one in swept]}
                if isinstance(swept, list)
                else beside(file, str(path))
            )
    if "calibration" in defaults:
        defaults["calibration"] = beside_if_file(file, defaults["calibration"])
    if "price_books" in defaults:
        defaults["price_books"] = [beside_if_file(file, one) for one in defaults["price_books"]]
    return defaults


@lru_cache(maxsize=64)
def parse_topology(text: str, *, source: str, files: tuple[Path, ...] = ()) -> Topology:
    """A topology from YAML text. Raises SpecError with every problem at once.

    ``files`` end with that of the text; what its tenants name is beside it. Cached, because every
    run of a matrix reads the same few topologies.
    """
    try:
        return _parsed(read_yaml(text), source, files)
    except yaml.YAMLError as error:
        raise SpecError(source, [f"not readable as YAML: {error}"]) from error


@lru_cache(maxsize=8)
def _generated(name: str) -> Topology:
    return _parsed(layered(name), name, ())


def _parsed(raw: Any, source: str, files: tuple[Path, ...]) -> Topology:
    if raw is None:
        raise SpecError(source, [f"{source} is empty; write a topology (docs/adding.md has one)"])
    if not isinstance(raw, dict):
        raise SpecError(source, [f"{source} has no fields; write name: mine, and what follows it"])
    problems: list[str] = []
    try:
        raw = _based_on(raw)
        if isinstance(raw, dict) and "tenants" in raw:
            parsed = TenantsFile.model_validate(raw)
            for tenant in parsed.tenants:
                if files and "path" in tenant.arrivals:
                    tenant.arrivals["path"] = beside(files[-1], str(tenant.arrivals["path"]))
            topology = shared(parsed, partial(_of_one_tenant, files))
        else:
            topology = _single(TopologyFile.model_validate(raw))
    except ValidationError as error:
        problems = validation_problems(error)
        if "tenants" in raw:
            raise SpecError(source, problems) from error
        problems += _problems_of_the_rest(raw, error)
    else:
        problems = list(topology.problems())
    if problems:
        raise SpecError(source, problems)
    return topology


def _problems_of_the_rest(raw: dict[str, Any], error: ValidationError) -> list[str]:
    """Problems of the graph, where what could not be read has a value that is in order."""
    whole: dict[str, Any] = {**_STAND_IN, **raw}
    gone: set[int] = set()
    for field, *inside in (problem["loc"] for problem in error.errors(include_url=False)):
        if field in ("sources", "operators") and inside and isinstance(whole[field], dict):
            name, parts = inside[0], whole[field]
            part = parts.get(name) if isinstance(parts.get(name), dict) else {}
            gone_too = "keyed" if "stateful" in inside else ""  # which needs it
            kept = {key: part[key] for key in part if key not in (*inside, gone_too)}
            whole[str(field)] = {**parts, name: {**_STAND_INS[str(field)], **kept}}
        elif field == "edges" and inside:
            gone.add(int(inside[0]))
        elif field in _STAND_IN:
            whole[str(field)] = _STAND_IN[str(field)]
        else:
            whole.pop(str(field), None)
    if gone:
        whole["edges"] = [edge for i, edge in enumerate(whole["edges"]) if i not in gone]
    try:
        topology = _single(TopologyFile.model_validate(whole))
    except ValidationError:
        return []
    loose = ("receives nothing", "feeds nothing") if gone else ()
    return [
        problem for problem in topology.problems() if not any(words in problem for words in loose)
    ]


_STAND_IN: Mapping[str, Any] = {
    "name": "topology",
    "emission_period_s": 1.0,
    "sources": {},
    "operators": {},
    "edges": [],
}
_STAND_INS: Mapping[str, Any] = {
    "sources": {"label": "", "items_per_level": 1},
    "operators": {"label": "", "slo_ms": 1, "cpu_shares": 1, "memory_mb": 1},
}
"""Of what could not be read, so that the rest can be checked."""


def _of_one_tenant(files: tuple[Path, ...], tenant: TenantFile) -> Topology:
    """The topology of a tenant, with the tenant's changes of operators."""
    if not tenant.operators:
        name = tenant.topology
        if files and name.endswith((".yaml", ".yml")):
            name = str(files[-1].parent / name)
        return load_topology(name, files)
    changed = _based_on({"based_on": tenant.topology, "operators": tenant.operators})
    if "tenants" in changed:
        problem = f"{tenant.topology} has tenants of its own; name one with operators, or leave"
        raise SpecError("topology", [f"tenant {tenant.name}: {problem} operators out"])
    return _single(TopologyFile.model_validate(changed))


def _single(parsed: TopologyFile) -> Topology:
    return Topology(
        name=parsed.name,
        level_unit=parsed.level_unit,
        emission_period_s=parsed.emission_period_s,
        operators=tuple(
            Operator(
                name=name,
                cpu_cores=op.cpu_shares / SHARES_PER_CORE,
                instances_at_start=op.instances,
                keyed=Keyed(**op.keyed.model_dump()) if op.keyed else None,
                **op.model_dump(exclude={"cpu_shares", "instances", "keyed"}),
            )
            for name, op in parsed.operators.items()
        ),
        sources=tuple(
            Source(name=name, **source_.model_dump()) for name, source_ in parsed.sources.items()
        ),
        edges=tuple(edge.edge() for edge in parsed.edges),
    )


def validation_problems(error: ValidationError, *, without_base: bool = False) -> list[str]:
    """Sentence for each pydantic error: the field, the problem, the value. What is missing
    ``without_base`` may be in the base, unless it is of a list, which no base completes."""
    return [
        complaint(item, ".".join(str(part) for part in item["loc"]) or "the file")
        for item in error.errors(include_url=False)
        if not without_base
        or item["type"] != "missing"
        or any(isinstance(part, int) for part in item["loc"])
    ]


def problems_without_base(model: Any, raw: Mapping[Any, Any]) -> list[str]:
    """What else is wrong with a file that names a base which is not there."""
    own = {name: value for name, value in raw.items() if name != "based_on"}
    try:
        model.model_validate(own)
    except ValidationError as error:
        return validation_problems(error, without_base=True)
    return []


def complaint(item: Mapping[str, Any], where: str) -> str:
    """Sentence for a pydantic error in the field ``where``."""
    where = _short(where)
    if item["type"] == "extra_forbidden":
        return f"{where}: unknown field; remove it or correct its spelling"
    if item["type"] == MISSPELLED:
        return f"{where}: unknown field; did you mean {item['ctx']['closest']}?"
    if item["type"] == "missing":
        return f"{where}: missing; add it"
    if item["type"] == "too_short":
        return f"{where}: is empty; give at least one value"
    if item["type"] == "value_error":
        return f"{where}: {_short(str(item['ctx']['error']))}"
    value = item.get("input")
    if value is None:
        return f"{where}: is empty; give a value, or remove the field"
    if item["type"] == "string_type" and isinstance(value, int | float):
        return f"{where}: must be a text; put it in quotes if it is one, got {_short(repr(value))}"
    if item["type"] == "tuple_type":
        return f"{where}: write a list, such as [30, 60], got {_short(repr(value))}"
    shown = "" if isinstance(value, dict | list) else f", got {_short(repr(value))}"
    return f"{where}: {item['msg'][:1].lower()}{item['msg'][1:]}{shown}"


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
