/* SPDX-License-Identifier: MIT
 * open_scopes.h - what libtare lets libtare-agent.so see of the scopes that are open in the calling thread, so that an
 * allocation is told with them. The two are libraries of their own, perhaps of different versions. */
#ifndef TRACE_OPEN_SCOPES_H
#define TRACE_OPEN_SCOPES_H

#include <stddef.h>
#include <stdint.h>

enum { OPEN_SCOPES_VERSION = 1 };

struct open_scopes {
    uint64_t version;
    /* Of this thread; NULL: none. A scope is what is told apart by its path; `thread`: of which registration it is. */
    const void *(*innermost)(uint64_t *thread);
    const void *(*around)(const void *scope);                /* NULL: it is the outermost */
    void (*name)(const void *scope, char *to, size_t bytes); /* NUL-terminated; "": not known */
};

#define OPEN_SCOPES_TAKER "tare_memory_scopes" /* of the agent: who is there first is told by the other */
#define OPEN_SCOPES_TABLE "tare_open_scopes_"  /* of libtare */
typedef void open_scopes_taker(const struct open_scopes *);
void open_scopes_tell(void); /* when a session begins */

#endif
