"""Become a service: python -m tb_openstack.launch NAME ARGUMENT...

NAME is nova-conductor, nova-scheduler or nova-compute with their options, clock with its address
and port, or an API with its port and its module. Without arguments services are forked as lines of
the standard input say, "PIDFILE<tab>LOGFILE<tab>NAME<tab>ARGUMENT...": three quarters of what a
start costs is importing what they share, which then happens once. Forks lead groups of their own
and live on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

SHARED = """
    alembic cryptography.fernet eventlet jsonschema keystoneauth1.identity.v3
    keystoneauth1.loading keystonemiddleware.auth_token netaddr openstack
    oslo_concurrency.lockutils oslo_config.cfg oslo_db.sqlalchemy.enginefacade oslo_log.log
    oslo_messaging oslo_messaging._drivers.impl_rabbit oslo_middleware oslo_policy.policy
    oslo_versionedobjects.base osprofiler paste.deploy pymysql requests routes
    sqlalchemy.dialects.mysql.pymysql sqlalchemy.orm waitress webob"""
OF_NOVA = """
    nova.cmd.conductor nova.cmd.scheduler nova.cmd.compute nova.api.openstack.wsgi_app
    nova.api.openstack.compute"""
CONDUCTOR_WITHIN_S = 30.0


def main(arguments: Sequence[str]) -> None:
    """Run one service, or fork several."""
    if arguments:
        become(*arguments)
    load(SHARED.split())
    nova_loaded = False
    for line in iter(sys.stdin.readline, ""):
        pid_file, log, name, *rest = line.rstrip("\n").split("\t")
        if name.startswith("nova") and not nova_loaded:
            load(OF_NOVA.split())
            nova_loaded = True
        note(fork(log, name, rest), pid_file)


def become(name: str, *arguments: str) -> None:
    """Run a service in this process."""
    sys.argv = [name, *arguments]
    if name == "nova-compute":
        wait_for_conductor()
    if name.startswith("nova-"):
        sys.exit(importlib.import_module(f"nova.cmd.{name[5:]}").main())
    if name == "clock":
        from tb_openstack import clock

        sys.exit(clock.main(*arguments))
    from tb_openstack import serve

    serve.main(name, *arguments)
    sys.exit()


def wait_for_conductor() -> None:
    """Wait for the conductor, without which nova-compute starts ten seconds later."""
    import amqp

    end_s = time.monotonic() + CONDUCTOR_WITHIN_S
    password = Path(os.environ["TB_SECRET"]).read_text().strip()
    while time.monotonic() < end_s:
        try:
            with amqp.Connection(os.environ["TB_RABBIT"], userid="tb", password=password) as bus:
                bus.channel().queue_declare("conductor", passive=True)
                return
        except (OSError, amqp.exceptions.AMQPError):
            time.sleep(0.2)


def load(modules: Iterable[str]) -> None:
    """Import modules that forks share; ignore those that cannot be imported."""
    import oslo_service.backend as backend

    with contextlib.suppress(Exception):  # must be chosen before any use
        backend.init_backend(backend.BackendType.THREADING)
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception:
            traceback.print_exc()


def fork(log: str, name: str, arguments: Sequence[str]) -> int:
    """Fork a service; returns its pid."""
    gc.freeze()  # keeps pages shared
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for new, old in ((null, 0), (out, 1), (out, 2)):
            os.dup2(new, old)
        os.closerange(3, 64)
        import setproctitle

        setproctitle.setproctitle(f"tb-openstack {name}")
        become(name, *arguments)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def note(pid: int, pid_file: str) -> None:
    """Write pid and start time of a process."""
    born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    beside = Path(f"{pid_file}.new")
    beside.write_text(f"{pid} {born}\n")
    beside.rename(pid_file)


if __name__ == "__main__":
    main(sys.argv[1:])
