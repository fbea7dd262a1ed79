"""The only place with Spark settings."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING

from include.model.errors import SetupError, SpecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
ANSWERS_WITHIN_S = 60.0
_INSTALL = "Install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME to it."
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

_MASTER = re.compile(r"local(\[(\*|\d+)(, *\d+)?\]|-cluster\[.+\])?|(spark|k8s)://.+|yarn")
_OF_NO_USE = b"WARNING: Using incubator modules:"
"""Java says so at every start, because Spark asks for its vectors."""
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # Aggregates and sorts would begin with a page of 64 MB each, and fill a gigabyte with them.
    "spark.buffer.pageSize": "1m",
}

JVM = "spark.driver.extraJavaOptions"
ARCHIVE = Path(
    os.environ.get("TIDEBENCH_SPARK_CLASSES")
    or Path(__file__).parents[3] / "var" / "spark-classes.jsa"
)
"""What archive.py makes: the classes of Spark, parsed and verified."""
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"


def local_driver() -> dict[str, str]:
    """Settings that count before the JVM starts, so only where this machine starts it.

    The second compiler would not pay for itself in an application of a few seconds.
    """
    options = [
        _ONE_COMPILER,
        # A report takes 40 of the 48 MB that Java has for code with one compiler; Spark ends in an
        # error where they are full, as with every query asked three times in one session.
        "-XX:ReservedCodeCacheSize=240m",
        "-XX:+UseSerialGC",
        # Room from the start: nothing is collected to find out that more is needed.
        "-Xms1g -Xmn600m -XX:MetaspaceSize=256m",
        f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
    ]
    if ARCHIVE.is_file():
        # An archive of another Java or Spark is nothing to tell anybody: Java reads the jars.
        options.append(f'"-XX:SharedArchiveFile={ARCHIVE}" -Xlog:disable -Xlog:all=error:stderr')
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        JVM: " ".join(options),
    }


_SESSION = {
    # Java's own lower case. The other library draws up a table of all characters at its first use.
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.files.openCostInBytes": "65536",
    # The default, 128 groups, would sort all rows to aggregate percentiles of a dozen runs.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # Listing the folders of a hundred runs here takes a blink, as a Spark job per table seconds.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # Plans are drawn as text for a UI that is off.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "100",
    # Parameters are values only, so that no query has to be parsed once more to put them in.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
}

_LOCAL_MASTER = {
    # The rows of a few runs cost less than the tasks that would share them out.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}

_SMALL = {
    # Compiling a query takes longer than interpreting it on the rows of one run.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    # What may be concluded about columns saves no time where there are few rows.
    "spark.sql.constraintPropagation.enabled": "false",
}

_SMALL_APPLICATION = {
    "spark.default.parallelism": "1",
    # A few kilobytes, to be read by the next task.
    "spark.shuffle.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.broadcast.compress": "false",
    "spark.broadcast.checksum": "false",
}
"""Settings that count from the start of an application for few rows."""


def require_java() -> None:
    """Raise SetupError unless Java 17 or later is in JAVA_HOME or on the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if java is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java"
        raise SetupError(f"Spark needs Java {OLDEST_JAVA} or later, but {where}. {_INSTALL}")
    try:
        asked = [java, "-version"]
        reply = subprocess.run(
            asked, capture_output=True, text=True, timeout=ANSWERS_WITHIN_S, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):  # of another machine, say
        reply = ""
    match = re.search(r'version "(?:1\.)?(\d+)', reply)
    if match is None or int(match[1]) < OLDEST_JAVA:
        version = match[1] if match else "of unknown version"
        raise SetupError(
            f"Spark needs Java {OLDEST_JAVA} or later, but {java} is Java {version}. {_INSTALL}"
        )


