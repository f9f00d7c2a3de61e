# SPDX-License-Identifier: MIT
"""The Python process behind `tare tune py:FILE.py:make_loader`: makes the loader, tunes it with DataLoadingOptimizer's own search and proof,
and tells what was found as JSON over a packet socket (src/cli/tune/loader_answer.h says what it holds). SIGINT ends it early, with what
there is."""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import sys
from typing import Any

from tare import _tare
from tare import _tune_data as data
from tare._bench import function_path, subject_name
from tare._tune import DataOptimizationConfig, Tuned
from tare._unknown import known
from tare._worker import FIRST_FD, PROTOCOL, UNSUPPORTED, BadInput, find, refuse, reply

_PIECE = 60000  # bytes of a packet, less than PY_PACKET_MAX
_WORKING = 1  # status of a reply that only says how far it is
_NO_TORCH = f"{sys.executable} cannot import torch, which a loader needs: install it there, or name another Python with TARE_PYTHON"
_NAMES = {"workers": "workers", "depth": "prefetch", "batch_size": "batch"}


class NoTorch(BadInput):
    """There is nothing that could make a loader."""

    status = UNSUPPORTED


def name_of(plan: dict[str, Any]) -> str:
    """As cases are called: batch=32,workers=4,processes,prefetch=2,cache=memory."""
    parts = [f"batch={plan['batch_size']}"] if plan.get("batch_size") else []
    parts.append(f"workers={plan['workers']}")
    if plan["workers"]:
        parts += [plan["mode"], f"prefetch={plan['depth']}"]
    parts += [f"cache={plan['cache']}"] if plan.get("cache") else []
    parts += ["pinned" if plan["pin_memory"] else "not-pinned"] if "pin_memory" in plan else []
    return ",".join(parts)


def how_to(plan: dict[str, Any]) -> str:
    """What to write in the program."""
    plain = plan["workers"] == 0 or plan["mode"] == "processes"
    if not plain or plan.get("cache"):
        return f"loader = tare.DataLoadingOptimizer().apply(loader, {plan!r})"
    words = [f"{name}={plan[name]}" for name in ("batch_size", "pin_memory") if name in plan] + [f"num_workers={plan['workers']}"]
    words += [f"prefetch_factor={plan['depth']}", "persistent_workers=True"] if plan["workers"] else []
    return f"DataLoader(.., {', '.join(words)})"


# ---- what the user named ----


def make_loader(target: str) -> Any:
    if not data.run.has_torch():
        raise NoTorch(_NO_TORCH)
    try:
        loader = find(target)[1]()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Raised(f"{target} raised", error) from error
    try:
        data._as_it_is(loader)
    except TypeError as why:
        from torch.utils.data import DataLoader

        known_kind = isinstance(loader, DataLoader)
        raise BadInput(f"{target}: {why}" if known_kind else f"{target}: it returned {type(loader).__name__}, which is no torch DataLoader") from None
    return loader


def try_once(target: str, loader: Any, step_target: str, step: Any) -> None:
    """One batch and one step: what fails at once is told as what it is, and not as a loader that cannot be improved."""
    try:
        batch = next(iter(loader), try_once)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Raised(f"{target}: reading its first batch raised", error) from error
    if batch is try_once:
        raise BadInput(f"{target}: its loader gives no batch")
    try:
        if step is not None:
            step(batch)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Raised(f"{step_target} raised", error) from error


class Raised(Exception):
    """What user code raised, with who raised it."""

    def __init__(self, who: str, error: BaseException) -> None:
        super().__init__(f"{who} {type(error).__name__}: {error}")
        self.error = error


# ---- the answer ----


def told_trials(task: data._Task, size: int) -> list[dict[str, Any]]:
    out = []
    for trial in task.trials:
        batch = trial.plan.get("batch_size", size)
        full = {"batch_size": batch, **trial.plan}
        params = {_NAMES.get(name, name): value for name, value in full.items() if trial.plan["workers"] or name not in ("mode", "depth")}
        out.append(
            {
                "name": name_of(full), "params": params, "units": batch, "times_ns": trial.times, "memory": trial.memory,
                "cpu_share": trial.cpu_s / trial.wall_s if trial.wall_s > 0 else None, "failure": trial.failure,
            }  # fmt: skip
        )
    return out


def judged(found: Tuned, threshold: float) -> str:
    """The judge's own word: src/analyze/tune/confirm.h."""
    if found.verdict != "no_gain":
        return {"over_budget": "going on", "different_data": "refused"}.get(found.verdict, found.verdict)
    if found.ci[1] < 1:
        return "worse"
    return "no gain" if found.ci[1] < 1 + threshold else "not shown"


def _is_refused(found: Tuned, threshold: float) -> bool:
    """Left whatever the pairs say, or before there were any; the first reason says why."""
    vetoed = found.ci is not None and found.verdict == "no_gain" and found.ci[0] >= 1 + threshold
    return vetoed or found.ci is None or found.verdict in ("refused", "different_data")


