# SPDX-License-Identifier: MIT
"""After a fork the child has the locks as another thread may have held them, and no sampling thread: both are made anew."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from tare import _tare

_locked: weakref.WeakSet = weakref.WeakSet()


def keep_lock(owner: Any) -> None:
    """`owner._lock` is a lock from now on, and a free one in the child of a fork."""
    owner._lock = threading.Lock()
    _locked.add(owner)


def _in_child() -> None:
    for owner in _locked:
        owner._lock = threading.Lock()
    _tare.sampler_resume()


os.register_at_fork(after_in_child=_in_child)
