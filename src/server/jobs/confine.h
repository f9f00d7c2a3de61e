/* SPDX-License-Identifier: MIT
 * confine.h - a program in as small a room as the kernel can make: namespaces of its own, Landlock, a filter of system
 * calls, resource limits, no way to more privileges. What the kernel refuses is left out, and told: a job's record says
 * how well it was confined. Called by the runner alone, a process with one thread that holds nothing secret. */
#ifndef SERVER_CONFINE_H
#define SERVER_CONFINE_H

#include <sys/types.h>

#include "server/jobs/operations.h"

/* What was achieved: bit, name in the record. */
#define CONFINE_PARTS(X)                                                                    \
    X(UID, "uid")               /* another user than the server's, or the server is no root */ \
    X(PROCESSES, "processes")   /* sees and reaches no process but its own */               \
    X(NETWORK, "network")       /* reaches no network: its own, or sockets are refused */   \
    X(MOUNTS, "mounts")         /* the server's data is not in its tree of files */         \
    X(FILES, "files")           /* Landlock: reads and writes only what it may */           \
    X(CALLS, "calls")           /* a filter of system calls */                              \
    X(PRIVILEGES, "privileges") /* no_new_privs */                                          \
    X(LIMITS, "limits")         /* all resource limits */
enum confine_part {
#define X(name, text) CONFINE_##name,
    CONFINE_PARTS(X)
#undef X
        CONFINE_N
};

struct confine_spec {
    const struct operation *op;
    char *const *argv;
    const char *folder; /* its own, where it begins */
    const char *hidden; /* what it must not see; NULL: nothing */
    int in, out, err;
};

/* Shared with the process that watches the program from within; all zero before. */
struct confine_state {
    uint32_t parts; /* bit of enum confine_part */
    int failed;     /* errno of what kept the program from being started, or of exec; 0: it was started */
    const char *failed_at;
    bool ended;
    int status; /* of waitpid */
    uint64_t cpu_us, peak_kb;
};

/* The process around the program: leader of a session and group of its own; when it dies, all in its namespace does.
 * -1: errno. */
pid_t confine_start(const struct confine_spec *spec, struct confine_state *shared);

#endif
