# SPDX-License-Identifier: MIT
"""The Python process behind `tare bench py:FILE.py:NAME`: imports the function, makes inputs, runs and times it, and
answers over packet sockets (src/subject/py_wire.h says what is spoken). What the function prints goes to stderr; a
traceback is shown there, too."""

import asyncio
import importlib
import importlib.util
import os
import platform
import socket
import struct
import sys
import threading
import traceback

from tare import _inputs, _tare
from tare._bench import Feeder, function_path, is_async, run_in_loop, subject_name

PROTOCOL = 1
FIRST_FD = 3
PREPARE, RUN, STATE, OVERHEAD, DROP = range(1, 6)
INVALID, DENIED, UNSUPPORTED = -2, -5, -6  # tare_status
_REQUEST = struct.Struct("=IIqq")
_REPLY = struct.Struct("=iIQQ")
_TEXT_MAX = 380
_HERE = os.path.dirname(os.path.abspath(__file__))


_NO_ITEMS = "batches and lengths need items to cut: give --inputs, or define make_input(batch, length) beside the function"


class BadInput(Exception):
    """Something the user named cannot be used."""

    status = INVALID


# ---- finding the function ----


def _import_file(path):
    if not os.path.isfile(path):
        raise BadInput(f"{path}: no such file")
    path = os.path.abspath(path)
    name = os.path.splitext(os.path.basename(path))[0]
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == path:
        return known  # two functions of one file share what it holds
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import_module(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name and (name == missing.name or name.startswith(missing.name + ".")):
            raise BadInput(f"{name}: no such module, here or where this Python looks") from None
        raise


def locate(target):
    """(module, object) of "embed.py:encode" or "package.module:name"; a name may have dots."""
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise BadInput(f"{target}: expected FILE.py:NAME or MODULE:NAME, as in embed.py:encode")
    module = _import_file(where) if where.endswith(".py") else _import_module(where)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise BadInput(f"{target}: {where} has no {name}")
        found = getattr(found, part)
    return module, found


def find(target):
    """As locate(), of something that can be called."""
    module, found = locate(target)
    if not callable(found):
        raise BadInput(f"{target}: {target.rpartition(':')[2]} is {type(found).__name__}, which cannot be called")
    return module, found


def make_feeder(target, inputs):
    """What makes the calls: the items of a file, the module's own make_input, or no arguments."""
    module, function = find(target)
    if inputs:
        try:
            return Feeder(function, (_inputs.read(inputs),), unit="items")
        except (OSError, ValueError) as bad:
            raise BadInput(f"--inputs {bad}") from None
    return Feeder(function, (), make_input=getattr(module, "make_input", None), unit="items")


# ---- answering ----


def reply(status=0, n=0, value=0, switches=0, payload=b""):
    return _REPLY.pack(status, n, value, switches) + payload


def _without_us(trace):
    """The traceback from where it leaves this package and the import machinery."""
    while trace and (os.path.dirname(trace.tb_frame.f_code.co_filename) == _HERE or "importlib" in str(trace.tb_frame.f_code)):
        trace = trace.tb_next
    return trace


_shown = set()


def refuse(error, ns=0, what=None):
    """An error as a reply: bad input, or what the function raised after `ns`, whose traceback is shown. `what` says it in other words."""
    text = what or (str(error) if isinstance(error, BadInput) else "".join(traceback.format_exception_only(type(error), error)))
    if not isinstance(error, BadInput):
        if type(error) not in _shown:  # one of each kind, however many runs fail
            _shown.add(type(error))
            traceback.print_exception(type(error), error, _without_us(error.__traceback__))
        sys.stderr.flush()
    cut = " ".join(text.split()).encode("utf-8", "replace")[:_TEXT_MAX]
    return reply(error.status if isinstance(error, BadInput) else DENIED, len(cut), ns, payload=cut)


class Lane:
    """One socket: cases that are ready, each with its own input, in the thread that runs them."""

    def __init__(self, fd, feeder, asked):
        self.socket = socket.socket(fileno=fd)
        self.asked = asked  # id: (batch, length), of all lanes
        self.ready = {}
        self.loop = asyncio.new_event_loop() if is_async(feeder.function) else None
        function = run_in_loop(feeder.function, self.loop) if self.loop else feeder.function
        self.feeder = Feeder(function, feeder.args, make_input=feeder.make_input, unit=feeder.unit,
                             timed=self.loop is not None)  # fmt: skip

    def case(self, number, one_by_one):
        if number not in self.ready:
            batch, length = self.asked[number]
            self.ready[number] = _tare.Runs(self.feeder.make, batch, length, self.feeder.timed, one_by_one)
        return self.ready[number]

    def prepare(self, number, batch, length):
        self.asked[number] = (batch, length)
        try:
            arguments = self.feeder.arguments(batch, length)
        except (TypeError, ValueError) as bad:
            if self.feeder.make_input:
                raise
            raise BadInput(str(bad) if self.feeder.args else _NO_ITEMS) from None
        return reply(value=self.feeder.units(batch, arguments))

    def run(self, number, ns, most):
        runs = self.case(number, ns == 0)
        try:
            times, switches, group = runs.run(ns, most)
        except BaseException as error:  # also SystemExit: a run that failed
            return refuse(error, runs.failed_ns)
        return reply(0, len(times) // 8, group, max(switches, 0), times)

    def state(self, _, reset, __):
        words = _tare.process_state(reset)
        return reply(0, len(words) // 8, payload=words)

    def overhead(self, number, _, __):
        return reply(value=self.case(number, False).overhead())

    def drop(self, number, _, __):
        self.ready.pop(number, None)
        return reply()

    _ANSWERS = {PREPARE: prepare, RUN: run, STATE: state, OVERHEAD: overhead, DROP: drop}

    def answer(self, request):
        kind, number, a, b = _REQUEST.unpack(request)
        try:
            return self._ANSWERS[kind](self, number, a, b)
        except BaseException as error:  # also SystemExit: the process goes on, tare decides
            return refuse(error)

    def serve(self):
        """Until the other side hangs up. What the function forked and let return is nobody's worker."""
        worker = os.getpid()
        while True:
            request = self.socket.recv(_REQUEST.size)
            if len(request) != _REQUEST.size:
                return
            answer = self.answer(request)
            if os.getpid() != worker:
                os._exit(0)
            self.socket.send(answer)


def _hello(socket_, target, inputs):
    """Import everything and greet; the feeder, or None when that failed."""
    try:
        feeder = make_feeder(target, inputs)
    except BaseException as error:  # user code ran: anything may come
        socket_.send(refuse(error))
        return None
    texts = [subject_name(feeder.function), function_path(feeder.function) or "", platform.python_version()]
    socket_.send(reply(value=PROTOCOL, payload=b"".join(t.encode("utf-8", "replace") + b"\0" for t in texts)))
    return feeder


def main(argv):
    """python -m tare _worker LANES TARGET INPUTS, started by `tare bench` with its sockets open."""
    lanes, target, inputs = int(argv[0]), argv[1], argv[2]
    _tare.follow_parent()
    for number in range(lanes):
        os.set_inheritable(FIRST_FD + number, False)
    first = socket.socket(fileno=os.dup(FIRST_FD))
    feeder = _hello(first, target, inputs)
    first.close()
    if feeder is None:
        return 3
    asked = {}
    for number in range(1, lanes):
        lane = Lane(FIRST_FD + number, feeder, asked)
        threading.Thread(target=lane.serve, daemon=True).start()
    Lane(FIRST_FD, feeder, asked).serve()
    return 0
