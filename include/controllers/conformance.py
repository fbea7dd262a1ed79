"""Hold our rules against rows of upstream's own tests: id, expected, got.

A file of rows is JSON: an object whose lists hold rows. A row has ``id`` (family/test/case),
``source`` (repository, commit, file, test), ``upstream_function`` where the inputs alone do not
say it, ``inputs`` and ``expected``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.controllers.autoscalers.upstream import druid, flink, keda, kubernetes
from include.controllers.autoscalers.upstream.rows import NotRepresentable
from include.model.errors import SpecError, unknown_name

CHECKS: Mapping[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]] = {
    "druid": druid.check,
    "flink": flink.check,
    "hpa": kubernetes.check,
    "keda": keda.check,
}
"""By the first part of a row's id, what runs such a row: the function of upstream and the inputs
give what our rule gives, under the names of the row's expectation."""
ROWS = Path(__file__).parent / "autoscalers" / "upstream"
"""The folder of the rows, a file ``*.json`` per autoscaler."""
_TOLERANCE = 1e-9
"""Relative, for numbers that are no whole ones."""

UNREAD = "AUTO-CONFORM"
"""The deviation of a row whose family, inputs or expectation nothing here can read."""


@dataclass(frozen=True, slots=True)
class UpstreamRow:
    """One case of upstream's tests, restated."""

    id: str
    function: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conformity:
    """What came of a row.

    ``got`` has what our rule gives; where it gives nothing, ``deviation`` is the id in the ledger
    that says why it has no way to, and ``detail`` what of the row it could not read.

    Of the expectation only what follows from the inputs is compared: what is in ``got``.
    """

    row: UpstreamRow
    got: Mapping[str, Any] | None = None
    deviation: str = ""
    detail: str = ""

    @property
    def holds(self) -> bool:
        """Whether all that could be compared is equal; false where nothing was run."""
        return self.got is not None and all(
            equal(self.row.expected[name], value) for name, value in self.got.items()
        )


def packaged_rows() -> list[UpstreamRow]:
    """The rows that come with this package."""
    return [row for path in sorted(ROWS.glob("*.json")) for row in read_rows(path)]


def read_rows(path: Path) -> list[UpstreamRow]:
    """The rows of a file; raises SpecError with everything that is wrong with it."""
    try:
        lists = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(str(path), [f"give a file of rows in JSON: {error}"]) from None
    if not isinstance(lists, dict):
        raise SpecError(str(path), ['give an object with lists of rows, such as {"hpa": [...]}'])
    cases = [case for rows in lists.values() if isinstance(rows, list) for case in rows]
    problems = [problem for place, case in enumerate(cases) for problem in _problems(place, case)]
    if problems or not cases:
        raise SpecError(str(path), problems or ["give at least one row"])
    return [
        UpstreamRow(
            case["id"], case.get("upstream_function") or "", case["inputs"], case["expected"]
        )
        for case in cases
    ]


def _problems(place: int, case: Any) -> Iterator[str]:
    if not isinstance(case, dict) or not isinstance(case.get("id"), str):
        yield f"row {place + 1}: give an object with an id"
        return
    for name in ("inputs", "expected"):
        if not isinstance(case.get(name), dict):
            yield f"{case['id']}: {name} must be an object"


def conform(rows: Sequence[UpstreamRow]) -> list[Conformity]:
    """What our rules give for each row, in the order of the rows."""
    return [_outcome(row) for row in rows]


def _outcome(row: UpstreamRow) -> Conformity:
    family = row.id.split("/")[0]
    if family not in CHECKS:
        return Conformity(row, None, UNREAD, unknown_name("first part of id", family, CHECKS))
    try:
        got = CHECKS[family](row.function, row.inputs)
        compared = {name: got[name] for name in row.expected if name in got}
    except NotRepresentable as reason:
        return Conformity(row, deviation=reason.deviation)
    except Exception as error:  # a row of somebody else's may hold anything
        return Conformity(row, None, UNREAD, f"its inputs are none of such a row: {error!r}")
    if compared:
        return Conformity(row, compared)
    return Conformity(row, None, UNREAD, f"its expectation names none of {', '.join(got)}")


def equal(expected: Any, got: Any) -> bool:
    """Whether both are the same, numbers up to rounding; "inf" and null stand for themselves."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return expected.keys() == got.keys() and all(
            equal(expected[name], got[name]) for name in expected
        )
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(map(equal, expected, got))
    if isinstance(expected, str) and isinstance(got, float):
        return expected in ("inf", "Infinity") and got == math.inf
    if isinstance(expected, bool) or isinstance(got, bool) or expected is None or got is None:
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return math.isclose(expected, got, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(expected == got)
