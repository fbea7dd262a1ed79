"""`make test` and the longer groups run every test, and none of them twice."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import REPOSITORY

MARKERS = (
    "long", "spark", "airflow", "scheduler", "openstack", "guests", "live", "recorded", "flink",
    "nightly",
)  # fmt: skip


@pytest.fixture(scope="module")
def groups() -> dict[str, tuple[str, str]]:
    """The marker expression and the path of every group, as Makefile and live.sh have them."""
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = {
        target: (expression.strip('"'), path or "tests")
        for target, expression, path in re.findall(
            r'^(test-[\w-]+): .*\n\t@.*pytest -q.* -m ("[^"]+"|\w+)(?: (tests/\S+))?$',
            makefile,
            re.MULTILINE,
        )
    }
    for name in ("test-live", "test-nightly", "test-openstack", "test-guests"):
        told = rf'^{name}: .*(?:\n\t.*)?\n\t.*live\.sh test ("[^"]+"|\w+) (\S+)$'
        first = re.search(told, makefile, re.MULTILINE)
        assert first, name
        targets[f"{name} on this machine"] = (first[1].strip('"'), first[2])
    return targets


def test_every_test_is_in_one_group(
    groups: dict[str, tuple[str, str]], collected: dict[str, set[str]]
) -> None:
    """Of those that pytest was asked for, which are all of them in the group of this test."""
    assert sorted(groups) == [
        "test-airflow", "test-fast", "test-flink", "test-flink-dag",
        "test-guests on this machine", "test-live on this machine", "test-long", "test-nightly",
        "test-nightly on this machine", "test-openstack on this machine", "test-recorded",
        "test-scheduler", "test-spark",
    ]  # fmt: skip
    assert groups["test-fast"][1] == "tests"
    wrong = {}
    for test, marks in collected.items():
        known = {name: name in marks for name in MARKERS}
        chosen = [
            group
            for group, (expression, path) in groups.items()
            # What pytest takes for an expression Python takes as well.
            if test.startswith(f"{path}/") and eval(expression, {}, known)
        ]
        if len(chosen) != 1:
            wrong[test] = chosen
    assert wrong == {}
