# SPDX-License-Identifier: MIT
"""Runs on their way to a server and questions about those it keeps: tare bench --push, tare push, --server; and the
routes that answer them."""

import http.server
import json
import os
import signal
import socket
import stat
import subprocess
import threading

import pytest

from serve_client import WAIT
from served import command, document, eventually, id_of, server, start  # noqa: F401


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


# ---- the command ----

class Here:
    """The command in a folder of its own, as a user with a token has it."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TARE_")}

    def use(self, server, token):
        self.env["TARE_SERVER"], self.env["TARE_TOKEN"] = server if isinstance(server, str) else server.address, token

    def run(self, *words, rc=0):
        done = subprocess.run([self.command, *map(str, words)], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=WAIT, check=False)
        assert done.returncode == rc, (words, done.returncode, done.stdout, done.stderr)
        if "TARE_TOKEN" in self.env:
            assert self.env["TARE_TOKEN"].rsplit("_", 1)[-1] not in done.stdout + done.stderr
        return done

    def waiting(self):
        unsent = self.folder / "tare-results" / "unsent"
        return sorted(p for p in unsent.rglob("*") if p.is_file() and p.suffix != ".trace")  # a note of where a trace lies


@pytest.fixture
def here(command, tmp_path):
    (tmp_path / "here").mkdir()
    return Here(command, tmp_path / "here")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def kept(server):
    return ids(server.ask("GET", "/api/v1/runs", token=server.token("read")))


MEASURE = ["run", "--push", "--", "true"]


def test_a_run_is_pushed(server, here):
    here.use(server, server.token("ingest"))
    done = here.run("bench", "--push", "--budget", "50ms", "--", "true")
    assert "sent to " + server.address in done.stderr
    listed = json.loads(here.run("history", "list", "--json").stdout)["runs"]
    assert [r["id"] for r in listed] == kept(server)
    mine = here.run("history", "show", "latest", "--json").stdout
    assert server.ask("GET", "/api/v1/runs/" + listed[0]["id"], token=server.token("read")).body.decode() == mine
    assert here.waiting() == []
    here.run("run", "--push", "--no-history", "--", "true")  # in no history here, but at the server
    assert len(kept(server)) == 2
    quiet = here.run("run", "-q", "--push", "--", "true")
    assert quiet.stderr == "" and len(kept(server)) == 3
    here.run("run", "--", "true")  # not asked to
    assert len(kept(server)) == 3


def test_a_server_that_is_away(start, here, tmp_path):
    port = free_port()
    first = start()
    token = first.token("ingest")
    first.stop()
    here.use("http://127.0.0.1:%d" % port, token)
    done = here.run(*MEASURE)
    assert "not sent: http://127.0.0.1:%d: Connection refused; 1 document waits" % port in done.stderr
    done = here.run("run", "--push", "--", "sh", "-c", "exit 7", rc=7)  # the program's own code is passed on
    assert "2 documents wait" in done.stderr
    files = here.waiting()
    assert len(files) == 2 and all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in files)
    for f in files:
        json.loads(f.read_text())
        assert token.split("_")[3] not in f.name + f.read_text() and token.split("_")[2] in f.name
    here.run("push", rc=3)
    server = start("--port", port)
    done = here.run(*MEASURE)
    assert "with 2 that waited" in done.stderr
    assert len(kept(server)) == 3 and here.waiting() == []
    assert here.run("push").stdout == "0 sent\n"


def test_must(here):
    here.use("http://127.0.0.1:%d" % free_port(), "tare_ingest_0123456789ab_" + "0" * 64)
    here.run("bench", "--push-must", "--budget", "50ms", "--", "true", rc=3)
    here.run("run", "--push-must", "--", "true", rc=3)
    here.run("run", "--push-must", "--", "sh", "-c", "exit 7", rc=7)
    assert len(here.waiting()) == 3  # all are kept, here and for later
    assert len(json.loads(here.run("history", "list", "--json").stdout)["runs"]) == 3


def test_a_wrong_token_and_one_that_may_not(server, here):
    good = server.token("ingest")
    here.use(server, good[:-1] + ("0" if good[-1] != "0" else "1"))
    assert "knows no such token" in here.run(*MEASURE).stderr
    assert len(here.waiting()) == 1
    here.use(server, server.token("read"))
    assert "may not" in here.run(*MEASURE).stderr
    assert kept(server) == [] and len(here.waiting()) == 2
    here.use(server, good)  # the first one had the right id: it goes; the other waits for its token
    done = here.run("push")
    assert done.stdout == "1 sent\n" and "1 wait for another token" in done.stderr
    assert here.run("push", "--any-token").stdout == "1 sent\n"
    assert len(kept(server)) == 2 and here.waiting() == []


def test_two_projects(server, here):
    nlp, ads = server.token("read,ingest", "--project", "nlp"), server.token("read,ingest", "--project", "ads")
    away = "http://127.0.0.1:%d" % free_port()
    here.use(away, nlp)
    here.run(*MEASURE)
    where = here.waiting()[0]
    here.use(server, ads)
    here.run(*MEASURE)
    assert here.waiting() == [where]  # it waits for another server
    named = where.parent.parent / where.parent.name.replace("%3A" + away.rsplit(":", 1)[1], "%3A" + str(server.port))
    named.mkdir(exist_ok=True)
    where.rename(named / where.name)
    here.run(*MEASURE)
    assert len(here.waiting()) == 1  # of this server, but of another project's token
    assert len(ids(server.ask("GET", "/api/v1/runs", token=ads))) == 2
    here.use(server, nlp)
    assert here.run("push").stdout == "1 sent\n"
    assert len(ids(server.ask("GET", "/api/v1/runs", token=nlp))) == 1
    seen = json.loads(here.run("history", "list", "--server", server.address, "--json").stdout)["runs"]
    assert [r["id"] for r in seen] == ids(server.ask("GET", "/api/v1/runs", token=nlp))
    other = ids(server.ask("GET", "/api/v1/runs", token=ads))[0]
    assert "has no run" in here.run("history", "show", "--server", server.address, other, rc=2).stderr


def test_what_is_refused_for_good_is_set_aside(server, here, document, tmp_path):
    here.use(server, server.token("ingest"))
    keep(server, document, [1])
    other = document(1, kind="run")  # the same id, another document
    path = tmp_path / "run.json"
    path.write_bytes(other)
    done = here.run("push", path, rc=2)
    assert done.stdout == "0 sent, 1 refused\n" and "another document has this id" in done.stderr
    here.run(*MEASURE)
    unsent = here.folder / "tare-results" / "unsent" / ("http%3A%2F%2F127.0.0.1%3A" + str(server.port))
    waiting = unsent / ("%s.%s.json" % (id_of(other), here.env["TARE_TOKEN"].split("_")[2]))
    waiting.write_bytes(other)
    done = here.run("push", rc=2)
    assert "refused (409)" in done.stderr and [p.name for p in here.waiting()] == [waiting.name + ".refused"]
    assert here.run("push").stdout == "0 sent\n"  # it is not sent again
    assert here.run("push", tmp_path / "none.json", rc=2).stderr.count("none.json") == 1


class Cut(http.server.BaseHTTPRequestHandler):
    """Passes a question on and is silent: the run arrived, and its answer is lost."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.behind.ask("POST", self.path, body=body, headers={"Authorization": self.headers["Authorization"]}).status
        if self.path == "/api/v1/runs":
            self.server.answers.append(status)
            if self.server.hold:
                self.server.release.wait(WAIT)
        else:
            self.server.live.append((json.loads(body)["batch"], status))
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def cut(server):
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cut)
    proxy.behind, proxy.answers, proxy.live, proxy.hold, proxy.release = server, [], [], False, threading.Event()
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield proxy
    proxy.release.set()
    proxy.shutdown()
    proxy.server_close()


