"""Tables as text: rounded for readers, and safe in the language they are written in."""

from __future__ import annotations

from include.results.reports.documents import (
    MOST_TYPESET,
    as_csv,
    as_latex,
    as_markdown,
    cell_text,
    suffixes,
)
from include.results.tables.catalogue import Column, TableSchema

NAME = Column(name="run", type="string", unit="name", description="Which | one")
COST = Column(name="resource_cost", type="double", unit="cost", description="What", decimals=2)
SCHEMA = TableSchema(name="bill", description="Bills.", key=("run",), columns=(NAME, COST))
ROWS = [{"run": "a|b_50%", "resource_cost": 1 / 3}, {"run": 'say "x", y', "resource_cost": None}]


def test_numbers_are_rounded_and_zero_has_no_sign() -> None:
    assert cell_text(68.0, COST) == "68.00"
    assert cell_text(-0.001, COST) == "0.00"
    assert cell_text(True, NAME) == "yes"
    assert cell_text(None, COST) == ""


def test_csv_quotes_what_needs_it() -> None:
    assert as_csv(ROWS, SCHEMA) == 'run,resource_cost\na|b_50%,0.33\n"say ""x"", y",\n'


def test_keys_have_the_digits_that_tell_them_apart() -> None:
    btu = Column(name="btu_min", type="double", unit="minutes", description="BTU", decimals=0)
    schema = TableSchema(name="cells", description="Cells.", key=("btu_min",), columns=(btu, COST))
    keys = (10.0, 7.5, 8.0, 0.5, 0.0, 20 / 60, 0.1 + 0.2)
    rows = [{"btu_min": key, "resource_cost": key} for key in keys]
    cells = "10,10.00 7.5,7.50 8,8.00 0.5,0.50 0,0.00 0.333333333,0.33 0.3,0.30"
    assert as_csv(rows, schema).splitlines()[1:] == cells.split()
    assert "| 7.5 | 7.50 |" in as_markdown(rows, schema)


def test_markdown_escapes_bars_and_explains_columns() -> None:
    text = as_markdown(ROWS, SCHEMA)
    assert "| a\\|b_50% | 0.33 |" in text
    assert "| run | name | Which \\| one |" in text
    assert "| --- | ---: |" in text


def test_latex_is_a_booktabs_table_with_escaped_text() -> None:
    text = as_latex(ROWS, SCHEMA)
    assert "\\begin{tabular}{lr}\n\\toprule\nrun & resource\\_cost \\\\\n\\midrule" in text
    assert "a|b\\_50\\% & 0.33 \\\\" in text
    assert text.rstrip().endswith("\\bottomrule\n\\end{tabular}")


def test_what_nobody_would_print_is_for_programs_only() -> None:
    assert suffixes(MOST_TYPESET) == ["csv", "md", "tex"]
    assert suffixes(MOST_TYPESET + 1) == ["csv"]