def require_master(master: str | None) -> None:
    """Raise SpecError for what no Spark takes as a master; None is the one that was chosen."""
    if master is not None and _MASTER.fullmatch(master) is None:
        how = "write local[*], local[4], spark://HOST:7077, k8s://https://HOST:PORT or yarn"
        raise SpecError("Spark", [f"{master!r:.100} is no master of Spark; {how}"])


@contextmanager
def spark_session(
    master: str | None, *, many: bool = False, small: bool = False
) -> Iterator[SparkSession]:
    """A session with views of its own; ``master`` None means the one spark-submit has chosen.

    ``many`` says that there are enough rows for the second compiler of Java to pay for itself,
    ``small`` that there are too few for compiling queries to do so.

    A Spark application that already runs in this process is used and left running, any
    other is stopped at the end. Raises SpecError for a master that is none, SetupError when Java
    is missing or too old, or Spark does not start.
    """
    require_master(master)
    require_java()
    # Spark repeats every failed query as JSON on the terminal; the exception says it already.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    with tempfile.TemporaryDirectory(prefix="tidebench-warehouse-") as warehouse:
        spark = running or _started(master, warehouse, many, small)
        try:
            yield _session_with_settings(spark, small)
        finally:
            if running is None:
                spark.stop()


def _started(master: str | None, warehouse: str, many: bool, small: bool) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("tidebench-tables")
    settings = {**_ALWAYS, "spark.sql.warehouse.dir": warehouse}
    settings |= _SMALL_APPLICATION if small else {}
    if master is not None:
        builder = builder.master(master)
        settings |= local_driver() if is_local(master) else {}
        if many and is_local(master):
            settings[JVM] = settings[JVM].replace(_ONE_COMPILER, "").strip()
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _java_heard(), _kept_interrupt():
            spark = builder.getOrCreate()
    except Exception as error:  # of Java, of Py4J or of Python, by what was wrong
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        problem = f"Spark does not start with the master {master or 'that was chosen'!r}"
        how = "choose another --master, such as local[*], or see that it runs"
        raise SetupError(f"{problem} ({reason}); {how}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _java_heard() -> Iterator[None]:
    """Pass on, but for what is of no use, what this process writes to its standard error meanwhile
    and what those that it starts meanwhile write there as long as they run.
    """
    reads, writes = os.pipe()
    terminal = os.dup(2)
    Thread(target=_pass_on, args=(reads, terminal), daemon=True).start()
    os.dup2(writes, 2)
    os.close(writes)
    try:
        yield
    finally:
        os.dup2(terminal, 2)


@contextmanager
def _kept_interrupt() -> Iterator[None]:
    """Keep what this process does on Ctrl-C, where it has chosen that: Spark puts its own there."""
    chosen = signal.getsignal(signal.SIGINT)
    handler = chosen if callable(chosen) and chosen is not signal.default_int_handler else None
    try:
        yield
    except KeyboardInterrupt:  # Ctrl-C came while Spark's was in place
        if handler:
            handler(signal.SIGINT, None)
        raise
    finally:
        if handler and current_thread() is main_thread():
            signal.signal(signal.SIGINT, handler)


def _pass_on(reads: int, terminal: int) -> None:
    with os.fdopen(reads, "rb") as lines, os.fdopen(terminal, "wb", buffering=0) as passed_on:
        for line in lines:
            if not line.startswith(_OF_NO_USE):
                passed_on.write(line)


def _session_with_settings(spark: SparkSession, small: bool) -> SparkSession:
    session = spark.newSession()
    settings = dict(_SESSION)
    if is_local(spark.sparkContext.master):
        settings |= _LOCAL_MASTER
    else:
        # The default is 200, a task each: far too many for the rows of a few runs.
        settings["spark.sql.shuffle.partitions"] = str(spark.sparkContext.defaultParallelism)
    for name, value in (settings | (_SMALL if small else {})).items():
        session.conf.set(name, value)
    return session


def is_local(master: str | None) -> bool:
    """Whether driver and executors are one process here."""
    return master is not None and master.startswith("local")
