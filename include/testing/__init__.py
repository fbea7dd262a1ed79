"""For authors of controllers: small worlds, random clusters, and the tests every controller keeps.

Needs pytest and hypothesis (``pip install tidebench[testing]``). In a test file of yours::

    from include.testing import ControllerContract
    from mine import Mine

    class TestMine(ControllerContract):
        controllers = {"mine": Mine}
"""

import pytest

pytest.register_assert_rewrite("include.testing.contract", "include.testing.replay")

from include.testing.contract import ControllerContract  # noqa: E402 - rewritten from here on
from include.testing.replay import Replay  # noqa: E402

__all__ = ["ControllerContract", "Replay"]
