/* SPDX-License-Identifier: MIT
 * report_args.h - the parts of `tare report`, one file each: cmd_report.c (the command line, text and formats),
 * report_html.c (the page). */
#ifndef CLI_REPORT_ARGS_H
#define CLI_REPORT_ARGS_H

#include "cli/cli.h"
#include "cli/html_out.h"

/* Files of any kind into one page. The exit code. */
int report_html(struct cli *cli, int argc, char **argv, const char *path, bool gross);

#endif
