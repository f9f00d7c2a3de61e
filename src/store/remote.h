/* SPDX-License-Identifier: MIT
 * remote.h - what a server answers, as a backend reads it. Private to src/store, and to its fuzzer. */
#ifndef STORE_REMOTE_H
#define STORE_REMOTE_H

#include "store/store.h"

/* Lists of a server: the text of a reply. Each calls fn for every row and tells how many there were. */
struct remote_page {
    const char *text;
    size_t size;
    size_t rows;          /* out */
    char last[ULID_SIZE]; /* out: the id of the last run */
    int64_t last_series;  /* out: the id of the last series */
};
tare_status remote_runs(struct remote_page *p, store_run_fn *fn, void *ctx, tare_error *err);
tare_status remote_names(struct remote_page *p, store_name_fn *fn, void *ctx, tare_error *err);
tare_status remote_points(struct remote_page *p, struct store_points *out, tare_error *err);
tare_status remote_hosts(struct remote_page *p, store_host_fn *fn, void *ctx, tare_error *err);
/* Series without a value are left out; *now_ms by the server's clock. */
tare_status remote_latest(struct remote_page *p, int64_t *now_ms, store_latest_fn *fn, void *ctx,
                          tare_error *err);
/* Files of a run; ids are hashes, names may be names of files. */
tare_status remote_uploads(struct remote_page *p, store_upload_fn *fn, void *ctx, tare_error *err);
/* What problem details say, cut to fit; "" where the text is none. */
void remote_detail(const struct remote_page *p, char *out, size_t size);

#endif
