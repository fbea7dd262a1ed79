"""The tasks of nightly studies, around those of any matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.studies import NIGHT, PART, STUDIES, study_named
from tidebench.stage import Review, data_root, without_vain_retries

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from tidebench.batch import Cell

NAMED = {"map_index_template": "{{ task.experiment }}"}
"""For tasks that are mapped over studies: each copy is named after its own."""
IN_TURN = {"task_id": "wait_for_turn", "timeout": 6 * 3600, **NAMED}
"""For waiting until each is free: for half of what a night may take, in s."""
PARAMS = {
    "studies": {
        "default": [STUDIES[0]],
        "type": "array",
        "items": {"type": "string"},
        "examples": list(STUDIES),
        "title": "Studies",
        "description": "Which evaluations are measured anew and judged.",
        "minItems": 1,
    },
    "seeds": {
        "default": "",
        "type": "string",
        "title": "Seeds",
        "description": "Such as 1-3 or 25, 26: these alone. A part is published, but not judged.",
    },
    "patterns": {
        "default": [],
        "type": "array",
        "items": {"type": "string"},
        "title": "Patterns",
        "description": "Such as stepwise: these alone.",
    },
    "strict": {
        "default": False,
        "type": "boolean",
        "title": "Strict",
        "description": "Also fail when the mean error of a controller is above its limit.",
    },
    "accept_drift": {
        "default": False,
        "type": "boolean",
        "title": "Accept drift",
        "description": "Only say what moved since last night, and against the committed cells.",
    },
}
"""Per param of the DAG, the keyword arguments of an Airflow ``Param``."""


class ChooseStudies(BaseOperator):
    """Which studies are measured tonight, as the names of their experiments, for mapping."""

    def execute(self, context: Context) -> list[str]:
        """Return one experiment per study, each once. Fails for good when there is none."""
        with without_vain_retries():
            chosen = [study_named(name).name for name in context["params"]["studies"]]
            seeds_of(context)
        if not chosen:
            raise AirflowFailException(f"no study is chosen; there are {', '.join(STUDIES)}")
        part = PART if context["params"].get("seeds") or context["params"].get("patterns") else ""
        return [f"{NIGHT}{name}{part}" for name in dict.fromkeys(chosen)]


def seeds_of(context: Context) -> list[int]:
    """The seeds that a night is asked for; none for those of its studies. Raises SpecError."""
    from include.studies.base import seeds_in

    text = str(context["params"].get("seeds", ""))
    return seeds_in(text, "the params") if text.strip() else []


class ResolveStudies(BaseOperator):
    """Begin a night: what the last one measured goes, so that all of it is measured anew.

    The return value lists the cells of all studies for mapping, one per workload and controller,
    because a run alone may take less time than the task around it.
    """

    template_fields: Sequence[str] = ("experiments",)

    def __init__(self, *, experiments: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiments = experiments

    def execute(self, context: Context) -> list[Cell]:
        """Return the cells, in the order of the studies and of their tables."""
        from include.studies.nightly import begin_night, runs_of_night

        cells: dict[str, list[str]] = {}
        for experiment in self.experiments:
            study = experiment.removeprefix(NIGHT).removesuffix(PART)
            with without_vain_retries():
                patterns = context["params"].get("patterns", ())
                runs = runs_of_night(study_named(study), seeds_of(context), patterns)
            begin_night(data_root() / experiment, context["run_id"])
            for run in runs:
                name = f"{study}: {run.topology}, {run.pattern}, "
                cells.setdefault(name + run.controller, []).append(run.to_json())
        return [{"name": name, "runs": runs_of_cell} for name, runs_of_cell in cells.items()]


class CheckVerdict(Review):
    """Fail when measurements drifted, or the source is not reproduced.

    The params ``accept_drift`` and ``strict`` of the DAG run say which of the two fail it. Either
    way tonight is what the next night is held against.
    """

    writes = ("tonight",)

    def execute(self, context: Context) -> None:
        """Judge what is published, and name every reason at once."""
        if reasons := super().execute(context):
            raise AirflowFailException("\n\n".join(reasons))

    def work(self, folder: Path) -> list[str]:
        """Keep tonight, say what it came to, and return why it fails."""
        from include.model.errors import GateFailed
        from include.studies.nightly import drift_sentences, keep_night, require_no_drift
        from include.studies.publish import evaluate

        if folder.name.endswith(PART):
            self.say("a part of the study: it is published, and nothing is judged by it")
            return []
        study = study_named(folder.name.removeprefix(NIGHT))
        results = evaluate(study, folder)
        keep_night(study, results, folder, self.context["run_id"])
        for line in (*drift_sentences(study, results, folder), *study.summary(results).split("\n")):
            self.say("%s", line)
        judges: list[Callable[[], None]] = []
        if not self.context["params"]["accept_drift"]:
            judges.append(lambda: require_no_drift(study, results, folder))
        if self.context["params"]["strict"]:
            judges.append(lambda: study.require_reproduced(results))
        reasons = []
        for judge in judges:
            try:
                judge()
            except GateFailed as error:
                reasons.append(str(error))
        return reasons