def test_an_answer_that_was_lost(server, cut, here):
    here.use("http://127.0.0.1:%d" % cut.server_port, server.token("ingest"))
    assert "1 document waits" in here.run(*MEASURE).stderr
    assert len(kept(server)) == 1 and len(here.waiting()) == 1
    here.run("push", rc=3)
    assert cut.answers == [201, 200] and len(kept(server)) == 1  # kept once


def test_killed_between_the_commit_and_its_answer(server, cut, here):
    cut.hold = True
    here.use("http://127.0.0.1:%d" % cut.server_port, server.token("ingest"))
    p = subprocess.Popen([here.command, *MEASURE], cwd=here.folder, env=here.env, stderr=subprocess.DEVNULL)
    eventually(lambda: cut.answers)
    p.send_signal(signal.SIGKILL)
    p.wait(WAIT)
    assert len(here.waiting()) == 1 and len(kept(server)) == 1
    cut.hold = False
    cut.release.set()
    here.run("push", rc=3)
    assert cut.answers == [201, 200] and len(kept(server)) == 1


def test_killed_at_any_moment(server, here):
    """Every run that was made is at the server once, whenever its tare was killed."""
    here.use(server, server.token("ingest"))
    for i in range(12):
        p = subprocess.Popen([here.command, *MEASURE], cwd=here.folder, env=here.env, stderr=subprocess.DEVNULL)
        try:
            p.wait(i * 0.03)
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGKILL)
            p.wait(WAIT)
    here.run("push")
    here.run("push", "--all")
    assert here.waiting() == []
    got = kept(server)
    made = [r["id"] for r in json.loads(here.run("history", "list", "--json").stdout)["runs"]]
    assert len(got) == len(set(got)) and set(made) <= set(got) and len(set(got) - set(made)) <= 12


