# SPDX-License-Identifier: MIT
"""Run: the record of one measurement, as tare.bench gives it and tare.load reads it. A view of the run document (schema tare.run/1), never a
copy with other numbers; all other results of the package that hold measured numbers are made from it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any, Iterable, Iterator

from tare import _answers, _command
from tare._tare import save_run
from tare._unknown import Unknown, plain


def _latency(which: str) -> Any:
    return property(lambda case: case.latency_ms(which))


class Case(Mapping):
    """One case of a run: its part of the document as a mapping, and the usual numbers as attributes (None: unknown)."""

    mean_ms: float | None = _latency("mean")
    p50_ms: float | None = _latency("p50")
    p95_ms: float | None = _latency("p95")
    p99_ms: float | None = _latency("p99")

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __repr__(self) -> str:
        return f"<tare case {self.name}>"

    @property
    def name(self) -> str:
        return self._document["name"]

    @property
    def params(self) -> dict[str, Any]:
        return dict(self._document["params"])

    @property
    def samples(self) -> int:
        return self._document["samples"]

    @property
    def failure(self) -> str | None:
        """Why the case, or the first run of it that failed, has no numbers; None: no run failed."""
        return self._document.get("failure")

    @property
    def unit(self) -> str:
        return self._document["unit"]

    @property
    def reasons(self) -> dict[str, str]:
        """Why numbers of the case are null, by their dotted path."""
        return self._document.get("unknown") or {}

    def number(self, path: str, per: float | None = None) -> Any:
        """The number at a dotted path, as in "latency_ns.p95" or "memory.delta", divided by `per`; of an estimate its value. Where the
        document has none, an Unknown with the reason recorded for it, or for what it lies in."""
        found: Any = self._document
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        found = found.get("value") if isinstance(found, dict) else found
        if found is not None:
            return found if per is None else found / per
        reasons = self.reasons
        while path and path not in reasons:
            path = path.rpartition(".")[0]
        return Unknown(reasons.get(path, "not measured"))

    def latency_ms(self, which: str = "p50") -> float | None:
        """A time of one call in milliseconds: "mean", "min", "max", "stddev", "p50", "p90", "p95", "p99"."""
        return plain(self.number("latency_ns." + which, 1e6))

    @property
    def throughput(self) -> float | None:
        """Units per second."""
        return plain(self.number("throughput"))

    @property
    def memory_peak(self) -> int | None:
        """Bytes of the process at most."""
        return plain(self.number("memory.rss_peak"))

    @property
    def memory_delta(self) -> int | None:
        """Bytes by which this case made the process larger."""
        return plain(self.number("memory.delta"))


class Run:
    """A measurement: print(run) shows it, run.case(batch=16) is one case, run.save() keeps it."""

    def __init__(self, text: str, report: str | None = None, path: str | None = None) -> None:
        self._text = text
        self._report = report and report.rstrip("\n")
        self._document = json.loads(text)
        self.path = path

    @classmethod
    def of(cls, document: dict[str, Any]) -> Run:
        return cls(json.dumps(document, indent=1))

    def __str__(self) -> str:
        if self._report is None:
            self._report = self.ask("report").rstrip("\n")
        return self._report

    def __repr__(self) -> str:
        return f"<tare run {self.subject}: {len(self.cases)} cases, {self.id}>"

    def _repr_html_(self) -> str:
        return _answers.run_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    # ---- what it says ----

    def to_dict(self) -> dict[str, Any]:
        """The run document, a new dict each time."""
        return json.loads(self._text)

    def to_json(self) -> str:
        """The run document as text."""
        return self._text

    @property
    def id(self) -> str:
        return self._document["id"]

    @property
    def subject(self) -> str:
        return self._document["subject"]["name"]

    @property
    def cases(self) -> list[Case]:
        return [Case(c) for c in self._document["cases"]]

    def case(self, name: str | None = None, **params: Any) -> Case:
        """The case of that name ("batch=16,length=32") or with these parameters (batch=16). KeyError: none, or several."""
        found = [c for c in self.cases if name in (None, c.name) and all(c.params.get(key) == value for key, value in params.items())]
        if len(found) != 1:
            wanted = name or ", ".join(f"{key}={value}" for key, value in params.items())
            names = "; ".join(c.name for c in self.cases)
            raise KeyError(f"{len(found) or 'no'} case{'s' if len(found) > 1 else ''} {wanted}: this run has {names}")
        return found[0]

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self.to_dict()["findings"]

    @property
    def recommendation(self) -> dict[str, Any] | None:
        """{"objective", "case", "why"}, or None when there are fewer than two cases to choose from."""
        return self.to_dict().get("recommendation")

    @property
    def best(self) -> Case | None:
        """The recommended case; the only one when there is one; None when the data cannot tell."""
        chosen = self.recommendation
        if chosen:
            return self.case(chosen["case"])
        return self.cases[0] if len(self.cases) == 1 else None

    @property
    def targets(self) -> list[dict[str, Any]]:
        return self.to_dict()["targets"]

    @property
    def passed(self) -> bool:
        """Whether no target was missed in any case, and no case failed."""
        return all(t["verdict"] != "fail" for t in self.targets) and not any(c["failure"] and c["samples"] is None for c in self.cases)

    # ---- keeping it ----

    def save(self, folder: str | os.PathLike[str] = "tare-results", history: bool | str | os.PathLike[str] = True) -> str:
        """Write <kind>_<subject>_<time>.json into the folder, never half a file and never over another; its path. As `tare bench` does, put
        it into the history too: that of the folder, the file named, or (False) none."""
        kind, created = self._document["kind"], self._document["created"]
        self.path = save_run(os.fspath(folder), kind, self.subject, created, self._text)
        _command.keep_run(self.path, history, folder)
        return self.path

    def html(self, path: str | os.PathLike[str]) -> Any:
        """A page with plots that needs nothing else."""
        return _answers.run_page(path, self._document)

    def compare(self, baseline: Run | str | os.PathLike[str], *options: str) -> str:
        """What `tare compare` says about this run against another Run or a path."""
        base = baseline if isinstance(baseline, Run) else load(baseline)
        with written(base, self) as paths:
            return named(_command.call("compare", *paths, *options), zip(paths, (base, self)))

    def ask(self, command: str, *options: str) -> str:
        """What a command of `tare` says of it."""
        with written(self) as paths:
            return named(_command.call(command, *paths, *options), zip(paths, (self,)))


@contextmanager
def written(*runs: Run) -> Iterator[list[str]]:
    """Runs as files for as long as a command reads them: their paths. What was saved, and is still there, is its own."""
    with tempfile.TemporaryDirectory(prefix="tare-") as folder:
        yield [_kept(run) or _answers.write_text(os.path.join(folder, f"run-{n}.json"), run.to_json()) for n, run in enumerate(runs)]


def _kept(run: Run) -> str | None:
    try:
        with open(run.path or "", encoding="utf-8") as file:
            return run.path if json.load(file) == run._document else None
    except (OSError, ValueError):
        return None


def named(answer: str, written: Iterable[tuple[str, Run]]) -> str:
    """A command's answer without the paths that were there for it alone: such a run is called by its subject and its time, and how to ask
    again is left out."""
    for path, run in written:
        if path != run.path:
            answer = answer.replace(path, f"{run.subject} of {run._document['created'][:19]}")
            answer = re.sub(r"^again .*\n?", "", answer, flags=re.MULTILINE)
            answer = re.sub(r'("reproduce": )"(?:[^"\\]|\\.)*"', r"\1null", answer)
    return answer


def merged(runs: list[Run]) -> Run:
    """The cases of several runs of one subject in the last one that measured; a case measured again replaces the earlier."""
    cases, findings, targets = {}, {}, {}
    for run in runs:
        for case in run._document["cases"]:
            cases[case["name"]] = case
        for finding in run._document["findings"]:
            findings[finding["id"], finding.get("case")] = finding
        for target in run._document["targets"]:
            targets[target["metric"], target["op"], target["value"], target.get("case")] = target
    parts = {"cases": cases, "findings": findings, "targets": targets}
    last = next((run for run in reversed(runs) if any(case.samples for case in run.cases)), runs[-1])
    return Run.of({**last._document, **{name: list(part.values()) for name, part in parts.items()}})


def load(path: str | os.PathLike[str]) -> Run:
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
