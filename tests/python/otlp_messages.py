# SPDX-License-Identifier: MIT
"""OTLP metrics in protobuf, by Google's own library: the messages of opentelemetry-proto that a sender of numbers fills in, and the mapping of their JSON form."""
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

_F = descriptor_pb2.FieldDescriptorProto
_KINDS = {"text": _F.TYPE_STRING, "bool": _F.TYPE_BOOL, "int": _F.TYPE_INT64, "uint": _F.TYPE_UINT32, "double": _F.TYPE_DOUBLE, "fixed": _F.TYPE_FIXED64, "sfixed": _F.TYPE_SFIXED64}
_POINTS = "data_points 1 *"
_MESSAGES = {
    "AnyValue": "string_value 1 text, bool_value 2 bool, int_value 3 int, double_value 4 double", "KeyValue": "key 1 text, value 2 AnyValue",
    "Point": "start_time_unix_nano 2 fixed, time_unix_nano 3 fixed, as_double 4 double, as_int 6 sfixed, attributes 7 *KeyValue, flags 8 uint",
    "Other": "count 4 fixed", "Gauge": _POINTS + "Point", "Sum": _POINTS + "Point, aggregation_temporality 2 uint, is_monotonic 3 bool",
    "Histogram": _POINTS + "Other", "Metric": "name 1 text, description 2 text, unit 3 text, gauge 5 Gauge, sum 7 Sum, histogram 9 Histogram, exponential_histogram 10 Histogram, summary 11 Histogram",
    "Scope": "name 1 text", "ScopeMetrics": "scope 1 Scope, metrics 2 *Metric", "Resource": "attributes 1 *KeyValue",
    "ResourceMetrics": "resource 1 Resource, scope_metrics 2 *ScopeMetrics", "Request": "resource_metrics 1 *ResourceMetrics",
    "Partial": "rejected_data_points 1 int, error_message 2 text", "Reply": "partial_success 1 Partial",
    "Label": "name 1 text, value 2 text", "Sample": "value 1 double, timestamp 2 int", "Series": "labels 1 *Label, samples 2 *Sample", "WriteRequest": "timeseries 1 *Series",
}


def _classes():
    file = descriptor_pb2.FileDescriptorProto(name="otlp_of_tests.proto", package="otlp", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            key, number, kind = field.split()
            f = message.field.add(name=key, number=int(number), label=_F.LABEL_REPEATED if kind[0] == "*" else _F.LABEL_OPTIONAL)
            kind = kind.lstrip("*")
            if kind in _KINDS:
                f.type = _KINDS[kind]
            else:
                f.type, f.type_name = _F.TYPE_MESSAGE, ".otlp." + kind
            if name in ("AnyValue",) or key in ("as_double", "as_int"):  # 0 and "" are there when they are set
                f.proto3_optional = True
                f.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name="_" + key)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName("otlp." + name)) for name in _MESSAGES}


CLASSES = _classes()


def packed(text):
    return json_format.Parse(text, CLASSES["Request"]()).SerializeToString()


def reply(data):
    return json_format.MessageToDict(CLASSES["Reply"].FromString(data))
