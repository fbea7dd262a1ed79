"""What is asked for, looked through in one pass: the runs, or every problem at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from include.experiment.axes import as_list, swept_options, those_that_unfold
from include.experiment.lines import MOST_RUNS
from include.experiment.problems import found_in
from include.experiment.spec import AXES, Choice, ExperimentSpec, RunSpec, located, read_spec
from include.model.errors import Problem, SpecError
from include.workloads.topologies import complaint, load_topology

NAMED = 4
"""How many runs a problem names; the others are counted."""
LOOKED_AT = 100
"""How many kinds of runs are looked at where there are too many."""
_STAND_INS: Mapping[str, Any] = {
    "name": "experiment",
    "controllers": ["fixed"],
    "patterns": ["constant"],
}
"""What a field without a default has while the others are looked through."""
_UNFOLDED = ("controllers", "patterns")
_LISTS = {**AXES, "advisors": as_list}
"""Fields of which one value may be wrong and the others right."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The runs, and the problems. With problems the runs are some of each kind, not all."""

    runs: Sequence[RunSpec]
    problems: Sequence[Problem]

    def or_error(self, source: str, fields: Iterable[str] = ()) -> list[RunSpec]:
        """The runs. Raises SpecError with each problem once, in the order of ``fields``."""
        if not self.problems:
            return list(self.runs)
        places = {field: place for place, field in enumerate(fields)}
        ordered = sorted(self.problems, key=lambda one: places.get(one.field, len(places)))
        raise SpecError(source, dict.fromkeys(problem.text for problem in ordered))


def runs_in_file(path: Path, most: int = MOST_RUNS, source: str = "") -> list[RunSpec]:
    """Every run of a YAML file. Raises SpecError with every problem in the file's order."""
    raw = read_spec(path)
    asked = look_through(raw, most=most, path=path)
    return asked.or_error(source or path.name, raw if isinstance(raw, Mapping) else ())


def look_through(
    raw: Any, *, most: int, called: Mapping[str, str] | None = None, path: Path | None = None
) -> Asked:
    """What plain values ask for; at most so many runs, counted before anything is looked up.

    ``called`` are names that fields of the spec have in a form, where each is one value; with
    the ``path`` of a file what it names is looked for beside it.
    """
    if not isinstance(raw, Mapping):
        text = "the file: write fields with their values, such as name: mine"
        return Asked([], [Problem("", f"{text}; see include/experiment/specs for examples")])
    reading = _ReadSpec.of(raw, called or {})
    spec = reading.spec if path is None else located(reading.spec, path)
    problems = [*reading.problems]
    problems += [one for one in spec.problems() if one.field not in reading.unread]
    if spec.runs > most:
        problems.append(_too_many(spec, most))
    kinds, found = _looked_up(spec, reading.unread, in_full=spec.runs <= most)
    problems += found
    if problems:
        return Asked(kinds, problems)
    return Asked(list(spec.points()), [])


@dataclass(frozen=True, slots=True)
class _ReadSpec:
    """A spec of all that can be read, and what is wrong with the rest."""

    spec: ExperimentSpec
    problems: Sequence[Problem]
    unread: Collection[str]

    @classmethod
    def of(cls, raw: Mapping[str, Any], called: Mapping[str, str]) -> _ReadSpec:
        """Read; what is wrong is told, taken away, and the rest read again."""
        given, problems, unread = dict(raw), list[Problem](), set[str]()
        while True:
            try:
                return cls(ExperimentSpec.model_validate(given), problems, unread)
            except ValidationError as error:
                items = error.errors(include_url=False)
            for item in items:
                field, *inside = (str(part) for part in item["loc"])
                where = [called[field]] if field in called else [field, *inside]
                problems.append(Problem(field, complaint(item, ".".join(where))))
            before = dict(given)
            unread |= _take_away([item["loc"] for item in items], given)
            if given == before:  # what nobody can take away would be told for ever
                raise SpecError("the spec", [problem.text for problem in problems])


