/* SPDX-License-Identifier: MIT
 * browser.h - a page shown in the user's browser. */
#ifndef CLI_BROWSER_H
#define CLI_BROWSER_H

#include "cli/cli.h"

/* By $BROWSER, else by xdg-open, which goes on when tare has ended. Where neither can, the user is told what to open:
 * no failure, for the page is there. */
void browser_open(struct cli *cli, const char *page);

#endif
