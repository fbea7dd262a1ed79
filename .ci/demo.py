"""Run one experiment through Airflow, show how it gets on, and print what came out.

The experiment is called demo and has the parameters that the DAG has by default; arguments of
the form name=value change them. Airflow's own log goes to a file, named when something fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

PROGRESS = re.compile(r"tidebench: (.*?)(?:\s+\[airflow\.|$)")
SUCCEEDED = re.compile(r"Marking run .* successful")
ERROR = re.compile(
    r"^[\w.]+(?:Error|Exception|Failed): ((?:.|\n(?!\d{4}-|Traceback| +File|\n))*)", re.MULTILINE
)
LAST_LINES = 25


def main(arguments: list[str]) -> int:
    """Run, narrate, summarise. Returns 0 when the run succeeded."""
    given = (argument.partition("=") for argument in arguments)
    conf = {"experiment": "demo"} | {name: parsed(value) for name, _, value in given}
    root = Path(os.environ["TIDEBENCH_DATA_ROOT"])
    folder = root / str(conf["experiment"])
    forget_other_inputs(conf, root)
    log = folder / "log" / "airflow.log"
    if any(folder.glob("runs/*/manifest.json")):
        print(f"Runs that are complete are not measured again; remove {folder} to begin anew.")
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as sink:
            succeeded = run(json.dumps(conf), sink)
    except OSError as error:
        print(f"Cannot write below {folder}: {error.strerror}. Set TIDEBENCH_DATA_ROOT.")
        return 1
    if not succeeded:
        text = log.read_text()
        errors = list(dict.fromkeys(found[1].strip() for found in ERROR.finditer(text)))
        print("\nThe run failed:\n")
        print("\n".join(errors[-3:] or text.splitlines()[-LAST_LINES:]))
        print(f"\nEverything that Airflow said is in {log}")
        return 1
    from include.results.reports.summary import summary
    from include.studies import printed

    print(f"\n{summary(folder, printed)}\n\nAirflow's log: {log}")
    return 0


def forget_other_inputs(conf: Mapping[str, object], root: Path) -> None:
    """Measure anew what an older calibration or topology measured; a demo may be thrown away."""
    from include.experiment.params import run_from_params
    from include.model.errors import TidebenchError
    from include.runs.stages import forget, stored_state
    from include.runs.stored import Stored

    try:
        spec = run_from_params(conf)
        stored = stored_state(spec, root)
    except TidebenchError:
        return  # the DAG says what is wrong
    if stored is Stored.OTHER_INPUTS:
        print("The stored run had other inputs, so it is measured anew.")
        forget(spec, root)


def run(conf: str, sink: TextIO) -> bool:
    """`airflow dags test experiment`: its log into ``sink``, its progress on the screen."""
    print(
        "airflow dags test experiment" + (f" --conf '{conf}'" if conf != "{}" else ""), flush=True
    )
    begin_s, succeeded = time.monotonic(), False
    command = ["airflow", "dags", "test", "experiment", "--conf", conf]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sink.write(line)
            succeeded |= bool(SUCCEEDED.search(line))
            if found := PROGRESS.search(line):
                print(f"{time.monotonic() - begin_s:5.0f} s  {found[1]}", flush=True)
    return succeeded and process.returncode == 0


def parsed(value: str) -> object:
    """A number where it reads as one, else the text."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
