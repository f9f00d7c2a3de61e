/* SPDX-License-Identifier: MIT
 * outcome.h - what became of one request to a service. Each arrival has one, whether or not it was sent, so that
 * due = answered + failed + open adds up, and one that was not answered is no hole in the sample: it took at least as
 * long as it waited. */
#ifndef LOAD_OUTCOME_H
#define LOAD_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

/* Why there is no answer, or none that counts: the word in documents, and what is said of it. */
#define LOAD_FAULT_MAP(X)                                                                  \
    X(NONE, "answered", "an answer that passed every check")                               \
    X(OPEN, "open", "no answer yet when the measurement ended")                            \
    X(TIMEOUT, "timeout", "no whole answer in time")                                       \
    X(REFUSED, "refused", "the connection was refused")                                    \
    X(UNREACHABLE, "unreachable", "no connection: network or address")                     \
    X(TLS, "tls", "no trusted connection: certificate or handshake")                       \
    X(RESET, "reset", "the connection was reset")                                          \
    X(CUT, "cut", "the connection ended before the answer did")                            \
    X(INVALID, "invalid", "what came is not HTTP/1.1")                                     \
    X(TOO_LARGE, "too-large", "the answer is larger than is read")                         \
    X(STATUS, "status", "the status is not the expected one")                              \
    X(BODY, "body", "the body is not the expected one")                                    \
    X(STREAM, "stream", "the stream is broken, or told an error")                          \
    X(SOCKETS, "sockets", "this client had no socket, port or memory left")

enum load_fault {
#define X(name, word, help) LOAD_##name,
    LOAD_FAULT_MAP(X)
#undef X
        LOAD_FAULTS
};

enum { LOAD_STATUSES = 1000 };

enum load_flags {
    LOAD_NEW = 1,        /* on a connection made for it */
    LOAD_RESENT = 2,     /* the server closed an idle connection under it: sent again on another */
    LOAD_QUEUED = 4,     /* waited for a connection, as all that may be open were busy */
    LOAD_UNSTAMPED = 8,  /* times of receiving are by our clock after the read, not by the kernel */
    LOAD_SHARED = 16,    /* several events came in one read: only the last one's time is exact */
    LOAD_WARM = 32,      /* before the window: counts for nothing */
    LOAD_ESTIMATED = 64, /* tokens are events: the server did not say how many */
};

/* Times are of instant_now(); 0: it did not happen. `number`: of the request in its window, from 0. `tokens` and what
 * stands beside it are the reader's (reader.h). */
struct load_outcome {
    uint64_t number;
    uint64_t planned;       /* when it was due: latency counts from here */
    uint64_t sent;          /* the first byte of it */
    uint64_t first_byte;    /* of the answer: its head */
    uint64_t first_content; /* the first event that says something, reasoning included */
    uint64_t first_answer;  /* the first that is not reasoning */
    uint64_t last_content;
    uint64_t end;                      /* of the answer, or when it was given up */
    uint64_t gap_max;                  /* ns, the longest between two events that say something */
    uint32_t events;                   /* that say something */
    uint32_t tokens, first_tokens;     /* in all; in the first event */
    uint32_t tokens_in, tokens_cached; /* of the prompt, as the server says */
    uint32_t bytes;                    /* of the body; as many as fit */
    uint32_t digest;                   /* of the body, where requests come again (load_source.period) */
    uint16_t status;                   /* of HTTP; 0: none came */
    uint8_t fault;                     /* enum load_fault */
    uint8_t flags;                     /* enum load_flags */
};

static inline bool load_is_answered(const struct load_outcome *o)
{
    return o->fault == LOAD_NONE;
}

/* What its user waited, or has waited by then: to the last event that says something, else to the end. */
static inline uint64_t load_took(const struct load_outcome *o)
{
    uint64_t last = o->last_content ? o->last_content : o->end;
    return last > o->planned ? last - o->planned : 0;
}

/* Of all requests of a window, also of those that are not kept one by one. */
struct load_counts {
    uint64_t due, sent, answered, failed, open; /* due = answered + failed + open */
    uint64_t queued, unstamped;
    uint64_t late; /* sent later than LOAD_LATE_NS after they were due, though a connection was free */
    uint64_t longest_delay;           /* ns, until one was sent */
    uint64_t last_answer;             /* its time */
    uint64_t longest, longest_failed; /* load_took(): of an answer; of what is none */
    uint64_t faults[LOAD_FAULTS];
    uint64_t statuses[LOAD_STATUSES]; /* by status of HTTP; 0: none came */
};
#define LOAD_LATE_NS UINT64_C(1000000)

void load_count(struct load_counts *c, const struct load_outcome *o);

const char *load_fault_word(unsigned fault); /* "refused" */
const char *load_fault_help(unsigned fault); /* "the connection was refused" */

#endif
