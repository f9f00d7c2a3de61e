/* SPDX-License-Identifier: MIT
 * run_hook.h - commands that --on-alert starts: each gets its alert as JSON on stdin, has a group and ten seconds of
 * its own, and writes to stderr only. At most four at once; more are counted, not queued. Never waits for one. */
#ifndef CLI_RUN_HOOK_H
#define CLI_RUN_HOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/buf.h"

enum { HOOKS_AT_ONCE = 4 };
#define HOOK_LIMIT_NS UINT64_C(10000000000)

struct hook {
    pid_t pid; /* 0: free */
    uint64_t until_ns;
};

struct hooks {
    const char *command; /* for sh; NULL: none */
    struct hook running[HOOKS_AT_ONCE];
    uint64_t started, bad; /* bad: failed, killed, or could not be started */
};

/* The pid of the new process; 0: not started. */
pid_t hooks_start(struct hooks *h, const struct buf *json);
bool hooks_ended(struct hooks *h, pid_t pid, int status); /* false: none of ours */
bool hooks_is_ours(const struct hooks *h, pid_t pid);
size_t hooks_running(const struct hooks *h);
void hooks_expire(struct hooks *h, uint64_t now_ns); /* kill those whose time is over */

#endif
