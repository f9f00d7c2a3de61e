# SPDX-License-Identifier: MIT
"""The accepted baseline: a run that later ones are judged against, by API and command, apart by project, in trends, regressions and alerts."""

import json

import pytest

from served import command, document, eventually, id_of, server, start  # noqa: F401
from test_push import Here, here  # noqa: F401
from test_serve_judged import made, post  # noqa: F401

NAMES = "/api/v1/baselines"


def accept(server, token, run, **more):
    return server.ask("POST", NAMES, token=token, body=json.dumps({"run": run, **more}).encode())


def worse(server, token, query=""):
    got = server.ask("GET", "/api/v1/regressions" + query, token=token)
    assert got.status == 200, got.body
    return {(r["subject"], r["case"]): r for r in got.json["regressions"]}


def test_what_was_accepted_is_told_no_more_and_what_came_since_is(server, made):
    ids = post(server, [made(i, scale=1 if i < 10 else 1.3 if i < 25 else 1.6) for i in range(45)])
    admin = server.token("read,admin")
    assert worse(server, admin) == {}  # 20 runs ago: it is no news
    assert accept(server, admin, ids[20]).status == 201
    against = worse(server, admin)
    assert len(against) == 2
    for r in against.values():
        assert r["baseline"] == ids[20] and r["run"] == ids[25] and r["ratio_lo"] <= 1.6 / 1.3 <= r["ratio_hi"]
    assert accept(server, admin, ids[0]).status == 201  # one run of a subject: it has moved
    (first, _) = worse(server, admin).values()
    assert first["baseline"] == ids[0] and first["ratio_lo"] <= 1.6 <= first["ratio_hi"]  # both steps together
    assert accept(server, admin, ids[44]).status == 201
    assert worse(server, admin) == {}
    listed = server.ask("GET", NAMES + "?subject=minilm", token=admin).json["baselines"]
    assert [(b["name"], b["run"], b["subject"]) for b in listed] == [("baseline", ids[44], "minilm")]
    series = server.ask("GET", "/api/v1/trend?subject=minilm", token=admin).json["series"][0]
    assert series["baseline"] == {"run": ids[44], "seen": True, "worse": False, "ratio": 1, "ratio_lo": 1, "ratio_hi": 1}
    assert server.ask("DELETE", NAMES + "/" + ids[44], token=admin).status == 204
    assert server.ask("DELETE", NAMES + "/" + ids[44], token=admin).status == 404
    assert server.ask("GET", NAMES, token=admin).json["baselines"] == []


def test_a_step_within_the_newest_runs_is_accepted(server, made):
    ids = post(server, [made(i, scale=1 if i < 10 else 1.3) for i in range(20)])
    admin = server.token("read,admin")
    assert len(worse(server, admin)) == 2 and all(r["baseline"] is None for r in worse(server, admin).values())
    assert accept(server, admin, ids[12]).status == 201
    assert worse(server, admin) == {}


def test_better_is_not_worse_and_a_step_made_good_is_none(server, made):
    ids = post(server, [made(i, scale=1 if i < 10 else 1.5 if i < 20 else 1.0) for i in range(30)])
    admin = server.token("read,admin")
    assert accept(server, admin, ids[5]).status == 201
    assert worse(server, admin) == {}  # there and back again
    post(server, [made(100 + i, scale=1 if i < 10 else 0.5, subject="fast") for i in range(20)])
    assert accept(server, admin, id_of(made(102, subject="fast"))).status == 201
    assert worse(server, admin) == {}


def test_a_baseline_far_back_is_found(server, made):
    ids = post(server, [made(i, scale=1 if i < 30 else 1.3) for i in range(90)])
    admin = server.token("read,admin")
    assert accept(server, admin, ids[3]).status == 201
    assert {r["baseline"] for r in worse(server, admin).values()} == {ids[3]}  # 40 runs are looked at otherwise


@pytest.mark.parametrize("body, status", [
    (b"{}", 422), (b"[]", 422), (b'{"run": "x"}', 422), (b'{"run": "01KA3QZ4M6S1V7W8X9Y0000009"}', 404), (b'{"run": 1}', 422),
    (b'{"run": "01KA3QZ4M6S1V7W8X9Y0000001", "name": "a b"}', 422), (b'{"run": "01KA3QZ4M6S1V7W8X9Y0000001", "more": 1}', 422)])
