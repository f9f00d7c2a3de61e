/* SPDX-License-Identifier: MIT
 * prom.h - one sample in the text format that Prometheus scrapes (version 0.0.4). Names come from the metric table:
 * "process.cpu.user" in seconds, a counter, is tare_process_cpu_user_seconds_total. What is unknown is left out. */
#ifndef REPORT_PROM_H
#define REPORT_PROM_H

#include <stdbool.h>

#include "core/buf.h"
#include "trace/samples.h"

enum { PROM_NAME_MAX = 96 };

/* The exposition name of a metric: tare_, its words, its unit, _total for counters. */
void prom_name(enum metric_id m, char out[PROM_NAME_MAX]);

/* All that the sample knows, family by family in the order of the table. A family never holds a whole beside its
 * parts, which a sum would count twice: processors, disks and networks give the parts, processes the whole. */
void prom_write(struct buf *out, const struct series_set *set, const struct sample *s);

struct prom_host {              /* of whom the sample is: labels of each of its lines */
    const char *name, *project; /* NULL: no such label */
    const struct series_set *set;
    const struct sample *now;
};
/* The same of several hosts, each family once. */
void prom_write_hosts(struct buf *out, const struct prom_host *hosts, size_t n);

/* A metric of the program itself. Lines: prom_label() for each label, then prom_value(). */
void prom_head(struct buf *out, const char *name, const char *help, bool counter);
void prom_label(struct buf *out, const char *key,
                const char *value);             /* NULL: nothing; "{" or "," before it */
void prom_value(struct buf *out, double value); /* "}" where there were labels */

#endif
