"""What tests against a cloud need, or the reason why they are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.live.conftest import at, images, why_not  # noqa: F401  (fixtures)
from tests.openstack.plane import OPENSTACK, Plane, client_settings, is_up, script


@pytest.fixture(scope="session")
def plane(at: None) -> Iterator[Plane]:  # noqa: F811
    """The control plane: the one that runs, or else one started here and ended afterwards."""
    running = is_up()
    if not running:
        script(OPENSTACK, "up")
    settings = client_settings()
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    made = Plane()
    yield made
    made.close()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    if not running:
        script(OPENSTACK, "down")


@pytest.fixture(autouse=True)
def cloud(plane: Plane) -> Iterator[Plane]:
    """The same without faults; and after every test nothing is left in it."""
    plane.heal()
    plane.assert_nothing_left()
    yield plane
    plane.heal()
    plane.assert_nothing_left()