def test_what_cannot_be_accepted(server, made, body, status):
    post(server, [made(1)])
    admin = server.token("admin,read")
    assert server.ask("POST", NAMES, token=admin, body=body).status == status
    assert server.ask("GET", NAMES, token=admin).json["baselines"] == []
    assert server.ask("GET", NAMES + "?name=a%20b", token=admin).status == 400


def test_who_may_accept_and_where_it_is_written_down(server, made, tare):
    ids = post(server, [made(1)])
    for scope in ("read", "ingest", "run", "read,ingest,run"):
        assert accept(server, server.token(scope), ids[0]).status == 403
    admin = server.token("admin,read")
    assert accept(server, admin, ids[0]).status == 201
    entries = server.ask("GET", "/api/v1/audit", token=admin).json["entries"]
    (entry,) = [e for e in entries if "/api/v1/baselines" in e["what"] and e["status"] == 201]
    assert entry["about"] == ids[0] and entry["who"] == admin.split("_")[2]


def test_projects_have_their_own(server, made):
    mine, theirs = (server.token("read,ingest,admin", "--project", p) for p in ("mine", "theirs"))
    (ours,) = post(server, [made(1)], mine)
    (other,) = post(server, [made(2)], theirs)
    assert accept(server, mine, other).status == 404
    assert accept(server, mine, ours).status == accept(server, theirs, other).status == 201
    for token, run in ((mine, ours), (theirs, other)):
        assert [b["run"] for b in server.ask("GET", NAMES, token=token).json["baselines"]] == [run]
    assert server.ask("DELETE", NAMES + "/" + other, token=mine).status == 404
    assert server.ask("GET", "/api/v1/compare?base=@baseline&new=" + ours, token=mine).json["base"]["name"] == ours
    assert server.ask("GET", "/api/v1/compare?base=@nothing&new=" + ours, token=mine).status == 404


def test_by_the_command(here, server, made):
    ids = post(server, [made(i, scale=1 if i < 10 else 1.4) for i in range(20)])
    asked = ("--server", server.address)
    here.use(server, server.token("read,admin"))
    assert "is now baseline" in here.run("history", "baseline", "baseline", ids[2], *asked).stderr
    (here.folder / "new.json").write_bytes(made(50, scale=1.4))
    said = here.run("compare", *asked, "@baseline", "new.json", rc=1).stdout
    assert "regressed" in said and "--server " + server.address in said
    assert "baseline run " + ids[2] in here.run("trend", *asked, "--subject", "minilm", "--fail", rc=1).stdout
    here.run("history", "baseline", "baseline", ids[19], *asked)
    assert "no change of level since" in here.run("trend", *asked, "--subject", "minilm", "--fail").stdout
    here.run("history", "baseline", "baseline", ids[19], "--remove", *asked)
    here.run("compare", *asked, "baseline:baseline", "new.json", rc=2)
    here.use(server, server.token("read"))
    assert "may not" in here.run("history", "baseline", "baseline", ids[2], *asked, rc=2).stderr


def test_an_alert_goes_by_the_baseline_and_ends_with_a_new_one(start, made, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"schema": "tare.operations/1", "alerts": {"rules": ["regression>20%"]}}))
    rules.chmod(0o600)
    server = start("--operations", str(rules))
    ids = post(server, [made(i, scale=1 if i < 10 else 1.3) for i in range(40)])
    admin = server.token("read,admin")

    def states():
        return {a["state"] for a in server.ask("GET", "/api/v1/alerts", token=admin).json["alerts"]}

    eventually(lambda: states() == {"good"})  # 30 runs ago is no news
    assert accept(server, admin, ids[2]).status == 201
    eventually(lambda: states() == {"firing"})
    assert accept(server, admin, ids[30]).status == 201  # nothing else comes
    eventually(lambda: states() == {"resolved"})


def test_a_baseline_outlives_its_time(start, made, command):
    server = start()
    (old, gone) = post(server, [made(1), made(2, subject="other")])
    assert accept(server, server.token("admin"), old).status == 201
    server.stop()
    kept = start("--keep", "1d", data=server.data)
    token = kept.token("read")
    eventually(lambda: kept.ask("GET", "/api/v1/runs/" + gone, token=token).status == 404)
    assert kept.ask("GET", "/api/v1/runs/" + old, token=token).status == 200
