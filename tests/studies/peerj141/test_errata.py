"""Published tables against themselves: what is impossible is named, what rounds is not."""

from __future__ import annotations

import pytest

from include.model.errors import StoreError
from include.results.reports.comparison import PublishedFigure
from include.studies.peerj141.errata import find_errata, implied_items
from include.studies.peerj141.published import SOURCE, published_cells

HEADER = "table,pattern,controller,btu_min,metric,mean,unit,sigma"


def a_column(items: float = 1_700_000, **changes: float):
    """One consistent column: 40, 80 and 90 % of the items in time, hosts for 60."""
    values = {"resource_cost": 60.0}
    for level, share in (("real_time", 40), ("near_real_time", 80), ("relaxed", 90)):
        values[f"{level}_compliance"] = share
        values[f"{level}_total_cost"] = round(60 + items * (1 - share / 100) * 0.0001, 2)
    values |= changes
    return {
        ("p", "btu", 30.0, name): PublishedFigure(mean, "", "t") for name, mean in values.items()
    }


def test_a_consistent_column_has_no_errata():
    assert find_errata(a_column()) == {}


def test_implied_items_hold_the_true_number():
    for low, high in implied_items(a_column(), ("p", "btu", 30.0)).values():
        assert low < 1_700_000 < high


def test_a_total_that_speaks_of_other_items_is_named():
    wrong = a_column(relaxed_total_cost=60 + 1_700_000 * 0.2 * 0.0001)
    (key, sentence), = find_errata(wrong).items()  # fmt: skip
    assert key == ("p", "btu", 30.0, "relaxed_total_cost")
    assert "1.66-1.74 million items at near_real_time, but of 3.24-3.58 million" in sentence


@pytest.mark.parametrize("wrong", ["real_time", "near_real_time", "relaxed"])
def test_one_level_that_contradicts_two_is_named_and_they_are_not(wrong):
    late = {"real_time": 0.6, "near_real_time": 0.2, "relaxed": 0.1}[wrong]
    column = a_column(**{f"{wrong}_total_cost": 60 + 1_900_000 * late * 0.0001})
    assert set(find_errata(column)) == {("p", "btu", 30.0, f"{wrong}_total_cost")}


def test_a_wider_limit_cannot_comply_less():
    assert ("p", "btu", 30.0, "relaxed_compliance") in find_errata(a_column(relaxed_compliance=79))


@pytest.mark.parametrize(
    ("mean", "sigma", "wrong"),
    [
        (60.7, None, "cannot have this mean"),
        (60.0, 5.2, ""),
        (60.0, 3.0, ""),
        (60.0, 4.0, "cannot have the sigma 4"),
    ],
)
def test_three_runs_pay_whole_btus(mean, sigma, wrong):
    key = ("p", "btu", 30.0, "resource_cost")
    found = find_errata(a_column() | {key: PublishedFigure(mean, "", "t", sigma)})
    assert (key in found) is bool(wrong)
    assert wrong in found.get(key, "")


def test_a_threshold_penalty_that_depends_on_the_btu_is_named():
    cells = {
        ("p", "threshold", btu, metric): PublishedFigure(mean, "", "t")
        for btu, penalty in ((10.0, 90.0), (30.0, 90.0), (60.0, 91.0))
        for metric, mean in (
            ("resource_cost", btu * 6),
            ("real_time_total_cost", btu * 6 + penalty),
        )
    }
    assert list(find_errata(cells)) == [("p", "threshold", 60.0, "real_time_total_cost")]


def test_the_one_impossible_cell_of_tables_3_and_5():
    printed = {
        key: one for key, one in published_cells().items() if one.table in ("table 3", "table 5")
    }
    assert find_errata(printed) == {
        ("stepwise", "btu", 60.0, "resource_cost"): "Three runs that pay 6 per BTU cannot have the "
        "sigma 3.84; the nearest possible one is 3.46."
    }


def test_every_file_of_the_folder_is_read(tmp_path):
    for pattern, sigma in (("two_level", "1.5"), ("stepwise", "")):
        text = f"{HEADER}\ntable 4,{pattern},btu,10,real_time_compliance,48,percent,{sigma}\n"
        (tmp_path / f"peerj_cs_141_{pattern}.csv").write_text(text)
    assert published_cells(tmp_path) == {
        (pattern, "btu", 10.0, "real_time_compliance"): PublishedFigure(
            48, "percent", "table 4", sigma, SOURCE
        )
        for pattern, sigma in (("stepwise", None), ("two_level", 1.5))
    }


def test_two_files_must_agree(tmp_path):
    for name, mean in (("a", 48), ("b", 49)):
        text = f"{HEADER}\ntable 4,two_level,btu,10,real_time_compliance,{mean},percent,\n"
        (tmp_path / f"peerj_cs_141_{name}.csv").write_text(text)
    with pytest.raises(StoreError, match="two different means"):
        published_cells(tmp_path)
