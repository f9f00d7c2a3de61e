# SPDX-License-Identifier: MIT
"""`tare bench` and `tare compare --ab` over TLS and unix sockets: what is trusted is measured, and what is not is named before any load."""

import asyncio
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import threading

import pytest

from certificates import authority  # noqa: F401

WAIT = 120
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
def short_path():
    """The path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="tare-", dir="/tmp") as path:
        yield pathlib.Path(path)


@pytest.fixture
def listen():
    """A server of this process: on a port, or a unix socket; answers each request after so many seconds."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def serve(reader, writer, delay):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(delay)
                writer.write(ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def start(delay, files=None, path=None):
        context = None
        if files:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*files)

        async def begin():
            def each(reader, writer):
                return serve(reader, writer, delay)

            if path:
                return await asyncio.start_unix_server(each, path)
            return await asyncio.start_server(each, "127.0.0.1", 0, ssl=context)

        made = asyncio.run_coroutine_threadsafe(begin(), loop).result(WAIT)
        return None if path else made.sockets[0].getsockname()[1]

    yield start
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@pytest.fixture
def tare(build, tmp_path, authority):
    def call(*words, code=(0, 1, 3), trusts=authority):
        env = {**os.environ, "TARE_CA_FILE": str(trusts.certificate)}
        done = subprocess.run([os.environ.get("TARE", str(build / "tare")), *words, "--json"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=WAIT, check=False)
        if "built without" in done.stderr:
            pytest.skip("built without llhttp or libssl")
        assert done.returncode in code, done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    return call


BENCH = ("--max-runs", "30", "--warmup", "2", "--concurrency", "3", "--no-save")


def test_https_is_measured_and_compared(listen, tare, authority):
    files = authority.issue("server", hosts="DNS:localhost,IP:127.0.0.1")
    fast, slow = listen(0.005, files), listen(0.02, files)
    case = tare("bench", f"https://localhost:{fast}/", *BENCH)["cases"][0]
    assert case["http"]["answered"] == 30 and case["http"]["unstamped"] == 30 and case["latency_ns"]["min"] >= 5e6
    document = tare("compare", "--ab", f"https://localhost:{fast}/", f"https://127.0.0.1:{slow}/", "--budget", "20s", "--max-pairs", "25")
    ratio = next(m["ratio"] for m in document["cases"][0]["metrics"] if m["metric"] == "latency.mean")
    assert ratio["value"] > 1 and document["verdict"] in ("regressed", "inconclusive")


def test_unix_sockets_are_compared(listen, tare, short_path):
    listen(0.005, path=short_path / "a"), listen(0.02, path=short_path / "b")
    document = tare("compare", "--ab", f"unix:{short_path}/a:/x", f"unix:{short_path}/b:/x", "--budget", "20s", "--max-pairs", "25")
    ratio = next(m["ratio"] for m in document["cases"][0]["metrics"] if m["metric"] == "latency.mean")
    assert ratio["value"] > 1 and document["verdict"] in ("regressed", "inconclusive")


@pytest.mark.parametrize("hosts, at, says", [("DNS:tare.example", "localhost", "of another host"), ("DNS:localhost", "127.0.0.1", "of another host")])
def test_a_certificate_of_another_host_is_named(listen, tare, authority, hosts, at, says):
    port = listen(0, authority.issue("other", hosts=hosts))
    assert says in tare("bench", f"https://{at}:{port}/", *BENCH, code=(3,))


def test_an_issuer_that_nobody_knows_is_named(listen, tare, authority, tmp_path):
    from certificates import Authority

    port = listen(0, authority.issue("server", hosts="DNS:localhost"))
    assert "trusted" in tare("bench", f"https://localhost:{port}/", *BENCH, code=(3,), trusts=Authority(tmp_path / "another", "another"))


def test_one_speaks_tls_and_the_other_does_not(listen, tare, authority):
    plain, secure = listen(0), listen(0, authority.issue("server", hosts="DNS:localhost"))
    assert "TLS handshake was not answered" in tare("bench", f"https://localhost:{plain}/", *BENCH, "--timeout", "3s", code=(3,))
    assert "ended before" in tare("bench", f"http://localhost:{secure}/", *BENCH, "--timeout", "3s", code=(3,))
