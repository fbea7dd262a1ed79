"""What the page changes: labels itself, and removing runs by the DAG `remove_runs`.

Nothing of what was measured is changed here, and nothing by a page of another site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.exceptions import DagNotFound
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from fastapi import Form, HTTPException, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from sqlalchemy import select

from include.model.errors import SpecError
from include.results.reports.labels import Change, change_labels, tags_in
from include.results.reports.removal import known_runs
from tidebench.connections import results_database_url
from tidebench.page.files import is_experiment
from tidebench.page.query import address_of, query_of
from tidebench.page.render import home
from tidebench.stage import data_root

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

DAG_ID = "remove_runs"
MAY_RUN = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id="experiment")
"""Who may trigger the DAG `experiment` may label what came of it. Airflow's own check."""
MAY_REMOVE = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id=DAG_ID)
"""Who may trigger the DAG `remove_runs` may remove runs. Airflow's own check."""

_ONE_AT_A_TIME = Lock()
"""A double click asks twice at once; the second finds the DAG run of the first."""

RIGHTS = {
    "may_label": "experiment",
    "may_run_matrix": "experiment_batch",
    "may_advise": "advise",
    "may_remove": DAG_ID,
}
"""What a page offers, and the DAG that the user has to be allowed to trigger for it."""


def may(user: BaseUser, method: ResourceMethod, dag: str) -> bool:
    """Whether this user may see (GET) or trigger (POST) runs of a DAG."""
    return get_auth_manager().is_authorized_dag(
        method=method, access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag), user=user
    )


def rights_of(user: BaseUser) -> Mapping[str, bool]:
    """What this user may change, so that a page shows no button that would be refused."""
    return {right: may(user, "POST", dag) for right, dag in RIGHTS.items()}


def require_same_site(request: Request) -> None:
    """Raise HTTPException 403 where the browser says otherwise; programs say nothing.

    A browser sends the cookie of the log-in along whoever asks, so it alone is no consent.
    """
    if site := request.headers.get("sec-fetch-site"):
        from_here = site == "same-origin"
    else:
        origin = request.headers.get("origin")
        from_here = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not from_here:
        raise HTTPException(403, "This is changed from the page Experiments only.")


def runs_by_experiment(chosen: Sequence[str], action: str) -> Mapping[str, list[str]]:
    """The chosen runs by experiment, each given as `experiment/run`. HTTPException 404 for none.

    ``action`` is the button that was pressed.
    """
    runs: dict[str, list[str]] = {}
    for chosen_run in dict.fromkeys(chosen):
        experiment, _, run = chosen_run.partition("/")
        if not (is_experiment(experiment) and run):
            raise HTTPException(404, f"{chosen_run} is not a run; choose in the list.")
        runs.setdefault(experiment, []).append(run)
    if not runs:
        raise HTTPException(404, f"Choose at least one run in the list, then press “{action}”.")
    return runs


def removable(chosen: Sequence[str]) -> Mapping[str, list[str]]:
    """The chosen runs by experiment. HTTPException 404 for those neither stored nor published."""
    runs = runs_by_experiment(chosen, "Remove the chosen")
    root = data_root()
    url = results_database_url(root)
    absent = [
        f"{experiment}/{run}"
        for experiment, run_ids in runs.items()
        for run in set(run_ids) - known_runs(root / experiment, url)
    ]
    if absent:
        raise HTTPException(404, f"There is no run {', '.join(sorted(absent))}: none to remove.")
    return runs


def trigger_removal(runs: Mapping[str, Sequence[str]], user: str) -> Mapping[str, str]:
    """Trigger a DAG run per experiment, unless one is under way for its runs; returns the ids.

    A second one would begin when the first has ended, and fail: the runs are not there any more.
    """
    ids = {}
    for experiment, run_ids in runs.items():
        with _ONE_AT_A_TIME:
            dag_run = _removal_under_way(experiment, run_ids) or _trigger(experiment, run_ids, user)
        if dag_run is not None:
            ids[experiment] = dag_run
    return ids


def _removal_under_way(experiment: str, run_ids: Sequence[str]) -> str | None:
    """Id of a DAG run that has not ended and removes all of these runs."""
    statement = select(DagRun.run_id, DagRun.conf).where(
        DagRun.dag_id == DAG_ID, DagRun.state.in_(("queued", "running"))
    )
    with create_session(scoped=False) as session:
        for dag_run, conf in session.execute(statement):
            same = conf and conf.get("experiment") == experiment
            if same and all(run in conf.get("runs", ()) for run in run_ids):
                return str(dag_run)
    return None


def _trigger(experiment: str, run_ids: Sequence[str], user: str) -> str | None:
    try:
        dag_run = trigger_dag(
            DAG_ID,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=user,
            conf={"experiment": experiment, "runs": list(run_ids)},
        )
    except DagNotFound as error:
        raise HTTPException(
            503, f"The DAG {DAG_ID} is not there (yet): it is in dags/ of Tidebench."
        ) from error
    return None if dag_run is None else dag_run.run_id


class LabelForm(BaseModel):
    """What is sent: the chosen runs, each as `experiment/run`, and what changes of them."""

    run: list[str] = []
    tags: str | None = None
    add_tags: str = ""
    note: str | None = None
    archived: str | None = None
    seen: str | None = None
    """When the labels had been changed last as the form was made."""

    @property
    def action(self) -> str:
        """The button of the list that sends this form."""
        if self.archived is None:
            return "Tag"
        return "Archive the chosen" if self.archived == "yes" else "Take the chosen back"


def label(
    request: Request, user: GetUserDep, form: Annotated[LabelForm, Form()]
) -> RedirectResponse:
    """Change the labels of the chosen runs, and go back to where that was asked for.

    From the list that is the list; from the page of one run, which gives ``note``, that page.
    """
    runs = [
        (experiment, run)
        for experiment, run_ids in runs_by_experiment(form.run, form.action).items()
        for run in run_ids
    ]
    try:
        change = Change(
            tags=None if form.tags is None else tags_in(form.tags),
            add_tags=tags_in(form.add_tags),
            note=None if form.note is None else form.note.replace("\r\n", "\n"),
            archived=None if form.archived is None else form.archived == "yes",
            seen=form.seen,
        )
        url = results_database_url(data_root())
        changed = change_labels(url, runs, change, user.get_name())
    except SpecError as error:
        raise HTTPException(422, str(error)) from error
    if not changed:
        raise HTTPException(404, "There is no such published run; choose one in the list.")
    if form.note is not None and request.query_params.get("run"):
        return RedirectResponse(f"{home()}/compare?{request.query_params}", 303)
    return RedirectResponse(f"{home()}/?{address_of(query_of(request.query_params))}", 303)
