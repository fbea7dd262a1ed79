"""The stages of a run, as tasks or in one process: provision, deploy, replay, windows, release.

Every stage may be killed at any point and repeated: it reads what the stage before it
committed, writes whole files, and writes the same bytes again. ``root`` is the data root;
a run lives in ``root/<experiment>``.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from include.controllers import CONTROLLERS
from include.experiment.prices import is_file
from include.experiment.run import Run, resolve
from include.experiment.spec import RunSpec
from include.experiment.variant import conditions_of, variant_of
from include.files.whole import write_bytes, write_json
from include.model.billing import CloudPriceBook
from include.model.errors import SpecError, StoreError, TidebenchError, command
from include.model.host import PriceBook
from include.runs.machine import MachineWatch
from include.runs.measurements.locks import alone
from include.runs.measurements.origin import BY_HAND, DagRun, mark_origin
from include.runs.measurements.rows import ONCE_PER_RUN, SAMPLES, TABLES, UNREAD, Billing
from include.runs.measurements.store import COMMITTED, Columns, RunStore
from include.runs.measurements.summaries import summarised
from include.runs.session import Session
from include.runs.stored import (
    Stored,
    find_stored,
    is_of_other_code,
    is_of_this_code,
    mark_code,
    stored_run,
)
from include.runs.versions import versions
from include.testbeds import TESTBEDS
from include.testbeds.base import Leasing

PER_WINDOW = tuple(table for table in TABLES if table not in ONCE_PER_RUN)
TOGETHER_S, TOGETHER_SAMPLES = 1.0, 200_000
"""A process commits its windows when it has measured for so long, or has so many samples in memory:
10 MB, and 165,000 are those of two hours of stepwise."""
Report = Callable[[dict[str, Any]], None]
log = logging.getLogger(__name__)


def store_of(spec: RunSpec, root: Path) -> RunStore:
    """Where the files of a run are."""
    return RunStore(root / spec.experiment, spec.run_id)


def run_alone(spec: RunSpec, root: Path) -> AbstractContextManager[None]:
    """Wait until no other process is at the run, and keep others from it (`locks.alone`)."""
    return alone(root / spec.experiment, spec.run_id)


def provision(spec: RunSpec, root: Path, by: DagRun = BY_HAND) -> str:
    """Look everything up and store it as run.json; nothing is stored when the spec is wrong.

    Results that other code has stored are removed, as are those of an interrupted run whose hosts
    were given back. Unless the run is complete, ``by`` is who measures it. Returns what was found,
    for a person.

    Raises SpecError with every problem, StoreError when the folder holds another run, or a complete
    one that other code has measured in real time.
    """
    with run_alone(spec, root):
        return _provision(spec, root, by)


def _provision(spec: RunSpec, root: Path, by: DagRun) -> str:
    run, store, stored = _inspected(spec, root)
    found: str = stored.value
    remove_it = f"Remove it ({command('remove', store.folder, store.run_id)})"
    if stored is Stored.OTHER_INPUTS:
        raise StoreError(
            f"{store.home} holds a run of the same spec with other inputs (a file that it names "
            f"has changed). {remove_it} to measure anew, or give the experiment another name"
        )
    if stored is Stored.OTHER_CODE:
        if TESTBEDS[spec.testbed].real_time and store.manifest.is_file():
            raise StoreError(
                f"{store.home} was measured by other code, and measuring it again takes as long as "
                f"it did. {remove_it} to do so, or give the experiment another name"
            )
        forget(spec, root)
    if stored is Stored.DAMAGED:
        damage = store.damage(spec.windows)
        if TESTBEDS[spec.testbed].real_time:
            raise StoreError(
                f"{store.home} is damaged ({damage}), and measuring it again takes as long as it "
                f"did. {remove_it} and run it again"
            )
        forget(spec, root)
        found = f"{found}: {damage}"
    if stored is Stored.CUT_OFF or (stored is Stored.BEGUN and _is_given_back(run, store)):
        forget(spec, root)
    mark_code(store, spec)
    if stored is not Stored.COMPLETE:
        mark_origin(store, by)
    write_bytes(store.run_json, run.to_json().encode())
    store.traceback.unlink(missing_ok=True)
    return found


def stored_state(spec: RunSpec, root: Path) -> Stored:
    """What is stored of a run, and so whether it will be reused. Raises SpecError if any is."""
    return _inspected(spec, root)[2] if store_of(spec, root).home.is_dir() else Stored.NOTHING


def outdated_runs(folder: Path) -> list[str]:
    """The complete runs of an experiment that would not be measured so now, as sentences.

    Other code has measured them, or a file that they name has changed since; of files and of own
    controllers that are not here nothing is said.
    """
    of_code, of_files = list[str](), list[str]()
    for manifest in sorted(folder.glob("runs/*/manifest.json")):
        store = RunStore(folder, manifest.parent.name)
        if is_of_other_code(store):
            of_code.append(store.run_id)
            continue
        with suppress(StoreError, OSError):  # what is damaged says so elsewhere
            if _has_other_inputs(stored_run(store).spec, store):
                of_files.append(store.run_id)
    reasons = {
        "measured by other code": of_code,
        "measured before a file that they name changed": of_files,
    }
    return [
        f"{why}, and reported as they were (run --fresh measures again): {', '.join(runs)}"
        for why, runs in reasons.items()
        if runs
    ]


def _has_other_inputs(spec: RunSpec, store: RunStore) -> bool:
    """Whether files that the spec names are here and hold something else by now."""
    try:
        return find_stored(resolve(spec), store) is Stored.OTHER_INPUTS
    except SpecError:
        named = [*filter(is_file, (spec.topology, spec.calibration, *spec.price_books))]
        if "path" in spec.pattern_options:
            named.append(str(spec.pattern_options["path"]))
        return bool(named) and all(Path(name).exists() for name in named)


def _inspected(spec: RunSpec, root: Path) -> tuple[Run, RunStore, Stored]:
    """The resolved run, its store, and what is stored of it. Raises SpecError."""
    run, store = resolve(spec), store_of(spec, root)
    return run, store, find_stored(run, store)


def deploy(spec: RunSpec, root: Path) -> None:
    """Start the first instances before anything arrives, and store the state at second 0.

    What is deployed stays as it is: on real hosts, doing it again would end it.
    """
    with run_alone(spec, root):
        if session := _deploy(load_run(spec, root), store_of(spec, root)):
            session.close()


def _deploy(run: Run, store: RunStore) -> Session | None:
    """The session at second 0, None if it was deployed before."""
    if is_deployed(store):
        return None
    store.remove_windows(commits=True)  # of a run whose removal was interrupted
    session = Session.open(run)
    session.deploy()
    store.write_snapshot(0, session.snapshot())
    return session


def is_deployed(store: RunStore) -> bool:
    """Whether the first instances were started, for this run or once it is complete."""
    return store.snapshot(0).is_file() or store.manifest.is_file()


def replay_arrivals(spec: RunSpec, root: Path) -> None:
    """Make the arrivals ready: the levels that every source will follow, as a file."""
    _write_arrivals(load_run(spec, root), store_of(spec, root))


def _write_arrivals(run: Run, store: RunStore) -> None:
    write_bytes(store.home / "arrivals.csv", _arrivals_csv(run))


def load_run(spec: RunSpec, root: Path) -> Run:
    """The stored run. Raises StoreError when it was not provisioned, or cannot be read."""
    store = store_of(spec, root)
    if not store.run_json.is_file():
        raise StoreError(f"{store.run_json} is missing; run provision_testbed first")
    return stored_run(store)


def window_reached(spec: RunSpec, root: Path, window: int) -> bool:
    """Whether the testbed has come to the window and those before it are committed."""
    store = store_of(spec, root)
    if window == 0:
        return is_deployed(store) and (store.home / "arrivals.csv").is_file()
    return all(store.commit(before).is_file() for before in range(window))


def control_windows(
    spec: RunSpec, root: Path, first: int, last: int, report: Report = lambda _: None
) -> list[dict[str, Any]]:
    """Run all ticks of windows ``first`` to ``last`` and commit them; returns their summaries.

    A committed window is left as it is. What is measured within ``TOGETHER_S`` is committed
    together; of that nothing is kept where the process is killed or a controller fails.
    """
    with run_alone(spec, root):
        return list(_control_windows(spec, root, first, last, report))


def _control_windows(
    spec: RunSpec, root: Path, first: int, last: int, report: Report, session: Session | None = None
) -> Iterator[dict[str, Any]]:
    store, measured = store_of(spec, root), list[Window]()
    run = session.run_of if session else None
    committed_s = time.monotonic()
    for number in range(first, last + 1):
        if store.commit(number).is_file():
            summary = store.read_commit(number)["summary"]
            session = None
        else:
            run = run or _run_of_this_code(spec, root)
            session = session or _resumed(run, store, number)
            measured.append(_measure(run, session, number))
            summary = measured[-1].summary
            samples = sum(window.summary["samples"] for window in measured)
            passed_s = time.monotonic() - committed_s
            is_due = passed_s >= TOGETHER_S or samples >= TOGETHER_SAMPLES
            is_due |= TESTBEDS[spec.testbed].real_time  # it cannot be had again
            if is_due or number == last or store.commit(number + 1).is_file():
                if number == spec.windows - 1:
                    session = None  # its memory is for the tables
                _commit(run, store, measured, session)
                measured, committed_s = [], time.monotonic()
        report(summary)
        yield summary
    if all(store.commit(window).is_file() for window in range(spec.windows)):
        store.remove_windows(commits=False)


def run_all(
    spec: RunSpec, root: Path, report: Report = lambda _: None, by: DagRun = BY_HAND
) -> list[dict[str, Any]]:
    """Every stage of a run in one process, with the same bytes as task by task."""
    with run_alone(spec, root):
        provision(spec, root, by)
        return run_provisioned(spec, root, report)


def run_provisioned(
    spec: RunSpec, root: Path, report: Report = lambda _: None
) -> list[dict[str, Any]]:
    """Every stage after the first; returns the summaries of all windows."""
    with run_alone(spec, root):
        try:
            run, store = load_run(spec, root), store_of(spec, root)
            _write_arrivals(run, store)
            # Deployed last: nothing that can fail comes between. And not named here, as nobody but
            # the windows may hold it: they let go of it before they join the rows of all.
            last = spec.windows - 1
            windows = _control_windows(spec, root, 0, last, report, _deploy(run, store))
            summaries = list(windows)
        except BaseException:
            try:
                release(spec, root)
            except TidebenchError as error:  # what ended the run, maybe Ctrl-C, counts more
                log.warning("%s", error)
            raise
        release(spec, root)
        return summaries


def release(spec: RunSpec, root: Path) -> None:
    """Give back whatever the run still holds. Safe at any time and more than once."""
    # On a testbed without a reaper nothing outlives its process.
    if TESTBEDS[spec.testbed].reaped_by and store_of(spec, root).run_json.is_file():
        # Its controllers are not needed, and may be broken by now.
        testbed = load_run(spec, root).build_testbed()
        if isinstance(testbed, Leasing):
            testbed.give_back()


def forget(spec: RunSpec, root: Path) -> None:
    """Remove everything stored of a run, to measure it anew."""
    with run_alone(spec, root):
        store_of(spec, root).remove()


def _run_of_this_code(spec: RunSpec, root: Path) -> Run:
    run, store = load_run(spec, root), store_of(spec, root)
    if not is_of_this_code(store):
        raise StoreError(
            f"the code that measures has changed since {store.home} was provisioned, and no run is "
            "measured by two; provision it again, with everything after it"
        )
    return run


def _is_given_back(run: Run, store: RunStore) -> bool:
    """Whether the world that the snapshots are about is gone; a simulated one is in them."""
    if not (TESTBEDS[run.spec.testbed].real_time and store.snapshot(0).is_file()):
        return False
    windows = range(run.spec.windows)
    first = next((k for k in windows if not store.commit(k).is_file()), len(windows))
    try:
        _resumed(run, store, first).close()
    except StoreError:
        return True
    return False


def _resumed(run: Run, store: RunStore, window: int) -> Session:
    session = Session.open(run)
    session.restore(store.read_snapshot(window))
    return session


@dataclass(frozen=True, slots=True)
class Window:
    """What was measured between two times at which a run may be cut.

    ``ended_leases`` ended in it, ``leases`` are those that went on, or ended at its end.
    """

    number: int
    rows: dict[str, Mapping[str, Any]]
    ended_leases: Mapping[str, list[Any]]
    leases: Mapping[str, list[Any]]
    summary: dict[str, Any]


def _measure(run: Run, session: Session, number: int) -> Window:
    start_s = number * run.spec.window_s
    end_s = min(start_s + run.spec.window_s, run.spec.duration_s)
    decided = _run_turns(run.spec, session, start_s, end_s)
    tables: dict[str, Mapping[str, Any]] = {**session.loop.testbed.take_measurements(), **decided}
    tables |= summarised(
        tables.get(SAMPLES, {}),
        {operator.name: operator.slo_ms for operator in run.topology.operators},
        duration_s=run.spec.duration_s,
        monitor_every_s=run.spec.monitor_every_s,
    )
    summary = {
        "window": number,
        "start_min": start_s / 60,
        "end_min": end_s / 60,
        **session.summary(tables),
    }
    rows = {table: tables.get(table, {}) for table in _per_window(run.spec)}
    ended = session.loop.testbed.take_ended_leases()
    return Window(number, rows, ended, session.loop.testbed.leases(), summary)


def _commit(run: Run, store: RunStore, windows: Sequence[Window], session: Session | None) -> None:
    """Store windows with the state of the session after them, None at the end of the run.

    They are committed from the last to the first: a process that is killed in between leaves the
    first without a commit, and that is measured again from the snapshot before it.
    """
    if session:
        for window in windows:
            store.write_window(window.number, window.rows)
        store.write_snapshot(windows[-1].number + 1, session.snapshot())
    else:
        _complete(run, store, windows)
    for window in reversed(windows):
        commit = {name: getattr(window, name) for name in COMMITTED}
        write_json(store.commit(window.number), commit)


def _complete(run: Run, store: RunStore, windows: Sequence[Window]) -> None:
    """Store the tables of a whole run, with ``windows`` as its last, and the manifest."""
    before = range(windows[0].number)
    ended = [store.read_commit(number)["ended_leases"] for number in before]
    leases = [*ended, *(window.ended_leases for window in windows), windows[-1].leases]
    # Popped, so that what is written takes no memory any more.
    rows = ({table: window.rows.pop(table) for table in [*window.rows]} for window in windows)
    parts = store.write_wholes(_per_window(run.spec), len(before), rows)
    for table, columns in _once_per_run(run, leases).items():
        parts.append(store.write_rows(table, 0, columns))
    _write_manifest(run, store, parts)


def _run_turns(
    spec: RunSpec, session: Session, start_s: float, end_s: float
) -> dict[str, Mapping[str, Any]]:
    """The tables of the controller's turns, and of the machine where the testbed wants it."""
    if "machine" not in TESTBEDS[spec.testbed].measures:
        return {**session.run(start_s, end_s)}
    with MachineWatch() as machine:
        decided = session.run(start_s, end_s)
    return {**decided, "machine": machine.columns(end_s)}


