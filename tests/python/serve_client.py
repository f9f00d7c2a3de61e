# SPDX-License-Identifier: MIT
"""A server under test and raw sockets to it: what its tests share. Nothing here waits for a fixed time."""

import json
import os
import re
import signal
import socket
import subprocess

WAIT = 60  # seconds until a test gives up; no test says how long anything takes


class Reply:
    def __init__(self, head, body):
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, port, source="127.0.0.1", tls=None):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=WAIT, source_address=(source, 0))
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
        self.left = b""

    def send(self, data):
        self.sock.sendall(data)

    def reply(self, head_only=False):
        """The next reply; None: the server closed before one began."""
        while b"\r\n\r\n" not in self.left:
            more = self.sock.recv(65536)
            if not more:
                assert self.left == b""
                return None
            self.left += more
        head, _, rest = self.left.partition(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", head, re.I)
        n = int(found.group(1)) if found and not head_only else 0
        while len(rest) < n:
            more = self.sock.recv(65536)
            assert more, "the server closed within a reply"
            rest += more
        self.left = rest[n:]
        return Reply(head, rest[:n])

    def is_closed(self):
        """Waits for the end; what comes before it is lost."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True

    def close(self):
        self.sock.close()


def request(method, path, *, token=None, body=None, headers=()):
    lines = ["%s %s HTTP/1.1" % (method, path)]
    given = dict(headers)
    given.setdefault("Host", "localhost")
    if token:
        given.setdefault("Authorization", "Bearer " + token)
    if body is not None:
        given.setdefault("Content-Type", "application/json")
        given.setdefault("Content-Length", str(len(body)))
    lines += ["%s: %s" % kv for kv in given.items() if kv[1] is not None]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class Server:
    """`tare serve` on a free port."""

    def __init__(self, command, data, *options, **popen):
        self.command, self.data, self.tls = command, str(data), None
        self.store = ["--db", options[options.index("--db") + 1]] if "--db" in options else ["--data", self.data]
        self.process = subprocess.Popen([command, "serve", "--data", self.data, "--port", "0", *map(str, options)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)
        self.address = self.process.stdout.readline().strip()
        assert re.match(r"https?://[0-9.]+:\d+$", self.address), self.process.stderr.read()
        self.port = int(self.address.rsplit(":", 1)[1])
        self.pid = self.process.pid

    def token(self, scope="read,ingest", *more):
        done = subprocess.run([self.command, "token", "new", "--scope", scope, *self.store, *more], capture_output=True,
                              text=True, check=True)
        return done.stdout.strip()

    def client(self, **more):
        return Client(self.port, tls=self.tls, **more)

    def ask(self, method, path, **more):
        c = self.client()
        try:
            c.send(request(method, path, **more))
            return c.reply(head_only=method == "HEAD")
        finally:
            c.close()

    def stop(self):
        """SIGTERM; its exit status and what it told its operator."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=WAIT)
        return self.process.returncode, said

    def kill(self):
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        self.process.communicate(timeout=WAIT)
