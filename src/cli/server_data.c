/* SPDX-License-Identifier: MIT
 * server_data.c - opening the store of a server; times as its lists show them. */
#include "cli/server_data.h"

#include "core/fmt.h"

struct store *cli_server_store(struct cli *cli, const struct server_options *where, bool make, int *rc)
{
    struct buf path = BUF_INIT;
    struct store *store = NULL;
    tare_status s = server_store(where, make, &path, &cli->error);
    if (s == TARE_OK) s = store_open(&store, path.data, &(struct store_options){.create = make}, &cli->error);
    buf_release(&path);
    if (s == TARE_OK) return store;
    *rc = cli_fail_input(cli);
    return NULL;
}

void cli_answer_time(struct answer *a, const char *key, int64_t unix_ms)
{
    struct buf text = BUF_INIT;
    if (unix_ms > 0) fmt_date(&text, (uint64_t)unix_ms * 1000000, true);
    if (text.len > 16)
        answer_str(a, key, text.data, "%.10s %.5s", text.data, text.data + 11);
    else
        answer_null(a, key, "-");
    buf_release(&text);
}
