"""The commands `tidebench advise` and `tidebench backtest`."""

from __future__ import annotations

import math
import sys
from contextlib import AbstractContextManager
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from include.cli.interrupt import ends_at_once
from include.cli.options import OBJECTIVE, PRICES, Objective, Prices, results_folder
from include.model.errors import SpecError, all_checked, command

if TYPE_CHECKING:
    from include.advise.answer import Answer
    from include.advise.backtest import Backtest, PredictedFigure
    from include.advise.job import JobModel
    from include.advise.operators import JobGraph
    from include.advise.times import ScalingTimes

Map = Annotated[
    str, typer.Option("--map", help="Columns: time=timestamp,rate=requests@per_min, ...")
]
StartUp = Annotated[
    float | None,
    typer.Option("--start-up-s", help="Start of an instance, s; else as recorded, or 15."),
]
RestartTime = Annotated[
    float | None,
    typer.Option("--restart-s", help="Restart by a scaling, s; else as the recording tells."),
]
Sort = Annotated[bool, typer.Option("--sort", help="Sort rows by time; equal ones are made one.")]
PerHost = Annotated[
    int | None, typer.Option("--per-host", help="Instances on a host; else as recorded, or 1.")
]
Edges = Annotated[
    str, typer.Option(help="How records flow between recorded operators: SOURCE>MAP>SINK.")
]
Option = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE of the controller.")]


def backtest(  # noqa: PLR0913  options of a command
    fitted: Annotated[str, typer.Argument(help="The recording that the model is fitted to.")],
    against: Annotated[str, typer.Option(help="The recording it is held against.")],
    controller: Annotated[str, typer.Option(help="What scaled the job there.")] = "hpa",
    options: Option = None,
    columns: Map = "",
    edges: Edges = "",
    prices: Annotated[str, typer.Option(help="What was paid there: a price book.")] = PRICES,
    per_host: PerHost = None,
    sort: Sort = False,
    lag_above: Annotated[float, typer.Option(min=0, help="Lag above which it is behind.")] = 1e4,
    objective: Annotated[
        str, typer.Option(help="The share of records within its limit is compared.")
    ] = OBJECTIVE,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Number of replays.")] = 3,
    start_up_s: StartUp = None,
    restart_s: RestartTime = None,
) -> None:
    """Fit a model to one recording and test it on another."""
    from include.advise.backtest import Scaler, doubts
    from include.advise.backtest import backtest as held_against
    from include.advise.candidates import policy
    from include.advise.case import read_book
    from include.advise.job import fit, with_times
    from include.advise.objective import parse_objective
    from include.advise.recorded import read_recorded, with_operators
    from include.advise.request import AdviceRequest, require_values
    from include.experiment.options import parsed_options
    from include.workloads.recordings import parse_mapping, read_recording

    asked = AdviceRequest(
        recording=fitted or ".", per_host=per_host, start_up_s=start_up_s, restart_s=restart_s
    )

    def checked_options() -> dict[str, Any]:
        settings = parsed_options(options or [])
        policy(controller, settings)
        return settings

    _, latency, controller_options, known, test, book = all_checked(
        "backtest",
        lambda: require_values(asked, "backtest", lambda name: f"--{name.replace('_', '-')}"),
        lambda: parse_objective(objective),
        checked_options,
        lambda: read_recorded("backtest", fitted, columns, edges, sort=sort),
        lambda: read_recording(against, parse_mapping(columns), sort=sort),
        lambda: read_book(prices),
    )
    job = with_operators(fit(known.job), known)
    result = held_against(
        with_times(job, start_up_s, restart_s),
        replace(test, instances_per_host=per_host or test.instances_per_host),
        Scaler(controller, controller_options, book),
        seeds=range(1, seeds + 1),
        objective=latency,
        behind_items=lag_above,
    )
    for doubt in doubts(result.job, known.job, test):
        typer.echo(f"warning: {doubt}", err=True)
    typer.echo(backtest_table(result))


def backtest_errors(
    recordings: Annotated[
        Path, typer.Argument(help="A YAML list of recording, job, controller and options.")
    ],
    out: Annotated[Path, typer.Option(help="The table to write.")] = Path("backtest_errors.csv"),
) -> None:
    """Backtest recordings of a job against each other; write errors."""
    from include.advise.backtest_errors import backtest_errors as errors_of
    from include.advise.backtest_errors import read_scaled
    from include.advise.margins import errors_csv, read_errors
    from include.files.whole import require_writable, write_bytes

    require_writable(out)
    if out.exists():  # only a table of before is replaced
        read_errors(out.read_text(encoding="utf-8", errors="replace"), f"--out {out}")
    scaled = read_scaled(recordings)
    again = command("backtest-errors", recordings, "--out", out)
    ends_at_once(f"Interrupted. Nothing was written. To begin again: {again}")
    errors, notes = errors_of(scaled, lambda step: typer.echo(f"  {step}", err=True))
    for note in notes:
        typer.echo(f"note: {note}; models of the others of its job are held against it", err=True)
    write_bytes(out.resolve(), errors_csv(errors).encode())
    typer.echo(f"Written: {out}. To use it: {command('advise', 'RECORDING', '--errors', out)} ...")


