/* SPDX-License-Identifier: MIT
 * watch_hook.h - what is started on an alert: the command of --on-alert, which gets it as JSON on stdin and writes to
 * stderr only, and a process that takes it to the URL of --webhook. Each has a group and ten seconds of its own. At
 * most eight at once; more are counted, not queued. Never waits for one. */
#ifndef WATCH_WATCH_HOOK_H
#define WATCH_WATCH_HOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/buf.h"
#include "core/error.h"

enum { HOOKS_AT_ONCE = 8, HOOK_KINDS = 2 };
#define HOOK_LIMIT_NS UINT64_C(10000000000)

struct hook {
    pid_t pid; /* 0: free */
    uint64_t until_ns;
    int said; /* a file with what it wrote to its stdout; -1: none */
};

struct hooks {
    const char *command; /* for sh; NULL: none */
    const char *url;     /* NULL: none */
    struct hook running[HOOKS_AT_ONCE];
    uint64_t started, bad; /* bad: failed, killed, or could not be started */
    uint64_t undelivered;  /* of the bad ones those to the URL */
    char why[160];         /* of the first of these, where it is known */
};

/* Before anything is watched: is the URL one that can be posted to? TARE_INVALID: no. Waits, a few milliseconds. */
tare_status hooks_check_url(const char *url, tare_error *err);
/* Start what is asked for on an alert; the pids of the new processes, and how many they are. */
size_t hooks_start(struct hooks *h, const struct buf *json, pid_t pids[HOOK_KINDS]);
void hooks_ended(struct hooks *h, pid_t pid, int status); /* whoever it was */
bool hooks_is_ours(struct hooks *h, pid_t pid);
size_t hooks_running(const struct hooks *h);
void hooks_expire(struct hooks *h, uint64_t now_ns); /* kill those whose time is over */

#endif