def _per_window(spec: RunSpec) -> list[str]:
    """The tables of which every window stores rows."""
    left_out = {*(() if spec.advisors else ("advice",)), *(UNREAD if spec.summaries_only else ())}
    by_some = {table for testbed in TESTBEDS.values() for table in testbed.measures}
    left_out |= by_some - {*TESTBEDS[spec.testbed].measures}
    return [table for table in PER_WINDOW if table not in left_out]


def _once_per_run(run: Run, leases: Sequence[Mapping[str, list[Any]]]) -> Columns:
    spec, operators, books = run.spec, run.topology.operators, run.price_books
    path_slo_ms = run.topology.path_slo_ms()
    row = {
        "controller": spec.controller,
        "pattern": spec.pattern,
        "btu_min": spec.btu_min,
        "seed": spec.seed,
        "duration_s": spec.duration_s,
        "topology": run.topology.name,
        "testbed": spec.testbed,
        "flavor": run.flavor.name,
        "vcpus": run.flavor.vcpus,
        "memory_mb": run.flavor.memory_mb,
        "sample_every_items": run.calibration["sample_every_items"],
        "spec_hash": run.spec_hash,
        "monitor_every_s": spec.monitor_every_s,
        "pays_by_btu": CONTROLLERS[spec.controller].pays_by_btu,
        "variant": variant_of(spec),
        "conditions": conditions_of(spec),
    }
    return {
        "run": {name: [value] for name, value in row.items()},
        "operator": {
            "operator": [op.name for op in operators],
            **{
                name: [getattr(op, name) for op in operators]
                for name in ("label", "slo_ms", "cpu_cores", "memory_mb")
            },
            "instances_per_level": [run.instances_per_level[op.name] for op in operators],
            "high_volume": [op.high_volume for op in operators],
            "path_slo_ms": [path_slo_ms[op.name] for op in operators],
        },
        "price": {
            "price_book": [book.name for book in books],
            **{
                name: [getattr(book, name) for book in books]
                for name in ("btu_s", "price_per_btu", "penalty_per_item")
            },
        },
        **_billing(books),
        "lease": _lease_log(leases),
    }


