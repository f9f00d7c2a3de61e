/* SPDX-License-Identifier: MIT
 * reply.h - the bytes of one connection's answers -> what is known of each: its status, when it came, whether it is as
 * it should be. Knows no socket and no clock; bytes may be cut anywhere. */
#ifndef LOAD_REPLY_H
#define LOAD_REPLY_H

#include "load/reader.h"

enum { LOAD_EXPECT_MAX = 255, LOAD_GLIMPSE = 120 };

/* The same for all answers. */
struct reply_rules {
    const struct load_reader *reader; /* NULL: none */
    const char *expect_body;          /* at most LOAD_EXPECT_MAX bytes; NULL: any */
    unsigned expect_status;           /* 0: any 2xx */
    uint64_t body_max;
    bool digest; /* of bodies is wanted */
};

struct reply {
    const struct reply_rules *rules;
    void *state; /* the reader's, or NULL */
    struct http_parser parser;
    struct http_head *head; /* while an answer is read; the caller's */
    struct load_outcome *o; /* of the call that is under way */
    uint64_t at_ns, body;
    bool interim, found, closes; /* 1xx; expect_body stood there; the connection ends with this answer */
    char tail[LOAD_EXPECT_MAX];  /* the last bytes of the body, where expect_body may begin */
    size_t n_tail;
    char glimpse[LOAD_GLIMPSE]; /* how the body of a wrong answer begins, as text */
    const char *why;            /* of a fault: a text that lives on; NULL: there is none */
};

enum reply_step { REPLY_MORE, REPLY_DONE, REPLY_FAILED };

void reply_open(struct reply *r, const struct reply_rules *rules, void *state);
/* Before each request. The head is the caller's until the answer is whole or the connection is closed. */
void reply_begin(struct reply *r, struct http_head *head);
/* `used` is less than n only at the end of an answer. REPLY_FAILED: o->fault says why, and the connection is of no more
 * use. */
struct reply_bytes {
    const char *at;
    size_t n, used;
    uint64_t at_ns;
};
enum reply_step reply_take(struct reply *r, struct reply_bytes *b, struct load_outcome *o);
/* The connection has ended. */
enum reply_step reply_ended(struct reply *r, uint64_t at_ns, struct load_outcome *o);

#endif
