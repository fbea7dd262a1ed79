"""The list of advice, from what is published below a data root, and its place above the runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams

from include.results.reports.database import Publication, sent_rows
from tests.builders_staged import tables_of
from tidebench.page.advice import advice_list
from tidebench.page.listing import runs_list
from tidebench.page.query import query_of

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
    assert [one["name"] for one in advice_list(tmp_path, 2)] == ["advice-new", "advice-none"]
    assert advice_list(tmp_path / "nowhere") == []


def test_the_list_of_runs_begins_with_the_newest_answers_unless_it_is_narrowed(
    tmp_path: Path,
) -> None:
    for day in range(1, 6):
        answer(tmp_path, f"advice-shadow-2026-01-0{day}", 1e9 + day, AS_RUN)
    nothing = f"sqlite:///{tmp_path / 'results.db'}"

    def listed(query: str) -> list[str]:
        content: Mapping[str, Any] = runs_list(nothing, tmp_path, query_of(QueryParams(query)))
        return [one["name"] for one in content["advice"]]

    assert listed("") == [f"advice-shadow-2026-01-0{day}" for day in (5, 4, 3)]
    assert listed("experiment=mine") == []


def test_the_page_behind_the_last_one_is_the_last_one(tmp_path: Path) -> None:
    answer(tmp_path, "advice-of-page-1", 1e9)
    made_up = [tables_of(f"r{k}") for k in range(51)]
    rows = {name: [tables[name][0] for tables in made_up] for name in ("runs", "outcomes")}
    url = f"sqlite:///{tmp_path / 'results.db'}"
    with sent_rows(url, Publication(experiment="many", edition="1", checks=1), rows):
        pass
    content: Mapping[str, Any] = runs_list(url, tmp_path, query_of(QueryParams("page=99")))
    assert (content["query"].page, len(content["runs_page"].runs)) == (2, 1)
    assert content["advice"] == []
