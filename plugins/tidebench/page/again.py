"""Run again with changes: the form of the DAG `experiment`, filled in from a run that there was.

Airflow's own form cannot be filled in by an address. This one has the same fields, is made of the
same description of them, and says every problem at once before anything is triggered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.exceptions import DagNotFound
from airflow.models.dagrun import DagRun
from airflow.utils.types import DagRunTriggeredByType
from fastapi import HTTPException
from sqlalchemy import select

from include.experiment.form import experiment_params
from include.experiment.params import params_from_run, run_from_params
from include.experiment.run import Run
from include.measurements.store import RunStore
from tidebench.page.files import is_stored
from tidebench.page.removal import asked

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.orm import Session

    from include.experiment.spec import RunSpec

DAG_ID = "experiment"
MAY_RUN = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id=DAG_ID)
"""Who may trigger the DAG `experiment`. Airflow's own check."""
MOST_BYTES = 100_000
"""Of a form that is sent; one that is filled in has two thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One field of the form, as it is drawn: ``kind`` is choice, flag, lines or text."""

    name: str
    title: str
    about: str
    kind: str
    value: str
    known: Sequence[str] = ()

    @property
    def rows(self) -> int:
        """How many lines are seen."""
        return max(2, self.value.count("\n") + 1)


def sections_of(params: Mapping[str, Any]) -> Mapping[str, list[Entry]]:
    """The fields of the form by section, filled in; the first section is without a name."""
    sections: dict[str, list[Entry]] = {}
    for name, field in _form().items():
        value = params.get(name, field["default"])
        entry = Entry(
            name=name,
            title=field["title"],
            about=str(field.get("description") or field.get("description_md", "")).replace("*", ""),
            kind=_kind(field),
            value=_written(value),
            known=field.get("enum") or field.get("examples", ()),
        )
        sections.setdefault(field["section"] or "", []).append(entry)
    return sections


def params_of(root: Path, session: Session, run: str, dag_run: str) -> Mapping[str, Any]:
    """What the form is filled in with: a published run (`experiment/run`), a DAG run, or nothing.

    Raises HTTPException 404 for a run of which nothing is stored here.
    """
    if dag_run:
        found = _conf(session, dag_run)
        if found is None:
            raise HTTPException(404, f"There is no DAG run {dag_run} of the DAG {DAG_ID}.")
        return found
    if not run:
        return {}
    ((experiment, (run_id, *_)),) = list(asked([run]).items())
    if not is_stored(root, experiment, run_id):
        raise HTTPException(
            404,
            f"What {run} was asked for is not stored here: its folder was removed, or is on "
            "another machine. Its page says what it was of; fill that in by hand.",
        )
    stored = RunStore(root / experiment, experiment, run_id).run_json
    return params_from_run(Run.from_json(stored.read_text(encoding="utf-8")).spec)


def typed(body: bytes) -> Mapping[str, Any]:
    """The params that a form was sent with, as the DAG takes them.

    Raises HTTPException 413 for more than a form can be filled in with.
    """
    if len(body) > MOST_BYTES:
        raise HTTPException(413, "This is more than the form can be filled in with.")
    sent = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return dict(_typed(sent))


def triggered_again(params: Mapping[str, Any], user: str) -> str:
    """Trigger the DAG `experiment`; the id of its run, which begins with that of what it measures.

    Raises SpecError with every problem, HTTPException 503 when the DAG is not there.
    """
    run = run_from_params(params)
    changed = {name: value for name, value in params.items() if value != _form()[name]["default"]}
    try:
        trigger_dag(
            DAG_ID,
            run_id=_run_id(run),
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=user,
            conf={"experiment": run.experiment, **changed},
        )
    except DagNotFound as error:
        raise HTTPException(
            503, f"The DAG {DAG_ID} is not there (yet): it is in dags/ of Tidebench."
        ) from error
    return _run_id(run)


def _run_id(run: RunSpec) -> str:
    """Readable in Airflow's lists, and another one each time."""
    return f"{run.experiment}.{run.run_id}.{datetime.now(UTC):%Y%m%dT%H%M%S}"


@cache
def _form() -> Mapping[str, Mapping[str, Any]]:
    return experiment_params()


def _conf(session: Session, dag_run: str) -> Mapping[str, Any] | None:
    statement = select(DagRun.conf).where(DagRun.dag_id == DAG_ID, DagRun.run_id == dag_run)
    found = session.execute(statement).first()
    if found is None:
        return None
    return {name: value for name, value in (found.conf or {}).items() if name in _form()}


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return "choice"
    if field.get("type") == "boolean":
        return "flag"
    return "lines" if isinstance(field["default"], list) else "text"


def _written(value: Any) -> str:
    """A value as somebody would type it."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "\n".join(f"{name} = {_word(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(map(_word, value))
    return _word(value)


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.12g}" if isinstance(value, float) else json.dumps(value)


def _typed(sent: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Any]]:
    """What is no number where one is wanted stays as it is, for the check to name it."""
    for name, field in _form().items():
        text = sent.get(name, [""])[-1].replace("\r\n", "\n").strip()
        kind, types = _kind(field), field.get("type", "")
        if kind == "flag":
            yield name, text == "yes"
        elif kind == "lines":
            yield name, [line.strip() for line in text.split("\n") if line.strip()]
        elif not text and "null" in types:
            yield name, None
        else:
            value: Any = text
            with suppress(ValueError):
                if "integer" in types:
                    value = int(text)
                elif "number" in types:
                    value = float(text)
            yield name, value