def _billing(books: Sequence[PriceBook]) -> dict[str, Mapping[str, Any]]:
    """How books bill that do not only count BTUs; no table where there are none."""
    rows = [
        {field.name: getattr(book, field.name, "") for field in fields(Billing)}
        | {"price_book": book.name, "cap_per_month": book.cap_per_month or 0.0}
        for book in books
        if isinstance(book, CloudPriceBook)
    ]
    return {"billing": {name: [row[name] for row in rows] for name in rows[0]}} if rows else {}


def _lease_log(leases: Sequence[Mapping[str, list[Any]]]) -> Mapping[str, list[Any]]:
    """All leases in order of the hosts."""
    log = {name: [value for some in leases for value in some[name]] for name in leases[-1]}
    # A host's number grows with the time of its order: host-2 comes before host-10.
    keys = list(zip(log["ordered_s"], map(len, log["host"]), log["host"], strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return {name: [values[i] for i in order] for name, values in log.items()}


def _arrivals_csv(run: Run) -> bytes:
    rows = [
        f"{source},{t_s!r},{level!r}\n"
        for source, levels in run.levels_of.items()
        for t_s, level in zip(levels.starts_s, levels.levels, strict=True)
    ]
    return "".join(["source,time_s,level\n", *rows]).encode()


def _write_manifest(run: Run, store: RunStore, parts: list[dict[str, Any]]) -> None:
    write_json(
        store.manifest,
        {
            "experiment": run.spec.experiment,
            "run": run.spec.run_id,
            "spec": run.spec.to_json(),
            "spec_hash": run.spec_hash,
            "seed": run.spec.seed,
            "testbed": run.spec.testbed,
            "arrivals_sha256": hashlib.sha256(_arrivals_csv(run)).hexdigest(),
            "windows": run.spec.windows,
            "parts": sorted(parts, key=lambda part: part["path"]),
            "versions": versions(),
        },
    )
