"""What a spec asks for: every run of its product, or every problem at once.

Its shapes: fields, kinds of values, what is listed twice, how many runs. And the names: topologies,
controllers, patterns and all that has to be looked up for a run. A field of a wrong shape hides
only its own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from include.experiment.form_lines import MOST_RUNS
from include.experiment.levels import seed_problems
from include.experiment.problems import problems_by_field
from include.experiment.size import size_problems
from include.experiment.spec import AXES, ExperimentSpec, RunSpec, located
from include.experiment.variant import pattern_variant_of, variant_of
from include.files.plain_yaml import input_yaml
from include.model.errors import Problem, SpecError
from include.workloads.topologies import complaint, load_topology

MOST_NAMED = 4
"""How many runs a problem names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The runs of a spec; or its problems, with at most one run of each kind."""

    runs: Sequence[RunSpec]
    problems: Sequence[Problem]

    def or_error(self, source: str, fields: Iterable[str] = ()) -> list[RunSpec]:
        """The runs. Raises SpecError with each problem once, in the order of ``fields``."""
        if not self.problems:
            return list(self.runs)
        places = {field: place for place, field in enumerate(fields)}
        ordered = sorted(self.problems, key=lambda problem: places.get(problem.field, len(places)))
        raise SpecError(source, dict.fromkeys(problem.text for problem in ordered))


def runs_in_file(path: Path) -> list[RunSpec]:
    """Every run of a YAML file. Raises SpecError with every problem in the file's order."""
    raw = input_yaml(path, "spec")
    matrix = matrix_of(raw, most=MOST_RUNS, path=path)
    return matrix.or_error(path.name, raw if isinstance(raw, Mapping) else ())


def matrix_of(
    raw: Any, *, most: int, called: Mapping[str, str] | None = None, path: Path | None = None
) -> Matrix:
    """The runs that plain values ask for; at most so many, counted before anything is looked up.

    ``called`` are names that fields of the spec have in a form, where each is one value; with
    the ``path`` of a file what it names is looked for beside it.
    """
    if not isinstance(raw, Mapping):
        text = "the file: write fields with their values, such as name: mine"
        return Matrix([], [Problem("", f"{text}; see include/experiment/specs for examples")])
    spec, shapes = _shaped(raw, called or {})
    if spec is None:
        return Matrix([], shapes)
    listed = list(spec.problems())
    if spec.runs > most:
        return Matrix([], [*shapes, *listed, _too_many(spec, most)])
    spec = spec if path is None else located(spec, path)
    kinds, problems = _kinds_with_problems(spec, most, runs_named=not (shapes or listed))
    wrong = {problem.field for problem in shapes}
    problems = [problem for problem in problems if problem.field not in wrong]
    if shapes or listed:
        return Matrix([], [*shapes, *listed, *problems])
    problems = problems or [Problem("", text) for text in _twice(kinds)]
    if problems:
        return Matrix(kinds, problems)
    points = list(spec.points())
    return Matrix(points, [Problem("", t) for t in (*_of_one_id(points), *size_problems(points))])


def _shaped(
    raw: Mapping[Any, Any], called: Mapping[str, str]
) -> tuple[ExperimentSpec | None, list[Problem]]:
    """The spec, without fields of a wrong shape, and what is wrong with these."""
    try:
        return ExperimentSpec.model_validate(raw), []
    except ValidationError as error:
        problems = list(_shape_problems(error, called))
    wrong = {problem.field for problem in problems}
    rest = {field: value for field, value in raw.items() if str(field) not in wrong}
    try:
        return ExperimentSpec.model_validate(_STAND_INS | rest), problems
    except ValidationError:
        return None, problems


_STAND_INS = {"name": "mine", "controllers": "fixed", "patterns": "constant"}
"""Of fields that a spec needs, so that its other names can be looked up."""


def _shape_problems(error: ValidationError, called: Mapping[str, str]) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        field, *inside = (str(part) for part in item["loc"])
        where = [called[field]] if field in called else [field, *inside]
        yield Problem(field, complaint(item, ".".join(where)))


def _too_many(spec: ExperimentSpec, most: int) -> Problem:
    sizes = {axis: len(getattr(spec, axis) or [0]) for axis in AXES if axis != "price_books"}
    factors = " x ".join(f"{size} {axis}" for axis, size in sizes.items() if size > 1)
    return Problem(
        max(sizes, key=lambda axis: sizes[axis]),
        f"these are {spec.runs} runs ({factors}), and there may be {most} at once; take some "
        "values out, or make several experiments of them",
    )


