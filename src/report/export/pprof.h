/* SPDX-License-Identifier: MIT
 * pprof.h - profile.proto, as pprof reads it, piece by piece: types of values first, then frames and samples in any
 * order, then the rest. Not compressed, which pprof reads too. */
#ifndef REPORT_EXPORT_PPROF_H
#define REPORT_EXPORT_PPROF_H

#include "core/map.h"
#include "report/sink.h"

struct pprof {
    struct stream *s;
    struct map_str strings; /* in the order of their numbers, from 1 */
    struct buf inner, values, ids;
    uint64_t frames;    /* so far: the number of the last */
    tare_status status; /* sticky */
};
void pprof_begin(struct pprof *p, struct stream *s);
void pprof_type(struct pprof *p, const char *type, const char *unit);
void pprof_show_first(struct pprof *p, const char *type);
struct pprof_frame {
    const char *name, *file; /* file NULL: unknown */
    uint64_t line, first;    /* line in it, and of the function; 0: unknown */
};
void pprof_frame(struct pprof *p, const struct pprof_frame *f);

/* A sample: its frames (numbers from 1 in the order in which they were told), innermost first; then its values, one
 * for each type; then perhaps a label. */
void pprof_at(struct pprof *p, uint64_t frame);
void pprof_value(struct pprof *p, uint64_t value);
void pprof_label(struct pprof *p, const char *key, uint64_t number);
tare_status pprof_sample(struct pprof *p);

tare_status pprof_end(struct pprof *p, uint64_t start_unix_ns, uint64_t duration_ns);

#endif
