"""Which column or series a signal is read from, and in which unit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from include.model.errors import SpecError, unknown_name
from include.workloads.recordings.recording import SIGNALS
from include.workloads.recordings.units import (
    NEEDS_UNIT,
    TOTAL,
    UNITS,
    known_units,
    stem_and_unit,
    unit_named,
)

TIME = "time"
MOST_NAMED = 20
ALIASES: Mapping[str, str] = {TIME: TIME} | {alias: name for name, alias in SIGNALS.items()}
_SHORT = {signal: alias for alias, signal in ALIASES.items()}

_OBVIOUS = {
    TIME: r"@?(time|times|timestamp|time_?stamp|date|date_?time|ts|t|elapsed|__index_level_0__)",
    "arrivals_per_s": r"(arrivals?|offered)(_rate|_load)?|requests|incoming(_records)?",
    "rate_per_s": r"(records_)?throughput(_(records|items|messages))?|rate|(records_)?processed"
    r"|records|processing_rate",
    "lag_items": r"(consumer_)?lag|backlog|waiting(_items)?|queue_(length|depth)|pending",
    "latency_s": r"((end_to_end|e2e|application)_)?latency(_(mean|avg|p\d+))?",
    "cpu_share": r"cpu(_(load|usage|share|utili[sz]ation))?",
    "instances": r"(number_of_)?(instances|task_?managers|replicas|parallelism|pods|workers)",
    "desired_instances": r"(desired|wanted|target)_(instances|task_?managers|replicas|parallelism)",
}
"""Names, without their unit, that say what they are."""

_ENTRY = re.compile(r"\s*([A-Za-z_]+)\s*=")
_UNIT = re.compile(r"(.+)@([A-Za-z_%]+)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reads:
    """That a signal (or the time) is read from a column or series, in a unit.

    ``unit`` is empty where nothing says it; ``asked`` when the user named the column.
    """

    signal: str
    column: str
    unit: str
    asked: bool

    def __str__(self) -> str:
        return f"{_SHORT[self.signal]}={self.column}" + (f"@{self.unit}" if self.unit else "")


def parse_mapping(text: str) -> dict[str, str]:
    """The mapping of ``time=timestamp,rate=sum(rate(x[1m]))``: commas in brackets do not part it.
    No text maps nothing.

    Raises SpecError for an entry that is no ``name=column`` and for a name that comes twice.
    """
    mapping: dict[str, str] = {}
    problems = []
    for entry in _entries(text) if text else ():
        match = _ENTRY.match(entry)
        if not match or not entry[match.end() :].strip():
            problems.append(f"{entry.strip()!r} maps nothing; write rate=COLUMN or time=COLUMN")
        elif match[1] in mapping:
            problems.append(f"{match[1]} is mapped twice; leave one out")
        else:
            mapping[match[1]] = entry[match.end() :].strip()
    if problems:
        raise SpecError("mapping", problems)
    return mapping


def _entries(text: str) -> Iterator[str]:
    depth, quote, begin = 0, "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth <= 0:
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]


def asked_reads(
    mapping: Mapping[str, str], names: Collection[str] = ()
) -> tuple[list[Reads], list[str]]:
    """What the user maps, and everything wrong with it. ``names`` may have a ``@`` of their own."""
    reads: dict[str, Reads] = {}
    problems = []
    for key, value in mapping.items():
        signal = ALIASES.get(key, key)
        if signal not in UNITS:
            problems.append(unknown_name("signal", key, ALIASES))
        elif signal in reads:
            problems.append(f"{_SHORT[signal]} is mapped twice, also as {key}; leave one out")
        else:
            match = None if value in names else _UNIT.match(value)
            column, unit = (match[1], unit_named(match[2])) if match else (value, "")
            if unit and unit not in UNITS[signal]:
                problems.append(
                    f"{_SHORT[signal]}={value}: unknown unit @{unit}; {_SHORT[signal]} can be in "
                    f"{known_units(signal)}"
                )
            reads[signal] = Reads(signal, column, unit, asked=True)
    return list(reads.values()), problems


def choose(names: Sequence[str], mapping: Mapping[str, str]) -> tuple[list[Reads], list[str]]:
    """What is read from which of the columns, as mapped or else by obvious names; and problems."""
    asked, problems = asked_reads(mapping, names)
    for one in asked:
        if one.column not in names:
            problem = f"there is no column {one.column!r} for {_SHORT[one.signal]}"
            percent = "; a column of percent is cpu=COLUMN@percent"
            problems.append(problem + percent * (one.signal == "cpu_share" and not one.unit))
    taken = {one.column for one in asked}
    reads = list(asked)
    for signal in UNITS:
        if any(one.signal == signal for one in asked):
            continue
        candidates = [name for name in names if name not in taken and _is_obvious(signal, name)]
        if len(candidates) > 1:
            ways = " or ".join(f"{_SHORT[signal]}={name}" for name in candidates)
            problems.append(f"{' and '.join(candidates)} could both be the {signal}; write {ways}")
        reads += [Reads(signal, name, "", asked=False) for name in candidates[:1]]
    reads = [with_unit(read, read.column, problems) for read in reads]
    if not any(one.signal == TIME for one in reads):
        problems.append("no column is the time; write time=COLUMN")
    if all(one.signal == TIME for one in reads):
        ways = ", ".join(f"{alias}=COLUMN" for alias in ALIASES if alias != TIME)
        problems.append(f"no column is known as something that is read; write one of {ways}")
    return reads, problems


def listed_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _is_obvious(signal: str, name: str) -> bool:
    stem, unit = stem_and_unit(name)
    if unit and unit not in UNITS[signal]:
        return False
    return any(re.fullmatch(_OBVIOUS[signal], one) for one in (stem, name.strip().lower()))


def with_unit(read: Reads, name: str, problems: list[str], *, is_counter: bool = False) -> Reads:
    """What is read in its unit: as the mapping says, of a counter, or as the column or metric of
    that ``name`` says at its end."""
    if read.unit:
        return read
    unit, units = TOTAL if is_counter else stem_and_unit(name)[1], known_units(read.signal)
    if unit and unit not in UNITS[read.signal]:
        how = f"convert it, or write one of {units} behind it"
        problems.append(f"{read} is in {unit}, which is no unit of it; {how}")
    elif not unit and read.signal in NEEDS_UNIT:
        problems.append(f"{read} does not say its unit; write one of {units} behind it")
    return replace(read, unit=unit)


def said(read: Reads) -> str:
    """The sentence of the notes that says what was mapped and converted; empty where a column is
    called as what it is."""
    unit = read.unit
    if not unit and len(UNITS[read.signal]) > 1:
        usual = next(iter(UNITS[read.signal]))
        return f"{read.signal} is {read.column}, which names no unit: taken as {usual}"
    if unit == TOTAL:
        return f"{read.signal} is what {read.column} grew by, per second"
    divisor = UNITS[read.signal].get(unit, 1.0)
    if divisor == 1:
        return f"{read.signal} is {read.column}" if read.column != read.signal else ""
    return f"{read.signal} is {read.column}, divided by {divisor:g}: it is in {unit}"