def advise(  # noqa: PLR0913  options of a command
    recording: Annotated[str, typer.Argument(help="A recording of the job.")],
    objective: Objective,
    prices: Prices = PRICES,
    columns: Map = "",
    edges: Edges = "",
    sort: Sort = False,
    max_instances: Annotated[
        int, typer.Option(help="Most instances of a policy; 0: the most recorded.")
    ] = 0,
    per_host: PerHost = None,
    seeds: Annotated[int, typer.Option(help="Number of replays.")] = 3,
    start_up_s: StartUp = None,
    restart_s: RestartTime = None,
    controllers: Annotated[
        str | None,
        typer.Option(help="Those to try, with commas, also MODULE:CLASS; else all suitable."),
    ] = None,
    recorded: Annotated[
        str, typer.Option(help="What scaled the job: 'hpa, CPU 35 %', 'hpa target_cpu=0.4'.")
    ] = "",
    platform: Annotated[
        str, typer.Option(help="What to paste it into: kubernetes, flink or ecs.")
    ] = "",
    errors: Annotated[
        str, typer.Option(help="A table of backtest-errors; else that of Tidebench.")
    ] = "",
    beside: Annotated[
        str, typer.Option(help="Another recording of the job: does it say the opposite?")
    ] = "",
    *,
    out: Annotated[Path, results_folder("advice", "The folder for what comes of it.")],
) -> None:
    """Rank policies by the cost at which they would have run a job."""
    from include.advise.answer import PAPER_UNITS, advise_beside
    from include.advise.answer import advise as answer_to
    from include.advise.case import keep_case
    from include.advise.publish import EXPERIMENT, PAGE, PUBLISHED, publish_answer
    from include.advise.request import AdviceRequest
    from include.experiment.prices import PRICE_BOOKS

    names = tuple(name.strip() for name in (controllers or "").split(",") if name.strip())
    if controllers is not None and not names:
        raise SpecError("--controllers", ["name at least one controller, or leave it out"])
    request = AdviceRequest(
        recording=recording,
        objective=objective,
        prices=prices,
        columns=columns,
        edges=edges,
        max_instances=max_instances,
        per_host=per_host,
        seeds=seeds,
        start_up_s=start_up_s,
        restart_s=restart_s,
        sort=sort,
        recorded=recorded,
        platform=platform,
        errors=errors,
        controllers=names,
    )
    before = "Nothing was published."
    if (out / PUBLISHED).exists():
        before = f"{out / PUBLISHED} is that of the advice before, whose replays are not kept."
    ends_at_once(f"Interrupted. {before} To begin again: {command(*sys.argv[1:])}")
    if prices in PRICE_BOOKS:
        typer.echo(f"Costs are in {PAPER_UNITS} of the papers; for money: --prices BOOK.yaml")

    def say_step(step: str) -> None:
        typer.echo(f"  {step}")

    replays = "1 replay" if seeds == 1 else f"{seeds} replays"
    with alone_with_advice(out):
        if beside:
            typer.echo(f"Replaying {recording} and {beside}, {replays} of each policy ...")
            answer = advise_beside(request, beside, out, say_step)
        else:
            typer.echo(f"Checking what is asked, reading {recording} and fitting a model to it ...")
            case = keep_case(request, out)
            for note in case.job.notes:
                say_step(f"note: {note}")
            policies = len(case.policies)
            noun = "policy" if policies == 1 else "policies"
            typer.echo(f"Replaying {policies} {noun}, {replays} of each ...")
            answer = answer_to(case, out, say_step)
        published = publish_answer(answer, out)
    typer.echo(f"\n{advice_table(answer)}")
    typer.echo(f"\nPage, with the configuration to paste: {published / PAGE}")
    typer.echo(f"To try other controllers on the model: {command('run', published / EXPERIMENT)}")
    require_all_ranked(answer)


def alone_with_advice(folder: Path) -> AbstractContextManager[None]:
    """Wait until nobody else replays, ranks or publishes in the folder of an advice."""
    from include.runs.measurements.locks import alone

    folder = folder.resolve()
    return alone(folder.parent, f"advice in {folder.name}")


def require_all_ranked(answer: Answer) -> None:
    """End with code 1 where a controller failed, which the answer names."""
    if answer.failed:
        raise SystemExit(1)


def publish_again(folder: Path) -> None:
    """Rank the replays of an advice, check the ranking, and publish and print the answer."""
    from include.advise.answer import answer_of
    from include.advise.case import open_case
    from include.advise.outcomes import require_replayed
    from include.advise.publish import PAGE
    from include.advise.ranking import build_ranking
    from include.service.verdict import publish_verdict

    with alone_with_advice(folder):
        case = open_case(folder)
        require_replayed(case, folder)
        build_ranking(folder)
        answer = answer_of(case, folder)
        published = publish_verdict(answer, folder)
    typer.echo(advice_table(answer))
    typer.echo(f"\nPage: {published / PAGE}")
    require_all_ranked(answer)


