/* SPDX-License-Identifier: MIT
 * reader.h - what the body of an answer means, told to whoever reads it piece by piece as it comes. Pure: no socket, no
 * clock; bytes may be cut anywhere. The engine keeps `size` bytes of state for each connection. */
#ifndef LOAD_READER_H
#define LOAD_READER_H

#include <stddef.h>

#include "http/http_parse.h"
#include "load/outcome.h"

struct load_piece {
    const char *bytes;
    size_t n;
    uint64_t at_ns; /* when the kernel received the last byte of the read it was in */
};

struct load_reader {
    const char *name;
    size_t size; /* of the state of one answer; 0: none */
    void *ctx;   /* shared by all answers: what is pooled over them, such as a histogram of gaps */

    /* Before each window of load: forget what was pooled. May be NULL. */
    void (*clear)(void *ctx);
    /* Once for each connection, on zeroed memory, and when it is closed. May be NULL. */
    void (*open)(void *ctx, void *state);
    void (*close)(void *ctx, void *state);
    /* The head is complete: a new answer begins. `head` gives headers by http_header(). */
    void (*begin)(void *ctx, void *state, const struct http_head *head, struct load_outcome *o);
    /* Some of the body, decoded from chunks. */
    void (*bytes)(void *ctx, void *state, const struct load_piece *piece, struct load_outcome *o);
    /* It is complete. Sets o->fault (LOAD_BODY, LOAD_STREAM) where it is not as it should be; then returns why, a text
     * that lives as long as the reader, else NULL. Not called of answers that end too early. */
    const char *(*end)(void *ctx, void *state, struct load_outcome *o);
};

#endif
