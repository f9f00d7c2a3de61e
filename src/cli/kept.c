/* SPDX-License-Identifier: MIT
 * kept.c - from the name of a run in a history or on a server to the run. */
#include "cli/kept.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool kept_is_name(const char *name)
{
    struct stat st;
    if (stat(name, &st) == 0) return false;
    size_t n = strspn(name, "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz");
    bool id = name[n] == 0 && n >= 4 && n <= 26 && name[0] >= '0' && name[0] <= '7';
    return name[0] == '@' || strncmp(name, "baseline:", 9) == 0 || strcmp(name, "latest") == 0 || id;
}

struct newest {
    const char *but;
    char id[ULID_SIZE];
};

static tare_status note_newest(void *ctx, const struct store_run *run, tare_error *err)
{
    struct newest *n = ctx;
    (void)err;
    if (!n->id[0] && (!n->but || strcmp(run->id, n->but) != 0)) snprintf(n->id, sizeof n->id, "%s", run->id);
    return TARE_OK;
}

/* The newest run of the subject, other than the one that was just made. */
static tare_status find_latest(const struct kept_runs *k, char id[ULID_SIZE], tare_error *err)
{
    struct newest n = {.but = k->fresh};
    struct store_filter f = {.subject = k->subject, .limit = 2};
    tare_status s = k->store->ops->list(k->store, &f, note_newest, &n, err);
    if (s < 0) return s;
    if (!n.id[0]) return error_set(err, TARE_INVALID, "%s: holds no earlier run", k->store->where);
    memcpy(id, n.id, ULID_SIZE);
    return TARE_OK;
}

tare_status kept_find(const struct kept_runs *k, const char *name, char id[ULID_SIZE], tare_error *err)
{
    bool baseline = strncmp(name, "baseline:", 9) == 0;
    const char *word = name[0] == '@' ? name + 1 : name;
    if (baseline) word = name + 9;
    tare_error none = TARE_ERROR_INIT;
    if ((baseline || name[0] == '@') && store_name_ok(word)) {
        tare_status s = store_baseline(k->store, word, k->subject, id, baseline ? err : &none);
        if (s == TARE_OK || baseline) return s;
    }
    tare_status s =
        strcmp(word, "latest") == 0 ? find_latest(k, id, err) : store_find(k->store, word, id, err);
    return s < 0 && name[0] == '@' && none.text[0] ? error_set(err, TARE_INVALID, "%s", none.text) : s;
}

tare_status kept_load(const struct kept_runs *k, const char *name, struct run *out, tare_error *err)
{
    char id[ULID_SIZE];
    struct buf text = BUF_INIT;
    if (!k->store)
        return error_set(err, TARE_INVALID, "%s: there is no history to find it in (--history, --server)",
                         name);
    tare_status s = kept_find(k, name, id, err);
    if (s == TARE_OK) s = store_document(k->store, id, &text, err);
    if (s == TARE_OK) s = run_read(out, name, text.data, text.len, err);
    buf_release(&text);
    return s;
}
