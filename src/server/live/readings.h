/* SPDX-License-Identifier: MIT
 * readings.h - what hosts send, checked: readings of one host that are kept together. readings_json.c reads them from
 * the JSON of our own senders, otlp.c from OTLP; whatever is wrong is told with its place. Nothing here knows HTTP. */
#ifndef SERVER_READINGS_H
#define SERVER_READINGS_H

#include "core/arena.h"
#include "core/map.h"
#include "store/store.h"

enum {
    READINGS_MAX = 20000, /* of one batch */
    READING_LABEL_MAX = 256,
    READING_UNIT_MAX = 32,
    READINGS_AHEAD_MS = 3600 * 1000, /* a reading may be so far in the future: clocks differ */
};

struct readings {
    struct arena *arena; /* of all texts; borrowed */
    const char *host, *id, *about;
    struct map_str index; /* name and label -> number in `metrics` */
    VEC(struct store_metric) metrics;
    VEC(struct store_reading) at;
};

void readings_init(struct readings *r, struct arena *arena);
void readings_release(struct readings *r);

bool readings_id_ok(const char *id); /* letters, digits, - and _ of at most 64 bytes */
/* No control characters, UTF-8, at most so many bytes. */
bool readings_text_ok(const char *text, size_t most);

/* One more; the texts are copied where they are new. The unit and the kind of what is in the metric table are those of
 * the table: others are refused. */
tare_status readings_add(struct readings *r, const struct store_metric *m, int64_t at_ms, double value,
                         tare_error *err);
/* When all are in: there must be some, within an hour of each other and not far ahead of `now_ms`; put in order. */
tare_status readings_close(struct readings *r, int64_t now_ms, tare_error *err);

/* {"batch": "01K..", "host": "gpu7", "about": {..}, "at": 1763.., "samples": [{"name": .., "label": .., "at": ..,
 * "value": .., "unit": .., "kind": ..}, ..]}; a value of null was not read, and is left out. */
tare_status readings_read_json(struct readings *r, const char *bytes, size_t n, tare_error *err);

/* ---- OTLP ---- */

struct otlp {
    struct arena arena;
    struct otlp_hosts {
        VEC(struct readings *) at;
    } hosts;
    uint64_t rejected; /* data points that are not kept */
    char why[200];     /* of the first of them */
};
/* An ExportMetricsServiceRequest in JSON. Data points that are no numbers (histograms, summaries) or break a rule are
 * counted, and the rest is taken. TARE_FORMAT: the request is none. */
tare_status otlp_read_json(struct otlp *o, const char *bytes, size_t n, tare_error *err);
tare_status otlp_read_proto(struct otlp *o, const void *bytes, size_t n,
                            tare_error *err); /* the same in protobuf */
void otlp_close(struct otlp *o,
                int64_t now_ms); /* readings_close() of each host; those that fail are counted, too */
void otlp_release(struct otlp *o);

#endif
