"""Scripts of infra with stand-ins for what they start, as two that are called at once."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.testbeds.live.files import REPOSITORY, SCRIPTS
from tests.live.world import wait_until
from tests.ports import free_port

REGISTRY = """#!/bin/sh
mkdir -p "$TIDEBENCH_LIVE_STATE/pages/v2"
exec {python} -m http.server --bind 127.0.0.1 --directory "$TIDEBENCH_LIVE_STATE/pages" {port}
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("curl", "flock", "setsid"))), reason="needs curl, flock and setsid"
)


class Scripts:
    """Calls scripts as root of a machine with a registry that takes a while to listen."""

    def __init__(self, folder: Path) -> None:
        port, commands = free_port(), folder / "commands"
        commands.mkdir()
        registry = REGISTRY.format(python=sys.executable, port=port)
        stand_ins = dict.fromkeys(("ip", "dockerd", "nsenter"), "#!/bin/sh\n")
        stand_ins |= {"id": "#!/bin/sh\necho 0\n", "docker-registry": registry}
        for name, text in stand_ins.items():
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        self.state = folder / "state"
        self.environment = {
            **os.environ,
            "PATH": f"{commands}:{os.environ['PATH']}",
            "TIDEBENCH_LIVE_STATE": str(self.state),
            "TIDEBENCH_LIVE_ADDRESS": "127.0.0.1",
            "TIDEBENCH_LIVE_REGISTRY_PORT": str(port),
        }

    def begin(self, *arguments: str, name: str = "services.sh") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPTS / name, *arguments], env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Scripts]:
    made = Scripts(tmp_path)
    yield made
    made.begin("down").communicate(timeout=60)


def test_two_that_start_a_service_at_once_start_it_once(services: Scripts) -> None:
    """One would find the port taken, and its number stood for the one that ran."""
    both = [services.begin("up", "registry") for _ in range(2)]
    said = sorted(one.communicate(timeout=120)[0].split(" pid=")[0].strip() for one in both)
    assert said == ["registry is up", "registry up"]
    out, _ = services.begin("status").communicate(timeout=60)
    assert out.startswith("registry up pid=")
    assert services.begin("down").communicate(timeout=60)[0].startswith("registry stopped")


def test_who_reads_where_services_are_has_all_of_it_while_they_are_started(
    services: Scripts,
) -> None:
    services.begin("up", "registry").communicate(timeout=120)
    path = services.state / "services" / "env"
    with path.open() as before:
        services.begin("up", "registry").communicate(timeout=120)
        assert os.fstat(before.fileno()).st_ino != path.stat().st_ino
        assert before.read() == path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/sys/fs/cgroup/memory").is_dir(), reason="needs cgroup v1")
def test_what_a_machine_that_went_down_had_to_delete_goes_with_the_next_host(
    tmp_path: Path,
) -> None:
    """The store of a host is moved away and deleted in the background, which takes a while."""
    scripts = Scripts(tmp_path)
    hosts = scripts.state / "hosts"
    for path in (hosts / "7" / "data", hosts / ".gone-3-99" / "data"):
        path.mkdir(parents=True)
    out, _ = scripts.begin("rm", "7", name="hosts.sh").communicate(timeout=60)
    assert out.startswith("host 7 removed")
    wait_until(lambda: not list(hosts.iterdir()), "both stores are gone", 30)


def test_who_builds_or_deletes_images_waits_for_another(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    (scripts.state / "images").mkdir(parents=True)
    with (scripts.state / "images.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        clean = scripts.begin("clean", name="images.sh")
        with pytest.raises(subprocess.TimeoutExpired):
            clean.wait(timeout=1)
        assert (scripts.state / "images").is_dir()
    assert not clean.communicate(timeout=60)[0]
    assert not (scripts.state / "images").exists()


def test_a_database_that_was_stopped_half_made_is_made_anew(tmp_path: Path) -> None:
    """It stayed without the database that everybody asks for."""
    commands, data = tmp_path / "commands", tmp_path / "data" / "pgdata"
    commands.mkdir()
    stand_ins = {
        "initdb": 'mkdir -p "$PGDATA" && echo 17 >"$PGDATA/PG_VERSION"',
        "pg_ctl": "",
        "createdb": f'[ -e {tmp_path}/again ] && touch "$PGDATA/airflow"',
        "postgres": 'ls "$PGDATA"',
    }
    for name, does in stand_ins.items():
        (commands / name).write_text(f"#!/bin/sh\n{does}\n")
        (commands / name).chmod(0o755)
    about = dict.fromkeys(("POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE"), "airflow")
    environment = {**os.environ, **about, "PGDATA": str(data)}
    script, debian = tmp_path / "local-service.sh", "/usr/lib/postgresql/*/bin"
    text = (REPOSITORY / "infra" / "compose" / script.name).read_text()
    script.write_text(text.replace(debian, str(commands)))

    def starts() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", script, "postgres"], env=environment, capture_output=True, text=True, check=False
        )

    assert starts().returncode != 0
    (tmp_path / "again").touch()
    for _ in range(2):
        assert starts().stdout.split() == ["PG_VERSION", "airflow", "pg_hba.conf"]
    assert [path.name for path in data.parent.iterdir()] == ["pgdata"]


def test_what_an_engine_that_died_has_left_ends_with_it(tmp_path: Path) -> None:
    """Its containers went on, in folders that were then removed."""
    scripts = Scripts(tmp_path)
    scripts.environment["TIDEBENCH_COMPOSE_STATE"] = str(tmp_path)
    shim, other = (
        subprocess.Popen(
            [name, "-c", "read line", f"{tmp_path}/engine/exec"],
            executable="/bin/sh", stdin=subprocess.PIPE,
        )
        for name in ("/usr/bin/containerd-shim-runc-v2", "tail")
    )  # fmt: skip
    try:
        down = scripts.begin("down", name="../compose/local.sh")
        assert down.communicate(timeout=60)[0] == ""
        assert down.returncode == 0
        assert shim.wait(timeout=10) == -signal.SIGKILL
        assert other.poll() is None, "not whoever reads its log"
    finally:
        for process in (shim, other):
            process.kill()
            process.communicate()
