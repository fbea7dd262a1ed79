from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path

import kubernetes_validate
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from include.advise.bill import cost_of, whole_hosts
from include.advise.candidates import policy, tried
from include.advise.cluster import ReplayLease
from include.advise.outcomes import leases_of
from include.advise.paste import configuration
from include.advise.replay import ReplayConditions
from include.advise.request import SUITABLE
from include.cli import app
from include.experiment.prices import price_book
from include.experiment.prices.books import book_of
from include.model.billing import MONTH_S
from tests.advise.synthetic import write_small_recording

CONDITIONS = ReplayConditions(instances_at_start=4, max_instances=8)


def test_leases_follow_the_counts_and_the_last_leased_ends_first() -> None:
    leases = leases_of(np.array([2.0, 3.0, 1.0, 1.0, 2.0]), 10.0)

    ends = sorted((one.ordered_s, one.ends_s) for one in leases)
    assert ends == [(0.0, 20.0), (0.0, 50.0), (10.0, 20.0), (40.0, 50.0)]


def test_a_month_costs_what_the_book_bills_for_the_leases() -> None:
    book = price_book("btu10")
    leases = [ReplayLease(0.0, 600.0, 601.0), ReplayLease(0.0, 600.0, 600.0)]

    assert cost_of(leases, book, 1200.0, 15.0) == pytest.approx(3 * MONTH_S / 1200)


def test_a_host_that_is_held_throughout_is_one_lease_of_a_month() -> None:
    book = book_of(
        {
            "name": "capped", "provider": "x", "region": "y", "instance_type": "z",
            "currency": "EUR", "per_hour": 0.0242, "rule": "hetzner", "cap_per_month": 15.0,
            "as_of": "2026-01-31", "source": "list",
        },
        "capped",
    )  # fmt: skip
    throughout = ReplayLease(0.0, 3600.0, 17.5 * 3600)

    assert cost_of([throughout], book, 17.5 * 3600, 15.0) == pytest.approx(15.0)
    hour = ReplayLease(3600.0, 7200.0, 7200.0)
    cost = cost_of([throughout, hour], book, 17.5 * 3600, 15.0)
    assert cost == pytest.approx(15.0 + 0.0242 * 730 / 17.5)


def fewest_by_brute_force(load: list[float], each: float, share: float, carried: float) -> float:
    """Whole hosts by step, every combination; a host carries so much of the step before it."""
    most = [math.ceil(one / each) for one in load]
    enough = share * sum(load) - 1e-9
    return min(
        float(sum(hosts))
        for hosts in itertools.product(*(range(n + 1) for n in most))
        if sum(
            min(one, n * each + carried * each * after)
            for one, n, after in zip(load, hosts, (*hosts[1:], 0), strict=True)
        )
        >= enough
    )


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.floats(0.5, 1.0),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_no_whole_hosts_process_the_share_for_less_than_the_bound(
    load: list[int], share: float, carried: float
) -> None:
    bound = float(whole_hosts(np.array(load, dtype=float), 10.0, share, carried).sum())

    least = fewest_by_brute_force([float(one) for one in load], 10.0, share, carried)
    assert bound <= least + 1e-6
    if not carried:
        assert bound > least - 1 - 1e-6  # the relaxation splits one host at most


def test_policies_that_are_tried_have_names_of_their_own_and_limits() -> None:
    policies = tried(CONDITIONS, [3, 6, 8], lag_each_items=185.4)

    names = [one.name for one in policies]
    assert len(set(names)) == len(names)
    assert {"tide", "flink-autoscaler", "keda, 185 records", "fixed, 3", "fixed, 8"} < set(names)
    assert {one.controller for one in policies} == set(SUITABLE)
    limits = [one.options["max_instances"] for one in policies if "max_instances" in one.options]
    assert set(limits) == {8}
    assert len(limits) >= 5


def test_an_hpa_is_pasted_as_kubernetes_has_it() -> None:
    hpa = policy("hpa", {"target_cpu": 0.35}, CONDITIONS)

    _, text = configuration(hpa, CONDITIONS)

    spec = yaml.safe_load(text)["spec"]
    assert spec["maxReplicas"] == 8
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 35
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300


def test_kubernetes_would_take_the_hpa() -> None:
    _, text = configuration(policy("hpa", {"target_cpu": 0.35}, CONDITIONS), CONDITIONS)

    written = yaml.safe_load(text)
    kubernetes_validate.validate(written, "1.29", strict=True)
    written["spec"]["maxReplica"] = 8
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(written, "1.29", strict=True)


def test_aws_is_given_the_limits_and_the_policy() -> None:
    """Members of RegisterScalableTarget and PutScalingPolicy (botocore 1.44.5,
    data/application-autoscaling/2016-02-06/service-2.json)."""
    _, text = configuration(policy("target-tracking", {}, CONDITIONS), CONDITIONS)

    parts = dict(part.split("\n", 1) for part in text.removeprefix("# ").split("\n# "))
    documents = {name: json.loads(document) for name, document in parts.items()}
    target = {"ServiceNamespace", "ResourceId", "ScalableDimension"}
    assert {name: set(members) for name, members in documents.items()} == {
        "register-scalable-target": target | {"MinCapacity", "MaxCapacity"},
        "put-scaling-policy": target
        | {"PolicyName", "PolicyType", "TargetTrackingScalingPolicyConfiguration"},
    }
    assert documents["register-scalable-target"]["MaxCapacity"] == 8
    tracking = documents["put-scaling-policy"]["TargetTrackingScalingPolicyConfiguration"]
    assert tracking["TargetValue"] == 50.0
    assert set(tracking) == {
        "TargetValue", "PredefinedMetricSpecification", "ScaleOutCooldown", "ScaleInCooldown",
        "DisableScaleIn",
    }  # fmt: skip