def _take_away(places: Iterable[tuple[int | str, ...]], given: dict[str, Any]) -> set[str]:
    """Take away what stands at these places; returns the fields that nothing is left of."""
    of_axes: dict[str, set[int]] = {}
    for field, *inside in ((str(first), *rest) for first, *rest in places):
        wrong = of_axes.setdefault(str(field), set())
        wrong |= {one for one in inside[:1] if isinstance(one, int)}
    unread = {"without"} if of_axes.keys() & {"topology", "controllers"} else set()
    for field, wrong in of_axes.items():
        values = given.pop(field, None)
        left: list[Any] = []
        if field in _LISTS and wrong:
            left = [one for place, one in enumerate(_LISTS[field](values)) if place not in wrong]
        elif field in _UNFOLDED and values is not None:
            left = those_that_unfold(values)  # a sweep without values is all that is wrong
        elif field == "advisors":
            left = [one for one in as_list(values) if not swept_options(one)]
        if left:
            given[field] = left
        else:
            unread.add(field)
            given |= {name: _STAND_INS[name] for name in _STAND_INS.keys() & {field}}
    return unread


def _too_many(spec: ExperimentSpec, most: int) -> Problem:
    sizes = {axis: len(getattr(spec, axis) or [0]) for axis in AXES if axis != "price_books"}
    factors = " x ".join(f"{size} {axis}" for axis, size in sizes.items() if size > 1)
    return Problem(
        max(sizes, key=lambda axis: sizes[axis]),
        f"these are {spec.runs} runs ({factors}), and there may be {most} at once; take some "
        "values out, or make several experiments of them",
    )


def _looked_up(
    spec: ExperimentSpec, unread: Collection[str], *, in_full: bool
) -> tuple[list[RunSpec], list[Problem]]:
    """One run of each kind, and what is wrong with them. Seeds differ in nothing to look up."""
    kinds: list[RunSpec] = []
    having: dict[Problem, list[RunSpec]] = {}
    for kind, problems in islice(_kinds(spec, unread, in_full), None if in_full else LOOKED_AT):
        kinds.append(kind)
        for problem in dict.fromkeys(problems):
            having.setdefault(problem, []).append(kind)
    return kinds, [
        Problem(one.field, one.text + _whose(those, len(kinds), spec.seeds) * in_full)
        for one, those in having.items()
    ]


def _kinds(
    spec: ExperimentSpec, unread: Collection[str], in_full: bool
) -> Iterator[tuple[RunSpec, list[Problem]]]:
    """Runs with what is wrong with them: all that differ in more than the seed, or else some."""
    few = {axis: (getattr(spec, axis) or [])[:LOOKED_AT] or None for axis in AXES}
    one_seed = spec.model_copy(update=({} if in_full else few) | {"seeds": spec.seeds[:1]})
    combine = product if in_full else _side_by_side
    for topology in one_seed.topology:
        told, skipped, readable = list[Problem](), unread, one_seed
        try:
            next(one_seed.points_on(topology), None)
        except SpecError as error:
            told, skipped = (
                [Problem("patterns", one) for one in error.problems],
                {*unread, "patterns"},
            )
            readable = one_seed.model_copy(update={"patterns": [Choice("constant", {})]})
            if not _is_there(topology):  # its patterns would be in its file
                told = []
        for kind in readable.points_on(topology, combine):
            yield kind, [*told, *found_in(kind, skipped)]


def _is_there(topology: str) -> bool:
    try:
        load_topology(topology)
    except SpecError:
        return False
    return True


def _side_by_side(*axes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Every value of every axis in at least one row; short axes begin again."""
    return islice(zip(*map(cycle, axes), strict=False), max(map(len, axes)))


def _whose(having: Sequence[RunSpec], kinds: int, seeds: Sequence[int]) -> str:
    """Which runs have a problem, unless all have."""
    if len(having) == kinds:
        return ""
    runs = (replace(kind, seed=seed).run_id for kind in having for seed in seeds)
    named, count = ", ".join(islice(runs, NAMED)), len(having) * len(seeds)
    more = f" and {count - NAMED}" if count > NAMED else ""
    return f" ({named}{more} of {kinds * len(seeds)} runs)"