def test_a_whole_history(server, here):
    here.use(server, server.token("ingest"))
    for _ in range(3):
        here.run("run", "--", "true")
    here.run(*MEASURE)
    assert here.run("push", "--all").stdout == "3 sent, 1 there already\n"
    assert json.loads(here.run("push", "--all", "--json").stdout)["there"] == 4
    assert len(kept(server)) == 4


# ---- questions to a server ----

def same(here, address, *words, rc=0):
    """The same words to the history here and to the server: the same answer, but for its place."""
    mine, theirs = here.run(*words, "--history", "tare-results/history.db", rc=rc), here.run(*words, "--server", address, rc=rc)
    assert theirs.stdout.replace(f"--server {address}", "HISTORY").replace(address, "HISTORY") == \
        mine.stdout.replace("--history tare-results/history.db", "HISTORY").replace("tare-results/history.db", "HISTORY")
    return mine.stdout


def test_what_is_asked_here_may_be_asked_there(server, here, document, tmp_path):
    here.use(server, server.token())
    base = json.loads(document(0))
    folder = tmp_path / "runs"
    folder.mkdir()
    for n in range(12):
        day = "2026-10-%02dT10:00:00.000Z" % (n + 1)
        (folder / ("%d.json" % n)).write_bytes(document(n, created=day))
    here.run("history", "import", folder)
    here.run("push", "--all")
    subject = base["subject"]["name"]
    assert len(json.loads(same(here, server.address, "history", "list", "--json"))["runs"]) == 12
    same(here, server.address, "history", "list", "--limit", 5)
    same(here, server.address, "history", "list", "--since", "2026-10-05")
    assert subject in same(here, server.address, "history", "show", "latest")
    same(here, server.address, "history", "show", id_of(document(3)).lower(), "--json")
    assert "12" in same(here, server.address, "trend", "--subject", subject)
    same(here, server.address, "trend", "--subject", subject, "--json")
    first, last = id_of(document(0)), id_of(document(11))
    assert "verdict" in same(here, server.address, "compare", "@" + first, "@" + last)
    shown = same(here, server.address, "report", "@" + first, last.lower())
    assert shown == here.run("report", folder / "0.json", folder / "11.json").stdout
    assert same(here, server.address, "report", "latest", "--json") == here.run("report", folder / "11.json", "--json").stdout
    words = ("--rate", "5/s", "--slo", "p50<=10s")
    assert same(here, server.address, "plan", "@" + first, *words) == here.run("plan", folder / "0.json", *words).stdout
    assert "no baseline 01ZZZZZ" in here.run("report", "@01ZZZZZ", "--server", server.address, rc=2).stderr
    page = here.run("report", "@" + first, "@" + last, "--html", "-", "--server", server.address).stdout
    assert first in page and last in page
    here.run("history", "export", "out", "--server", server.address)
    assert len(list((here.folder / "out").iterdir())) == 12
    assert "changed where it runs" in here.run("history", "tag", "latest", "x", "--server", server.address, rc=3).stderr
    assert "changed where it runs" in here.run("history", "prune", "--keep", 1, "--server", server.address, rc=3).stderr


def test_a_long_list_is_read_page_by_page(server, here, document, tmp_path):
    here.use(server, server.token())
    lines = tmp_path / "runs.jsonl"
    lines.write_bytes(b"".join(document(n) + b"\n" for n in range(1003)))
    subprocess.run([here.command, "history", "import", "--history", server.data + "/history.db", lines], check=True, capture_output=True)
    runs = json.loads(here.run("history", "list", "--server", server.address, "--limit", 0, "--json").stdout)["runs"]
    assert len({r["id"] for r in runs}) == len(runs) == 1003


@pytest.mark.parametrize("reply, text", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 'has no list "runs"'),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "is no JSON"),
    (b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"runs":[{"id":"x"}]}', "runs[0].id is no id"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "ends in the middle"),
    (b"HTTP/1.1 301 Moved\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", "redirects are not followed"),
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "is no server of tare"),
    (b"HTTP/1.1 503 X\r\nContent-Length: 14\r\n\r\n{\"detail\":\"\x1b[31", "answers 503"),
    (b"HTTP/1.1 429 X\r\nContent-Length: 0\r\n\r\n", "too many requests"),
    (b"220 ftp\r\n", "no reply of HTTP/1.1"),
])
def test_servers_that_are_none(here, reply, text):
    listening = socket.create_server(("127.0.0.1", 0))

    def answer():
        c, _ = listening.accept()
        c.recv(65536)
        c.sendall(reply)
        c.close()

    t = threading.Thread(target=answer, daemon=True)
    t.start()
    address = "http://127.0.0.1:%d" % listening.getsockname()[1]
    here.use(address, "tare_read_0123456789ab_00")
    done = subprocess.run([here.command, "history", "list", "--server", address], cwd=here.folder, env=here.env, capture_output=True, text=True, check=False)
    assert done.returncode in (2, 3) and text in done.stderr and address in done.stderr and "\x1b" not in done.stderr
    assert done.stdout == ""
    t.join(WAIT)
    listening.close()
