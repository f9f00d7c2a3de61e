/* SPDX-License-Identifier: MIT
 * live.h - what hosts say of themselves while they work, as the store keeps it: part of store.h. */
#ifndef STORE_LIVE_H
#define STORE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { STORE_HASH_SIZE = 32 };

struct store_body {
    const void *data;
    size_t size;
};

enum {
    STORE_METRICS_MAX = 10000,         /* series of one host */
    STORE_CHUNK_SPAN_MS = 3600 * 1000, /* the readings of one batch lie within this */
};

struct store_metric {         /* a series of a host */
    const char *name, *label; /* label: "" for the whole */
    const char *unit;         /* NULL: not said */
    bool counter;
};

struct store_reading {
    uint32_t metric; /* number in the batch's metrics */
    int64_t at_ms;
    double value;
};

/* Readings of one host, kept together or not at all; `id` is the sender's, so that sending again is harmless. */
struct store_batch {
    const char *project; /* "": of none */
    const char *host, *id;
    const char *about;             /* what the host is, a JSON object; NULL: not said */
    uint8_t hash[STORE_HASH_SIZE]; /* of the bytes that were sent */
    int64_t heard_ms;
    const struct store_metric *metrics;
    size_t n_metrics;
    const struct store_reading *readings; /* at least one; by metric, then by time */
    size_t n_readings;
};

enum store_kept {
    STORE_NEW,
    STORE_SAME,    /* kept already */
    STORE_OTHER,   /* other bytes were kept under this id */
    STORE_CROWDED, /* there would be too many, or too much: nothing was kept */
    STORE_LACKING, /* of a file: a piece is not there, and nothing was kept */
};

struct store_host {
    int64_t id;
    const char *project, *name, *about;
    int64_t first_ms, heard_ms; /* by the server's clock */
    uint64_t metrics;
};

/* What one batch brought, packed (chunk.h). `metric` 0: of many series; later parts may keep many batches of one. */
struct store_chunk {
    int64_t seq; /* grows as they come */
    int64_t host, from_ms;
    struct store_body body;
};

struct store_metric_query {
    int64_t host;
    const char *name; /* NULL: all */
};

struct store_chunk_query {
    int64_t host; /* 0: any; `after` only */
    int64_t from_ms,
        to_ms; /* with readings in [from_ms, to_ms); both 0: what came after `after`, oldest first */
    int64_t after;
    uint64_t limit; /* 0: all */
};

/* The latest value of each series of a host within a time. */
struct store_latest_query {
    const char *host;
    int64_t from_ms, to_ms; /* to_ms 0: until now */
    int64_t now_ms;         /* out: by the server's clock */
};
struct store_latest {
    const char *name, *label;
    int64_t at_ms;
    double value;
};
typedef tare_status store_latest_fn(void *ctx, const struct store_latest *value, tare_error *err);

typedef tare_status store_host_fn(void *ctx, const struct store_host *host, tare_error *err);
typedef tare_status store_metric_fn(void *ctx, int64_t id, const struct store_metric *metric,
                                    tare_error *err);
typedef tare_status store_chunk_fn(void *ctx, const struct store_chunk *chunk, tare_error *err);

#endif