def _kinds_with_problems(
    spec: ExperimentSpec, most: int, *, runs_named: bool
) -> tuple[list[RunSpec], list[Problem]]:
    """One run of each kind, and problems, which end with the runs that have them where all have
    their names. Runs that differ in the seed are of one kind."""
    one_seed = spec.model_copy(update={"seeds": spec.seeds[:1]})
    kinds: list[RunSpec] = []
    affected_by: dict[Problem, list[RunSpec]] = {}
    problems: list[Problem] = []
    for topology in one_seed.topology:
        try:
            of_topology = list(islice(one_seed.points_on(topology), most + 1))
        except SpecError as error:
            problems += [Problem("patterns", text) for text in error.problems]
            continue
        kinds += of_topology
        if len(kinds) * len(spec.seeds) > most:
            text = f"these are more than the {most} runs that there may be at once, with what "
            return [], [Problem("topology", f"{text}run_with of their topologies lists")]
        for kind in of_topology:
            for problem in dict.fromkeys(problems_by_field(kind)):
                affected_by.setdefault(problem, []).append(kind)
    problems += [Problem("topology", text) for text in _namesakes(one_seed.topology)]
    # A trace may lack the day of a seed.
    loads = {f"{kind.pattern} {kind.pattern_options}": kind for kind in kinds}
    for kind in loads.values():
        others = (replace(kind, seed=seed) for seed in spec.seeds[1:])
        of_seeds = [Problem("seeds", text) for other in others for text in seed_problems(other)]
        problems += of_seeds[:3]
        if len(of_seeds) > 3:
            text = f"pattern {kind.pattern}: the same of {len(of_seeds) - 3} more seeds"
            problems.append(Problem("seeds", text))
    problems += [
        Problem(problem.field, problem.text + _whose(affected, len(kinds), spec.seeds))
        if runs_named
        else problem
        for problem, affected in affected_by.items()
    ]
    return kinds, problems


def _namesakes(topologies: Iterable[str]) -> Iterator[str]:
    """Topologies that tables would take for one."""
    called: dict[str, list[str]] = {}
    for topology in dict.fromkeys(topologies):
        with suppress(SpecError):  # told as a problem of its runs
            called.setdefault(load_topology(topology).name, []).append(topology)
    for name, files in called.items():
        if len(files) > 1:
            yield f"topology: {' and '.join(files)} are both called {name}; rename one"


def _twice(kinds: Iterable[RunSpec]) -> Iterator[str]:
    """Runs that tables would take for one: files are known by their names, options by values."""
    first: dict[str, RunSpec] = {}
    twice = []
    for kind in kinds:
        earlier = first.setdefault(_as_in_tables(kind), kind)
        if earlier is not kind:
            twice.append((earlier, kind))
    for earlier, kind in twice[:1]:
        options = [
            f"{getattr(earlier, name)} and {getattr(kind, name)}"
            for name in ("controller_options", "pattern_options")
            if str(getattr(earlier, name)) != str(getattr(kind, name))
        ]
        why = f" to tables ({'; '.join(options)})" if options else ""
        more = f", as are {len(twice) - 1} more" if len(twice) > 1 else ""
        yield (
            f"{earlier.run_id} and {kind.run_id} are the same run{why}{more}; list it once, in the "
            "spec and in run_with of its topology, or rename a file"
        )


def _of_one_id(points: Iterable[RunSpec]) -> Iterator[str]:
    """Runs that would share a folder: of thousands, some digests begin alike."""
    first: dict[str, RunSpec] = {}
    for point in points:
        earlier = first.setdefault(point.run_id, point)
        if earlier is not point:
            values = [(getattr(earlier, f.name), getattr(point, f.name)) for f in fields(RunSpec)]
            differ = "; ".join(f"{one} and {other}" for one, other in values if one != other)
            yield (
                f"two runs have the id {point.run_id} by chance ({differ}); put one of them into "
                "an experiment of another name"
            )


def _as_in_tables(kind: RunSpec) -> str:
    others = replace(kind, controller_options={}, pattern_options={})
    return repr((others, variant_of(kind), pattern_variant_of(kind)))


def _whose(affected: Sequence[RunSpec], kinds: int, seeds: Sequence[int]) -> str:
    """Which runs have a problem, unless all have."""
    if len(affected) == kinds:
        return ""
    runs = (replace(kind, seed=seed).run_id for kind in affected for seed in seeds)
    named, count = ", ".join(islice(runs, MOST_NAMED)), len(affected) * len(seeds)
    more = f" and {count - MOST_NAMED}" if count > MOST_NAMED else ""
    return f" ({named}{more} of {kinds * len(seeds)} runs)"
