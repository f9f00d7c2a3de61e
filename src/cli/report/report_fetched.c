/* SPDX-License-Identifier: MIT
 * report_fetched.c - traces of a run that a server keeps, in a folder of their own while they are looked at. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/push.h"
#include "cli/report/report_fetched.h"
#include "core/mem.h"

struct listing {
    struct store *from;
    struct fetched *to;
};

static tare_status fetch_one(void *ctx, const struct store_upload *u, tare_error *err)
{
    struct fetched *f = ((struct listing *)ctx)->to;
    if (f->n == FETCHED_MAX)
        return error_set(err, TARE_INVALID, "the run has more than %d traces", FETCHED_MAX);
    size_t n = strlen(f->folder) + strlen(u->name) + 2;
    char *path = arena_new(&f->texts, n, 1);
    struct store_upload *kept = arena_new(&f->texts, 1, sizeof *kept);
    if (!path || !kept) return error_nomem(err, "traces");
    snprintf(path, n, "%s/%s", f->folder, u->name);
    *kept = *u;
    kept->id = arena_str(&f->texts, u->id);
    kept->name = arena_str(&f->texts, u->name);
    f->uploads[f->n] = kept;
    f->paths[f->n++] = path;
    return f->texts.failed ? error_nomem(err, "traces") : TARE_OK;
}

static tare_status fetch_all(struct fetched *f, struct store *from, const char *name, tare_error *err)
{
    char id[ULID_SIZE];
    struct listing l = {from, f};
    struct store_upload_query q = {.run = id};
    tare_status s = kept_find(&(struct kept_runs){.store = from}, name, id, err);
    if (s == TARE_OK) s = from->ops->files.uploads(from, &q, fetch_one, &l, err);
    if (s == TARE_OK && f->n == 0)
        s = error_set(err, TARE_INVALID, "%s: run %s has no trace there", from->where, id);
    for (size_t i = 0; i < f->n && s == TARE_OK; i++) s = push_fetch(from, f->uploads[i], f->paths[i], err);
    return s;
}

tare_status fetched_open(struct fetched *f, const struct history_args *where, const char *name,
                         tare_error *err)
{
    const char *tmp = secure_getenv("TMPDIR");
    struct store *from = NULL;
    *f = (struct fetched){.texts = ARENA_INIT};
    snprintf(f->folder, sizeof f->folder, "%s/tare-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    tare_status s = history_store(where, false, &from, err);
    if (s == TARE_OK && !from->ops->files.uploads)
        s = error_set(err, TARE_UNSUPPORTED, "%s: keeps no traces", from->where);
    if (s == TARE_OK && !mkdtemp(f->folder)) s = error_errno(err, "%s", f->folder);
    if (s != TARE_OK) f->folder[0] = 0;
    if (s == TARE_OK) s = fetch_all(f, from, name, err);
    store_close(from);
    return s;
}

void fetched_close(struct fetched *f)
{
    for (size_t i = 0; i < f->n; i++) unlink(f->paths[i]);
    if (f->folder[0]) rmdir(f->folder);
    arena_release(&f->texts);
}
