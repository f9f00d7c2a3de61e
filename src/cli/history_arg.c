/* SPDX-License-Identifier: MIT
 * history_arg.c - see history_arg.h. */
#include "cli/history_arg.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/unit.h"

tare_status history_path(const struct history_args *a, struct buf *out, tare_error *err)
{
    if (a->file)
        buf_add_str(out, a->file);
    else
        buf_printf(out, "%s/history.db", a->output_dir);
    return buf_status(out, err);
}

static tare_status open_store(const struct history_args *a, bool create, struct store **out, tare_error *err)
{
    struct store_options o = {.create = create};
    struct buf path = BUF_INIT;
    tare_status s = history_path(a, &path, err);
    if (s == TARE_OK) s = store_open(out, path.data, &o, err);
    buf_release(&path);
    return s;
}

void history_keep(struct cli *cli, const struct history_args *a, const struct run *run)
{
    tare_error err = TARE_ERROR_INIT;
    struct store *store = NULL;
    bool added = false;
    if (a->none) return;
    tare_status s = open_store(a, true, &store, &err);
    if (s == TARE_OK) s = store_add_run(store, run, NULL, &added, &err);
    store_close(store);
    if (s != TARE_OK) cli_warn(cli, "this run is not in the history: %s", err.text);
}

int history_open(struct cli *cli, const struct history_args *a, bool create, struct store **out)
{
    return open_store(a, create, out, &cli->error) == TARE_OK ? 0 : cli_fail(cli);
}

tare_status history_parse_since(void *ms, const char *text, tare_error *err)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
    struct duration age;
    int64_t *out = ms;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm t = {.tm_mday = 1};
        const char *rest = strptime(text, forms[i], &t);
        if (!rest || (*rest && strcmp(rest, "Z") != 0)) continue;
        *out = (int64_t)timegm(&t) * 1000;
        return TARE_OK;
    }
    if (unit_parse_duration(text, &age, NULL) != TARE_OK || age.ns < 0)
        return error_set(err, TARE_INVALID, "'%.40s' is neither a date (2026-11-01, UTC) nor an age (30d)",
                         text);
    *out = (int64_t)(clock_unix_ns() / 1000000) - age.ns / 1000000;
    return TARE_OK;
}
