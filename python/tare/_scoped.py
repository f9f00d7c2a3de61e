# SPDX-License-Identifier: MIT
"""Functions inside something: coroutines and generators are wrapped by wrappers of their own kind, so that frameworks that ask
`inspect.iscoroutinefunction` and the like get the answer of the function itself. In a scope plain functions are wrapped in C."""

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


# ---- in any context manager ----


def _call_within(context, function):
    def called(*args, **named):
        with context():
            return function(*args, **named)

    return called


def _await_within(context, function):
    async def awaited(*args, **named):
        with context():
            return await function(*args, **named)

    return awaited


def _stream_within(context, function):
    def streamed(*args, **named):
        with context():
            return (yield from function(*args, **named))

    return streamed


def _async_stream_within(context, function):
    """For readers that only read: what they send or throw does not reach the function."""

    async def streamed(*args, **named):
        source = function(*args, **named)
        with context():
            try:
                async for item in source:
                    yield item
            finally:
                await source.aclose()

    return streamed


_WITHIN = (
    (inspect.iscoroutinefunction, _await_within),
    (inspect.isasyncgenfunction, _async_stream_within),
    (inspect.isgeneratorfunction, _stream_within),
    (callable, _call_within),
)


def within(context, function):
    """`function` with a new `context()` open while it runs; of a generator, from its first item asked for to its end."""
    return next(make for fits, make in _WITHIN if fits(function))(context, function)
