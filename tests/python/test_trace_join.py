# SPDX-License-Identifier: MIT
"""A trace that many processes join, as in a build: what each start costs must not grow with those before it."""

import json
import re
import shutil
import subprocess

import pytest

PROGRAM = """
#include <stdio.h>
#include <tare/tare.h>
int main(int argc, char **argv)
{
    (void)argv;
    { TARE_SCOPE("work"); }
    puts("recording");
    fflush(stdout);
    if (argc > 1) getchar();
    return 0;
}
"""


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_a_start_under_tare_run_costs_the_same_after_many_others(compile_c, clean_env, tare, tmp_path):
    """tare itself has no live file: the last chunks of the trace tell that it still samples."""
    program = compile_c(PROGRAM)
    watched = ("for n in $(seq 400); do '{0}' >/dev/null; done; sleep 0.2; strace -f -o calls '{0}' >/dev/null; "
               "sleep 0.2").format(program)
    tare("run", "-q", "-i", "10ms", "--trace", "t.tare", "--no-save", "--", "sh", "-c", watched, env={"TARE_WEIGH": "off"})
    preads = len(re.findall(r"\bpread64\(", (tmp_path / "calls").read_text()))
    assert 0 < preads < 100, "400 processes before, %d calls of pread" % preads
    assert [(node["name"], node["count"]) for node in json.loads(tare("report", "t.tare", "--json").stdout)["tree"]] == [("work", 401)]


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_a_start_costs_the_same_after_many_others(compile_c, clean_env, tare, tmp_path):
    program = compile_c(PROGRAM)
    env = {**clean_env, "TARE_TRACE": str(tmp_path / "t.tare"), "TARE_WEIGH": "off"}
    calls = []

    def count_calls():
        subprocess.run(["strace", "-f", "-o", tmp_path / "calls", program], env=env, stdout=subprocess.DEVNULL, check=True, timeout=120)
        text = (tmp_path / "calls").read_text()
        calls.append((len(re.findall(r"\bpread64\(", text)), len(re.findall(r'"/proc/\d+/stat"', text))))

    with subprocess.Popen([program, "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "recording\n"
        count_calls()
        for _ in range(100):
            subprocess.run([program], env=env, stdout=subprocess.DEVNULL, check=True, timeout=120)
        count_calls()
        parent.stdin.close()
        assert parent.wait(timeout=120) == 0
    assert calls[1] == calls[0], "calls of pread and looks at processes, the 2nd and the 102nd: %s" % calls
    assert [(node["name"], node["count"]) for node in json.loads(tare("report", "t.tare", "--json").stdout)["tree"]] == [("work", 103)]
    assert not list(tmp_path.glob("t.tare.old*"))
