/* SPDX-License-Identifier: MIT
 * helper.h - a child process that answers questions with bounded memory and processor time: for libraries that know no
 * bound themselves, on bytes that may be anybody's. Whatever happens in there, the parent goes on. */
#ifndef SYMBOL_HELPER_H
#define SYMBOL_HELPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In the child: writes at most `most` bytes of an answer, at least one, and returns how many. */
typedef size_t helper_fn(void *ctx, char *question, size_t bytes, char *answer, size_t most);

struct helper_work {
    helper_fn *fn;
    void *ctx;
    uint64_t memory_more; /* bytes of address space, beyond what its parent had */
    uint32_t cpu_ms;      /* of the processor, for one question */
    uint32_t cpu_s;       /* .. and for all of them: many may each take nearly as long */
    uint32_t wall_ms;     /* for one question; 0: any */
    uint32_t deaths_most; /* after that many none is started any more */
};

struct helper {
    int fd;    /* to the child */
    pid_t pid; /* 0: there is none */
    unsigned deaths;
};

enum { HELPER_BYTES = 32 << 10 }; /* of a question, of an answer */

/* Bytes of the answer, at most HELPER_BYTES - 1; -1: it died, or none could be started. */
ssize_t helper_ask(struct helper *h, const struct helper_work *w, const void *question, size_t bytes,
                   char answer[HELPER_BYTES]);
void helper_end(struct helper *h);

#endif
