# SPDX-License-Identifier: MIT
"""A small terminal: obeys what `tare top` writes and fails on anything else. And a program run under a pty on it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

TOKEN = re.compile(rb"\x1b\[(\?)?([0-9;]*)([A-Za-z])|([^\x1b]+)|(\x1b)", re.S)


class Screen:
    """Cells of text; `modes` are the private modes that are set."""

    def __init__(self, columns, lines):
        self.modes, self.styles, self.saved = {7, 25}, set(), None
        self.resize(columns, lines)

    def resize(self, columns, lines):
        """What was there is lost, as a terminal may do."""
        self.columns, self.lines = columns, lines
        self.cells = [["~"] * columns for _ in range(lines)]
        self.x = self.y = 0

    def feed(self, data):
        """Obey whole tokens; what is incomplete at the end is given back."""
        cut = len(data)
        tail = re.search(rb"\x1b(\[[?0-9;]*)?$|[\xc0-\xff][\x80-\xbf]{0,2}$", data)
        if tail and not self.complete(data[tail.start():]):
            cut = tail.start()
        for private, args, letter, text, stray in TOKEN.findall(data[:cut]):
            assert not stray, data
            if letter:
                self.control(private, args.decode(), letter.decode())
            else:
                self.text(text.decode())
        return data[cut:]

    @staticmethod
    def complete(tail):
        try:
            return tail[:1] != b"\x1b" and bool(tail.decode())
        except UnicodeDecodeError:
            return False

    def control(self, private, args, letter):
        numbers = [int(a or 0) for a in args.split(";")] if args else [0]
        if private:
            assert letter in "hl", (args, letter)
            for n in numbers:
                (self.modes.add if letter == "h" else self.modes.discard)(n)
        elif letter == "H":
            self.y, self.x = max(numbers[0], 1) - 1, (numbers[1] if len(numbers) > 1 else 1) - 1
            assert self.y < self.lines and self.x < self.columns, (args, self.columns, self.lines)
        elif letter == "C":
            self.x += max(numbers[0], 1)
        elif letter == "K":
            self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif letter == "J":
            self.cells = [[" "] * self.columns for _ in range(self.lines)]
        else:
            assert letter == "m", letter
            self.styles.add(args)

    def text(self, text):
        if 1049 not in self.modes:
            return  # what is said before and after is no part of the picture
        for c in text:
            assert unicodedata.category(c) != "Cc", repr(text)
            if unicodedata.combining(c):
                continue
            wide = unicodedata.east_asian_width(c) in "WF"
            assert self.x + wide < self.columns, "past the edge: %r" % text
            self.cells[self.y][self.x] = c
            if wide:
                self.cells[self.y][self.x + 1] = ""
            self.x += 1 + wide

    def rows(self):
        return ["".join(r).rstrip() for r in self.cells]

    def __str__(self):
        return "\n".join(self.rows())


class Session:
    """A program on a pty of the given size."""

    def __init__(self, argv, columns=80, lines=24, env=None, cwd=None):
        self.screen, self.raw, self.rest = Screen(columns, lines), b"", b""
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd,
                                        start_new_session=True, preexec_fn=self.own_terminal)

    def own_terminal(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if (columns, lines) != (self.screen.columns, self.screen.lines):
            self.screen.resize(columns, lines)

    def read(self, seconds=0.1):
        """What is written within this time; the screen obeys it."""
        end = time.monotonic() + seconds
        got = b""
        while time.monotonic() < end:
            if not select.select([self.master], [], [], 0.02)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            got += data
            self.raw += data
            self.rest = self.screen.feed(self.rest + data)
        return got

    def until(self, wanted, seconds=20):
        """Read until wanted(screen text) holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            if wanted(str(self.screen)):
                return str(self.screen)
        raise AssertionError("not seen in %d s on:\n%s" % (seconds, self.screen))

    def type(self, text):
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def end(self, seconds=20):
        """Wait for the program to end; its exit status."""
        stop = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < stop:
            self.read(0.05)
        if self.process.poll() is None:
            self.process.kill()
            raise AssertionError("did not end; on the screen:\n%s" % self.screen)
        self.read(0.2)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
