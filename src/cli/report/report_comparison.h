/* SPDX-License-Identifier: MIT
 * report_comparison.h - a comparison that `tare compare` kept, shown again. */
#ifndef CLI_REPORT_COMPARISON_H
#define CLI_REPORT_COMPARISON_H

#include "cli/cli.h"

/* As a page `html`, or else in a format of comparison_formats to `output` (NULL: stdout). The exit code. */
int report_comparison(struct cli *cli, const char *path, const char *html, const char *output,
                      const char *format);

#endif
