"""
Run one experiment and publish its report. Triggering it opens a form with every parameter.
- `resolve_spec`: every problem of the parameters at once, before anything is provisioned
- `wait_for_turn`: DAG runs of one experiment follow each other, others run side by side
- `provision_testbed`, `deploy_images`, `replay_arrivals`: the testbed is up and gets items
- `control_window`: one billing time unit each, strictly in order
- `release_testbed`: teardown, always; when it fails, the run fails
- `build_tables`, `check_tables`, `publish_report`: Spark, gates, files and results database
Every task is safe to repeat, also when killed. Results: `<experiment>/published/`.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from include.experiment.form import experiment_params
from tidebench import locks, spark, tasks, windows
from tidebench.stage import described

EXPERIMENT = "{{ ti.xcom_pull(task_ids='resolve_spec', key='experiment') }}"


@dag(
    **described(__doc__, experiment_params()),
    max_active_runs=16,  # those that wait, too: a matrix triggers what others wait for
    # The wait for a place, a run of two weeks in real time, and its report. What runs into it is
    # skipped, the teardown, too.
    dagrun_timeout=timedelta(days=21),
    tags=["experiment"],
)
def experiment() -> None:
    resolve = tasks.ResolveSpec(task_id="resolve_spec")
    run, run_ids = resolve.output["run"], [resolve.output["run_id"]]
    turn = locks.AcquireExperimentLock(
        task_id="wait_for_turn", experiment=EXPERIMENT, run_ids=run_ids, **locks.A_PLACE
    )
    provision = tasks.ProvisionTestbed(task_id="provision_testbed", run=run).as_setup()
    deploy = tasks.DeployImages(task_id="deploy_images", run=run)
    replay = tasks.ReplayArrivals(task_id="replay_arrivals", run=run)
    control = windows.ControlWindow.partial(
        task_id="control_window", run=run, **windows.IN_ORDER
    ).expand(window=resolve.output)
    release = tasks.ReleaseTestbed(task_id="release_testbed", run=run)
    build = spark.BuildTables(task_id="build_tables", experiment=EXPERIMENT)
    check = tasks.CheckTables(task_id="check_tables", experiment=EXPERIMENT)
    publish = tasks.PublishReport(task_id="publish_report", experiment=EXPERIMENT, run_ids=run_ids)

    resolve >> turn >> provision >> deploy >> replay >> control >> build >> check >> publish
    control >> release.as_teardown(setups=provision, on_failure_fail_dagrun=True)


experiment()
