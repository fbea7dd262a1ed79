"""KEDA's side of the proto against the service: a client as KEDA's, for no KEDA was at hand."""

from __future__ import annotations

import re
import time
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from include.model.errors import SetupError
from include.service.keda import externalscaler_pb2 as messages
from include.service.keda import scaler
from include.service.shadow import Shadowed, ShadowState
from tests.service.acting_world import advised

PROTO = (Path(scaler.__file__).parent / "externalscaler.proto").read_text()


def plain(name):
    return name.rpartition(".")[2]


def kind_of(field, message):
    """The type of a field as a proto has it."""
    maps = {one.name: one.field for one in message.nested_type if one.options.map_entry}
    if entry := maps.get(plain(field.type_name)):
        return f"map<{', '.join(kind_of(one, message) for one in entry)}>"
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    return "repeated " * repeated + (plain(field.type_name) or scalar)


def test_what_was_compiled_is_the_interface_that_was_written_down():
    compiled = FileDescriptorProto.FromString(messages.DESCRIPTOR.serialized_pb)
    assert compiled.syntax == "proto3"
    assert [
        (message.name, kind_of(field, message), field.name, str(field.number))
        for message in compiled.message_type
        for field in message.field
    ] == [
        (message, *field)
        for message, body in re.findall(r"message (\w+) \{(.*?)\n\}", PROTO, re.DOTALL)
        for field in re.findall(r"^ +(.+) (\w+) = (\d+)", body, re.MULTILINE)
    ]
    [service] = compiled.service
    assert f"{compiled.package}.{service.name}" == scaler.SERVICE
    assert [
        (one.name, plain(one.input_type), "stream " * one.server_streaming, plain(one.output_type))
        for one in service.method
    ] == re.findall(r"rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\)", PROTO)
    assert not any(one.client_streaming for one in service.method)


def write_state(folder, *, holds_s=60.0, wanted=4, failed=False, because=""):
    """As a shadow of two controllers writes it, of which one has not decided yet."""
    now_s = time.time()
    each = [
        advised(
            operator,
            count,
            time_s=now_s - 3660,
            because=because,
            holds_until_s=now_s - 3600,  # both by a clock that only the service has
            hosts_wanted=3,
            failed=failed,
        )
        for operator, count in (("parse", wanted), ("store", 2))
    ]
    tide = Shadowed(advised=each, valid_until_s=now_s + holds_s)
    controllers = {"tide": tide, "ds2": Shadowed()}
    ShadowState("orders", controllers=controllers).save(folder)


class Keda:
    """The calls as KEDA makes them, by the names of the proto."""

    def __init__(self, channel, port):
        self.channel, self.port = channel, port
        service = messages.DESCRIPTOR.services_by_name["ExternalScaler"]
        for method in service.methods:
            kind = channel.unary_stream if method.server_streaming else channel.unary_unary
            answer = getattr(messages, method.output_type.name)
            call = kind(
                f"/{service.full_name}/{method.name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )
            setattr(self, method.name, call)


@pytest.fixture
def keda(tmp_path):
    server, port = scaler.serve(tmp_path, "127.0.0.1", 0)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Keda(channel, port)
    server.stop(None).wait()


def ref(controller="tide", **metadata):
    metadata["controller"] = controller
    return messages.ScaledObjectRef(name="shop", namespace="jobs", scalerMetadata=metadata)


def test_an_hpa_arrives_at_what_the_controller_wants(keda, tmp_path):
    write_state(tmp_path, wanted=4)
    asked = ref(controller="tide", operator="parse")
    assert keda.IsActive(asked).result
    [spec] = keda.GetMetricSpec(asked).metricSpecs
    assert (spec.metricName, spec.targetSizeFloat) == ("tide-parse", 1.0)
    request = messages.GetMetricsRequest(scaledObjectRef=asked, metricName=spec.metricName)
    [value] = keda.GetMetrics(request).metricValues
    assert value.metricName == "tide-parse"
    assert value.metricValueFloat / spec.targetSizeFloat == 4  # replicas of an AverageValue
    write_state(tmp_path, wanted=6)
    assert keda.GetMetrics(request).metricValues[0].metricValueFloat == 6


def test_without_an_operator_it_is_task_managers(keda, tmp_path):
    write_state(tmp_path)
    request = messages.GetMetricsRequest(scaledObjectRef=ref(), metricName="x")
    assert keda.GetMetricSpec(ref()).metricSpecs[0].metricName == "tide-task-managers"
    assert keda.GetMetrics(request).metricValues[0].metricValue == 3


@pytest.mark.parametrize(
    ("metadata", "row", "code", "message"),
    [
        ({"controller": ""}, {}, "INVALID_ARGUMENT", "has to name one"),
        ({"controller": "btu"}, {}, "INVALID_ARGUMENT", "name one that advises here (ds2, tide)"),
        ({"operator": "parze"}, {}, "INVALID_ARGUMENT", "it has parse, store"),
        ({"controller": "ds2"}, {}, "UNAVAILABLE", "has not advised yet"),
        ({}, {"holds_s": -61}, "UNAVAILABLE", "does the service run"),
        ({}, {"holds_s": 6 * 3600}, "UNAVAILABLE", "the clock was set back"),
        ({}, {"failed": True, "because": "no rate"}, "UNAVAILABLE", "could not decide: no rate"),
    ],
)
def test_what_keda_cannot_scale_by_is_an_error_with_what_to_do(
    keda, tmp_path, metadata, row, code, message
):
    write_state(tmp_path, **row)
    with pytest.raises(grpc.RpcError) as error:
        keda.IsActive(ref(**metadata))
    assert error.value.code() == grpc.StatusCode[code]
    assert message in error.value.details()


def test_without_a_state_there_is_no_advice(keda):
    with pytest.raises(grpc.RpcError) as error:
        keda.GetMetricSpec(ref())
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE


def test_push_scalers_are_told_at_once_and_keep_nobody_waiting(keda, tmp_path):
    write_state(tmp_path)
    streams = [keda.StreamIsActive(ref(), timeout=30) for _ in range(20)]
    assert all(next(stream).result for stream in streams)
    assert keda.IsActive(ref(), timeout=30).result
    for stream in streams:
        stream.cancel()


def test_what_a_later_keda_asks_for_is_not_implemented(keda):
    """It goes on with GetMetricSpec on that code alone (kedacore/keda at 8b4f083c,
    pkg/scalers/external_scaler.go, line 337)."""
    call = keda.channel.unary_stream(f"/{scaler.SERVICE}/StreamMetricSpec")
    with pytest.raises(grpc.RpcError) as error:
        next(call(b"", timeout=30))
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_it_may_be_at_an_address_of_ipv6(tmp_path):
    server, port = scaler.serve(tmp_path, "::1", 0)
    with grpc.insecure_channel(f"[::1]:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=30)
    server.stop(None).wait()


def test_a_port_that_is_taken_is_told(keda, tmp_path):
    with pytest.raises(SetupError, match="choose another --port"):
        scaler.serve(tmp_path, "127.0.0.1", keda.port)
