# SPDX-License-Identifier: MIT
"""The report page that the package carries, with data put in: one HTML file that needs nothing else."""

import datetime
import json
import os

from tare._tare import version
from tare._whole_file import write_text

_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")
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


def write_page(path, items, title="tare"):
    """Writes `items` ({"kind": "run", "name", "document"} or {"kind": "profile", "document"}) as one HTML page; returns the path."""
    data = {
        "schema": "tare.page/1",
        "title": title,
        "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tool": {"version": version},
        "items": items,
    }
    packed = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return write_text(path, carried().replace(_PLACE, _PLACE.replace("null", "%s", 1) % packed, 1))
