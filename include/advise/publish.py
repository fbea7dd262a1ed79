"""What comes of an answer as files: the page, the ranking, what to paste, and the experiment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap

from include.advise.answer import Answer
from include.advise.export import write_experiment
from include.advise.margins import MISSES
from include.advise.page import page_of
from include.advise.paste import configuration, to_stop
from include.files.whole import new_folder, swap_in, write_bytes
from include.results.reports.documents import WRITERS
from include.results.tables.catalogue import ADVICE_RANKING, schema_of
from include.results.tables.staged import read_staged

PUBLISHED = "published"
PAGE = "advice.html"
CONFIGURATION = "configuration.txt"
EXPERIMENT = "job_experiment.yaml"
LINE = 98


def publish_answer(answer: Answer, folder: Path, also: Iterable[Path] = ()) -> Path:
    """Put ``folder/published`` in place of what was there, with copies of these files ``also``.
    Returns its path.

    It has the page, the ranking as CSV, Markdown and LaTeX, the configuration, and the model as
    an experiment that ``run`` takes.
    """
    published = folder / PUBLISHED
    rows, schema = read_staged(folder, ADVICE_RANKING), schema_of(ADVICE_RANKING)
    case, conditions = answer.case, answer.case.question.conditions
    question = case.question
    apply, pasted = configuration(
        answer.policy, conditions, question.platforms, question.slots_each
    )
    steps = f"{to_stop(answer.policy, case.recorded)} {apply}".lstrip()
    with new_folder(published) as draft:
        write_bytes(draft / PAGE, page_of(answer, steps, pasted).encode())
        write_bytes(draft / CONFIGURATION, f"{_heading(answer, steps, pasted)}{pasted}".encode())
        for suffix, write in WRITERS.items():
            text = write(rows, schema)
            write_bytes(draft / f"{ADVICE_RANKING}.{suffix}", text.encode())
        write_experiment(case.job, case.read, conditions, draft)
        for file in also:
            write_bytes(draft / file.name, file.read_bytes())
        swap_in(draft, published)
    return published


def _heading(answer: Answer, steps: str, pasted: str) -> str:
    """Comments on what is pasted: the policy, whether it holds the objective, and what to do."""
    if pasted.startswith("{"):  # JSON has no comments
        return ""
    held = "it cannot be told whether it holds"
    if answer.recommended or answer.best.holds == MISSES:
        held = "holds" if answer.recommended else "misses"
    lines = [f"{answer.best.policy}: {held} {answer.case.question.objective}", *wrap(steps, LINE)]
    return "".join(f"# {line}\n" for line in lines)
