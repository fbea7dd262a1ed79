"""The classes that a report loads, archived, so that Java need not parse and verify them again.

``python -m include.results.tables.archive`` makes the archive (``make setup`` does) from a report
on one short run. It halves what Spark takes to start. Without it, or with one that another Java or
Spark has made, everything works as before: Java ignores it and reads the jars.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from include.experiment.params import run_from_params
from include.files.whole import sibling
from include.model.errors import SetupError
from include.runs.spark.session import ARCHIVE, JVM, local_driver, require_java
from include.runs.stages import run_all

DEADLINE_S = 900
_SUBMIT = Path(sysconfig.get_path("scripts")) / "spark-submit"
_JOB = Path(__file__).with_name("job.py")


def main() -> int:
    """Make the archive anew. A machine on which that fails can do without."""
    draft = sibling(ARCHIVE, "draft")
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    try:
        require_java()
        _make(draft)
        draft.replace(ARCHIVE)
    except (SetupError, OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or error
        sys.stderr.write(f"no archive was made, so Spark takes longer to start: {reason}\n")
    finally:
        draft.unlink(missing_ok=True)
    return 0


def _make(target: Path) -> None:
    """Report on a short run; Java writes down the classes as it ends."""
    driver = local_driver()
    driver[JVM] += f' "-XX:ArchiveClassesAtExit={target}"'
    settings = [part for pair in driver.items() for part in ("--conf", "=".join(pair))]
    with tempfile.TemporaryDirectory(prefix="tidebench-archive-") as root:
        run_all(run_from_params({"experiment": "classes", "duration_min": 10}), Path(root))
        job = [str(_JOB), "--folder", f"{root}/classes"]
        subprocess.run(
            [str(_SUBMIT), "--master", "local[*]", *settings, *job],
            capture_output=True, text=True, check=True, timeout=DEADLINE_S,
        )  # fmt: skip
    if not target.is_file():
        raise SetupError("Java wrote none")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.exit(main())
