# SPDX-License-Identifier: MIT
"""tare compare --ab: its documents against their schema with a public validator, and against the raw pairs they hold."""

import base64
import json
import math
import pathlib
import statistics

import jsonschema
import pytest
import zstandard

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/comparison-1.json").read_text())
RUN_SCHEMA = json.loads((ROOT / "docs/schema/run-1.json").read_text())
LOOP = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done"


def unpack(samples):
    """zstd, LEB128, zigzag, differences of neighbours."""
    out, value, shift, last = [], 0, 0, 0
    for byte in zstandard.ZstdDecompressor().decompress(base64.b64decode(samples["data"]), max_output_size=1 << 24):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            last += (value >> 1) ^ -(value & 1)
            out.append(last)
            value = shift = 0
    assert len(out) == samples["count"]
    return out


@pytest.fixture
def document(tare):
    """A comparison of two commands, the second with twice the work."""
    done = tare("compare", "--ab", "--shell", LOOP % 3000, LOOP % 6000, "--budget", "20s", "--json", "--no-save", status=1)
    return json.loads(done.stdout)


def test_schema_itself():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_shared_parts_are_those_of_run_documents():
    """The schema is complete in one file; what it repeats of run-1.json must not drift from it."""
    for name, part in SCHEMA["$defs"].items():
        if name in RUN_SCHEMA["$defs"] and name not in ("case",):
            assert part == RUN_SCHEMA["$defs"][name], name


def test_documents_are_valid_and_described(document):
    jsonschema.Draft202012Validator(SCHEMA).validate(document)

    def close(node):
        if isinstance(node, dict):
            extra = {"additionalProperties": False} if node.get("type") == "object" and "properties" in node else {}
            return {k: close(v) for k, v in node.items()} | extra
        return [close(v) for v in node] if isinstance(node, list) else node

    jsonschema.Draft202012Validator(close(SCHEMA)).validate(document)


def test_the_ratio_is_that_of_the_pairs(document):
    """Hodges-Lehmann by its definition: the median of all pairwise means of ln(new / base)."""
    case = document["cases"][0]
    for metric, key in (("latency", "wall"), ("cpu_time", "cpu")):
        base, new = (unpack(case["samples"]["%s_%s_ns" % (side, key)]) for side in ("base", "new"))
        d = [math.log(b / a) for a, b in zip(base, new)]
        centre = statistics.median((d[i] + d[k]) / 2 for i in range(len(d)) for k in range(i, len(d)))
        got = next(m for m in case["metrics"] if m["metric"] == metric)
        assert got["ratio"]["value"] == pytest.approx(math.exp(centre), rel=1e-9)
        assert got["base"]["value"] == pytest.approx(statistics.median(base), rel=1e-9)
        assert got["gate"]["lo"] <= got["ratio"]["lo"] <= got["ratio"]["value"] <= got["ratio"]["hi"] <= got["gate"]["hi"]


def test_order_is_a_coin_that_the_seed_decides(tare):
    def orders(seed):
        done = tare("compare", "--ab", "true", "true", "--max-pairs", "40", "--json", "--no-save", "--seed", seed)
        return unpack(json.loads(done.stdout)["cases"][0]["samples"]["order"])

    first, again, other = orders(5), orders(5), orders(6)
    n = min(len(first), len(again), len(other))
    assert n >= 20 and first[:n] == again[:n] != other[:n]
    assert 0.2 < sum(first) / len(first) < 0.8


def test_unknown_has_a_reason(document):
    """Whatever is null in a metric or a case is explained there."""
    for case in document["cases"]:
        for metric in case["metrics"]:
            for key in ("ratio", "mde", "needed", "sd_sample", "sd_launch", "p_value"):
                assert metric[key] is not None or key in metric["unknown"], (metric["metric"], key)
