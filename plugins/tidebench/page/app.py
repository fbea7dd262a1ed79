"""The page as an application that Airflow's API server mounts. Every address needs a log-in."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.utils.session import create_session
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.exceptions import HTTPException as AnyHTTPException

from include.model.errors import PublishError
from tidebench.connections import results_database_url
from tidebench.page.advice import advice_list
from tidebench.page.bundle import bundle
from tidebench.page.cases import cases_of, way_of
from tidebench.page.changes import (
    MAY_REMOVE,
    MAY_RUN,
    RIGHTS,
    label,
    removable,
    require_same_site,
    rights_of,
    trigger_removal,
)
from tidebench.page.checks import checks_of
from tidebench.page.compare import compared, found_runs
from tidebench.page.concurrency import ConcurrencyLimit
from tidebench.page.curves import TABLE, curves_of
from tidebench.page.files import (
    DOCS_INDEX,
    HEADERS,
    KINDS,
    files_of,
    find_file,
    in_theme,
    with_way_back,
)
from tidebench.page.listing import runs_csv, runs_list
from tidebench.page.query import query_of
from tidebench.page.render import PAGE_HEADERS, home, render
from tidebench.page.under_way import UnderWay, under_way
from tidebench.stage import data_root

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

HERE = Path(__file__).parent
FORBIDDEN = "You may not do this here; ask who administers this Airflow for the right."
ASSETS = {
    "page.css": KINDS[".css"],
    "page.js": "text/javascript",
    "theme.js": "text/javascript",
    "curves.js": "text/javascript",
    "icon.svg": KINDS[".svg"],
    "vendor/uplot/uPlot.iife.min.js": "text/javascript",
    "vendor/uplot/uPlot.min.css": KINDS[".css"],
}
"""Files of the page itself, and the library that draws its curves."""
T = TypeVar("T")
Chosen = Annotated[list[str] | None, Query()]
"""Runs, each as `experiment/run`."""
MAY_READ = requires_access_dag("GET", DagAccessEntity.RUN, param_dag_id="experiment")
"""Who may see the runs of the DAG `experiment` may see what came of them. Airflow's own check."""


def create_app() -> FastAPI:
    """The application; there are no addresses without the check, not even for its own docs."""
    app = FastAPI(
        title="Tidebench",
        dependencies=[Depends(ConcurrencyLimit(), scope="function"), Depends(MAY_READ)],
        openapi_url=None,
        exception_handlers={
            AnyHTTPException: _refused,
            PublishError: _unpublished,
            FileNotFoundError: _replaced,
            RequestValidationError: _misunderstood,
        },
    )
    app.get("/", response_class=HTMLResponse)(show_list)
    app.get("/runs.csv")(show_csv)
    app.get("/under-way", response_class=HTMLResponse)(show_under_way)
    app.get("/advice", response_class=HTMLResponse)(show_advice)
    app.get("/compare", response_class=HTMLResponse)(show_runs)
    may_run, may_remove = Depends(MAY_RUN), Depends(MAY_REMOVE)
    from_here = Depends(require_same_site)
    app.get("/curves")(show_curves)
    app.get("/remove", response_class=HTMLResponse, dependencies=[may_remove])(ask_removal)
    app.post("/remove", response_class=HTMLResponse, dependencies=[may_remove, from_here])(remove)
    app.post("/label", dependencies=[may_run, from_here])(label)
    app.get("/bundle/{experiment}.zip")(show_bundle)
    app.get("/checks/{experiment}", response_class=HTMLResponse)(show_checks)
    app.get("/files/{experiment}/{path:path}")(show_file)
    app.get("/assets/{name:path}")(show_asset)
    return app


def show_list(request: Request, user: GetUserDep) -> HTMLResponse:
    """Runs that match the address, sorted, page by page; above them those that are under way."""
    root = data_root()
    query = query_of(request.query_params)
    going = _under_way(user, str(query.equal.get("experiment", "")))
    runs = runs_list(results_database_url(root), root, query)
    return _page("list", {**runs, "under_way": going}, user)


def show_csv(request: Request) -> Response:
    """All runs that match the address, as the list has them."""
    name = {"Content-Disposition": 'attachment; filename="runs.csv"'}
    text = runs_csv(results_database_url(data_root()), query_of(request.query_params))
    return Response(text, media_type=KINDS[".csv"], headers={**HEADERS, **name})


def show_under_way(user: GetUserDep, experiment: str = "") -> HTMLResponse:
    """The part of the list that changes by itself, for its script."""
    return _page("under_way", {"under_way": _under_way(user, experiment)})


def _under_way(user: BaseUser, experiment: str) -> list[UnderWay]:
    """With a connection of its own, given back in this thread.

    One of the request would be given back by the event loop, which may just be waiting for one: it
    looks up there whether a log-in was revoked.
    """
    with create_session(scoped=False) as session:
        return under_way(session, user, experiment)


