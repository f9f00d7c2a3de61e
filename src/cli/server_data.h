/* SPDX-License-Identifier: MIT
 * server_data.h - what the commands that work on a server's data share. */
#ifndef CLI_SERVER_DATA_H
#define CLI_SERVER_DATA_H

#include "cli/cli.h"
#include "report/answer.h"
#include "server/server.h"

/* By `data` and `db`. NULL: the user was told, and *rc is the exit code. `make`: made where it is missing. */
struct store *cli_server_store(struct cli *cli, const struct server_options *where, bool make, int *rc);
/* A time of the store: RFC 3339 in JSON, day and minute in a table; 0 is null and "-". */
void cli_answer_time(struct answer *a, const char *key, int64_t unix_ms);

#endif
