/* SPDX-License-Identifier: MIT
 * report_out.h - where reports of run documents go: a file, written whole or not at all, or the command's answer. */
#ifndef CLI_REPORT_OUT_H
#define CLI_REPORT_OUT_H

#include "cli/cli.h"
#include "report/run/run_report.h"

typedef tare_status report_out_fn(struct stream *, const struct run_report *);

bool report_out_is_answer(const char *path);                 /* "-" */
struct report_style report_out_style(const struct cli *cli); /* what the answer's terminal may be told */
tare_status report_out_write(struct cli *cli, const char *path, const struct run_report *r,
                             report_out_fn *format); /* path "-": the answer */

#endif
