"""The reproduction from its first run to its page, as the command line and the DAG start it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from include.control.batch import RunResult
from include.experiment.spec import RunSpec
from include.model.errors import GateFailed
from include.quality.gates import check_tables
from include.reports.reproduction import publish_reproduction
from include.reproduction.drift import run_digests
from include.reproduction.drift import set_baseline as write_baseline
from include.reproduction.findings import Findings
from include.reproduction.measure import measure_matrix
from include.tables.build import build_tables
from include.tables.quarantine import read_quarantine, sentences

Say = Callable[[str], None]


def reproduce(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    processes: int | None = None,
    database_url: str = "",
    report: Callable[[RunResult], None] = lambda _: None,
    say: Say = lambda _: None,
) -> Findings:
    """Measure, build the tables, check and publish under ``root/reproduction/published``.

    ``database_url`` is the results database, SQLite in ``root`` by default; ``report`` hears
    of every finished run and ``say`` of every stage. Raises what the stages raise.
    """
    folder = measure_matrix(specs, root, processes=processes, report=report)
    say("building tables ...")
    build_tables(folder, folder.name, [spec.run_id for spec in specs])
    say("validating ...")
    check_tables(folder, folder.name)
    say("publishing ...")
    return publish_reproduction(folder, database_url or f"sqlite:///{root / 'results.db'}")


def keep_as_baseline(
    findings: Findings, specs: Sequence[RunSpec], folder: Path, into: Path | None = None
) -> Path:
    """Make this reproduction the one that the next ones are held against; returns the file.

    ``into`` is the folder of the file, that of the experiment by default.
    """
    digests = run_digests(folder, (spec.run_id for spec in specs))
    return write_baseline(into or folder, findings.cells, digests)


def summary(findings: Findings, folder: Path) -> str:
    """What a terminal shows: errors per pattern and controller, claims, drift, and the page."""
    lines = [f"{'mean absolute error':<44}{'error':>10}  {'inside':>9}"]
    for row in findings.errors:
        name = f"  {row['pattern']}, {row['controller']}, {row['kind']}"
        unit = "points" if row["unit"] == "points" else "%"
        error = f"{row['mean_absolute_error']:.1f} {unit}"
        lines.append(f"{name:<44}{error:>10}  {row['inside']:>3} of {row['cells']:>2}")
    answers = [row["holds"] for row in findings.claims if row["holds"]]
    lines += ["", f"Claims: {answers.count('yes')} of {len(answers)} hold."]
    lines += findings.drift_sentences
    lines += [
        "",
        *sentences(read_quarantine(folder)),
        f"Page: {folder / 'published' / 'report.html'}",
    ]
    return "\n".join(lines)


def require_reproduced(findings: Findings) -> None:
    """Raise GateFailed when the paper is not reproduced, with why and every cell outside."""
    if not findings.shortfalls:
        return
    reasons = "\n".join(f"  - {sentence}" for sentence in findings.shortfalls)
    listed = "\n".join(
        f"  - {row['pattern']}, {row['controller']}, BTU {row['btu_min'] or '-'}, "
        f"{row['metric']}: published {row['published_mean']:g}, measured "
        f"{row['measured_mean']:.2f} ({row['error']:+.1f} {row['error_unit']}, tolerance "
        f"{row['tolerance']:.1f})"
        for row in findings.outside
    )
    raise GateFailed(
        f"The paper is not reproduced.\n{reasons}\n{len(findings.outside)} of "
        f"{len(findings.verdict)} published cells differ by more than chance.\n{listed}"
    )
