/* SPDX-License-Identifier: MIT
 * fuzz_remote.c - any bytes as what a server answers: runs, series, points, problems. What comes out of it is whole:
 * ids are ids, names are there, values are numbers; a list can be gone on with. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/remote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static tare_status see_run(void *ctx, const struct store_run *r, tare_error *err)
{
    (void)err;
    must(ulid_is_valid(r->id) && r->kind && r->created && r->subject && r->host);
    must(!r->tags || *r->tags);
    ++*(size_t *)ctx;
    return TARE_OK;
}

static tare_status see_name(void *ctx, const struct store_series_name *n, tare_error *err)
{
    (void)err;
    must(n->id > 0 && n->subject && n->case_name && n->metric && n->anchor && n->host);
    ++*(size_t *)ctx;
    return TARE_OK;
}

static tare_status see_host(void *ctx, const struct store_host *h, tare_error *err)
{
    (void)err;
    must(h->name[0] && h->heard_ms >= 0);
    ++*(size_t *)ctx;
    return TARE_OK;
}

static tare_status see_latest(void *ctx, const struct store_latest *v, tare_error *err)
{
    (void)err;
    must(v->name && v->label && v->at_ms > 0 && isfinite(v->value));
    ++*(size_t *)ctx;
    return TARE_OK;
}

static tare_status see_upload(void *ctx, const struct store_upload *u, tare_error *err)
{
    (void)err;
    must(store_hash_ok(u->id) && store_file_name_ok(u->name) && u->pieces > 0 &&
         u->pieces <= STORE_PIECES_MAX);
    ++*(size_t *)ctx;
    return TARE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct remote_page p = {.text = (const char *)data, .size = size};
    struct store_points points = {VEC_INIT};
    char detail[40];
    size_t n = 0;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = remote_runs(&p, see_run, &n, &err);
    must(s == TARE_OK ? n == p.rows && (!n || ulid_is_valid(p.last)) : err.text[0] != 0);
    n = 0;
    s = remote_names(&p, see_name, &n, &err);
    must(s != TARE_OK || (n == p.rows && (!n || p.last_series > 0)));
    s = remote_points(&p, &points, &err);
    must(s != TARE_OK || points.at.n == p.rows);
    for (size_t i = 0; i < points.at.n; i++)
        must(isfinite(points.at.items[i].value) && points.at.items[i].run[0]);
    vec_release(&points.at);
    int64_t now_ms = 0;
    n = 0;
    s = remote_hosts(&p, see_host, &n, &err);
    must(s != TARE_OK || n == p.rows);
    n = 0;
    s = remote_latest(&p, &now_ms, see_latest, &n, &err);
    must(s != TARE_OK || n <= p.rows);
    n = 0;
    s = remote_uploads(&p, see_upload, &n, &err);
    must(s != TARE_OK || n == p.rows);
    remote_detail(&p, detail, sizeof detail);
    must(strlen(detail) < sizeof detail);
    return 0;
}
