"""The commands `tidebench advise` and `tidebench backtest`."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from include.model.errors import SpecError

if TYPE_CHECKING:
    from include.advise.answer import Answer
    from include.advise.backtest import Backtest
    from include.advise.job import JobModel

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


def advise(  # noqa: PLR0913  options of a command
    recording: Annotated[str, typer.Argument(help="A recording of the job.")],
    objective: Annotated[str, typer.Option(help="Such as 'latency p95 < 2 s'.")],
    prices: Annotated[str, typer.Option(help="A price book, by name or file.")] = "per_second",
    columns: Map = "",
    max_instances: Annotated[int, typer.Option(min=0, help="0: the most recorded.")] = 0,
    per_host: Annotated[int, typer.Option(min=1, help="Instances on a host.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many replays.")] = 3,
    out: Annotated[Path, typer.Option(help="The folder for the page.")] = Path("var/advice"),
) -> None:
    """Say which policy would have run a recorded job at the lowest cost; write a page about it."""
    import numpy as np

    from include.advise.answer import Question
    from include.advise.answer import advise as answer_to
    from include.advise.export import write_experiment
    from include.advise.job import readings_of
    from include.advise.objective import parse_objective
    from include.advise.page import write_page
    from include.advise.replay import ReplayConditions
    from include.experiment.prices import is_file, price_book
    from include.prices.books import load_book
    from include.recordings import parse_mapping, read_recording

    asked = parse_objective(objective)
    book = load_book(prices) if is_file(prices) else price_book(prices)
    recorded = read_recording(recording, parse_mapping(columns) if columns else {})
    counts = readings_of(recorded).instances
    known = np.round(counts[~np.isnan(counts)])
    conditions = ReplayConditions(
        instances_at_start=max(1, int(known[0])),
        max_instances=max_instances or max(1, int(known.max())),
        instances_per_host=per_host,
        btu_s=max(60.0, book.btu_s),
        price_per_btu=book.price_per_btu * max(60.0, book.btu_s) / book.btu_s,
        penalty_per_item=book.penalty_per_item,
        latency_limit_s=asked.limit_s,
    )
    question = Question(objective=asked, book=book, conditions=conditions, seeds=seeds)
    answer = answer_to(recorded, question)
    typer.echo(advice_table(answer))
    typer.echo(f"\nPage: {write_page(answer, out)}")
    spec = write_experiment(answer.job, answer.read, conditions, out)
    typer.echo(f"The model as an experiment: python -m include.cli run {spec}")


def advice_table(answer: Answer) -> str:
    """The answer, as the terminal shows it."""
    best, asked = answer.recommended, answer.question.objective
    first = (
        f"{best.policy.name} holds {asked} at the lowest cost ({answer.sure:.0%} of the seeds)."
        if best
        else f"No policy that was tried holds {asked}; the nearest comes first."
    )
    titles = ("policy", "holds", "a month", "/ bound", "within", "worst hour")
    lines = [first, "", "{:<24} {:>6} {:>12} {:>8} {:>8} {:>11}".format(*titles)]
    for row in (answer.as_run, *answer.rows):
        worst = min(one.worst_hour for one in row.outcomes)
        lines.append(
            f"{row.policy.name:<24} {'yes' if row.holds else 'no':>6} {row.cost:>12,.2f} "
            f"{row.regret:>8.2f} {row.within:>8.2%} {worst:>11.2%}"
        )
    return "\n".join(lines)


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


def model_lines(job: JobModel) -> list[str]:
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
