"""Run again with changes: the form of a DAG, filled in from a run that there was.

Of a run it is that of the DAG `experiment`, of a matrix or a sweep that of its own.

Airflow's own form cannot be filled in by an address. This one has the same fields, is made of the
same description of them, and says every problem at once before anything is triggered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.configuration import conf
from airflow.exceptions import DagNotFound
from airflow.models.dagrun import DagRun
from airflow.utils.types import DagRunTriggeredByType
from fastapi import HTTPException
from sqlalchemy import select

from include.experiment.form import batch_params, experiment_params, sweep_params
from include.experiment.matrix import runs_in_file
from include.experiment.params import matrix_from_params, params_from_run, run_from_params
from include.experiment.run import Run
from include.runs.measurements.store import RunStore
from tidebench.page.files import is_stored
from tidebench.page.removal import asked
from tidebench.stage import spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.orm import Session


DAG_ID = "experiment"
MAY_RUN = requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id=DAG_ID)
"""Who may trigger the DAG `experiment`. Airflow's own check."""
MOST_BYTES = 100_000
"""Of a form that is sent; one that is filled in has two thousand."""


Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a DAG: its fields, and what a filled-in one asks for, as a name that DAG runs
    begin with. ``name`` raises SpecError with every problem."""

    dag_id: str
    fields: Callable[[], Mapping[str, Mapping[str, Any]]]
    name: Callable[[Params], str]


def _name_of_run(params: Params) -> str:
    run = run_from_params(params)
    return f"{run.experiment}.{run.run_id}"


def _name_of_matrix(params: Params) -> str:
    most_cells = conf.getint("core", "max_map_length")
    return f"{matrix_from_params(params, most_cells)[0].experiment}.matrix"


def _name_of_sweep(params: Params) -> str:
    return f"{runs_in_file(spec_file(str(params.get('spec', ''))))[0].experiment}.sweep"


FORMS: Mapping[str, Form] = {
    form.dag_id: form
    for form in (
        Form(DAG_ID, experiment_params, _name_of_run),
        Form("experiment_batch", batch_params, _name_of_matrix),
        Form("sweep", sweep_params, _name_of_sweep),
    )
}
"""By DAG. Whoever may trigger it may send its form."""
MAY_RUN_IT = requires_access_dag("POST", DagAccessEntity.RUN)
"""The same of the DAG that the address names."""


def form_of_dag(dag_id: str) -> Form:
    """The form of a DAG. Raises HTTPException 404 for one whose runs are not run again here."""
    if dag_id not in FORMS:
        raise HTTPException(404, "Runs of such a DAG are not run again here.")
    return FORMS[dag_id]


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


def sections_of(form: Form, params: Params) -> Mapping[str, list[Entry]]:
    """The fields of the form by section, filled in; the first section is without a name."""
    sections: dict[str, list[Entry]] = {}
    for name, field in form.fields().items():
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


def params_of(root: Path, session: Session, form: Form, run: str, dag_run: str) -> Params:
    """What the form is filled in with: a published run (`experiment/run`), a DAG run, or nothing.

    Raises HTTPException 404 for a run of which nothing is stored here.
    """
    if dag_run:
        found = _conf(session, form, dag_run)
        if found is None:
            raise HTTPException(404, f"There is no DAG run {dag_run} of the DAG {form.dag_id}.")
        return found
    if not run or form.dag_id != DAG_ID:
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


def typed(form: Form, body: bytes) -> Params:
    """The params that a form was sent with, as the DAG takes them.

    Raises HTTPException 413 for more than a form can be filled in with.
    """
    if len(body) > MOST_BYTES:
        raise HTTPException(413, "This is more than the form can be filled in with.")
    sent = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return dict(_typed(form, sent))


def triggered_again(form: Form, params: Params, user: str) -> str:
    """Trigger the DAG; the id of its run, which begins with the name of what it measures.

    Raises SpecError with every problem, HTTPException 503 when the DAG is not there.
    """
    run_id = f"{form.name(params)}.{datetime.now(UTC):%Y%m%dT%H%M%S}"
    fields = form.fields()
    always = ("experiment", "spec")
    changed = {
        name: value
        for name, value in params.items()
        if value != fields[name]["default"] or (name in always and value)
    }
    try:
        trigger_dag(
            form.dag_id,
            run_id=run_id,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=user,
            conf=changed,
        )
    except DagNotFound as error:
        raise HTTPException(
            503, f"The DAG {form.dag_id} is not there (yet): it is in dags/ of Tidebench."
        ) from error
    return run_id


def _conf(session: Session, form: Form, dag_run: str) -> Params | None:
    statement = select(DagRun.conf).where(DagRun.dag_id == form.dag_id, DagRun.run_id == dag_run)
    found = session.execute(statement).first()
    if found is None:
        return None
    return {name: value for name, value in (found.conf or {}).items() if name in form.fields()}


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


def _typed(form: Form, sent: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Any]]:
    """What is no number where one is wanted stays as it is, for the check to name it."""
    for name, field in form.fields().items():
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
