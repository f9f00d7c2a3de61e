# SPDX-License-Identifier: MIT
"""Alert rules on what hosts send: each change told once, by the same rules and deliveries as `tare run --alert`."""

import http.server
import json
import subprocess
import threading
import time

import pytest

from serve_client import WAIT
from served import command, document, eventually, server, start  # noqa: F401

SCOPES = "read,ingest,run"


@pytest.fixture
def serve(start, tmp_path):
    def call(**alerts):
        path = tmp_path / "operations.json"
        path.write_text(json.dumps({"schema": "tare.operations/1", "alerts": alerts}))
        path.chmod(0o600)
        return start("--operations", path, "--rate", 0)
    return call


class Host:
    """Sends readings a second apart, the last of them now."""

    def __init__(self, server, token, name):
        self.server, self.token, self.name, self.n = server, token, name, 0
        self.at = int(time.time() * 1000) - 600000

    def send(self, *values, metric="load.1m"):
        samples = []
        for value in values:
            self.at += 1000
            samples.append({"name": metric, "value": value, "at": self.at})
        self.n += 1
        body = json.dumps({"batch": "%s-%d" % (self.name, self.n), "host": self.name, "samples": samples}).encode()
        got = self.server.ask("POST", "/api/v1/metrics", token=self.token, body=body)
        assert got.status == 201, got.body


def alerts(server, token):
    return {(a["rule"], a["host"]): a for a in server.ask("GET", "/api/v1/alerts", token=token).json["alerts"]}


def state(server, token, rule, host):
    return alerts(server, token).get((rule, host), {}).get("state")


def test_without_rules_there_are_no_alerts(server):
    assert server.ask("GET", "/api/v1/alerts", token=server.token("read")).json == {"rules": [], "alerts": []}


def test_a_rule_fires_once_and_clears_once(serve, tmp_path):
    said = tmp_path / "said"
    rule = "load.1m>10"
    server = serve(rules=[rule, "disk.busy>50%"], command="cat >> '%s'" % said)
    token = server.token(SCOPES)
    host = Host(server, token, "gpu7")
    host.send(3, 4)
    eventually(lambda: state(server, token, rule, "gpu7") == "good")
    assert state(server, token, "disk.busy>50%", "gpu7") == "no data"
    host.send(20, 21)
    host.send(22)
    eventually(lambda: state(server, token, rule, "gpu7") == "firing")
    assert alerts(server, token)[rule, "gpu7"]["value"] == 20
    host.send(10, 9.9, 12)  # within 5 % of the threshold it stays as it is
    host.send(2)
    eventually(lambda: state(server, token, rule, "gpu7") == "resolved")
    host.send(30)
    eventually(lambda: said.exists() and len(said.read_text().splitlines()) == 3)
    told = [json.loads(line) for line in said.read_text().splitlines()]
    assert [(t["state"], t["value"], t["host"], t["rule"]) for t in told] == [
        ("fired", 20, "gpu7", rule), ("cleared", 2, "gpu7", rule), ("fired", 30, "gpu7", rule)]


def test_for_needs_its_time_and_old_readings_tell_nothing(serve):
    rule = "load.1m>10 for 5s"
    server = serve(rules=[rule])
    token = server.token(SCOPES)
    host = Host(server, token, "a")
    host.send(20, 20, 20, 2, 20, 20, 20)
    eventually(lambda: state(server, token, rule, "a") == "good")
    host.send(20, 20, 20)
    eventually(lambda: state(server, token, rule, "a") == "firing")


def test_hosts_of_other_projects_are_absent(serve):
    rule = "load.1m>10"
    server = serve(rules=[rule])
    mine, other = server.token(SCOPES, "--project", "mine"), server.token(SCOPES, "--project", "other")
    Host(server, mine, "h").send(20)
    eventually(lambda: state(server, mine, rule, "h") == "firing")
    assert alerts(server, other) == {}


def test_the_webhook(serve):
    got = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    listener = http.server.HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    try:
        server = serve(rules=["load.1m>10"], webhook="http://127.0.0.1:%d/hook" % listener.server_port)
        Host(server, server.token(SCOPES), "h").send(20)
        eventually(lambda: got)
        assert got[0]["state"] == "fired" and got[0]["host"] == "h"
    finally:
        listener.shutdown()


@pytest.mark.parametrize("settings, why", [
    ({"rules": ["load.1m>>10"]}, "line 1"), ({"rules": ["laod>10"]}, "is not a quantity"), ({"webhook": "ftp://x"}, "https://host/path"),
    ({"rule": []}, 'did you mean "rules"?'), ({"rules": "cpu>80%"}, "a list of texts"),
])
def test_wrong_settings_are_told(command, tmp_path, settings, why):
    path = tmp_path / "operations.json"
    path.write_text(json.dumps({"schema": "tare.operations/1", "alerts": settings}))
    path.chmod(0o600)
    done = subprocess.run([command, "serve", "--data", tmp_path / "data", "--port", "0", "--operations", path], capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 2 and why in done.stderr, done.stderr