def told_proof(found: Tuned, threshold: float) -> dict[str, Any] | None:
    if not found.ci:
        return None
    return {
        "gain": [found.gain, *found.ci], "cpu": found.cpu, "pairs": len(found.baseline), "uses_more_cpu": found.uses_more_cpu,
        "verdict": judged(found, threshold),
    }  # fmt: skip


def answer(task: data._Task, found: Tuned | None, size: int) -> dict[str, Any]:
    """found None: it was interrupted."""
    why = next(iter(task.findings.values()), {})
    best = next((i for i, trial in enumerate(task.trials) if trial.plan == task.candidate), 0)
    proved = found is not None and found.verdict in ("confirmed", "likely")
    refusal = found.reasons[0] if found is not None and found.reasons and _is_refused(found, task.threshold) else None
    return {
        "bound": task.bound if known(task.bound) else None,
        "bound_why": None if known(task.bound) else getattr(task.bound, "reason", "not measured"),
        "by_what": why.get("why") or "not measured",
        "stages_ms": {name: wall for name, (wall, _) in (why.get("stages_ms") or {}).items()},
        "tried": told_trials(task, size),
        "best": best,
        "proof": told_proof(found, task.threshold) if found is not None and best else None,
        "refusal": refusal,
        "notes": [why for why in (found.reasons if found is not None else []) if why not in (refusal, *task.left, *task.judged)],
        "left": task.left,
        "to_try": task.to_try,
        "measurements": task.runs,
        "recalled": task.recalled,
        "apply": how_to(task.candidate) if proved and task.candidate else None,
        "interrupted": found is None,
    }


class Talk:
    """The socket to `tare`."""

    hangs = False  # threads of the user's code may never end

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self.socket = socket.socket(fileno=fd)

    def say(self, what: str) -> None:
        text = what.encode()[:300]
        self.socket.send(reply(_WORKING, len(text), payload=text))

    def tell(self, said: dict[str, Any]) -> None:
        text = json.dumps(said).encode()
        for at in range(0, len(text), _PIECE):
            piece = text[at : at + _PIECE]
            self.socket.send(reply(0, len(piece), len(text), payload=piece))


def tuned(asked: dict[str, Any], talk: Talk) -> dict[str, Any]:
    loader = make_loader(asked["target"])
    step = find(asked["step"])[1] if asked["step"] else None
    talk.say("the first batch")
    try_once(asked["target"], loader, asked["step"], step)
    config = DataOptimizationConfig(
        budget_s=asked["budget_s"], timeout_s=2 * asked["budget_s"] + 60, optimization_threshold=asked["min_gain"], seed=asked["seed"],
        cache_size=1 << 20, remember=False, **({"memory_limit": asked["memory"]} if asked["memory"] else {}),
    )  # fmt: skip
    wishes = data.Wishes(
        latency=tuple(asked["latency"]) if asked["latency"] else None, memory=asked["memory"], batches=tuple(asked["batches"]),
        only=tuple(asked["only"]) if asked["only"] else None, extras=True, explain=asked["explain"], say=talk.say,
        place=asked["place"], recalls=asked["recalls"], keeps=asked["place"] is not None,
    )  # fmt: skip
    settings, now = data._as_it_is(loader)
    size = settings.get("batch_size") or 1
    if wishes.batches and wishes.batches[0] != size:
        raise BadInput(f"--batch: the loader of {asked['target']} has batches of {size}; the first of --batch is what is used today")
    task = data._Task(config, settings, now, step, config.equivalence, "auto", wishes)
    talk.say("one pass")
    try:
        found = task.run()
        if not task.trials and not wishes.explain and not task.hangs:
            with data.same.deadline(config.timeout_s, "a loader that is left as it is"):
                task._cost(now)
    except data.same.Hangs as why:
        found = task.refused(str(why))
        task.hangs = True
    except KeyboardInterrupt:
        found = None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # `tare` asks again while nothing comes: where Python swallows it, once is not enough
    task.end()
    talk.hangs = task.hangs
    if task.hangs and not task.trials:
        raise Raised(f"{asked['target']}:", TimeoutError(found.reasons[0]))
    return answer(task, found, size)


def main(argv: list[str]) -> int:
    """python -m tare _tune_worker WISHES, started by `tare tune` with its socket open."""
    asked = json.loads(argv[0])
    _tare.follow_parent()
    talk = Talk(FIRST_FD)
    try:
        make = find(asked["target"])[1]
        texts = [subject_name(make), function_path(make) or "", platform.python_version()]
        if asked["step"]:
            find(asked["step"])
        talk.socket.send(reply(value=PROTOCOL, payload=b"".join(t.encode("utf-8", "replace") + b"\0" for t in texts)))
        talk.tell(tuned(asked, talk))
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as missing:
        talk.socket.send(refuse(NoTorch(_NO_TORCH) if missing.name == "torch" else missing))
        return 3
    except Raised as bad:
        talk.socket.send(refuse(bad.error, what=str(bad)))
        return 3
    except BaseException as error:  # user code ran: anything may come
        talk.socket.send(refuse(error))
        return 3
    finally:
        if talk.hangs:
            os._exit(0)  # as they would be waited for
    return 0
