# SPDX-License-Identifier: MIT
"""A long replay over many connections: the memory of `tare bench http://..` is that of what it keeps, not of how long it runs. Part of `make soak`,
which says how long and how wide: HTTP_SOAK=SECONDS,CONNECTIONS,RATE."""

import json
import os
import pathlib
import subprocess
import time

import pytest

KEPT = 1 << 18  # LOAD_KEEP
ASKED = os.environ.get("HTTP_SOAK")


def resident(pid):
    words = pathlib.Path(f"/proc/{pid}/status").read_text().split()
    return int(words[words.index("VmRSS:") + 1]) << 10


@pytest.mark.skipif(not ASKED, reason="HTTP_SOAK does not say how long (make soak)")
def test_memory_is_flat_over_a_long_replay(build, tmp_path):
    seconds, connections, rate = map(int, ASKED.split(","))
    due = seconds * rate
    assert due > 2 * KEPT, "too short to see growth beyond what is kept"
    log, waits = tmp_path / "times.csv", 1000 * connections // rate  # of each answer, ms: so many are under way at once
    log.write_text("".join(f"{i / rate:.6f}\n" for i in range(due)))
    with subprocess.Popen([build / "tests" / "ref-server", "--seconds", str(seconds + 120)], stdout=subprocess.PIPE, text=True) as server:
        url = f"http://127.0.0.1:{server.stdout.readline().split()[1]}/fixed?ms={waits}"
        command = [build / "tare", "bench", url, "--replay", log, "--timeout", "30s", "--no-save", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            begun, readings = time.monotonic(), []
            while time.monotonic() - begun < seconds:
                time.sleep(0.5)
                readings.append(resident(client.pid))
            document = json.loads(client.communicate()[0])
        server.kill()
    http = document["cases"][0]["http"]
    assert http["due"] == due == http["answered"] + http["failed"]
    assert http["one_in"] > 1
    assert http["connections"] > connections / 2
    full = len(readings) * (KEPT + 50000) // due  # by then as much is kept as ever will be
    print(f"{due} requests, {http['connections']} connections, {http['one_in']=}, {readings[full] >> 10} KiB to {max(readings) >> 10} KiB")
    assert max(readings) - readings[full] < 4 << 20, [r >> 10 for r in readings]
