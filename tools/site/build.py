#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""build.py - the pages of docs/ as a small static site: plain HTML that opens from the disk, with a search and no network.
usage: tools/site/build.py [FOLDER]     (default build/docs)

A page is where its Markdown is in the tree: docs/trend.md becomes FOLDER/docs/trend.html, README.md index.html. Other files of the tree that
pages point to become pages that show them. A link that leads nowhere is an error, with its page."""

import html
import json
import os
import posixpath
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference  # noqa: E402
from markdown import Page  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FIRST = ["README.md", "docs/tour.md", "docs/gallery.md", "docs/cli", "docs/python/README.md", "docs/c-api.md", "docs/python-api.md", "docs/ci.md",
         "docs/instrumenting.md", "docs/method.md", "docs/server.md", "docs/architecture.md", "CHANGELOG.md"]  # the menu, in this order
MORE = ["CONTRIBUTING.md", "SECURITY.md", "bench/results.md", "examples/README.md", "tests/golden/README.md"]
MADE = {"docs/c-api.md": reference.of_header, "docs/python-api.md": reference.of_python}
COPIED = (".png", ".svg", ".json", ".yml", ".yaml")


def sources():
    """{path in the tree: Markdown} of every page, made ones too."""
    paths = ["README.md", "CHANGELOG.md", *MORE]
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        paths += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names if n.endswith(".md")]
    pages = {p: reference.read(ROOT, p) for p in sorted(set(paths)) if os.path.exists(os.path.join(ROOT, p))}
    pages.update({path: make(ROOT) for path, make in MADE.items()})
    pages["docs/cli/index.md"] = list_of_commands(pages)
    return pages


def list_of_commands(pages):
    """A page of the folder of commands: each with the first sentence of its help."""
    rows = []
    for path, text in sorted(pages.items()):
        if path.startswith("docs/cli/"):
            said = re.search(r"^usage:.*?\n\n(.*?)(?:\n\n|\. |\.\n)", text, re.S | re.M)
            name = os.path.basename(path)
            rows.append("| [%s](%s) | %s |" % (name[:-3].replace("-", " ", 1), name, " ".join(said.group(1).split()) if said else ""))
    return "# Commands\n\n| command | does |\n|---|---|\n%s\n" % "\n".join(rows)


def place_of(path):
    """Where a file or folder of the tree is on the site."""
    if path in ("README.md", "."):
        return "index.html"
    if path.endswith(".md"):
        return path[:-3] + ".html"
    if path == "docs/cli":
        return "docs/cli/index.html"
    return path if path.endswith(COPIED) else path + ".html"


class Site:
    def __init__(self, out):
        self.out, self.pages, self.anchors, self.index = out, sources(), {}, []
        self.links = []  # (page, target as written, place, anchor)
        self.shown = {}  # files of the tree that a page points to

    def link(self, page):
        """How a page points: target as written -> as it is on the site."""

        def to(target):
            if re.match(r"[a-z]+:", target):
                return target
            path, _, anchor = target.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            if path not in self.pages and path not in ("docs/cli", "."):
                self.shown.setdefault(path, page)
            self.links.append((page, target, place_of(path), anchor))
            relative = posixpath.relpath(place_of(path), posixpath.dirname(place_of(page)) or ".")
            return relative + ("#" + anchor if anchor else "")

        return to

    def write(self, place, text):
        path = os.path.join(self.out, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def menu(self, place):
        up = "../" * place.count("/")
        rows = []
        for path in FIRST:
            if path in self.pages or path == "docs/cli":
                title = "Commands" if path == "docs/cli" else self.titles[path]
                rows.append('<li><a href="%s">%s</a></li>' % (up + place_of(path), html.escape(title, quote=False)))
        return up, "<ul>%s</ul>" % "".join(rows)

    def frame(self, place, title, body, toc=""):
        up, menu = self.menu(place)
        return ('<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
                '<title>%s - tare</title><link rel="stylesheet" href="%sstyle.css"></head>\n<body data-up="%s"><nav>'
                '<input id="search" type="search" placeholder="Search" aria-label="Search the documentation"><ol id="found"></ol>%s%s</nav>\n'
                '<main>%s</main>\n<script src="%ssearch-index.js"></script><script src="%ssearch.js"></script></body></html>\n'
                % (html.escape(title, quote=False), up, up, menu, toc, body, up, up))  # fmt: skip

    def make_pages(self):
        made = {path: Page(text, self.link(path)) for path, text in self.pages.items()}
        self.titles = {path: page.title for path, page in made.items()}
        self.titles["README.md"] = "tare"
        for path, page in made.items():
            place = place_of(path)
            self.anchors[place] = {anchor for _, anchor, _ in page.headings}
            parts = [(a, t) for level, a, t in page.headings if level == 2]
            toc = "<ul class=toc>%s</ul>" % "".join(
                '<li><a href="#%s">%s</a></li>' % (a, html.escape(re.sub(r"\]\([^)]*\)|[`*\[]", "", t), quote=False)) for a, t in parts) if len(parts) > 2 else ""
            self.write(place, self.frame(place, page.title, page.html, toc))
            self.add_to_index(place, page)

    def add_to_index(self, place, page):
        names = {anchor: text for _, anchor, text in page.headings}
        for anchor, texts in page.texts.items():
            words = " ".join(re.sub(r"[`*|]", " ", " ".join(texts)).split())
            self.index.append([place + ("#" + anchor if anchor else ""), page.title, re.sub(r"[`*]", "", names.get(anchor, "")), words[:4000]])

    def show_files(self):
        """Files of the tree that pages point to, as they are; pictures and JSON for the reader's own programs."""
        for path in sorted(self.shown):
            source = os.path.join(ROOT, path)
            if os.path.isfile(source) and path.endswith(COPIED):
                os.makedirs(os.path.dirname(os.path.join(self.out, path)), exist_ok=True)
                shutil.copy(source, os.path.join(self.out, path))
            elif os.path.isfile(source):
                text = "<h1>%s</h1><pre><code>%s</code></pre>" % (html.escape(path), html.escape(reference.read(ROOT, path), quote=False))
                self.write(place_of(path), self.frame(place_of(path), path, text))
            elif os.path.isdir(source):
                text = "<h1>%s</h1><ul>%s</ul>" % (path, "".join("<li>%s</li>" % html.escape(n) for n in sorted(os.listdir(source)) if n[0] != "."))
                self.write(place_of(path), self.frame(place_of(path), path, text))

    def broken(self):
        """Links that lead nowhere, with their pages."""
        for page, target, place, anchor in self.links:
            if not os.path.exists(os.path.join(self.out, place)):
                yield "%s: %s: there is no such file" % (page, target)
            elif anchor and place in self.anchors and anchor not in self.anchors[place]:
                yield "%s: %s: there is no such heading" % (page, target)

    def build(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.make_pages()
        self.show_files()
        self.write("search-index.js", "var tareIndex = %s;\n" % json.dumps(self.index, ensure_ascii=False, separators=(",", ":")))
        for name in ("search.js", "style.css"):
            shutil.copy(os.path.join(HERE, name), self.out)
        return sorted(set(self.broken()))


def main(args):
    out = os.path.abspath(args[0] if args else os.path.join(ROOT, "build", "docs"))
    site = Site(out)
    broken = site.build()
    for line in broken:
        print(line, file=sys.stderr)
    if not broken:
        print("%d pages: %s" % (len(site.pages), os.path.join(os.path.relpath(out), "index.html")))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
