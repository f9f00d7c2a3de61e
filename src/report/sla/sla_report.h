/* SPDX-License-Identifier: MIT
 * sla_report.h - the hourly and daily report of a service, for people: one description, as Markdown and as HTML. Shows
 * what the document says and judges nothing. */
#ifndef REPORT_SLA_SLA_REPORT_H
#define REPORT_SLA_SLA_REPORT_H

#include "core/buf.h"
#include "run/requests.h"

struct sla_format {
    const char *name; /* "md" */
    const char *type; /* of the reply */
};

const struct sla_format *sla_format_find(const char *name); /* NULL: none */
tare_status sla_report_write(const struct sla_format *format, const struct sla *doc, struct buf *out,
                             tare_error *err);

#endif
