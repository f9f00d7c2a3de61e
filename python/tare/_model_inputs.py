# SPDX-License-Identifier: MIT
"""Inputs of a model: positional and named arguments, cut or repeated to a batch size. Knows tensors by their methods, imports nothing."""

from collections.abc import Mapping


class Inputs:
    """What one run of the subject is called with."""

    def __init__(self, args=(), kwargs=None):
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})

    @classmethod
    def of(cls, data):
        """A mapping gives named arguments, a tuple several positional ones, anything else is one argument."""
        if isinstance(data, Inputs):
            return data
        if isinstance(data, Mapping):
            return cls((), data)
        return cls(data if isinstance(data, tuple) else (data,))

    def values(self):
        return [*self.args, *self.kwargs.values()]

    def map(self, change):
        return Inputs((change(value) for value in self.args), {name: change(value) for name, value in self.kwargs.items()})

    def batch(self):
        """Rows of the first argument that has any: the batch size. 1 when nothing has rows."""
        return next((rows for rows in map(_rows, self.values()) if rows), 1)

    def with_batch(self, size):
        """Rows repeated or cut to `size`, in every argument that has as many rows as the batch now."""
        now = self.batch()
        return self if size == now else self.map(lambda value: _resized(value, size) if _rows(value) == now else value)

    def as_tensors(self, dtype, device):
        """Arrays and lists of numbers as tensors on the device; floating ones in `dtype`."""
        return self.map(lambda value: _tensor(value, dtype, device))

    def tokens(self):
        """Numbers of the first integer argument of two dimensions (token ids), or None."""
        for value in self.values():
            if len(_shape(value)) == 2 and "int" in str(getattr(value, "dtype", "")):
                return _shape(value)[0] * _shape(value)[1]
        return None

    def images(self):
        """Images in the first argument of four dimensions, or None."""
        return next((_shape(value)[0] for value in self.values() if len(_shape(value)) == 4), None)

    def nbytes(self):
        return sum(getattr(value, "nbytes", 0) for value in self.values())


def _shape(value):
    return tuple(getattr(value, "shape", ()))


def _rows(value):
    if isinstance(value, list):
        return len(value)
    shape = _shape(value)
    return int(shape[0]) if shape else None


def _resized(value, size):
    picked = [index % _rows(value) for index in range(size)]
    return [value[index] for index in picked] if isinstance(value, list) else value[picked]


def _tensor(value, dtype, device):
    import torch

    if isinstance(value, list) and value and isinstance(value[0], str):
        return value
    if isinstance(value, (list,)) or (hasattr(value, "__array__") and not isinstance(value, torch.Tensor)):
        value = torch.as_tensor(value)
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device=device, dtype=dtype) if value.is_floating_point() else value.to(device)
