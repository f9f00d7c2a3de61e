# SPDX-License-Identifier: MIT
"""Run: the record of one measurement, as tare.bench gives it and tare.load reads it. A view of the run document
(schema tare.run/1), never a copy with other numbers."""

import json
import os
import tempfile
from collections.abc import Mapping

from tare import _command
from tare._tare import save_run


def _value(estimate):
    return None if estimate is None else estimate["value"]


class Case(Mapping):
    """One case of a run: its part of the document as a mapping, and the usual numbers as attributes (None: unknown)."""

    def __init__(self, document):
        self._document = document

    def __getitem__(self, key):
        return self._document[key]

    def __iter__(self):
        return iter(self._document)

    def __len__(self):
        return len(self._document)

    def __repr__(self):
        return f"<tare case {self.name}>"

    @property
    def name(self):
        return self._document["name"]

    @property
    def params(self):
        return dict(self._document["params"])

    @property
    def samples(self):
        return self._document["samples"]

    @property
    def unit(self):
        return self._document["unit"]

    def latency_ms(self, which="p50"):
        """A time of one call in milliseconds: "mean", "min", "max", "stddev", "p50", "p90", "p95", "p99"."""
        latency = self._document["latency_ns"]
        found = latency.get(which) if latency else None
        value = _value(found) if isinstance(found, dict) else found
        return None if value is None else value / 1e6

    @property
    def mean_ms(self):
        return self.latency_ms("mean")

    @property
    def p50_ms(self):
        return self.latency_ms("p50")

    @property
    def p95_ms(self):
        return self.latency_ms("p95")

    @property
    def p99_ms(self):
        return self.latency_ms("p99")

    @property
    def throughput(self):
        """Units per second."""
        return _value(self._document["throughput"])

    @property
    def memory_peak(self):
        """Bytes of the process at most."""
        memory = self._document["memory"]
        return memory["rss_peak"] if memory else None

    @property
    def memory_delta(self):
        """Bytes by which this case made the process larger."""
        memory = self._document["memory"]
        return memory["delta"] if memory else None


class Run:
    """A measurement: print(run) shows it, run.case(batch=16) is one case, run.save() keeps it."""

    def __init__(self, text, report=None, path=None):
        self._text = text
        self._report = report and report.rstrip("\n")
        self._document = json.loads(text)
        self.path = path

    def __str__(self):
        if self._report is None:
            self._report = self._ask("report").rstrip("\n")
        return self._report

    def __repr__(self):
        return f"<tare run {self.subject}: {len(self.cases)} cases, {self.id}>"

    def _repr_html_(self):
        from tare._run_html import html

        return html(self)

    # ---- what it says ----

    def to_dict(self):
        """The run document, a new dict each time."""
        return json.loads(self._text)

    def to_json(self):
        """The run document as text."""
        return self._text

    @property
    def id(self):
        return self._document["id"]

    @property
    def subject(self):
        return self._document["subject"]["name"]

    @property
    def cases(self):
        return [Case(c) for c in self._document["cases"]]

    def case(self, name=None, **params):
        """The case of that name ("batch=16,length=32") or with these parameters (batch=16). KeyError: none, or several."""
        found = [
            c
            for c in self.cases
            if name in (None, c.name) and all(c.params.get(key) == value for key, value in params.items())
        ]
        if len(found) != 1:
            wanted = name or ", ".join(f"{key}={value}" for key, value in params.items())
            names = "; ".join(c.name for c in self.cases)
            raise KeyError(f"{len(found) or 'no'} case{'s' if len(found) > 1 else ''} {wanted}: this run has {names}")
        return found[0]

    @property
    def findings(self):
        return self.to_dict()["findings"]

    @property
    def recommendation(self):
        """{"objective", "case", "why"}, or None when there are fewer than two cases to choose from."""
        return self.to_dict().get("recommendation")

    @property
    def best(self):
        """The recommended case; the only one when there is one; None when the data cannot tell."""
        chosen = self.recommendation
        if chosen:
            return self.case(chosen["case"])
        return self.cases[0] if len(self.cases) == 1 else None

    @property
    def targets(self):
        return self.to_dict()["targets"]

    @property
    def passed(self):
        """Whether no target was missed in any case."""
        return all(t["verdict"] != "fail" for t in self.targets)

    # ---- keeping it ----

    def save(self, folder="tare-results"):
        """Write <kind>_<subject>_<time>.json into the folder, never half a file and never over another. Its path."""
        kind, created = self._document["kind"], self._document["created"]
        self.path = save_run(os.fspath(folder), kind, self.subject, created, self._text)
        return self.path

    def html(self, path):
        """A page with plots that needs nothing else."""
        from tare._page import write_page

        item = {"kind": "run", "name": self.subject, "document": self._document}
        return write_page(path, [item], self.subject)

    def compare(self, baseline, *options):
        """What `tare compare` says about this run against another Run or a path."""
        base = baseline if isinstance(baseline, Run) else load(baseline)
        with _Written(base) as old, _Written(self) as new:
            return _command.call("compare", old, new, *options)

    def _ask(self, command, *options):
        with _Written(self) as path:
            return _command.call(command, path, *options)


class _Written:
    """A run as a file for as long as a command reads it."""

    def __init__(self, run):
        self._text = run.to_json()
        self._folder = None

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tare-")
        path = os.path.join(self._folder.name, "run.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._text)
        return path

    def __exit__(self, *unused):
        self._folder.cleanup()


def load(path):
    """The Run in a file that run.save() or `tare bench` wrote. ValueError names the file when it holds none."""
    with open(path, encoding="utf-8") as file:
        try:
            text = file.read()
            schema = json.loads(text).get("schema", "")
        except (ValueError, AttributeError) as bad:
            raise ValueError(f"{path}: not a run document: {bad}") from None
    if not isinstance(schema, str) or schema.split(".")[:2] != ["tare", "run/1"]:
        raise ValueError(f"{path}: not a run document: its schema is {schema!r}")
    return Run(text, path=os.fspath(path))
