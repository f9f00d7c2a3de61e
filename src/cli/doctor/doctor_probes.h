/* SPDX-License-Identifier: MIT
 * doctor_probes.h - the part of `tare doctor` that tries each probe: what it sees here, what not and why, what it
 * costs. */
#ifndef CLI_DOCTOR_PROBES_H
#define CLI_DOCTOR_PROBES_H

#include "cli/term.h"
#include "probe/probe.h"
#include "report/answer.h"

struct doctor_probe {
    const struct probe_ops *ops;
    struct probes opened; /* this one alone */
    bool sees;            /* else `why` says why it sees nothing */
    tare_error why;
    double open_ns, ns, ns_max; /* to open it; of a sample: mean and most */
};

struct doctor_probes {
    VEC(struct doctor_probe) items;
};

/* Opens each probe on this very process, and samples it a few times. Takes about 0.2 s. */
tare_status doctor_probes_try(struct doctor_probes *out, tare_error *err);
void doctor_probes_release(struct doctor_probes *d);

void doctor_probes_say(struct answer *a, const struct term *t, const struct doctor_probes *d);

/* A row of a list of what works here: the mark, the name, what there is to say; and a note below it. */
enum doctor_mark { DOCTOR_OK, DOCTOR_PARTIAL, DOCTOR_NO }; /* as the answers of an ability */
void doctor_row_text(struct buf *out, const struct term *t, enum doctor_mark mark, const char *name,
                     const char *text);
void doctor_note_text(struct buf *out, const struct term *t, const char *lead, const char *text);

#endif
