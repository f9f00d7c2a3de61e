# SPDX-License-Identifier: MIT
"""A single allocation that is refused while a compressed trace is read, also one within zstd, is no damage of the file."""

import json
import os
import subprocess

PROGRAM = """
#include <tare/tare.h>
int main(void)
{
    for (int i = 0; i < 1000; i++) {
        TARE_SCOPE("work");
    }
    return 0;
}
"""
SHIM = """
#include <errno.h>
#include <stdlib.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static long at, n;
static int fails(void)
{
    if (!at) at = getenv("FAIL_AT") ? atol(getenv("FAIL_AT")) : -1;
    if (__atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) != at) return 0;
    errno = ENOMEM;
    return 1;
}
void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t m, size_t bytes) { return fails() ? NULL : __libc_calloc(m, bytes); }
void *realloc(void *p, size_t bytes) { return fails() ? NULL : __libc_realloc(p, bytes); }
"""


def test_want_of_memory_is_no_damage(compile_c, clean_env, tare, tmp_path):
    program = compile_c(PROGRAM)
    subprocess.run([program], env={**clean_env, "TARE_TRACE": str(tmp_path / "t.tare"), "TARE_WEIGH": "off"}, check=True, timeout=120)
    tare("export", "t.tare", "-f", "tare", "-o", "packed.tare")
    (tmp_path / "shim.c").write_text(SHIM)
    shim = str(tmp_path / "shim.so")
    subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-o", shim, tmp_path / "shim.c"], check=True, timeout=120)
    refused = 0
    for n in range(1, 121):
        done = tare("report", "packed.tare", "--json", env={"LD_PRELOAD": shim, "FAIL_AT": str(n)}, status=(0, 3))
        if done.returncode == 0:
            assert json.loads(done.stdout)["loss"]["damaged_chunks"] == 0, "allocation %d" % n
        else:
            assert "memory" in done.stderr, "allocation %d: %s" % (n, done.stderr)
            refused += 1
    assert refused > 20
