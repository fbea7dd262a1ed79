"""The tasks of the DAGs `advise` and `shadow_report`: what was recorded, or one day of a shadow, is
checked, replayed, ranked and answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.model.errors import ControllerFailed, StoreError
from tidebench.assets import ADVICE, Publish
from tidebench.lineage import PUBLISHED, STAGED, file, files
from tidebench.links import AdviceLink
from tidebench.stage import Review, data_root, without_vain_retries

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.advise.candidates import Policy
    from include.advise.case import Case

NAMED = {"map_index_template": "{{ task.policy.name }}"}
"""For tasks that are mapped over policies: each copy is named after its own."""
KEPT = "case/recording.parquet"
"""The recording as it was read, for the tasks behind."""
MEASURED = "measurements"
"""The rows of all policies are one dataset: who ranks them reads it whole."""


class ResolveAdvice(BaseOperator):
    """Check the recording and everything that is asked, all at once, before anything is replayed.

    What was read is kept, so that every task works on the same. XComs: ``experiment`` is the name
    of the folder; the return value lists the policies for mapping.
    """

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return one entry per policy: its position and its name in the UI."""
        from include.advise.case import keep
        from include.advise.form import read_from_params

        with without_vain_retries():
            name, read = read_from_params(context["params"], data_root())
            case = keep(read, data_root() / name)
        self.add_inlets(file(Path(read.request.recording).expanduser().resolve()))
        return self.to_replay(case, name, context)

    def to_replay(self, case: Case, name: str, context: Context) -> list[dict[str, Any]]:
        """Measure the recording itself anew, and list the policies."""
        from include.advise.outcomes import measure_recorded

        folder = data_root() / name
        measure_recorded(case, folder)
        self.add_outlets(files(folder, KEPT))
        context["ti"].xcom_push(key="experiment", value=name)
        self.log.info("tidebench: %d policies to replay", len(case.policies))
        return [{"position": k, "name": one.name} for k, one in enumerate(case.policies)]


class ResolveShadowDay(ResolveAdvice):
    """The same for one day of a shadow, which it cuts out of the recording, and its controllers."""

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return one entry per controller: its position and its name in the UI."""
        from include.advise.case import keep_case
        from include.advise.form import FOLDER, day_from_params, require_free
        from include.service.verdict import cut_day, request_of

        after = context["dag_run"].run_after or datetime.now(UTC)
        with without_vain_retries():
            shadow, day, asked = day_from_params(context["params"], after.astimezone(UTC).date())
            name, state = f"{FOLDER}{shadow}-{day.isoformat()}", data_root() / shadow
            require_free(data_root() / name)
            recording = cut_day(state, day)
            request = request_of(state, recording, asked)
            case = keep_case(request, data_root() / name, "shadow_report")
        self.add_inlets(files(recording, "*.csv"))
        return self.to_replay(case, name, context)


class MeasurePolicy(Review):
    """Replay one policy over the recorded load with every seed.

    Succeeds if its controller fails, so that the others are ranked: `PublishAdvice` fails then.
    """

    template_fields: Sequence[str] = ("experiment", "policy")
    reads = (KEPT,)
    writes = (MEASURED,)

    def __init__(self, *, policy: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.policy = policy

    def work(self, folder: Path) -> str:
        from include.advise.case import open_case
        from include.advise.outcomes import measure_policy

        case = open_case(folder)
        require_same(case.policies, self.policy)
        try:
            path = measure_policy(case, self.policy["position"], folder)
        except ControllerFailed as error:
            self.log.error("tidebench: not ranked: %s", error)
            return str(error)
        self.say("%s is replayed with %d seeds", self.policy["name"], case.question.seeds)
        return str(path)


def require_same(policies: Sequence[Policy], params: Mapping[str, Any]) -> None:
    """Raise StoreError when a newer request of this name has taken the place of the case."""
    names = [one.name for one in policies]
    if params["name"] not in names[params["position"] : params["position"] + 1]:
        raise StoreError(
            f"{params['name']} is not what is asked now: a newer DAG run has this name. Trigger "
            "the DAG again, with a name of its own"
        )


class BuildRanking(Review):
    """Rank the policies; a gate: nothing is published unless Great Expectations accepts that."""

    reads = (MEASURED,)
    writes = (STAGED, "staged/*.csv", "data_docs/verdict.json")

    def work(self, folder: Path) -> None:
        """Rank and check; the evidence is in ``data_docs/`` either way."""
        from include.advise.ranking import build_ranking

        rows = build_ranking(folder)
        self.say("the ranking of %d policies passed its checks", rows - 1)


class PublishAdvice(Publish):
    """Publish the page, the ranking, what to paste, and the model as an experiment.

    Fails afterwards when a controller failed: the DAG run must not pass for complete.
    """

    operator_extra_links = (AdviceLink(),)
    reads = (STAGED, "staged/*.csv")
    writes = (*PUBLISHED, "published/*.csv")
    assets = ADVICE

    def work(self, folder: Path) -> list[str]:
        from include.advise.answer import answer_of
        from include.advise.case import open_case
        from include.cli.advise import advice_table
        from include.service.verdict import publish_verdict

        answer = answer_of(open_case(folder), folder)
        target = publish_verdict(answer, folder)
        for line in advice_table(answer).splitlines():
            self.say("%s", line)
        return [str(path) for path in sorted(target.iterdir())]

    def require_own_runs(self) -> None:
        """Fail where a policy is not ranked."""
        from include.advise.outcomes import failures

        if failed := failures(data_root() / self.experiment):
            lines = ["the advice is published without what failed:", *failed.values()]
            raise AirflowFailException("\n".join(lines))
