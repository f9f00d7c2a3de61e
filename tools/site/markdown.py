# SPDX-License-Identifier: MIT
"""The Markdown that our pages are written in, as HTML: headings, paragraphs, lists, tables, fenced code, quotes, and in a line code, links,
pictures, bold and italic. Nothing else; what is not understood stands as it was written, escaped."""

import html
import re


def slug(text, taken):
    """The anchor of a heading, as GitHub makes it; `taken` counts those that are there."""
    base = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").lower()).replace(" ", "-")
    n = taken.get(base, 0)
    taken[base] = n + 1
    return base if n == 0 else "%s-%d" % (base, n)


def inline(text, link):
    """One line's worth; link(target) says where a target is on the site."""
    kept = []

    def keep(made):
        kept.append(made)
        return "\0%d\0" % (len(kept) - 1)

    def code(match):
        return keep("<code>%s</code>" % html.escape(match.group(2).strip(), quote=False))

    def picture(match):
        return keep('<img src="%s" alt="%s">' % (html.escape(link(match.group(2))), html.escape(match.group(1))))

    def anchor(match):
        return keep('<a href="%s">' % html.escape(link(match.group(2)))) + match.group(1) + keep("</a>")

    text = re.sub(r"(`+)(.+?)\1(?!`)", code, text)
    text = re.sub(r"!\[([^]]*)\]\(([^)\s]+)\)", picture, text)
    text = re.sub(r"\[([^]]*)\]\(([^)\s]+)\)", anchor, text)
    text = re.sub(r"&lt;(https?://[^&\s]+)&gt;", r"\1", html.escape(text, quote=False))
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])", r"<em>\1</em>", text)
    while "\0" in text:
        text = re.sub("\0(\\d+)\0", lambda m: kept[int(m.group(1))], text)
    return text


class Page:
    """One page: .html is its body, .title its first heading, .headings [(level, anchor, text)], .texts {anchor: words below it}."""

    def __init__(self, text, link):
        self.link, self.out, self.headings, self.texts, self.taken = link, [], [], {"": []}, {}
        self.lines = re.sub(r"<!--.*?-->", "", text, flags=re.S).split("\n")
        self.at = 0
        while self.at < len(self.lines):
            self.block()
        self.html = "\n".join(self.out)
        self.title = re.sub(r"[`*]", "", self.headings[0][2]) if self.headings else ""

    def words(self, text):
        self.texts[self.headings[-1][1] if self.headings else ""].append(text)

    def spans(self, text):
        self.words(re.sub(r"\]\([^)]*\)", "", text))
        return inline(text, self.link)

    def block(self):
        line = self.lines[self.at]
        for begins, method in ((r"\s*```", self.fence), (r"#{1,6} ", self.heading), (r"\|", self.table), (r"\s*([-*]|\d+\.) ", self.list),
                               (r"> ?", self.quote), (r"\s*$", self.skip), (r"(---+|\*\*\*+)\s*$", self.rule)):  # fmt: skip
            if re.match(begins, line):
                return method()
        return self.paragraph()

    def skip(self):
        self.at += 1

    def rule(self):
        self.out.append("<hr>")
        self.at += 1

    def heading(self):
        level, text = re.match(r"(#+) +(.*?)\s*#*$", self.lines[self.at]).groups()
        anchor = slug(text, self.taken)
        self.headings.append((len(level), anchor, text))
        self.texts[anchor] = []
        self.out.append('<h%d id="%s">%s</h%d>' % (len(level), anchor, self.spans(text), len(level)))
        self.at += 1

    def fence(self):
        indent, ticks = re.match(r"(\s*)(`+)", self.lines[self.at]).groups()
        self.at += 1
        text = []
        while self.at < len(self.lines) and self.lines[self.at].strip() != ticks:
            line = self.lines[self.at]
            text.append(line[len(indent):] if line.startswith(indent) else line)
            self.at += 1
        self.at += 1
        self.words(" ".join(text))
        self.out.append("<pre><code>%s</code></pre>" % html.escape("\n".join(text), quote=False))

    def table(self):
        rows = []
        while self.at < len(self.lines) and self.lines[self.at].startswith("|"):
            rows.append(self.lines[self.at])
            self.at += 1
        cells = [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in rows]
        has_head = len(cells) > 1 and all(re.fullmatch(r":?-+:?", c) for c in cells[1])
        self.out.append("<table>")
        for n, row in enumerate(cells):
            if has_head and n == 1:
                continue
            tag = "th" if has_head and n == 0 else "td"
            self.out.append("<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, self.spans(c), tag) for c in row))
        self.out.append("</table>")

    def list(self):
        """Items of one indent; what is indented further belongs to the item before it, and is blocks of its own."""
        indent, mark = re.match(r"(\s*)([-*]|\d+\.) ", self.lines[self.at]).groups()
        tag = "ol" if mark[0].isdigit() else "ul"
        self.out.append("<%s>" % tag)
        while self.at < len(self.lines):
            item = re.match(r"(\s*)([-*]|\d+\.) +(.*)", self.lines[self.at])
            if not item or len(item.group(1)) != len(indent) or (item.group(2)[0].isdigit()) != (tag == "ol"):
                break
            self.item(item.group(3), len(indent))
        self.out.append("</%s>" % tag)

    def item(self, first, indent):
        self.at += 1
        text = [first]
        while self.at < len(self.lines) and self.goes_on(indent):
            text.append(self.lines[self.at].strip())
            self.at += 1
        self.out.append("<li>" + self.spans(" ".join(text)))
        while self.at < len(self.lines) and self.is_within(indent):
            self.block()
        self.out.append("</li>")

    def goes_on(self, indent):
        """Does this line belong to the text of an item?"""
        line = self.lines[self.at]
        return line.strip() and line.startswith(" " * (indent + 1)) and not re.match(r"\s*(([-*]|\d+\.) |```)", line)

    def is_within(self, indent):
        """Is this line a further block of an item? An empty line is, if what comes next is."""
        ahead = self.at
        while ahead < len(self.lines) and not self.lines[ahead].strip():
            ahead += 1
        return ahead < len(self.lines) and self.lines[ahead].startswith(" " * (indent + 1))

    def quote(self):
        text = []
        while self.at < len(self.lines) and self.lines[self.at].startswith(">"):
            text.append(self.lines[self.at].lstrip("> "))
            self.at += 1
        self.out.append("<blockquote><p>%s</p></blockquote>" % self.spans(" ".join(text)))

    def paragraph(self):
        text = []
        while self.at < len(self.lines) and self.lines[self.at].strip() and (not text or not re.match(r"#{1,6} |\||\s*```|([-*]|\d+\.) |>", self.lines[self.at])):
            text.append(self.lines[self.at].strip())
            self.at += 1
        self.out.append("<p>%s</p>" % self.spans(" ".join(text)))