def operators(
    recording: Annotated[str, typer.Argument(help="A recording that names operators.")],
    edges: Annotated[
        str, typer.Option(help="How records flow: 'SOURCE>MAP>SINK,MAP>OTHER', or a YAML file.")
    ] = "",
    columns: Map = "",
    sort: Sort = False,
    *,
    out: Annotated[Path, results_folder("operators", "The folder for the experiment.")],
) -> None:
    """Fit a model of every operator; write it as a spec for run."""
    from include.advise.export import write_graph
    from include.advise.operators import fit_operators, read_graph
    from include.workloads.recordings import parse_mapping

    graph = fit_operators(*read_graph(recording, edges, parse_mapping(columns), sort=sort))
    spec = write_graph(graph, out)
    for line in graph_lines(graph):
        typer.echo(line)
    typer.echo(f"\nThe model as an experiment: {command('run', spec)}")


def graph_lines(graph: JobGraph) -> list[str]:
    """Every operator with its values and their intervals."""
    lines = []
    for operator in graph.operators:
        lines.append(f"{operator.name}, of {operator.rows} readings:")
        values = (
            ("busy per record, ms", operator.demand_ms),
            ("overhead, share", operator.overhead),
            ("capacity, records/s", operator.capacity_per_s),
            ("out per record in", operator.selectivity),
        )
        for name, interval in values:
            text = "not recorded" if interval is None else f"{interval:.4g}"
            lines.append(f"  {name:<20} {text}")
    lines += [
        f"{origin}>{target}, out per record in  {factor:.4g}"
        for origin, target, factor in graph.edges
    ]
    return [*lines, *(f"note: {note}" for note in graph.notes)]


def advice_table(answer: Answer) -> str:
    """The answer, as the terminal shows it."""
    best, goal = answer.recommended, answer.case.question.objective
    if best:
        won = f"{round(best.share_cheapest * best.seeds)} of {best.seeds}"
        cost = f"{best.cost_span} {answer.currency} a month; the cheapest with {won} seeds"
        lines = [f"{best.policy} holds {goal} at the lowest cost ({cost})."]
    else:
        lines = [f"No policy is known to hold {goal}."]
    cost = f"{answer.currency}/month"
    wide = max(12, len(cost))
    longest = max(24, *(len(row.policy) for row in (answer.as_run, *answer.rows)))
    titles = ("from ... to", "/ bound", "within", "from ... to", "worst hour", "scalings/day")
    head = f"{'policy':<{longest}} {'holds':>12} {cost:>{wide}}"
    head += " {:>16} {:>8} {:>8} {:>18} {:>11} {:>13}".format(*titles)
    lines += [*answer.sentences, "", head]
    lines += [
        f"{row.policy:<{longest}} {row.holds + '*' * row.guessed:>12} "
        f"{row.cost_per_month:>{wide},.2f} {row.cost_span:>16} {row.regret:>8.2f} "
        f"{100 * row.share_within:>6.2f} % {row.share_span:>18} "
        f"{100 * row.worst_hour_share:>9.2f} % {row.scalings_per_day:>13.0f}"
        for row in (answer.as_run, *answer.rows)
    ]
    return "\n".join([*lines, *answer.notes])


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
        *time_lines(job.times),
        *(f"  note: {note}" for note in job.notes),
    ]


def time_lines(times: ScalingTimes) -> list[str]:
    """How long scalings take, or why that is not known."""
    lines = []
    for name, scaling in times.named():
        text = "unknown"
        if scaling.value is not None:
            text = "{:.1f} s ({:.1f} to {:.1f})".format(*astuple(scaling.value))
        lines += [f"  {name:<20} {text}", f"    {scaling.said}"]
    return lines


def backtest_table(result: Backtest) -> str:
    """The comparison, as the terminal shows it."""
    lines = [*model_lines(result.job), ""]
    lines.append(f"{'':<32} {'predicted':>10} {'(seeds)':>18} {'recorded':>10} {'error':>8}")
    for row in result.rows:
        name = f"{row.name}, {row.unit}" if row.unit not in ("", "share") else row.name
        lines.append(f"{name:<32} {_figures(row)}")
    values = result.correlation
    if any(math.isnan(correlation) for correlation in values):
        figures = "none: one of the two never changed"
    else:
        spread = f"{min(values):.3f} to {max(values):.3f}"
        figures = f"{sum(values) / len(values):>10.3f} {spread:>18}"
    return "\n".join([*lines, f"{'correlation of the instances':<32} {figures}"])


def _figures(row: PredictedFigure) -> str:
    """Predicted and recorded, and the error: a share, or where 0 was recorded the difference."""
    if math.isnan(row.recorded):
        return f"{'not recorded':>40}"
    spread = f"{row.low:.4g} to {row.high:.4g}"
    error = f"{row.error:+.1%}" if row.recorded else f"{row.predicted:+.3g}"
    return f"{row.predicted:>10.4g} {spread:>18} {row.recorded:>10.4g} {error:>8}"
