"""How to cite, and what the README claims: one fact in every file that says it."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.docs.pages import REPOSITORY, blocks, commands

NOT_CLAIMS = {
    "3.11": "a version of Python",
    "17": "a version of the JDK",
    "120": "how long the demo is, which its specification says",
    "1": "a definition of compliance", "2": "the same", "5": "the same",
    "141": "the number of a paper", "12": "a volume, and 12 of 12 that has a row",
    "7": "an issue, and 7 of 12 that has a row",
    "3": "the number of an algorithm", "4": "of a figure",
    "20": "a period of the preprint", "15": "the monitoring period",
    "0.2.0": "a version",
    "2.0": "a licence",
    "29": "days and BTUs of recordings that are not part of the project", "36": "the same",
}  # fmt: skip
"""Numbers in the sentences of the README that are no result, and why."""


def text(name: str) -> str:
    return (REPOSITORY / name).read_text()


def cff() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text("CITATION.cff"))
    return loaded


def claims() -> list[dict[str, str]]:
    """The rows of the table of ARTIFACT.md."""
    lines = re.findall(r"^\| *(.*?) *\|$", text("ARTIFACT.md"), re.MULTILINE)
    head, _, *rows = ([cell.strip() for cell in re.split(r" \| |\|", line)] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


def plain(page: str) -> str:
    """Without what is only markup or space."""
    return " ".join(page.replace("*", "").split())


def test_codemeta_says_what_the_citation_file_says() -> None:
    meta, cited = json.loads(text("codemeta.json")), cff()
    assert meta["name"] == cited["title"]
    assert meta["description"] == " ".join(cited["abstract"].split())
    assert meta["version"] == cited["version"]
    assert meta["dateModified"] == str(cited["date-released"])
    assert meta["license"] == f"https://spdx.org/licenses/{cited['license']}"
    assert meta["keywords"] == cited["keywords"]
    assert [one["name"] for one in meta["author"]] == [one["name"] for one in cited["authors"]]


def test_version_and_licence_are_those_of_the_package_and_the_changelog() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert project["version"] == cff()["version"]
    assert project["license"] == cff()["license"]
    released = re.findall(r"^## (\d\S*)", text("CHANGELOG.md"), re.MULTILINE)
    assert released[0] == cff()["version"]
    language = json.loads(text("codemeta.json"))["programmingLanguage"]["version"]
    assert project["requires-python"] == f"=={language}.*"


def test_no_person_is_named_as_author() -> None:
    authors = json.loads(text("codemeta.json"))["author"]
    assert {one["@type"] for one in authors} == {"Organization"}
    assert not any(
        {"family-names", "given-names", "orcid"} & one.keys() for one in cff()["authors"]
    )


def test_every_claim_is_in_the_readme_word_for_word() -> None:
    assert len(claims()) >= 12
    for claim in claims():
        quoted = claim["the README says"].strip('"')
        assert plain(quoted) in plain(text("README.md")), claim["claim"]
        assert all(claim.values()), claim["claim"]


def test_every_claim_has_its_commands_and_every_command_its_claim() -> None:
    (block,) = (one.text for one in blocks("sh") if one.page == "ARTIFACT.md")
    noted = re.findall(r"# (.*)$", block, re.MULTILINE)
    made = {name for note in noted for name in note.split(", ")}
    others = {"demo-cost", "same"}  # of the run that demo has measured
    assert made | others == {claim["claim"] for claim in claims()}
    assert len(commands()) > len(block.splitlines()) > 8


def test_every_number_in_a_sentence_of_the_readme_is_a_claim_or_said_why_not() -> None:
    sentences = re.sub(r"```.*?```|`[^`]*`", "", text("README.md"), flags=re.DOTALL)
    sentences = re.sub(r"\]\([^)]*\)", "]", sentences)
    found = re.findall(r"(?<![\w.])\d(?:[\d,.]*\d)?", sentences)
    told = " ".join(claim["the README says"] for claim in claims())
    unknown = {one for one in found if one not in NOT_CLAIMS and not re.search(rf"\b{one}\b", told)}
    assert not unknown, f"ARTIFACT.md has no row for {sorted(unknown)}"
    assert {"1.7", "95"} <= set(found), "or nothing was looked at"


@pytest.mark.parametrize("claim", ["demo-dag", "demo", "demo-cost"])
def test_the_figures_of_the_demo_are_those_that_the_readme_shows(claim: str) -> None:
    (row,) = (one for one in claims() if one["claim"] == claim)
    shown = {
        re.findall(r"\d+\.\d+", line)[0]
        for line in re.findall(r"^  [A-Z].*\d\.\d.*$", text("README.md"), re.MULTILINE)
    }
    figures = re.findall(r"\d+\.\d+", row["expected"])
    assert len(figures) in (2, 3)
    assert set(figures) <= shown, row["expected"]
