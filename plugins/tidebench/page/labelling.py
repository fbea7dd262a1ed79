"""Tags, notes and the archive: what the page changes itself, and nothing of what was measured."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Form, HTTPException, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel

from include.model.errors import SpecError
from include.results.reports.labels import Change, change_labels, tags_in
from tidebench.connections import RESULTS, results_database_url
from tidebench.page.query import address_of, query_of
from tidebench.page.removal import asked
from tidebench.page.render import home
from tidebench.stage import data_root


class LabelForm(BaseModel):
    """What is sent: the chosen runs, each as `experiment/run`, and what changes of them."""

    run: list[str] = []
    tags: str | None = None
    add_tags: str = ""
    note: str | None = None
    archived: str | None = None


def label(
    request: Request, user: GetUserDep, form: Annotated[LabelForm, Form()]
) -> RedirectResponse:
    """Change the labels of the chosen runs, and go back to where that was asked for.

    From the list that is the list; from the page of one run, which gives ``note``, that page.
    """
    runs = [(experiment, one) for experiment, own in asked(form.run).items() for one in own]
    try:
        change = Change(
            tags=None if form.tags is None else tags_in(form.tags),
            add_tags=tags_in(form.add_tags),
            note=None if form.note is None else form.note.replace("\r\n", "\n"),
            archived=None if form.archived is None else form.archived == "yes",
        )
        known = change_labels(
            results_database_url(RESULTS, data_root()), runs, change, user.get_name()
        )
    except SpecError as error:
        raise HTTPException(422, str(error)) from error
    if not known:
        raise HTTPException(404, "There is no such published run; choose one in the list.")
    if form.note is not None and request.query_params.get("run"):
        return RedirectResponse(f"{home()}/compare?{request.query_params}", 303)
    return RedirectResponse(f"{home()}/?{address_of(query_of(request.query_params))}", 303)
