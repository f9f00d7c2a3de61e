# SPDX-License-Identifier: MIT
"""The run documents that tare writes, the JSON Schema it publishes and the reader it ships must agree.

Documents come from the unit test binary (test_run --dump DIR), verdicts of the reader from test_run --check, verdicts of
the schema from the public validator `jsonschema`. Every field of every document is then broken in many ways: both must
refuse, or both accept."""

import copy
import json
import os
import pathlib
import subprocess

import jsonschema
import made
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/run-1.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

# What a value may be replaced by; ABSENT removes it.
ABSENT = object()
BAD = [ABSENT, None, True, "", "x", "a/b", -1, 0, 0.5, 2, 1e30, [], {}, [None], {"a": 1}, {"bad": "x"}]

# Refused by the reader alone, because JSON Schema cannot compare two fields or look into packed data.
BEYOND = ("lo is above value", "hi is below value", "min is above max", "ratio_lo is above", "ratio_hi is below",
          "count is above cap", "samples_raw.data:")


@pytest.fixture(scope="session")
def binary():
    return os.environ.get("TARE_TEST_RUN") or str(made.make("build/tests/test_run")[0])


@pytest.fixture(scope="session")
def documents(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    out = subprocess.run([binary, "--dump", str(folder)], check=True, capture_output=True, text=True).stdout
    paths = out.split("\n")[:-1]
    assert len(paths) == 2
    return [json.loads(pathlib.Path(p).read_text()) for p in paths]


def read(binary, folder, documents):
    """What run_load says of each document: "ok" or its refusal."""
    paths = []
    for number, document in enumerate(documents):
        path = folder / f"{number}.json"
        path.write_text(json.dumps(document))
        paths.append(str(path))
    done = subprocess.run([binary, "--check"], input="\n".join(paths) + "\n", check=True, capture_output=True, text=True)
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(documents)
    return answers


def places(value, path=()):
    """Every path within a document, but for the document itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield path + (key,)
        yield from places(inner, path + (key,))


def changed(document, path, value):
    result = copy.deepcopy(document)
    at = result
    for step in path[:-1]:
        at = at[step]
    if value is ABSENT:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return result


def test_schema_itself():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_object_describes_itself():
    def walk(node, name):
        if isinstance(node, dict):
            for key, inner in node.get("properties", {}).items():
                assert inner.get("description"), f"{name}.{key} has no description"
            for key, inner in node.items():
                walk(inner, f"{name}.{key}")
    walk(SCHEMA, "run")


def test_every_field_is_on_the_page():
    page = (ROOT / "docs/run-document.md").read_text()
    for name, node in [("run", SCHEMA), *SCHEMA["$defs"].items()]:
        for key in node.get("properties", {}):
            assert f"`{key}`" in page or f'"{key}"' in page, f"docs/run-document.md does not mention {key} of {name}"


def test_written_documents_are_valid(documents):
    for document in documents:
        VALIDATOR.validate(document)


def test_schema_names_every_field_written(documents):
    """Closing every object of the schema must not refuse what tare writes: nothing is undescribed."""
    closed = copy.deepcopy(SCHEMA)

    def close(node):
        if isinstance(node, dict):
            if "properties" in node:
                node["additionalProperties"] = False
            for inner in node.values():
                close(inner)
        elif isinstance(node, list):
            for inner in node:
                close(inner)
    close(closed)
    for document in documents:
        jsonschema.Draft202012Validator(closed).validate(document)


def test_reader_and_schema_agree_on_broken_documents(binary, documents, tmp_path):
    variants = []
    for path in places(documents[1]):
        if path[0] == "cases" and len(path) > 1 and path[1] > 1:
            continue
        variants += [(path, value, changed(documents[1], path, value)) for value in BAD]
    answers = read(binary, tmp_path, [v[2] for v in variants])
    refused = 0
    for (path, value, document), answer in zip(variants, answers):
        valid = VALIDATOR.is_valid(document)
        refused += not valid
        if answer == "ok":
            assert valid, f"only the schema refuses {path} = {value!r}"
        elif valid:
            assert any(text in answer for text in BEYOND), f"only the reader refuses {path} = {value!r}: {answer}"
    assert len(variants) > 2000 and refused > 1000


@pytest.mark.parametrize("key", ["schema", "id", "kind", "created", "tool", "host", "subject", "cases", "findings", "targets"])
def test_missing_part_is_refused_by_both(binary, documents, tmp_path, key):
    broken = changed(documents[0], (key,), ABSENT)
    assert not VALIDATOR.is_valid(broken)
    assert f": {key}: missing" in read(binary, tmp_path, [broken])[0]


def test_newer_versions(binary, documents, tmp_path):
    minor = changed(documents[1], ("schema",), "tare.run/1.4")
    minor["cases"][0]["noise"] = {"added": "later"}
    minor["host"]["rack"] = 7
    major = changed(documents[1], ("schema",), "tare.run/2")
    assert VALIDATOR.is_valid(minor) and not VALIDATOR.is_valid(major)
    answers = read(binary, tmp_path, [minor, major])
    assert answers[0] == "ok"
    assert "schema tare.run/2 is newer than this tare reads" in answers[1]
