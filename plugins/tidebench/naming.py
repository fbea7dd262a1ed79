"""What people call a DAG run: `try-one · threshold · stepwise · seed 1`.

Light, because the scheduler asks for it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

BETWEEN = " · "
MOST_LISTED = 3
MOST_LETTERS = 60
"""Of one part of a name. Whoever types a parameter may type anything."""


def name_of(dag_id: str, params: Mapping[str, Any]) -> str:
    """The name of a run of this DAG with these parameters; empty for a DAG whose runs have none.

    Parameters are as they were typed: nobody has checked them yet.
    """
    if dag_id == "experiment":
        seed = f"seed {_text(params.get('seed'))}"
        return _joined(params, "experiment", "controller", "pattern", last=seed)
    if dag_id in ("experiment_batch", "sweep") and params.get("spec"):
        kind = "matrix" if dag_id == "experiment_batch" else "sweep"
        return f"{kind} of {PurePath(_text(params['spec'], most=1000)).stem}"
    if dag_id == "experiment_batch":
        seeds = f"seeds {_text(params.get('seeds'))}"
        return _joined(params, "experiment", "controllers", "patterns", last=seeds)
    if dag_id == "remove_runs":
        return _joined(params, "experiment", last=f"remove {_text(params.get('runs'))}")
    if dag_id == "advise":
        recording = PurePath(_text(params.get("recording"), most=1000)).name
        return _joined(params, "name", last=f"advice on {_text(recording)}")
    if dag_id == "shadow_report":
        return f"{_text(params.get('shadow'))}{BETWEEN}day {_text(params.get('day') or 'before')}"
    if dag_id == "nightly_reproducibility":
        return f"reproducibility{BETWEEN}{_text(params.get('studies'))}"
    return ""


def _joined(params: Mapping[str, Any], *names: str, last: str) -> str:
    return BETWEEN.join([*(_text(params.get(name)) for name in names), last])


def _text(value: Any, most: int = MOST_LETTERS) -> str:
    """One value, or the first of several."""
    several = value if isinstance(value, list | tuple) else [value]
    texts = [" ".join(str(item).split()) for item in several[:MOST_LISTED]]
    text = ", ".join(texts)
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    more = len(several) - len(texts)
    return f"{text} and {more} more" if more else text
