/* SPDX-License-Identifier: MIT
 * engine.h - one window of load on one address: an epoll loop in the calling thread sends what is due, reads what
 * comes, and writes an outcome for each. Open loop: requests are due at moments made beforehand, whatever became of
 * those before, and latency counts from there. Closed loop: so many are under way at once. */
#ifndef LOAD_ENGINE_H
#define LOAD_ENGINE_H

#include <signal.h>

#include "core/vec.h"
#include "load/outcome.h"
#include "load/reader.h"
#include "load/source.h"

/* Told when a request is sent and when it is over, in the thread that drives the load: somebody draws them. `room` is
 * of that request alone. */
enum { LOAD_SPAN_ROOM = 5 };
struct load_spans {
    void (*begin)(uint64_t room[LOAD_SPAN_ROOM], bool warm);
    void (*end)(uint64_t room[LOAD_SPAN_ROOM]);
};

struct load_engine; /* connections that live from window to window */

struct load_options {
    const char *url;         /* http://, https://, or unix:/path/of/socket:/target */
    const char *method;      /* NULL: POST where there is a body, else GET */
    const char *headers;     /* further lines, each ended by \r\n (load_add_header()); may be NULL */
    const char *authorities; /* PEM file of issuers to trust; NULL: the system's */
    struct load_source source;
    const struct load_reader *reader;         /* NULL: bytes are counted, nothing more */
    const char *expect_body;                  /* a text that must stand in the body; NULL: any */
    unsigned expect_status;                   /* 0: any 2xx */
    uint64_t timeout_ns;                      /* from when it was due */
    uint64_t body_max;                        /* bytes of one answer; 0: LOAD_BODY_MAX */
    unsigned connections;                     /* open at once at most; 0: as many as descriptors allow */
    bool fresh;                               /* a connection for each request */
    size_t keep;                              /* outcomes of a window at most, a power of two; 0: LOAD_KEEP */
    const struct load_spans *spans;           /* NULL: nobody */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};
enum { LOAD_KEEP = 1 << 18 };
#define LOAD_BODY_MAX (UINT64_C(256) << 20)
#define LOAD_TIMEOUT_NS UINT64_C(30000000000)

struct load_window {
    const uint64_t *arrivals; /* open loop: ns from the beginning, ascending; NULL: closed */
    size_t n_arrivals;
    unsigned concurrency; /* closed loop */
    uint64_t window_ns;   /* nothing is due after it */
    uint64_t most;        /* closed loop: so many requests at most; 0: no limit */
    bool warm;            /* its requests count from LOAD_WARM_NUMBER */
};

/* A window of any length takes no more memory than what is kept: where there are more, then of one in two, in four, in
 * eight.. as they were due, whatever became of them. The counts are of all. */
struct load_result {
    VEC(struct load_outcome) outcomes; /* in the order in which they were due */
    uint64_t one_in;                   /* of so many; 1: all are there */
    uint64_t period;                   /* of the source */
    struct load_counts counts;
    uint64_t began_ns, closed_ns,
        ended_ns;    /* the beginning; nothing was due after; the last answer, or given up */
    uint64_t cpu_ns; /* of this client, from the beginning to the end */
    uint64_t connected, reconnects, most_open; /* connections made; requests resent on one; open at once */
    uint64_t bytes_sent, bytes_received;
    uint64_t surplus;           /* answers with bytes behind their end */
    bool interrupted, hopeless; /* hopeless: so many failed before one was answered that it ended early */
    char failure[256];          /* the first thing that failed, in words; "": nothing did */
};

/* Reads the address, resolves its name, looks whether the descriptors suffice. Asks the service nothing. TARE_INVALID:
 * the options cannot be; TARE_IO: the name, or whom to trust. */
tare_status load_open(struct load_engine **out, const struct load_options *o, tare_error *err);
void load_close(struct load_engine *e); /* NULL is fine */
/* `out` is zeroed, or was filled before. Requests that fail are outcomes; an error is this client's own (a source, no
 * memory). */
tare_status load_run(struct load_engine *e, const struct load_window *w, struct load_result *out,
                     tare_error *err);
void load_result_release(struct load_result *r);

/* How many connections may be open at once, as far as descriptors allow; raises this process's own limit up to what it
 * may. TARE_INVALID: `wanted` are more. 0: as many as there may be. */
tare_status load_connections(unsigned wanted, unsigned *out, tare_error *err);

#endif
