# SPDX-License-Identifier: MIT
"""Recording of memory: the page of the format against the code; the agent in real programs."""
import re


def test_the_page_lists_the_records_as_the_code_has_them(root):
    rows = re.findall(r"RECORD\((\d+), (\w+),((?:\s*F\(\w+, \w+\))+)\s*\)", (root / "src/trace/memory_records.def").read_text())
    page = (root / "docs/trace-format.md").read_text().split("### MEMORY")[1]
    for number, name, fields in rows:
        told = re.search(rf"^\| {number} \| {name} \| (.*?) \| .+ \|$", page, re.M)
        assert told, name
        assert re.findall(r"`(\w+)`", told[1]) == re.findall(r"F\((\w+),", fields), name
    assert len(rows) == 14
