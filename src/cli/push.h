/* SPDX-License-Identifier: MIT
 * push.h - runs on their way to a server. A document is kept first in a folder by the history (unsent/SERVER), whole
 * or not at all, then sent, then removed: whatever ends tare in between, it is sent later, and a server that has it
 * already says so. What waits was meant for one server and one token, and goes nowhere else. */
#ifndef CLI_PUSH_H
#define CLI_PUSH_H

#include "cli/output.h"

struct push_result {
    uint64_t sent, there;    /* there: the server had it already */
    uint64_t waits, refused; /* refused: for good; each was told, and is kept under another name */
    uint64_t others;         /* wait for another token */
    tare_status status;      /* why those wait: err of push_waiting() */
};

/* Is there a server to send to, and a token? 0, or the exit code after the user was told. */
int push_check(struct cli *cli, const struct history_args *a);
tare_status push_open(const struct history_args *a, struct store **out, tare_error *err);

/* A run that was just made: kept, sent, told in one line. Not TARE_OK: it is not at the server, and a->push_must. */
tare_status push_run(struct cli *cli, const struct history_args *a, const struct run *run);

/* push_trace.c: a trace as a file of a run that is there; and a file of one into a new file of this name. */
tare_status push_trace(struct store *to, const char *run, const char *path, bool *added, tare_error *err);
tare_status push_fetch(struct store *from, const struct store_upload *u, const char *path, tare_error *err);

/* One document. TARE_FORMAT: refused for good. */
tare_status push_text(struct store *to, struct store_body text, bool *added, tare_error *err);

/* All that wait for this server, the oldest first, or `first`; ends where the server is away, or after `most_ns`. */
struct push_wish {
    const char *first; /* name of a file; NULL: none */
    uint64_t most_ns;  /* 0: as long as it takes */
    bool any_token;
};
void push_waiting(struct cli *cli, const struct history_args *a, struct store *to, const struct push_wish *w,
                  struct push_result *r);

#endif
