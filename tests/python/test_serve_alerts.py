# SPDX-License-Identifier: MIT
"""Alert rules on what hosts send, on burn rates and on runs: each change told once, whatever restarts; silence; a message on trial."""

import http.server
import json
import subprocess
import threading
import time

import pytest

from serve_client import WAIT
from served import command, document, eventually, id_of, server, start  # noqa: F401
from test_serve_judged import made, post  # noqa: F401
from test_serve_requests import batch, route
from test_serve_requests import send as send_requests

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


def told(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def alerts(server, token):
    return {(a["rule"], a["about"]): a for a in server.ask("GET", "/api/v1/alerts", token=token).json["alerts"]}


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
    eventually(lambda: len(told(said)) == 3)
    assert [(t["state"], t["value"], t["about"], t["rule"]) for t in told(said)] == [
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
        assert got[0]["state"] == "fired" and got[0]["about"] == "h"
    finally:
        listener.shutdown()


# ---- burn rates ----

def requests_at(server, token, minutes, late, service="shop"):
    """A hundred requests of so many minutes ago, of which `late` took longer than the promised 200 ms."""
    at = int(time.time() * 1000) - minutes * 60000
    got = send_requests(server, token, batch(at, [route("GET /", [1_000_000] * (100 - late) + [300_000_000] * late)], service=service))
    assert got.status == 201, got.body


def test_a_burn_rate_fires_when_both_windows_are_beyond(serve, tmp_path):
    """99 % promised: 5 late ones of 100 burn 5 times the budget. Hours that were good keep the rate of six hours below."""
    said = tmp_path / "said"
    server = serve(rules=["slo.burn>2", "slo.burn[other]>0"], command="cat >> '%s'" % said)
    token = server.token(SCOPES, "--project", "mine")
    for minutes in (120, 180, 240):
        requests_at(server, token, minutes, 0)
    requests_at(server, token, 5, 5)
    about = "shop: 99% within 200 ms"
    eventually(lambda: state(server, token, "slo.burn>2", about) == "good")  # 5 over an hour, 1.25 over six
    assert not told(said)
    requests_at(server, token, 5, 20)  # 12.5 and 5
    eventually(lambda: state(server, token, "slo.burn>2", about) == "firing")
    now = alerts(server, token)["slo.burn>2", about]
    assert now["value"] == pytest.approx(5) and now["threshold"] == 2 and now["since_ms"]
    eventually(lambda: told(said))
    (message,) = told(said)
    assert (message["state"], message["about"], message["project"], message["metric"]) == ("fired", about, "mine", "slo.burn")
    assert ("slo.burn[other]>0", about) not in alerts(server, token)
    assert alerts(server, server.token("read", "--project", "another")) == {}
    for _ in range(10):
        requests_at(server, token, 2, 0)
    eventually(lambda: state(server, token, "slo.burn>2", about) == "resolved")  # 25 late ones of 1500: 1.67
    eventually(lambda: len(told(said)) == 2)


# ---- runs ----

def test_runs_that_got_worse_fire_and_a_good_level_resolves(serve, made, tmp_path):
    said = tmp_path / "said"
    rules = ["regression>5%", "regression>50%"]
    server = serve(rules=rules, command="cat >> '%s'" % said)
    mine = server.token(SCOPES, "--project", "mine")
    ids = post(server, [made(i) for i in range(10)], mine)
    eventually(lambda: {a["state"] for a in alerts(server, mine).values()} == {"good"})
    assert len(alerts(server, mine)) == 4  # two cases, two rules
    ids += post(server, [made(10 + i, scale=1.3) for i in range(8)], mine)

    def states(rule):
        return [a["state"] for a in alerts(server, mine).values() if a["rule"] == rule]
    eventually(lambda: states("regression>5%") == ["firing"] * 2)
    assert states("regression>50%") == ["good"] * 2
    for a in alerts(server, mine).values():
        if a["rule"] == "regression>5%":
            assert a["run"] == ids[10] and a["value"] == pytest.approx(0.3, abs=0.01) and a["threshold"] == 0.05
            assert a["about"].startswith("minilm, ")
    assert alerts(server, server.token("read", "--project", "another")) == {}
    post(server, [made(18 + i) for i in range(8)], mine)
    eventually(lambda: states("regression>5%") == ["resolved"] * 2)
    eventually(lambda: len(told(said)) == 4)
    assert sorted(t["state"] for t in told(said)) == ["cleared"] * 2 + ["fired"] * 2


# ---- a restart ----

def test_a_restart_neither_tells_again_nor_forgets(serve, made, tmp_path):
    said = tmp_path / "said"
    rule = "load.1m>10"
    settings = {"rules": [rule, "slo.burn>2", "regression>5%"], "command": "cat >> '%s'" % said}
    server = serve(**settings)
    token = server.token(SCOPES)
    host = Host(server, token, "h")
    host.send(20)
    requests_at(server, token, 5, 20)
    post(server, [made(i, scale=1 if i < 10 else 1.3) for i in range(18)], token)
    eventually(lambda: len(told(said)) == 4 and {a["state"] for a in alerts(server, token).values()} == {"firing"})
    before = alerts(server, token)
    assert len(before) == 4
    server.kill()  # not even asked to end
    server = serve(**settings)
    assert alerts(server, token) == before
    host.server = server
    host.send(25)
    host.send(2)
    eventually(lambda: state(server, token, rule, "h") == "resolved")
    eventually(lambda: len(told(said)) == 5)
    assert {a["state"] for key, a in alerts(server, token).items() if key != (rule, "h")} == {"firing"}
    assert (told(said)[4]["state"], told(said)[4]["rule"]) == ("cleared", rule)


# ---- silence ----

def silence(server, token, **wish):
    return server.ask("POST", "/api/v1/silences", token=token, body=json.dumps(wish).encode())


def test_silence_is_kept_and_what_still_fires_at_its_end_is_told_then(serve, tmp_path):
    said = tmp_path / "said"
    rule = "load.1m>10"
    server = serve(rules=[rule], command="cat >> '%s'" % said)
    admin, token = server.token("read,admin"), server.token(SCOPES)
    got = silence(server, admin, for_s=3600, rule=rule, about="a", why="new disks")
    assert got.status == 201 and got.headers["location"] == "/api/v1/silences/" + got.json["id"]
    (one,) = server.ask("GET", "/api/v1/silences", token=token).json["silences"]
    assert (one["id"], one["rule"], one["about"], one["why"], one["project"]) == (got.json["id"], rule, "a", "new disks", None)
    hosts = {name: Host(server, token, name) for name in ("a", "b")}
    for host in hosts.values():
        host.send(20)
    eventually(lambda: [state(server, token, rule, h) for h in hosts] == ["firing"] * 2)
    eventually(lambda: told(said))
    assert [t["about"] for t in told(said)] == ["b"]
    assert alerts(server, token)[rule, "a"]["silent_until_ms"] > time.time() * 1000
    assert alerts(server, token)[rule, "b"]["silent_until_ms"] is None
    path = "/api/v1/silences/" + got.json["id"]
    assert server.ask("DELETE", path, token=admin).status == 204
    assert server.ask("DELETE", path, token=admin).status == 404
    eventually(lambda: len(told(said)) == 2)
    assert (told(said)[1]["about"], told(said)[1]["state"]) == ("a", "fired")
    assert server.ask("GET", "/api/v1/silences", token=token).json["silences"] == []
    entries = server.ask("GET", "/api/v1/audit", token=admin).json["entries"]
    assert {"POST /api/v1/silences", "DELETE /api/v1/silences/{id}"} <= {e["what"] for e in entries if e["about"] == got.json["id"]}


def test_silence_in_one_project_is_none_of_another(serve, tmp_path):
    said = tmp_path / "said"
    server = serve(rules=["load.1m>10"], command="cat >> '%s'" % said)
    mine, other = [server.token("read,admin,ingest", "--project", p) for p in ("mine", "other")]
    got = silence(server, mine, for_s=3600)
    assert got.status == 201
    assert silence(server, mine, for_s=3600, project="other").status == 403
    assert server.ask("GET", "/api/v1/silences", token=other).json == {"silences": []}
    assert server.ask("DELETE", "/api/v1/silences/" + got.json["id"], token=other).status == 404
    Host(server, mine, "h").send(20)
    Host(server, other, "h").send(20)
    eventually(lambda: told(said))
    assert [t["project"] for t in told(said)] == ["other"]


@pytest.mark.parametrize("body, why", [
    (b"{}", "for_s: missing"), (b"[]", "expected an object"), (b"{", "line 1"), (b'{"for_s": 0}', "seconds from 1"), (b'{"for_s": 9, "x": 1}', "a silence has"),
    (b'{"for_s": 9, "rule": "cpu>1"}', "no such rule"), (b'{"for_s": 9, "why": 3}', "why: a text"), (b'{"for_s": 9, "project": "a b"}', "project:"),
])
def test_a_silence_that_is_wrong_is_told(serve, body, why):
    server = serve(rules=["load.1m>10"])
    got = server.ask("POST", "/api/v1/silences", token=server.token("admin"), body=body)
    assert got.status == 422 and why in got.json["detail"], got.body


def test_a_test_says_that_it_is_one(serve, tmp_path):
    said = tmp_path / "said"
    server = serve(rules=["load.1m>10", "cpu>90%"], command="cat >> '%s'" % said)
    admin = server.token("read,admin")

    def ask(body, token=admin):
        return server.ask("POST", "/api/v1/alerts/test", token=token, body=json.dumps(body).encode())
    assert ask({"rule": "load.1m>10"}).status == 202
    eventually(lambda: told(said))
    (message,) = told(said)
    assert (message["state"], message["test"], message["rule"], message["threshold"]) == ("test", True, "load.1m>10", 10)
    assert "test" in message["text"] and alerts(server, admin) == {}
    assert ask({"rule": "cpu>1"}).status == 422 and ask({}).status == 422
    assert ask({"rule": "cpu>90%"}, server.token(SCOPES)).status == 403
    entries = server.ask("GET", "/api/v1/audit", token=admin).json["entries"]
    assert ("POST /api/v1/alerts/test", "load.1m>10", 202) in {(e["what"], e["about"], e["status"]) for e in entries}


def test_a_test_that_nobody_would_hear_is_refused(serve):
    server = serve(rules=["load.1m>10"])
    got = server.ask("POST", "/api/v1/alerts/test", token=server.token("admin"), body=b'{"rule": "load.1m>10"}')
    assert got.status == 409 and "no webhook" in got.json["detail"]


@pytest.mark.parametrize("settings, why", [
    ({"rules": ["load.1m>>10"]}, "line 1"), ({"rules": ["laod>10"]}, "is not a quantity"), ({"webhook": "ftp://x"}, "https://host/path"),
    ({"rule": []}, 'did you mean "rules"?'), ({"rules": "cpu>80%"}, "a list of texts"),
    ({"rules": ["regression>5% for 1m"]}, "no for"), ({"rules": ["regression[latency.p51]>5%"]}, "runs have no number"), ({"rules": ["slo.burn<1"]}, "use >"),
])
def test_wrong_settings_are_told(command, tmp_path, settings, why):
    path = tmp_path / "operations.json"
    path.write_text(json.dumps({"schema": "tare.operations/1", "alerts": settings}))
    path.chmod(0o600)
    done = subprocess.run([command, "serve", "--data", tmp_path / "data", "--port", "0", "--operations", path], capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 2 and why in done.stderr, done.stderr
