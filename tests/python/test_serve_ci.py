# SPDX-License-Identifier: MIT
"""What CI asks of a server: the last good run of a branch, a comment with the history, badges, public only where the operator says so."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from served import command, id_of, server, start  # noqa: F401
from test_push import Here, here  # noqa: F401
from test_serve_baselines import accept
from test_serve_judged import made, post  # noqa: F401


@pytest.fixture
def on(made):
    """A run on a branch: on(7, "main", scale=1.3)."""

    def make(number, branch, **more):
        run = json.loads(made(number, **more))
        run["config"].update(git_branch=branch, git_commit="%040x" % number)
        return json.dumps(run).encode()

    return make


def good(server, token, query):
    return server.ask("GET", "/api/v1/good?subject=minilm" + query, token=token)


def test_the_last_good_run_is_the_one_before_what_got_worse(server, on):
    ids = post(server, [on(i, "main", scale=1 if i < 15 else 1.3) for i in range(20)])
    token = server.token("read,admin")
    got = good(server, token, "&branch=main").json
    assert got["run"] == ids[14] and got["newest"] == ids[19] and got["good"] is False and got["worse"] == got["series"] == 2
    assert got["commit"] == "%040x" % 14 and 1.29 < got["ratio"] < 1.31
    assert accept(server, token, ids[16]).status == 201
    got = good(server, token, "&branch=main").json
    assert got["run"] == got["newest"] == ids[19] and got["good"] is True and got["ratio"] == 1


def test_other_branches_and_dirty_trees_do_not_count(server, on):
    ids = post(server, [on(2 * i, "main") for i in range(12)])
    post(server, [on(2 * i + 1, "try", scale=3) for i in range(12)])
    token = server.token("read")
    assert good(server, token, "&branch=main").json["run"] == ids[-1]
    assert good(server, token, "&branch=nobody").status == 404
    assert good(server, token, "&branch=main&metric=latency.p5").status == 400
    assert server.ask("GET", "/api/v1/good", token=token).status == 400
    series = server.ask("GET", "/api/v1/trend?subject=minilm&branch=main", token=token).json["series"]
    assert {p["branch"] for s in series for p in s["points"]} == {"main"}


def test_a_branch_that_is_bad_from_its_first_run_on_compares_with_nothing_bad(server, on):
    ids = post(server, [on(i, "main", scale=1 if i < 10 else 1.3 if i < 20 else 1.0) for i in range(30)])
    assert good(server, server.token("read"), "&branch=main").json["run"] == ids[-1]  # it was made good


def test_compare_with_the_last_good_run(here, server, on):
    ids = post(server, [on(i, "main", scale=1 if i < 15 else 1.3) for i in range(20)])
    token = server.token("read")
    here.use(server, token)
    (here.folder / "new.json").write_bytes(on(30, "mine", scale=1.3))
    said = here.run("compare", "--server", server.address, "@good:main", "new.json", "--format", "md", rc=1).stdout
    assert said.startswith("<!-- tare compare -->") and "**regressed**" in said
    assert "| history |" in said and any(block in said for block in "▁▂▃▄▅▆▇█")
    api = server.ask("GET", "/api/v1/compare?base=@good:main&new=" + ids[19], token=token).json
    assert api["base"]["name"] == ids[14] and api["verdict"] == "regressed"
    none = here.run("compare", "--server", server.address, "@good:nobody", "new.json", rc=2)
    assert "no run of minilm on nobody" in none.stderr


def picture(got):
    assert got.status == 200 and got.headers["content-type"] == "image/svg+xml", got.body
    assert "no-cache" in got.headers["cache-control"]
    root = ElementTree.fromstring(got.body)
    assert not [e for e in root.iter() if "script" in e.tag or "href" in "".join(e.attrib)]
    return root


def test_a_badge_tells_how_a_subject_stands(server, on):
    post(server, [on(i, "main", scale=1 if i < 15 else 1.3) for i in range(20)])
    token = server.token("read")
    bad = picture(server.ask("GET", "/api/v1/badge.svg?subject=minilm&branch=main", token=token))
    assert bad.attrib["aria-label"] == "minilm: 2 cases, +30.0 % worse"
    assert "#c62828" in ElementTree.tostring(bad, encoding="unicode")
    unknown = picture(server.ask("GET", "/api/v1/badge.svg?subject=%3Cscript%3Ealert(1)%3C%2Fscript%3E", token=token))
    assert unknown.attrib["aria-label"] == "<script>alert(1)</script>: unknown"
    line = picture(server.ask("GET", "/api/v1/line.svg?subject=minilm", token=token))
    assert len([e for e in line.iter() if e.tag.endswith("polyline")]) == 2
    assert picture(server.ask("GET", "/api/v1/line.svg?subject=nobody", token=token)).attrib["aria-label"] == "no runs"
    assert server.ask("GET", "/api/v1/badge.svg", token=token).status == 400


def test_badges_are_public_where_the_operator_says_so(start, on):
    server = start("--public-badge", "open")
    for project in ("open", "closed"):
        post(server, [on(i + (100 if project == "open" else 0), "main") for i in range(12)], server.token("ingest", "--project", project))
    for kind in ("badge", "line"):
        assert picture(server.ask("GET", "/public/%s.svg?project=open&subject=minilm" % kind)) is not None
        for query in ("?project=closed&subject=minilm", "?project=nobody&subject=minilm", "?subject=minilm", "?project=&subject=minilm"):
            got = server.ask("GET", "/public/%s.svg%s" % (kind, query))
            assert got.status == 404 and got.json["detail"] == "there is no such badge", query
        assert server.ask("GET", "/api/v1/%s.svg?subject=minilm" % kind).status == 401
    closed = server.token("read", "--project", "closed")
    assert "12" not in picture(server.ask("GET", "/public/badge.svg?project=open&subject=nobody")).attrib["aria-label"]
    assert picture(server.ask("GET", "/api/v1/badge.svg?subject=minilm", token=closed)) is not None
