# SPDX-License-Identifier: MIT
"""The report page that the package carries, with data put in: one HTML file that needs nothing else."""

import base64
import datetime
import json
import os

from tare._tare import version
from tare._whole_file import write_text

_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")
_PLAIN = "delta-zigzag-varint+base64"  # docs/run-document.md; the other codec needs zstd
_SAMPLES_MOST = 200_000  # in one page
_PLACE = '<script id="tare-data" type="application/json">null</script>'


def carried():
    """The page's text. RuntimeError with the cause when the package has none."""
    try:
        with open(_PAGE, encoding="utf-8") as page:
            text = page.read()
    except FileNotFoundError:
        text = ""
    if _PLACE not in text:
        raise RuntimeError("this package was built without the report page, which needs node: install node, then pip install . again")
    return text


# ---- single times: a page has no decoder ----


def _single_times(raw):
    times, last, value, shift = [], 0, 0, 0
    for byte in base64.b64decode(raw["data"]):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            last += (value >> 1) ^ -(value & 1)
            times.append(last)
            value = shift = 0
    return times


def _spelled_case(case, step):
    raw = case.get("samples_raw")
    if not raw or raw["codec"] != _PLAIN:
        return case
    kept = f"one in {step} of {raw['kept']}" if step > 1 else raw["kept"]
    rest = {key: value for key, value in case.items() if key != "samples_raw"}
    return {**rest, "samples_ns": _single_times(raw)[::step], "samples_kept": kept}


def spelled_out(item):
    """The item as the page takes it: in a run document single times as numbers."""
    if item["kind"] != "run":
        return item
    document = item["document"]
    count = sum(case["samples_raw"]["count"] for case in document["cases"] if case.get("samples_raw"))
    step = -(-count // _SAMPLES_MOST) or 1
    return {**item, "document": {**document, "cases": [_spelled_case(case, step) for case in document["cases"]]}}


def write_page(path, items, title="tare"):
    """Writes `items` ({"kind": "run", "name", "document"} or {"kind": "profile", "document"}) as one HTML page; returns the path."""
    data = {
        "schema": "tare.page/1",
        "title": title,
        "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tool": {"version": version},
        "items": [spelled_out(item) for item in items],
    }
    packed = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return write_text(path, carried().replace(_PLACE, _PLACE.replace("null", "%s", 1) % packed, 1))