def show_advice(user: GetUserDep) -> HTMLResponse:
    """What is advised, newest first."""
    return _page("advice", {"advice": advice_list(data_root())}, user)


def show_runs(user: GetUserDep, run: Chosen = None, by: str = "") -> HTMLResponse:
    """One run, or several side by side."""
    chosen = list(dict.fromkeys(run or ()))
    root = data_root()
    content = compared(results_database_url(root), root, chosen, by)
    return _page("compare", content, user)


def show_curves(run: Chosen = None, by: str = "") -> Response:
    """Curves of the same runs, for the script of that page."""
    names = list(dict.fromkeys(run or ()))
    chosen = found_runs(results_database_url(data_root()), names, [TABLE])
    runs = [tables["runs"][0] for tables in chosen]
    return JSONResponse(curves_of(cases_of(runs, way_of(runs, by)), chosen), headers=HEADERS)


def ask_removal(user: GetUserDep, run: Chosen = None) -> HTMLResponse:
    """Which runs would be removed, and a button that does it."""
    return _page("remove", {"runs": removable(run or ()), "dag_runs": {}}, user)


def remove(user: GetUserDep, run: Chosen = None) -> HTMLResponse:
    """Trigger the DAG that removes the runs."""
    runs = removable(run or ())
    dag_runs = trigger_removal(runs, user.get_name())
    return _page("remove", {"runs": runs, "dag_runs": dag_runs}, user)


def show_checks(user: GetUserDep, experiment: str) -> HTMLResponse:
    """What the gate said about the tables of an experiment, and its evidence."""
    checks = checks_of(data_root(), experiment)
    return _page("checks", _there(checks, "There are no checks of such an experiment here."), user)


def show_bundle(experiment: str) -> StreamingResponse:
    """Everything that is published of an experiment, as one file."""
    root = data_root()
    _there(
        find_file(root, experiment, "published/manifest.json"),
        "Nothing is published of such an experiment here.",
    )
    name = {"Content-Disposition": f'attachment; filename="{experiment}.zip"'}
    return StreamingResponse(
        bundle(root, experiment), media_type="application/zip", headers={**HEADERS, **name}
    )


def show_file(request: Request, experiment: str, path: str) -> Response:
    """A published file, or one of the Data Docs; our page of checks in place of their index."""
    root = data_root()
    no_file = "There is no such file among what is published."
    file = _there(find_file(root, experiment, path), no_file)
    if path == DOCS_INDEX:
        return RedirectResponse(f"../../../checks/{experiment}")
    if file.suffix == ".html":
        text = file.read_text(encoding="utf-8", errors="replace")
        text = with_way_back(text, home(), experiment, files_of(root, experiment))
        text = in_theme(text, request.cookies.get("tidebench_theme", ""))
        return HTMLResponse(text, headers=HEADERS)
    return FileResponse(file, media_type=KINDS[file.suffix], headers=HEADERS)


def show_asset(name: str) -> FileResponse:
    """Style sheets, scripts and icon of the page."""
    if name not in ASSETS:
        raise HTTPException(404, "There is no such file.")
    return FileResponse(HERE / name, media_type=ASSETS[name], headers=HEADERS)


def _there(value: T | None, otherwise: str) -> T:
    """What was asked for. Raises HTTPException 404 that says ``otherwise``."""
    if value is None:
        raise HTTPException(404, otherwise)
    return value


def _page(
    name: str, content: Mapping[str, object], user: BaseUser | None = None, status: int = 200
) -> HTMLResponse:
    """A page with the links and buttons of what ``user`` may do; without one there are none."""
    rights = dict.fromkeys(RIGHTS, False) if user is None else rights_of(user)
    return HTMLResponse(render(name, {**content, **rights}), status, PAGE_HEADERS)


async def _refused(request: Request, error: Exception) -> Response:
    """Who is not logged in goes to the log-in and comes back; what is wrong is said in words."""
    assert isinstance(error, AnyHTTPException)
    reader = "text/html" in request.headers.get("accept", "")
    if error.status_code == 401 and reader:
        here = str(request.url.replace(scheme="", netloc=""))
        return RedirectResponse(get_auth_manager().get_url_login(next_url=here), 302)
    text = error.detail
    if text == HTTPStatus(error.status_code).phrase:  # of the router or of Airflow itself
        text = FORBIDDEN if error.status_code == 403 else "There is no such page here."
    answer = _message(text, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _unpublished(request: Request, error: Exception) -> Response:
    return _message(str(error), 503)


async def _replaced(request: Request, error: Exception) -> Response:
    """Publishing and removing take files away between a look and the reading."""
    return _message("This was removed or published anew just now. Load the page again.", 404)


async def _misunderstood(request: Request, error: Exception) -> Response:
    return _message("This address or form is not one that a page here has made.", 422)


def _message(text: str, status: int) -> HTMLResponse:
    return _page("message", {"text": text}, status=status)
