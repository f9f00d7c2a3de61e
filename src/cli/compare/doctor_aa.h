/* SPDX-License-Identifier: MIT
 * doctor_aa.h - `tare doctor --aa`: this machine compares a piece of work with itself, again and again, with the
 * engine of `tare compare --ab`. What it says is kept in the user's cache for 30 days. */
#ifndef CLI_DOCTOR_AA_H
#define CLI_DOCTOR_AA_H

#include "analyze/compare/selftest.h"
#include "cli/cli.h"
#include "report/answer.h"

/* Takes about `budget_ns`; less when interrupted. */
tare_status doctor_aa_measure(struct cli *cli, uint64_t budget_ns, struct selftest *out);

/* False: none is kept for this host, or it is too old. */
bool doctor_aa_recall(const char *fingerprint, struct selftest *out);
void doctor_aa_keep(const char *fingerprint, const struct selftest *s);

void doctor_aa_say(struct answer *a, const struct selftest *s);
/* What it means, for a person: one sentence for each thing to know. */
void doctor_aa_meaning(const struct selftest *s, void (*tell)(struct answer *a, const char *text),
                       struct answer *a);

#endif
