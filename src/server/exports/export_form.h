/* SPDX-License-Identifier: MIT
 * export_form.h - readings as other systems take them: a WriteRequest of Prometheus' remote write, or an
 * ExportMetricsServiceRequest of OTLP, both in protobuf. Pure. */
#ifndef SERVER_EXPORT_FORM_H
#define SERVER_EXPORT_FORM_H

#include "store/chunk.h"

struct export_series {
    const char *host, *project, *name, *label, *unit; /* project "": of none; unit NULL: not said */
    bool counter;
};

struct export_form {
    bool prometheus; /* else OTLP */
    struct buf out;  /* the request, as far as it is */
    struct buf points, part, metrics, resource;
    struct export_series of; /* the series whose points are gathered; name NULL: none */
    uint64_t samples;
};

void export_form_init(struct export_form *f, bool prometheus);
void export_form_release(struct export_form *f);
/* Readings come series by series, hosts one after another. */
void export_add(struct export_form *f, const struct export_series *of, int64_t at_ms, double value);
void export_end_host(struct export_form *f);

#endif
