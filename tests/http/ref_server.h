/* SPDX-License-Identifier: MIT
 * ref_server.h - the reference server of the HTTP tests: what it does to a request is a script of steps at known
 * times, made by behaviour.c from the path and its query; ref_server.c plays scripts and writes down when each step
 * was really done. A test holds tare to that record, never to a wish. Not part of the product. */
#ifndef TESTS_HTTP_REF_SERVER_H
#define TESTS_HTTP_REF_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum act {
    ACT_WRITE,   /* bytes */
    ACT_SHUT,    /* no more will be written; reads go on */
    ACT_RESET,   /* the connection is cut with RST */
    ACT_CLOSE,   /* the connection is closed in order */
    ACT_ENDLESS, /* these bytes again and again, as fast as they are taken */
    ACT_EXIT     /* the server ends, with all its connections */
};

struct step {
    uint64_t at; /* ns, CLOCK_MONOTONIC_RAW */
    enum act act;
    size_t from, n;  /* ACT_WRITE: bytes of script.bytes */
    unsigned events; /* content events that these bytes end: what a client can see at this time */
};

struct script {
    char *bytes;
    size_t n_bytes, bytes_room;
    struct step *steps;
    size_t n_steps, steps_room, next;
    uint64_t tokens; /* output tokens, as the server counts them */
    bool close;      /* after the last step */
};

struct request {
    uint64_t number, received; /* of this server, from 0; when its last byte was read */
    const char *method, *path, *query, *head, *body;
    size_t n_body;
};

struct server_state {     /* what requests share */
    uint64_t seed, began; /* of the first request; 0: none yet */
    uint64_t busy[64];    /* queue: when each of its servers is free */
};

uint64_t now_ns(void);

/* Fill an empty script. */
void behave(struct server_state *shared, const struct request *r, struct script *out);
void stream(struct server_state *shared, const struct request *r, struct script *out);
void infer(const struct request *r, struct script *out);

/* ---- for behaviours ---- */

/* A number of the query (`ms=5`), or the default. Milliseconds as ns. */
double number_of(const struct request *r, const char *name, double otherwise);
uint64_t ms_of(const struct request *r, const char *name, double otherwise);

/* Bytes to be written at this time; they are copied. */
struct step *script_write(struct script *s, uint64_t at, const void *bytes, size_t n);
struct step *script_printf(struct script *s, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void script_act(struct script *s, uint64_t at, enum act act);

/* A whole reply at one time. */
void script_reply(struct script *s, uint64_t at, unsigned status, const char *body);

/* Even over [0, 1), the same for the same server, request and salt. */
double unit_of(const struct server_state *shared, const struct request *r, unsigned salt);

/* The first of `servers` that is free takes the request for `service` ns: when it ends. */
uint64_t queue_end(struct server_state *shared, const struct request *r, unsigned servers, uint64_t service);

#endif
