"""The commands `tidebench advise` and `tidebench backtest`."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Annotated, Any

import typer

from include.model.errors import SpecError

if TYPE_CHECKING:
    from include.advise.backtest import Backtest
    from include.advise.job import Job

Map = Annotated[
    str, typer.Option("--map", help="Columns: time=timestamp,rate=requests@per_min, ...")
]
Option = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE of the controller.")]


def backtest(  # noqa: PLR0913  options of a command
    fitted: Annotated[str, typer.Argument(help="The recording that the model is fitted to.")],
    against: Annotated[str, typer.Option(help="The recording it is held against.")],
    controller: Annotated[str, typer.Option(help="What scaled the job there.")] = "hpa",
    options: Option = None,
    columns: Map = "",
    lag_above: Annotated[float, typer.Option(min=0, help="Records that count as behind.")] = 1e4,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many replays.")] = 3,
) -> None:
    """Fit a model to one recording; predict another of the same job, and compare."""
    from include.advise.backtest import backtest as held_against
    from include.recordings import parse_mapping, read_recording

    mapping = parse_mapping(columns) if columns else {}
    result = held_against(
        read_recording(fitted, mapping),
        read_recording(against, mapping),
        controller,
        parsed_options(options or []),
        seeds=range(1, seeds + 1),
        lag_above=lag_above,
    )
    typer.echo(backtest_table(result))


def parsed_options(pairs: list[str]) -> dict[str, Any]:
    """``NAME=VALUE`` as options; values as YAML reads them. Raises SpecError with every bad one."""
    import yaml

    options: dict[str, Any] = {}
    told: list[str] = []
    for pair in pairs:
        name, _, text = pair.partition("=")
        if not (name.strip() and text.strip()):
            told.append(f"{pair!r} is no NAME=VALUE, such as target_cpu=0.35")
            continue
        try:
            options[name.strip()] = yaml.safe_load(text)
        except yaml.YAMLError:
            told.append(f"{pair!r} has no value that YAML can read; put it in quotes")
    if told:
        raise SpecError("--set", told)
    return options


def model_lines(job: Job) -> list[str]:
    """The model in sentences."""
    demand, overhead = job.demand_ms, job.overhead
    return [
        f"Model of {job.name}, in steps of {job.step_s:g} s:",
        f"  CPU per record   {demand.value:.4f} ms ({demand.low:.4f} to {demand.high:.4f})",
        "  overhead         {:.1%} of an instance ({:.1%} to {:.1%})".format(*astuple(overhead)),
        f"  most processed   {job.most_per_s:,.0f} records/s and instance",
        f"  latency at rest  {job.quiet_latency_s:.2f} s",
        f"  restarts seen    {job.restart.seen}",
        *(f"  note: {note}" for note in job.notes),
    ]


def backtest_table(result: Backtest) -> str:
    """The comparison, as the terminal shows it."""
    lines = [*model_lines(result.job), ""]
    lines.append(f"{'':<32} {'predicted':>10} {'(seeds)':>18} {'recorded':>10} {'error':>8}")
    for row in result.rows:
        spread = f"{row.low:.4g} to {row.high:.4g}"
        name = f"{row.name}, {row.unit}" if row.unit not in ("", "share") else row.name
        figures = f"{row.predicted:>10.4g} {spread:>18} {row.recorded:>10.4g} {row.error:>+8.1%}"
        lines.append(f"{name:<32} {figures}")
    values = result.correlation
    mean = sum(values) / len(values)
    spread = f"{min(values):.3f} to {max(values):.3f}"
    lines.append(f"{'correlation of the instances':<32} {mean:>10.3f} {spread:>18}")
    return "\n".join(lines)
