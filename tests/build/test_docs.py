# SPDX-License-Identifier: MIT
"""The site that `make docs` makes: every page is there, every link and anchor leads somewhere, nothing is fetched, search finds."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from test_tools import ROOT, run

SITE = os.path.join(ROOT, "tools", "site")
sys.path.insert(0, SITE)
import markdown  # noqa: E402
import reference  # noqa: E402

VOID = ("meta", "link", "img", "input", "br", "hr")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("site") / "docs")
    rc, said = run(sys.executable, os.path.join(SITE, "build.py"), out)
    assert rc == 0, said
    return out


class Reader(html.parser.HTMLParser):
    """Links, anchors, and whether tags close as they opened."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.open, self.fetched = [], set(), [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "a":
            self.links.append(attrs["href"])
        if tag in ("img", "script", "link"):
            self.fetched.append(attrs.get("src") or attrs.get("href"))
        if "id" in attrs:
            assert attrs["id"] not in self.ids, attrs["id"]
            self.ids.add(attrs["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())


def pages(site):
    out = {}
    for folder, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    out[path] = Reader(f.read())
    return out


def test_every_link_leads_somewhere(site):
    found = pages(site)
    links = 0
    for path, page in found.items():
        for target in page.links + page.fetched:
            if re.match(r"https?:|mailto:", target):
                assert target not in page.fetched, "%s fetches %s" % (path, target)
                continue
            place, _, anchor = target.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), place)) if place else path
            assert os.path.exists(to), "%s: %s" % (path, target)
            assert not anchor or to not in found or anchor in found[to].ids, "%s: %s" % (path, target)
            links += 1
    assert links > 1000


def test_every_page_is_there(site):
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        for name in names:
            if name.endswith(".md"):
                assert os.path.exists(os.path.join(site, os.path.relpath(folder, ROOT), name[:-3] + ".html")), name
    with open(os.path.join(site, "docs", "cli", "index.html"), encoding="utf-8") as f:
        listed = f.read()
    for name in os.listdir(os.path.join(ROOT, "docs", "cli")):
        assert 'href="%s.html"' % name[:-3] in listed


def test_reference_has_every_public_name(site):
    with open(os.path.join(ROOT, "tests", "golden", "python-api.txt"), encoding="utf-8") as f:
        names = {re.match(r"\w+", line).group() for line in f} - {"__version__"}
    page = reference.of_python(ROOT)
    assert set(re.findall(r"^## `(\w+)`", page, re.M)) >= names  # what is new is not promised yet
    page = reference.of_header(ROOT)
    with open(os.path.join(ROOT, "tests", "golden", "c-abi.txt"), encoding="utf-8") as f:
        for name in re.findall(r"^(?:function .*?|macro )(\w+)\(", f.read(), re.M):
            assert name.endswith("_") or name in page, name


def test_a_broken_link_is_found(tmp_path):
    for name in ("docs", "tools", "include", "python", "examples"):
        shutil.copytree(os.path.join(ROOT, name), tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "pictures", "*.so"))
    for name in ("README.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("# Nothing\n\n[one](docs/none.md) [two](docs/ci.md#none) [three](docs/ci.md#a-workflow)\n" if name == "README.md" else "# C\n")
    rc, said = run(sys.executable, str(tmp_path / "tools" / "site" / "build.py"), str(tmp_path / "out"))
    assert rc == 1
    assert "README.md: docs/none.md: there is no such file" in said and "README.md: docs/ci.md#none: there is no such heading" in said
    assert "a-workflow" not in said


@pytest.mark.parametrize("text, made", [
    ("# A `b` & c\n\nx **y** *z* <w>", '<h1 id="a-b--c">A <code>b</code> &amp; c</h1>\n<p>x <strong>y</strong> <em>z</em> &lt;w&gt;</p>'),
    ("| a | b |\n|---|---|\n| `x\\|y` | 2 |", "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td><code>x|y</code></td><td>2</td></tr>\n</table>"),
    ("- a\n  more\n- b\n  - c\n\nend", "<ul>\n<li>a more\n</li>\n<li>b\n<ul>\n<li>c\n</li>\n</ul>\n</li>\n</ul>\n<p>end</p>"),
    ("1. a\n2. b", "<ol>\n<li>a\n</li>\n<li>b\n</li>\n</ol>"),
    ("```sh\na < b\n# no heading\n```", "<pre><code>a &lt; b\n# no heading</code></pre>"),
    ("[t](x.md#y) `[n](o.md)`", '<p><a href="&lt;x.md#y&gt;">t</a> <code>[n](o.md)</code></p>'),
    ("a 2*3*4 and x_y_z <!-- gone -->", "<p>a 2*3*4 and x_y_z</p>"),
])  # fmt: skip
def test_markdown(text, made):
    assert markdown.Page(text, lambda target: "<%s>" % target).html == made


def test_headings_of_one_name():
    assert [h[1] for h in markdown.Page("# A\n## A\n## A b", str).headings] == ["a", "a-1", "a-b"]


def test_search(site):
    node = shutil.which("node")
    if not node:
        pytest.skip("no node")
    with open(os.path.join(site, "search-index.js"), encoding="utf-8") as f:
        index = f.read()
    assert index.startswith("var tareIndex = ") and all(len(row) == 4 for row in json.loads(index[len("var tareIndex = "):-2]))
    ask = "const f=require(%s);%s;console.log(JSON.stringify([f(tareIndex,'exit status regression'),f(tareIndex,'tare attach'),f(tareIndex,'zzqq'),f(tareIndex,' ')]))"
    done = subprocess.run([node, "-"], input=ask % (json.dumps(os.path.join(site, "search.js")), index.rstrip().rstrip(";")), capture_output=True,
                          text=True, check=True)  # fmt: skip
    first, attach, nothing, empty = json.loads(done.stdout)
    assert first and nothing == [] and empty == []
    assert attach[0][0].startswith("docs/cli/tare-attach.html")
