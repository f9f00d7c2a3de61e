/* SPDX-License-Identifier: MIT
 * app.h - the pages of the dashboard, as `make` built them from web/, from inside the binary. A build without node has
 * none. */
#ifndef SERVER_APP_H
#define SERVER_APP_H

#include <stdbool.h>

bool app_is_built(void);

#endif