def test_keda_scales_by_the_records_for_an_instance() -> None:
    """Field names of kedacore/keda, config/crd/bases/keda.sh_scaledobjects.yaml; metadata is text
    there, and the behaviour that of autoscaling/v2."""
    _, text = configuration(policy("keda", {"items_each": 185.0}, CONDITIONS), CONDITIONS)

    written = yaml.safe_load(text)
    assert (written["apiVersion"], written["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    spec = written["spec"]
    assert set(spec) == {
        "scaleTargetRef", "minReplicaCount", "maxReplicaCount", "triggers", "advanced",
    }  # fmt: skip
    (trigger,) = spec["triggers"]
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    assert (trigger["type"], trigger["metadata"]["value"]) == ("rabbitmq", "185")
    assert spec["maxReplicaCount"] == 8
    hpa = yaml.safe_load(configuration(policy("hpa", {}, CONDITIONS), CONDITIONS)[1])
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    hpa["spec"]["behavior"] = behavior
    kubernetes_validate.validate(hpa, "1.29", strict=True)


@pytest.mark.parametrize("name", ["flink-autoscaler", "tide"])
def test_others_are_pasted_in_their_own_words(name: str) -> None:
    _, text = configuration(policy(name, {}, CONDITIONS), CONDITIONS)

    words = {"flink-autoscaler": "job.autoscaler.enabled"}
    assert words.get(name, "controller: tide") in text


def test_the_band_of_flink_is_pasted_as_its_ends() -> None:
    asked = {"target_share": 0.35, "boundary": 0.15}

    _, text = configuration(policy("flink-autoscaler", asked, CONDITIONS), CONDITIONS)

    options = yaml.safe_load(text)
    ends = [options[f"job.autoscaler.utilization.{end}"] for end in ("min", "target", "max")]
    assert [float(one) for one in ends] == pytest.approx([0.2, 0.35, 0.5])
    assert options["job.autoscaler.vertex.max-parallelism"] == "8"


def test_a_fixed_size_is_pasted_as_replicas() -> None:
    fixed = next(
        one for one in tried(CONDITIONS, [6, 3], lag_each_items=9.0) if one.name == "fixed, 6"
    )

    assert yaml.safe_load(configuration(fixed, CONDITIONS)[1]) == {"spec": {"replicas": 6}}


@pytest.mark.spark
def test_advise_writes_the_answer_the_table_and_what_to_paste(tmp_path: Path) -> None:
    write_small_recording(tmp_path / "job.csv")
    asked = ["--objective", "90 % within 1 s", "--max-instances", "8", "--seeds", "2"]
    asked += ["--controllers", "hpa,tide,btu,fixed"]

    result = CliRunner().invoke(
        app, ["advise", str(tmp_path / "job.csv"), *asked, "--out", str(tmp_path / "out")]
    )

    assert result.exit_code == 0, result.output
    first = result.output.splitlines()[1]
    published = tmp_path / "out" / "published"
    page = (published / "advice.html").read_text()
    assert "holds 90 % within 1 s at the lowest cost" in first
    assert first.split(" holds ")[0] in page
    rows = list(csv.DictReader((published / "advice_ranking.csv").read_text().splitlines()))
    assert [row["rank"] for row in rows] == [str(n) for n in range(len(rows))]
    assert rows[0]["policy"] == "as it was run"
    assert rows[0]["holds"] == "yes"
    costs = [float(row["cost_per_month"]) for row in rows[1:] if row["holds"] == "yes"]
    assert costs == sorted(costs)
    assert (published / "configuration.txt").read_text()
    assert (tmp_path / "out" / "data_docs" / "index.html").is_file()


@pytest.mark.spark
def test_an_objective_that_nothing_holds_is_said(tmp_path: Path) -> None:
    write_small_recording(tmp_path / "job.csv")
    asked = ["--objective", "99.99 % within 50 ms", "--seeds", "1", "--controllers", "hpa,fixed"]

    result = CliRunner().invoke(
        app, ["advise", str(tmp_path / "job.csv"), *asked, "--out", str(tmp_path / "out")]
    )

    assert result.exit_code == 0, result.output
    assert "No policy that can be relied on holds 99.99 % within 0.05 s" in result.output


def test_more_instances_on_a_host_cost_less() -> None:
    counts = np.array([4.0, 4.0, 6.0])
    one, two = (
        cost_of(leases_of(np.ceil(counts / n), 60.0), price_book("per_minute"), 180.0, 60.0)
        for n in (1, 2)
    )

    assert two == pytest.approx(one / 2)
