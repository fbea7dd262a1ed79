"""Advisors beside a controller on the testbed `docker`: windows in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from include.experiment.spec import parse_spec
from include.files.whole import read_json
from include.runs import stages

pytestmark = [pytest.mark.live, pytest.mark.nightly]

RELAY = Path(__file__).with_name("relay.yaml")
INTERVAL_S = 15
DURATION_S = 60


@pytest.fixture(autouse=True)
def _images(images):
    """They have to be there."""


@pytest.fixture
def spec():
    """Nothing is scaled, and one of two advisors always wants more: no container is as idle."""
    wants = {
        "name": "target-tracking", "interval_s": INTERVAL_S, "target_share": 0.001,
        "out_periods": 1,
    }  # fmt: skip
    raw = {
        "name": "advised",
        "topology": str(RELAY),
        "controllers": {"name": "fixed", "interval_s": INTERVAL_S},
        "advisors": [wants, {"name": "tide", "interval_s": 10}],
        "patterns": {"name": "constant", "level": 20},
        "btus_min": 0.5,
        "duration_min": DURATION_S / 60,
    }
    (spec,) = parse_spec(raw, source="a test").points()
    return spec


def test_advisors_look_on_and_change_nothing(spec, tmp_path):
    stages.provision(spec, tmp_path)
    try:
        stages.deploy(spec, tmp_path)
        stages.replay_arrivals(spec, tmp_path)
        # Each window reads the snapshot of the one before, as a task does.
        for window in range(spec.windows):
            stages.control_windows(spec, tmp_path, window, window)
    finally:
        stages.release(spec, tmp_path)
    store = stages.store_of(spec, tmp_path)
    rows = {
        table: pq.ParquetFile(store.whole(table)).read().to_pylist()
        for table in ("advice", "decision", "scaling_activity", "queue")
    }
    assert not any("advisors_failed" in read_json(store.commit(n))["summary"] for n in range(2))
    times = {}
    for row in rows["advice"]:
        times.setdefault(row["advisor"].partition(" ")[0], set()).add(row["time_s"])
    assert times == {
        "target-tracking": set(range(0, DURATION_S, INTERVAL_S)),
        "tide": set(range(0, DURATION_S, 10)),
    }
    for row in rows["advice"]:
        assert row["instances"] == row["acted_instances"] >= 1, "fixed keeps what there is"
        assert row["hosts"] >= 1
    assert any(row["advised_instances"] > row["instances"] for row in rows["advice"])
    assert {row["action"] for row in rows["decision"]} <= {"wait", "prolong_lease"}
    assert {row["activity"] for row in rows["scaling_activity"]} <= {"host_prolonged"}
    assert sum(row["completed_items"] for row in rows["queue"]) > 1000
