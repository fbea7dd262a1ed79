"""DS2: strymon-system/ds2 at e3decca, controller/src/policy/scaling.rs and its example.

Numbers are those of controller/tests/scaling_policy_test.rs and controller/examples/offline.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.controllers.autoscalers.ds2 import Ds2, optimal_instances
from include.controllers.autoscalers.rates import Paths
from include.model.decision import Reason
from include.model.topology import Edge
from include.testing.builders import a_setting, a_topology
from tests.autoscaler_world import asked_for, flowing, looked
from tests.builders import fed_by

DS2 = Ds2(setting=a_setting(a_topology("O1", "O2")))


def chain(out, into, sources=("S1",)):
    """Sources, then O1, of which so many items leave for so many that enter, then O2."""
    factor = Edge(origin="O1", target="O2", items_out=out, items_in=into)
    return fed_by(a_topology("O1", "O2"), dict.fromkeys(sources, "O1"), factor)


@pytest.mark.parametrize(
    ("source", "of_o1", "of_o2", "wanted"),
    [
        # true rates of processing and output of Op1, and of processing of Op2
        pytest.param(100, (50, 400), 100, (2, 8), id="one source, epoch 0"),
        pytest.param(200, (40, 700), 99, (5, 36), id="one source, epoch 1"),
        pytest.param(200, (10, 700), 201, (20, 70), id="one source, epoch 7"),
    ],
)
@pytest.mark.parametrize("sources", [("S1",), ("S1", "S2")])
def test_the_policy_reproduces_its_own_tests(source, of_o1, of_o2, wanted, sources):
    """evaluate_scaling_policy_one_source; with two sources 4 and 16, 10 and 71, 40 and 140."""
    processed, output = of_o1
    paths = Paths(chain(output, processed, sources))
    true = {"O1": float(processed), "O2": float(of_o2)}
    optimum = optimal_instances(paths, dict.fromkeys(sources, float(source)), true, 0.0)
    of_two = {(2, 8): (4, 16), (5, 36): (10, 71), (20, 70): (40, 140)}
    expected = wanted if len(sources) == 1 else of_two[wanted]
    assert tuple(instances for instances, _ in optimum.values()) == expected


def test_a_factor_gives_more_before_rounding_up():
    paths = Paths(chain(1, 1))
    true = {"O1": 50.0, "O2": 100.0}
    assert optimal_instances(paths, {"S1": 100.0}, true, 0.2)["O1"][0] == 3


def looks(ds2, *rows, count=1):
    """Every 15 s O1 with items (arrived, completed) and the share of its time that it worked."""
    observations = [looked(15.0 * n, o1) for n, o1 in enumerate(flowing("O1", rows, count))]
    return asked_for(ds2, *observations)[1:]


def test_after_a_change_it_warms_up_again():
    row = (60, 20, 1.0)
    assert looks(DS2, *[row] * 6) == [{}, {}, {"O1": 3}, {}, {}, {"O1": 3}]


def test_activation_wants_several_evaluations():
    row = (60, 20, 1.0)
    slow = replace(DS2, activation=3)
    assert looks(slow, *[row] * 5) == [{}, {}, {}, {}, {"O1": 3}]


@pytest.mark.parametrize(("instances", "asked"), [(2, {}), (3, {"O1": 1})])
def test_one_instance_fewer_alone_is_no_change(instances, asked):
    """manager.rs, consider_change:
    "if (i_before < i_after) || (i_before-1 > i_after) { return true; }"."""
    row = (15, 15, 1.0 / instances)  # 1 item/s, all that one instance can do
    assert looks(DS2, *[row] * 3, count=instances)[-1] == asked


def test_one_instance_fewer_goes_along_with_another_change():
    """manager.rs hands the whole of ``new_conf`` to the script once one operator has changed."""
    ds2 = Ds2(setting=a_setting(chain(1, 1)))
    shrinks, grows = flowing("O1", [(15, 15, 0.5)] * 3, 2), flowing("O2", [(15, 8, 1.0)] * 3)
    both = enumerate(zip(shrinks, grows, strict=True))
    assert asked_for(ds2, *(looked(15.0 * n, *looks) for n, looks in both))[-1] == {
        "O1": 1,
        "O2": 2,
    }


def test_while_ds2_waits_it_says_what_for():
    """Without an observation before, then for the two intervals of warm-up, then it acts."""
    memory, reasons = DS2.initial_memory(), []
    for turn, o1 in enumerate(flowing("O1", [(60, 20, 1.0)] * 3)):
        memory, decision = DS2.decide(memory, looked(15.0 * turn, o1))
        reasons.append(decision.reason)
    assert reasons == [Reason.NO_MEASUREMENT, Reason.SETTLING, Reason.SETTLING,
                       Reason.UTILISATION_HIGH]  # fmt: skip


def test_an_operator_that_never_worked_is_left_alone_but_passes_on():
    paths = Paths(chain(2, 1))
    optimum = optimal_instances(paths, {"S1": 10.0}, {"O2": 4.0}, 0.0)
    assert optimum == {"O2": (5, 20.0)}


def test_a_source_that_nobody_can_read_leaves_what_it_feeds_alone():
    paths = Paths(chain(1, 1, ("S1", "S2")))
    assert paths.source_rates({"O1": 10.0}) == {}
    assert optimal_instances(paths, {}, {"O1": 4.0, "O2": 4.0}, 0.0) == {}
