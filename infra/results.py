"""Print a table of docs/results, made of the published tables of its experiments.

    python -m infra.results tide_walks --out docs/results/tide_walks.csv

``docs/results/tables.yaml`` says of a table which experiments it is of, by what its rows are and
which figures it has.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field
from scipy.stats import t

from include.experiment.matrix import runs_in_file
from include.experiment.spec import SPECS
from include.files.plain_yaml import input_yaml
from include.files.whole import write_bytes
from include.model.errors import SpecError

TABLES = Path(__file__).parents[1] / "docs" / "results" / "tables.yaml"
RUN = ["run", "topology", "pattern", "conditions", "controller", "variant", "btu_min", "seed"]


class ResultTable(BaseModel):
    """Rows of means over runs, or of runs where ``by`` tells them apart; ``runs`` counts them.

    ``columns`` are figures of the table `metrics`, by what they are called there if that is another
    name, or of a run ``changes`` (starts, stops and moves of instances), ``leases`` after the first
    hosts, ``host_hours``, ``job_starts`` (of the whole job, as the simulator recorded them) and
    ``worst_operator_percent``, near real-time (strict) where that is lowest.
    ``btu_min``: this one of runs that are billed under several BTUs. ``ci95``: with half of the
    interval of each mean. ``less``: how much more than under that controller a figure is, paired by
    pattern and seed, as ``NAME_less_CONTROLLER``.
    """

    model_config = ConfigDict(extra="forbid")
    of: Annotated[list[str], Field(min_length=1)]
    by: Annotated[list[str], Field(min_length=1)]
    columns: dict[str, str | None]
    btu_min: float | None = None
    ci95: bool = False
    less: dict[str, str] = {}
    decimals: int = 2


class PublishedRows(BaseModel):
    """Rows of a published ``table``, of these ``metrics``, as that has them."""

    model_config = ConfigDict(extra="forbid")
    of: Annotated[list[str], Field(min_length=1)]
    table: str
    metrics: Annotated[list[str], Field(min_length=1)]
    decimals: int = 4


def table_of(entry: Mapping[str, Any]) -> ResultTable | PublishedRows:
    """What an entry of the file describes. Raises ValidationError."""
    return (PublishedRows if "table" in entry else ResultTable).model_validate(entry)


def figures(experiment: Path) -> pd.DataFrame:
    """A row per run and BTU of an experiment, with all of its figures."""
    tables = {
        name: pd.read_parquet(experiment / "published" / f"{name}.parquet")
        for name in ("metrics", "scaling_total", "outcomes", "compliance")
    }
    metrics = tables["metrics"].fillna({"conditions": "", "variant": ""})
    wide = metrics.pivot_table(index=RUN, columns="metric", values="value", observed=True)
    hours = tables["outcomes"][["run", "btu_min", "host_hours"]]
    scaling = tables["scaling_total"].set_index("run")
    changes = scaling[["upscaling", "downscaling", "migrations"]].sum(axis=1).rename("changes")
    leases = scaling["hosts_leased"].rename("leases")
    wide = wide.reset_index().merge(hours, "left", ["run", "btu_min"])
    events = pd.read_parquet(experiment / "measurements" / "event", columns=["run", "event"])
    starts = events[events["event"] == "job_restart"]["run"].astype(str).value_counts()
    wide["job_starts"] = wide["run"].astype(str).map(starts).fillna(0)
    strict = tables["compliance"].groupby("run")["strict_near_real_time_compliance_percent"]
    worst = strict.min().rename("worst_operator_percent")
    return wide.join(changes, "run").join(leases, "run").join(worst, "run")


def result_table(runs: pd.DataFrame, table: ResultTable) -> pd.DataFrame:
    """The rows as they are printed, sorted by what they are by.

    Raises KeyError for figures that no run has, and where a run is in a row under several BTUs.
    """
    if table.btu_min is not None:
        runs = runs[runs["btu_min"] == table.btu_min]
    names = {name: of or name for name, of in table.columns.items()}
    if missing := sorted(set(names.values()) - set(runs)):
        raise KeyError(f"no run has {', '.join(missing)}")
    runs = runs[[*dict.fromkeys([*RUN, *table.by, *names.values()])]]
    if (twice := runs.duplicated([*table.by, "run"])).any():
        raise KeyError(f"{runs[twice]['run'].iloc[0]} is in a row under several BTUs; give btu_min")
    for name, controller in table.less.items():
        pairs = ["pattern", "conditions", "btu_min", "seed"]
        own = runs[runs["controller"] == controller].set_index(pairs)[names[name]]
        beside = runs.join(own.rename("own"), pairs)
        names[f"{name}_less_{controller}"] = f"{name}_less"
        runs = runs.assign(**{f"{name}_less": runs[names[name]] - beside["own"]})
    groups = runs.groupby(table.by, dropna=False)
    rows = groups.size().rename("runs").to_frame()
    if (rows["runs"] == 1).all():
        rows = rows[[]]
    for name, of in names.items():
        rows[name] = groups[of].mean()
        if table.ci95:
            count = groups[of].count()
            rows[f"{name}_ci95"] = t.ppf(0.975, count - 1) * groups[of].std() / count**0.5
    return rows.round(table.decimals).reset_index()


def published_rows(folders: Sequence[Path], table: PublishedRows) -> pd.DataFrame:
    """The rows as they are printed, in the order of the published table.

    Raises KeyError for metrics that no row has.
    """
    every = [pd.read_parquet(folder / "published" / f"{table.table}.parquet") for folder in folders]
    rows = pd.concat(every, ignore_index=True)
    if missing := sorted(set(table.metrics) - set(rows["metric"])):
        raise KeyError(f"no row of {table.table} has {', '.join(missing)}")
    return rows[rows["metric"].isin(table.metrics)].round(table.decimals)


def missing_runs(folder: Path) -> str:
    """How many runs of the spec of that name the report does not have; empty where it has all.

    Raises KeyError where it has none of them.
    """
    spec = SPECS / f"{folder.name}.yaml"
    has = pd.read_parquet(folder / "published" / "metrics.parquet", columns=["run"])["run"]
    asked = {run.run_id for run in runs_in_file(spec)} if spec.is_file() else set()
    missing = len(asked - set(has))
    sentence = f"{folder} lacks {missing} of the {len(asked)} runs of {spec.name}"
    if asked and missing == len(asked):
        raise KeyError(f"{sentence}: it is another experiment")
    return sentence if missing else ""


def main() -> None:
    """Print or write the CSV file; the experiments have a report below the folder ``--root``."""
    made: dict[str, Any] = input_yaml(TABLES, "tables of results")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", choices=sorted(made))
    parser.add_argument(
        "--root", type=Path, default=Path("var"), help="where the experiments are; var by default"
    )
    parser.add_argument("--out", type=Path, help="the file to write; without it rows are printed")
    asked = parser.parse_args()
    table = table_of(made[asked.table])
    folders = [asked.root / name for name in table.of]
    if missing := [str(folder) for folder in folders if not (folder / "published").is_dir()]:
        sys.exit(f"not there: {', '.join(missing)}; tidebench run and tidebench report make them")
    try:
        for folder in folders:
            if sentence := missing_runs(folder):
                print(f"warning: {sentence}", file=sys.stderr)
        if isinstance(table, PublishedRows):
            rows = published_rows(folders, table)
        else:
            rows = result_table(pd.concat(figures(folder) for folder in folders), table)
    except (KeyError, OSError, SpecError, ValueError) as error:
        sys.exit(f"{asked.table}: {error}; tidebench report makes tables again")
    if rows.empty:
        sys.exit(f"{asked.table}: the experiments have no rows for it")
    text = rows.to_csv(index=False, lineterminator="\n")
    if asked.out and asked.out.is_dir():
        sys.exit(f"--out {asked.out} is a folder; name the file to write in it")
    if asked.out:
        write_bytes(asked.out.resolve(), text.encode())
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
