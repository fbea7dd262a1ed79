"""What the tasks add to the stages they call: names, and which errors are worth a retry."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.control.stages import store_of
from include.control.stored import mark_code
from include.experiment.form import experiment_params
from include.experiment.params import run_from_params
from include.model.errors import (
    CapacityExhausted,
    GateFailed,
    PublishError,
    SetupError,
    SpecError,
    StoreError,
    TestbedNotReady,
    TidebenchError,
)

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("default"),  # Airflow warns about its own dependencies
]


def resolve(**params: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Windows and XComs of `resolve_spec` for the default parameters and these."""
    from tidebench.tasks import ResolveSpec

    xcoms: dict[str, str] = {}
    ti = SimpleNamespace(xcom_push=lambda key, value: xcoms.update({key: value}))
    defaults = {name: keywords["default"] for name, keywords in experiment_params().items()}
    context: Any = {"params": defaults | params, "ti": ti}
    return ResolveSpec(task_id="resolve_spec").execute(context), xcoms


@pytest.mark.parametrize(
    "error",
    [
        SpecError("params", ["a problem"]),
        CapacityExhausted("no quota"),
        GateFailed("not true"),
        SetupError("no Java"),
        StoreError("damaged"),
    ],
)
def test_what_a_retry_cannot_fix_fails_for_good_with_its_message(error: TidebenchError) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidebench.stage import without_vain_retries

    with pytest.raises(AirflowFailException) as raised, without_vain_retries():
        raise error
    assert str(raised.value) == str(error)


@pytest.mark.parametrize("error", [TestbedNotReady("booting"), PublishError("locked")])
def test_what_a_retry_may_fix_is_retried(error: TidebenchError) -> None:
    from tidebench.stage import without_vain_retries

    with pytest.raises(type(error)), without_vain_retries():
        raise error


def test_a_set_up_that_fails_says_why_and_not_what_its_clean_up_met(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidebench.tasks import ProvisionTestbed

    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(data_root))
    run = run_from_params({"experiment": "damaged"})
    mark_code(store_of(run, data_root))
    store_of(run, data_root).run_json.write_text("{}")
    task = ProvisionTestbed(task_id="provision_testbed", run=run.to_json())
    context: Any = {}
    with pytest.raises(AirflowFailException, match="with other inputs"):
        task.execute(context)


def test_windows_are_named_by_their_minutes_and_the_last_ends_with_the_run() -> None:
    windows, xcoms = resolve(duration_min=25, btu_min=10)
    assert windows == [
        {"index": 0, "name": "window 000, minute 0 to 10"},
        {"index": 1, "name": "window 001, minute 10 to 20"},
        {"index": 2, "name": "window 002, minute 20 to 25"},
    ]
    assert '"duration_min":25' in xcoms["run"]


def test_a_wrong_parameter_is_reported_before_anything_is_provisioned() -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"controller 'btuu'.*Did you mean 'btu'"):
        resolve(controller="btuu")
