/* SPDX-License-Identifier: MIT
 * home_fixture.h - a folder of a test's own, below TMPDIR, gone with all it holds when the test ends. */
#ifndef TESTS_HOME_FIXTURE_H
#define TESTS_HOME_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "core/mem.h"

static char home[256];

static inline int home_enter(void)
{
    snprintf(home, sizeof home, "%s/tare-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(home) ? 0 : -1;
}

static inline int home_leave(void)
{
    char command[300];
    mem_fail_after(-1);
    snprintf(command, sizeof command, "rm -rf '%s'", home);
    return system(command);
}

#endif
