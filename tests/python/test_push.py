# SPDX-License-Identifier: MIT
"""Runs on their way to a server and questions about those it keeps: tare bench --push, tare push, --server; and the
routes that answer them."""

import json

import pytest

from served import command, document, id_of, server, start  # noqa: F401


def keep(server, document, numbers, token=None, **more):
    token = token or server.token()
    for n in numbers:
        assert server.ask("POST", "/api/v1/runs", token=token, body=document(n, **more)).status == 201


def ids(reply):
    assert reply.status == 200, reply.body
    return [r["id"] for r in reply.json["runs"]]


# ---- the routes ----

def test_a_list_goes_on_from_a_run(server, document):
    read = server.token("read")
    keep(server, document, range(5))
    all_ids = ids(server.ask("GET", "/api/v1/runs", token=read))
    pages, last = [], ""
    while True:
        page = ids(server.ask("GET", "/api/v1/runs?limit=2" + last, token=read))
        pages += page
        if len(page) < 2:
            break
        last = "&before=" + page[-1]
    assert pages == all_ids and len(pages) == 5
    assert ids(server.ask("GET", "/api/v1/runs?id=" + all_ids[1], token=read)) == [all_ids[1]]
    for before in ["x", all_ids[0][:-1], "01KA3QZ4M6S1V7W8X9YZZZZZZZ"]:
        assert server.ask("GET", "/api/v1/runs?before=" + before, token=read).status == 400
    bound = server.token("read", "--project", "nlp")  # another's run is no place to go on from
    assert server.ask("GET", "/api/v1/runs?before=" + all_ids[0], token=bound).status == 400
    assert server.ask("GET", "/api/v1/runs?since=x", token=read).status == 400
    assert ids(server.ask("GET", "/api/v1/runs?since=9999999999999", token=read)) == []


def test_series_and_their_points(server, document):
    read = server.token("read")
    keep(server, document, range(3))
    got = server.ask("GET", "/api/v1/series?metric=latency.p50&anchor=", token=read).json["series"]
    assert got and all(s["metric"] == "latency.p50" and s["points"] == 3 and s["anchor"] == "" for s in got)
    run = json.loads(document(0))
    assert sorted(s["case"] for s in got) == sorted(c["name"] for c in run["cases"])
    one = next(s for s in got if s["case"] == run["cases"][0]["name"])
    assert one["subject"] == run["subject"]["name"]
    points = server.ask("GET", "/api/v1/series/%d" % one["id"], token=read).json["points"]
    assert [p["run"] for p in points] == [id_of(document(n)) for n in range(3)]
    assert points[0]["value"] == run["cases"][0]["latency_ns"]["p50"]["value"]
    assert points[0]["lo"] == run["cases"][0]["latency_ns"]["p50"]["lo"]
    assert len(server.ask("GET", "/api/v1/series/%d?last=2" % one["id"], token=read).json["points"]) == 2
    every, after = [], 0
    while True:
        page = server.ask("GET", "/api/v1/series?limit=3&after=%d" % after, token=read).json["series"]
        every += page
        if len(page) < 3:
            break
        after = page[-1]["id"]
    assert every == server.ask("GET", "/api/v1/series?limit=1000", token=read).json["series"]


@pytest.mark.parametrize("path, status", [("/api/v1/series/999999", 404), ("/api/v1/series/x", 404), ("/api/v1/series/0", 404),
                                          ("/api/v1/series/99999999999999999999", 404), ("/api/v1/series/1?last=0", 400),
                                          ("/api/v1/series/1?last=1x", 400), ("/api/v1/series?limit=1001", 400), ("/api/v1/series?after=-1", 400)])
def test_series_that_are_none(server, document, path, status):
    keep(server, document, [0])
    assert server.ask("GET", path, token=server.token("read")).status == status


def test_series_of_another_project(server, document):
    nlp, ads = server.token("read,ingest", "--project", "nlp"), server.token("read,ingest", "--project", "ads")
    keep(server, document, [0, 1], token=nlp)
    assert server.ask("GET", "/api/v1/series", token=ads).json == {"series": []}
    mine = server.ask("GET", "/api/v1/series?metric=latency.p50", token=nlp).json["series"]
    assert server.ask("GET", "/api/v1/series/%d" % mine[0]["id"], token=ads).status == 404
    keep(server, document, [2], token=ads)  # the same subject on the same host: each sees its own points
    theirs = server.ask("GET", "/api/v1/series?metric=latency.p50", token=ads).json["series"]
    assert [s["points"] for s in theirs] == [1] * len(mine)
    assert [p["run"] for p in server.ask("GET", "/api/v1/series/%d" % mine[0]["id"], token=ads).json["points"]] == [id_of(document(2))]
