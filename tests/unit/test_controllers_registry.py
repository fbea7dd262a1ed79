"""Controllers that lie elsewhere: named as module:Class, or announced by an installed package."""

from __future__ import annotations

import tomllib

import pytest

from include.controllers import CONTROLLERS
from include.controllers.base import Group
from include.controllers.failures import error_line
from include.controllers.registry import announced
from include.experiment.problems import problems_of
from tests.builders import run_spec
from tests.conftest import REPOSITORY

OWN = """
from dataclasses import dataclass
from include.controllers.base import Group, Registration
from include.controllers.fixed import Fixed

@dataclass(frozen=True, kw_only=True)
class Mine(Fixed):
    factor: int = 2

REGISTERED = Registration(Mine, pays_by_btu=False, needs_peak=True, group=Group.OURS)

class Fails(Mine):
    def initial_instances(self):
        raise RuntimeError("not today")

class Forgets(Mine):
    def initial_memory(self):
        raise RuntimeError("not today")

class Leaves(Mine):
    def __init__(self, **options):
        raise SystemExit(0)

@dataclass(frozen=True, kw_only=True)
class Never(Mine):
    interval_s: float = 0.0

@dataclass(frozen=True, kw_only=True)
class Ever(Mine):
    interval_s: float = float("nan")

@dataclass(frozen=True, kw_only=True)
class Often(Mine):
    interval_s: str = "often"

@dataclass(frozen=True, kw_only=True)
class Paid(Mine):
    licence: str

class Complains(Mine):
    def problems(self):
        return "use another one"

class Nods(Mine):
    def problems(self):
        return None

class Elsewhere(Mine):
    def initial_instances(self):
        return {"O1": 1.5, "O99": 1}

class Lists(Mine):
    def initial_instances(self):
        return ["O1"]

class Keeps(Mine):
    def initial_memory(self):
        return object()

class Forward(Mine):
    def decide(self, observation):
        return None

@dataclass(frozen=True, kw_only=True)
class Untyped(Mine):
    speed: "Speed" = 0

class NoDataclass: ...

@dataclass
class Half:
    setting: object
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the path with a module of somebody's own and what pip would have installed."""
    (tmp_path / "of_somebody.py").write_text(OWN)
    (tmp_path / "with_a_typo.py").write_text("\nclass Mine(:\n")
    (tmp_path / "raises.py").write_text("HALF = 1 / 0\n")
    (tmp_path / "needs_more.py").write_text("import more_than_is_there\n")
    metadata = tmp_path / "of_somebody-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: of-somebody\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[tidebench.controllers]\nsomebody = of_somebody:REGISTERED\nbroken = gone:Away\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    announced.cache_clear()
    yield tmp_path
    announced.cache_clear()


def spec(controller, **options):
    return run_spec(
        experiment="own", controller=controller, controller_options=options, duration_min=10
    )


@pytest.mark.usefixtures("folder")
def test_a_class_of_a_module_is_a_controller_with_its_options():
    assert problems_of(spec("of_somebody:Mine", factor=3)) == []
    (problem,) = problems_of(spec("of_somebody:Mine", factr=3))
    assert "of_somebody:Mine: unknown option 'factr'. Did you mean 'factor'?" in problem
    assert spec("of_somebody:Mine").run_id.startswith("Mine-stepwise-btu10-s1-")
    assert spec("of_somebody:Mine").run_id != spec("elsewhere:Mine").run_id


@pytest.mark.usefixtures("folder")
def test_an_installed_package_announces_one_and_a_broken_one_is_left_out_of_lists():
    assert CONTROLLERS["somebody"].group is Group.OURS
    assert problems_of(spec("somebody")) == []
    assert "somebody" in list(CONTROLLERS)
    assert "broken" not in list(CONTROLLERS)
    (problem,) = problems_of(spec("broken"))
    assert "No module named 'gone'" in problem


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("of_somebody:Other", "has no attribute 'Other'); write module:Class, a class"),
        ("nowhere.at_all:Mine", "No module named 'nowhere'); write module:Class, and install"),
        ("of_somebody:NoDataclass", "is no dataclass"),
        ("of_somebody:Fails", "Fails: initial_instances failed (RuntimeError: not today); correct"),
        ("of_somebody:Forgets", "initial_memory failed (RuntimeError: not today); correct it"),
        ("of_somebody:Leaves", "__init__ failed (SystemExit: 0); correct it in "),
        ("of_somebody:Never", "interval_s must be above 0, got 0"),
        ("of_somebody:Ever", "interval_s must be a finite number of seconds, got nan"),
        ("of_somebody:Often", "interval_s must be a finite number of seconds, got 'often'"),
        ("of_somebody:Paid", "controller of_somebody:Paid needs the option licence"),
        ("of_somebody:Complains", "of_somebody:Complains: use another one"),
        ("of_somebody:Nods", "problems: return the texts of what is wrong, or none at all"),
        ("of_somebody:Lists", "return a mapping from operators to numbers, got ['O1']"),
        ("of_somebody:Keeps", "memory cannot be stored (PydanticSerializationError: "),
        ("of_somebody:Forward", "decide is called with memory and observation, which it does not"),
        ("of_somebody:Untyped", "whose type cannot be read (NameError: name 'Speed' is not"),
        ("with_a_typo:Mine", "with_a_typo.py:2"),
        ("raises:Mine", "(ZeroDivisionError: division by zero); correct it in "),
        ("needs_more:Mine", "No module named 'more_than_is_there'); correct it in "),
        ("of_somebody:Half", "lacks problems, initial_instances, initial_memory, decide"),
        (":", "cannot be imported"),
        ("os:system", "is no dataclass"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_one_says_why(name, why):
    (problem,) = problems_of(spec(name))
    assert why in problem


@pytest.mark.usefixtures("folder")
def test_first_instances_that_nobody_can_start_are_all_named():
    unknown, half = sorted(problems_of(spec("of_somebody:Elsewhere")), key=len, reverse=True)
    assert "initial_instances: unknown operator 'O99'" in unknown
    assert "initial_instances: O1 needs a whole number from 0, got 1.5" in half


class Unreadable(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("parse"), "KeyError: 'parse'"),
        (MemoryError(), "MemoryError"),
        (Unreadable(), "Unreadable: its message cannot be read"),
        (ValueError("red \x1b[31m,\ncaf\udce9"), r"ValueError: red \x1b[31m, caf\udce9"),
        (ValueError(300 * "x"), f"ValueError: {185 * 'x'}..."),
    ],
)
def test_any_error_is_told_on_a_line(error, line):
    assert error_line(error) == line


def test_where_forms_are_filled_in_by_others_nothing_is_imported(folder, monkeypatch):
    (folder / "with_effect.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("TIDEBENCH_INPUTS", str(folder))
    (problem,) = problems_of(spec("with_effect:Mine"))
    assert "an installed package must announce a class" in problem
    assert problems_of(spec("somebody")) == []


def test_import_contracts_name_every_family_of_controllers():
    tools = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]
    families = {
        f"include.controllers.{folder.name}"
        for folder in (REPOSITORY / "include/controllers").iterdir()
        if (folder / "__init__.py").is_file()
    }
    by_name = {contract["name"]: contract for contract in tools["importlinter"]["contracts"]}
    apart = by_name["No family of controllers knows another"]["modules"]
    unknown = by_name["The platform knows controllers by their registry"]["forbidden_modules"]
    assert families == set(apart) == set(unknown)
