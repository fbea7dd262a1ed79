"""The list of advice, from what is published below a data root."""

from __future__ import annotations

import os
from pathlib import Path

from tidebench.page.advice import advice_list

HEAD = "rank,policy,holds,guessed,cost_per_month,share_within\n"
AS_RUN = "0,as it was run,yes,no,90,0.95\n"


def answer(root: Path, name: str, at_s: float, *rows: str) -> None:
    published = root / name / "published"
    published.mkdir(parents=True)
    (published / "advice_ranking.csv").write_text(HEAD + "".join(rows))
    page = published / "advice.html"
    page.write_text("<html>")
    os.utime(page, (at_s, at_s))


def test_the_newest_answer_is_first_with_the_policy_that_can_be_relied_on(tmp_path: Path) -> None:
    answer(tmp_path, "advice-old", 1e9, AS_RUN, "1,hpa,no,no,50,0.8\n")
    answer(
        tmp_path, "advice-new", 2e9, AS_RUN, "1,keda,yes,yes,10,0.9\n", "2,tide,yes,no,20,0.96\n"
    )
    answer(tmp_path, "advice-none", 1.5e9)
    (tmp_path / "an-experiment" / "published").mkdir(parents=True)
    new, none, old = advice_list(tmp_path)
    assert (new["name"], new["best"]["policy"], new["policies"]) == ("advice-new", "tide", 2)
    assert new["as_run"]["cost_per_month"] == "90"
    assert old["best"] is none["best"] is none["as_run"] is None
    assert advice_list(tmp_path / "nowhere") == []
