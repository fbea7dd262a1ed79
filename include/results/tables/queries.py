"""The SQL of a table: Jinja gives it its shape, Spark parameters give it its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from include.model.compliance import LEVELS
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, SQL_ROOT
from include.runs.measurements.summaries import BINS_PER_E
from include.testbeds.flavors import FLAVORS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARED: tuple[str, ...] = ("series", "histogram", "backlog")
"""Intermediate results that several tables read, each computed once."""

STEPS: tuple[str, ...] = (*SHARED, *PUBLISHED, INPUT_CHECKS)
"""Every query of a report, in the order in which it may read others."""

VALUES: Mapping[str, Any] = MappingProxyType(
    {**{f"{level}_factor": factor for level, factor in LEVELS}, "bins_per_e": BINS_PER_E}
)
"""Limits of the compliance levels as multiples of o_slo, and the width of the histogram's bins."""

_SHAPE = Environment(
    loader=FileSystemLoader(SQL_ROOT),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@cache
def query_of(table: str) -> str:
    """The text of one query, with ``:name`` where a value goes."""
    return _SHAPE.get_template(f"tables/{table}/query.sql.j2").render(
        levels=[level for level, _ in LEVELS],
        usable_mb={name: flavor.capacity.memory_mb for name, flavor in FLAVORS.items()},
    )


@cache
def read_by(table: str) -> tuple[str, ...]:
    """The steps that a query may read: those before it that its text names."""
    words = set(re.findall(r"\w+", query_of(table)))
    return tuple(step for step in STEPS[: STEPS.index(table)] if step in words)


def is_read(table: str) -> bool:
    """Whether a later query may read this one, so that it has to be a view."""
    return any(table in read_by(later) for later in STEPS[STEPS.index(table) + 1 :])


def run_query(spark: SparkSession, table: str) -> DataFrame:
    """The rows of one table, from the views that its query names."""
    return spark.sql(query_of(table), args=dict(VALUES))


def share(spark: SparkSession, step: str) -> DataFrame:
    """Compute once what several tables read, on the executors, and name it as a view.

    A checkpoint, not a cache: Spark looks a cached plan up by its shape, and computes it again,
    unnoticed, where it does not recognise a hint in it.
    """
    kept = run_query(spark, step).localCheckpoint()
    kept.createOrReplaceTempView(step)
    return kept
