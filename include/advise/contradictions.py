"""The advice of two recordings of one job: where they say the opposite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from include.advise.answer import Answer, advise
from include.advise.backtest import doubts
from include.advise.case import keep_case, kept_recording
from include.advise.margins import HOLDS, MISSES
from include.advise.ranking import PolicyRow
from include.advise.request import AdviceRequest

BESIDE = "beside"


def advise_beside(
    request: AdviceRequest,
    other: str,
    folder: Path,
    report: Callable[[str], None] = lambda _: None,
) -> Answer:
    """The answer for the recording of the request, with what the recording ``other`` says against
    it; the answer for that is kept in ``folder/beside``.

    ``report`` is called as by `advise`. Raises SpecError with what is wrong with either recording
    before anything is replayed.
    """
    case = keep_case(request, folder)
    second = keep_case(replace(request, recording=other, recorded=""), folder / BESIDE)
    answer = advise(case, folder, report)
    against = advise(second, folder / BESIDE, report)
    recordings = [kept_recording(each / "case" / "recording.parquet")
                  for each in (folder, folder / BESIDE)]  # fmt: skip
    against_answer = (*doubts(case.job, *recordings), *contradictions(answer, against))
    return replace(answer, against=against_answer)


def contradictions(answer: Answer, other: Answer) -> list[str]:
    """A sentence for every policy that holds the objective by one recording, misses it by the
    other."""
    names = answer.case.job.name, other.case.job.name
    others = {row.policy: row for row in (*other.rows, *other.idle)}
    sentences = []
    for row in (*answer.rows, *answer.idle):
        pair = [row, others.get(row.policy, row)]
        if {one.holds for one in pair} != {HOLDS, MISSES}:
            continue
        says = " and ".join(
            f"{_share(one)} in {name}" for one, name in zip(pair, names, strict=True)
        )
        sentences.append(
            f"The two recordings say the opposite of {row.policy}: {says}. Follow neither before "
            "tidebench backtest has told which of them predicts the other."
        )
    return sentences


def _share(row: PolicyRow) -> str:
    verb = "holds" if row.holds == HOLDS else "misses"
    return f"it {verb} the objective ({row.share_span})"
