# SPDX-License-Identifier: MIT
"""Reference pages in Markdown out of the sources: the C header, read top-down, and the names of `import tare`."""

import ast
import os
import re

# What the extension defines; what it says of itself is in its C sources.
C_NAMES = ("scope", "count", "mark", "start", "stop", "recording")


def read(root, *path):
    with open(os.path.join(root, *path), encoding="utf-8") as f:
        return f.read()


def comment_text(comment):
    """The words of a C comment."""
    return re.sub(r"^ ?\* ?", "", comment, flags=re.M).strip()


def prose(comment):
    """A comment as Markdown: what is indented in it is code."""
    out, code = [], []
    for line in comment_text(comment).split("\n") + [""]:
        if line.startswith("    "):
            code.append(line[4:])
            continue
        if code and line.strip():
            out += ["```", *code, "```"]
            code = []
        out.append(line.replace("*", "\\*") if "**" in line else line)
    return "\n".join(out)


def of_header(root):
    """include/tare/tare.h up to where the inside begins: its comments as text, its declarations as code, in its order."""
    text = read(root, "include", "tare", "tare.h")
    head = re.search(r"/\* SPDX[^\n]*\n(.*?)\*/", text, re.S).group(1)
    body = text[text.index("/* ---- 1."):text.index("/* ---- Below")]
    out = ["# The C interface: tare.h", prose(head), "Made of [include/tare/tare.h](../include/tare/tare.h). "
           "What is promised of it: [compatibility](compatibility.md). How to use it: [instrumenting](instrumenting.md)."]
    for part in re.split(r"\n\s*\n", body):
        title = re.match(r"/\* ---- (.*?) -+ \*/", part.strip())
        if title:
            out.append("## " + title.group(1))
            continue
        comment = re.match(r"\s*/\*(.*?)\*/\n?", part, re.S)
        code = part[comment.end():] if comment and comment.end() < len(part) else part
        if comment and code is not part:
            out.append(heading_of(code))
            out.append(prose(comment.group(1)))
        out.append("```\n%s\n```" % re.sub(r" +\\$", " \\\\", code.strip("\n"), flags=re.M))
    return "\n\n".join(out) + "\n"


def heading_of(code):
    name = re.search(r"#define (\w+)|\b(tare_\w+)\(|(?:typedef )?(?:struct|enum) (\w+)", code)
    return "### `%s`" % next(g for g in name.groups() if g) if name else ""


# ---- import tare -------------------------------------------------------------------------------------

def signature(node, skip_self=False):
    arguments = node.args
    if skip_self and arguments.args:
        arguments = ast.arguments(**{**vars(arguments), "args": arguments.args[1:]})
    text = "(%s)" % ast.unparse(arguments)
    return text + (" -> " + ast.unparse(node.returns) if node.returns else "")


def doc(node):
    """A docstring as Markdown; names of parameters and examples in it are the writer's."""
    out = []
    for line in (ast.get_docstring(node) or "").split("\n"):
        row = re.match(r"(\w[\w, ]*?)\s{2,}(\S.*)", line)  # of a table of parameters
        out.append("- `%s`: %s" % row.groups() if row else line)
    return "\n".join(out)


def members(node):
    for m in node.body:
        if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)) and not m.name.startswith("_"):
            is_property = any(ast.unparse(d).endswith(("property", "setter")) for d in m.decorator_list)
            yield "- `%s%s`%s" % (m.name, "" if is_property else signature(m, True), ": " + " ".join((ast.get_docstring(m) or "").split()) if ast.get_docstring(m) else "")


def of_name(root, name, module):
    """The section of one name that Python defines."""
    tree = ast.parse(read(root, "python", "tare", module + ".py"))
    node = next(n for n in tree.body if getattr(n, "name", None) == name)
    if not isinstance(node, ast.ClassDef):
        return ["## `%s`" % name, "```\n%s%s\n```" % (name, signature(node)), doc(node)]
    begin = next((m for m in node.body if getattr(m, "name", "") == "__init__"), None)
    out = ["## `%s`" % name, "```\nclass %s%s\n```" % (name, signature(begin, True).replace(" -> None", "") if begin else ""), doc(node)]
    return out + ["\n".join(members(node))]


def of_c_name(root, name):
    """The section of one name of the extension: what its docstring says."""
    for source in sorted(os.listdir(os.path.join(root, "python", "_tare"))):
        found = re.search(r'"(%s\([^"]*\))\\n--\\n\\n((?:[^"\\]|\\.|"\s*")*)"' % name, read(root, "python", "_tare", source))
        if found:
            return ["## `%s`" % name, "```\n%s\n```" % found.group(1), re.sub(r'"\s*"', "", found.group(2)).replace("\\n", "\n")]
    raise SystemExit("reference: no docstring of %s in python/_tare" % name)


def of_python(root):
    init = read(root, "python", "tare", "__init__.py")
    where = ast.literal_eval(re.search(r"^_WHERE = (\{.*?^\})", init, re.S | re.M).group(1))
    out = ["# The Python interface: import tare", "Made of the sources in `python/tare`. By task: [tare in Python](python/README.md). "
           "What is promised of it: [compatibility](compatibility.md)."]
    for name in C_NAMES:
        out += of_c_name(root, name)
    for name in sorted(where, key=str.lower):
        out += of_name(root, name, where[name])
    return "\n\n".join(out) + "\n"
