# SPDX-License-Identifier: MIT
"""Functions in a scope: plain ones are wrapped in C; coroutines and generators by wrappers of their own kind, so that frameworks that
ask `inspect.iscoroutinefunction` and the like get the answer of the function itself."""

import functools
import inspect

from tare._tare import Scoped, Steps


def _coroutine(scope, function):
    async def scoped(*args, **named):
        with scope:
            return await function(*args, **named)

    return scoped


def _generator(scope, function):
    def scoped(*args, **named):
        return (yield from Steps(scope, function(*args, **named)))

    return scoped


def _async_generator(scope, function):
    """Each step is one call of the scope."""

    async def step(awaitable):
        with scope:
            return await awaitable

    async def scoped(*args, **named):
        source = function(*args, **named)
        try:
            value = await step(source.__anext__())
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    raise
                except BaseException as thrown:  # the reader's athrow(): the source decides
                    value = await step(source.athrow(thrown))
                else:
                    value = await step(source.asend(sent))
        except StopAsyncIteration:
            return
        finally:
            await source.aclose()

    return scoped


# (what the function is, how it is wrapped): the first that fits
_KINDS = (
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.isgeneratorfunction, _generator),
    (callable, Scoped),
)


def wrap(scope, function):
    """`function` with `scope` open while it runs."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(wrap(scope, function.__func__))
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"tare.scope decorates functions, not {function!r}")
    make = next(make for fits, make in _KINDS if fits(function))
    return functools.update_wrapper(make(scope, function), function)
