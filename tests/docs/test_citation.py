"""How to cite: one fact in every file that says it."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import yaml

from tests.docs.pages import REPOSITORY


def text(name: str) -> str:
    return (REPOSITORY / name).read_text()


def cff() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text("CITATION.cff"))
    return loaded


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
    for compose in ("docker-compose.yaml", "infra/service/compose.yaml"):
        assert f"-tidebench:{cff()['version']}}}" in text(compose)
    language = json.loads(text("codemeta.json"))["programmingLanguage"]["version"]
    assert project["requires-python"] == f"=={language}.*"


def test_no_person_is_named_as_author() -> None:
    authors = json.loads(text("codemeta.json"))["author"]
    assert {one["@type"] for one in authors} == {"Organization"}
    assert not any(
        {"family-names", "given-names", "orcid"} & one.keys() for one in cff()["authors"]
    )
