# SPDX-License-Identifier: MIT
"""What could not be measured, as a value.

The decision, taken once for the whole package: an unknown number is an `Unknown`, a NaN that knows why. It never is 0, it fails
every comparison (`if gpu_memory > 0.9` is False and does not raise), it is false (`x or default`), it formats as the word
"unknown" whatever the format asks for (f"{x:.1f}"), and arithmetic with it stays unknown, for the same reason. In documents it
becomes null, with the reason beside it.
"""

from __future__ import annotations

import math
import re
from typing import Any

_LAYOUT = re.compile(r"(?:(.)?([<>^=]))?[-+ ]?#?0?(\d*)")


class Unknown(float):
    """NaN with a reason."""

    __slots__ = ("reason",)
    reason: str

    def __new__(cls, reason: str) -> "Unknown":
        self = super().__new__(cls, math.nan)
        self.reason = reason
        return self

    def __repr__(self) -> str:
        return f"Unknown({self.reason!r})"

    def __str__(self) -> str:
        return "unknown"

    def __bool__(self) -> bool:
        return False

    def __format__(self, spec: str) -> str:
        fill, align, width = _LAYOUT.match(spec).groups()
        return format("unknown", f"{fill or ''}{(align or '>').replace('=', '>')}{width}" if width else "")

    def __reduce__(self) -> tuple:
        return Unknown, (self.reason,)

    def _stays(self, *_: Any) -> "Unknown":
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _stays
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _stays
    __neg__ = __pos__ = __abs__ = __round__ = __floor__ = __ceil__ = __trunc__ = _stays


def known(value: Any) -> bool:
    """Whether a value was measured: neither None nor NaN."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def plain(value: Any) -> Any:
    """The value as documents have it: None for what is unknown."""
    return value if known(value) else None
