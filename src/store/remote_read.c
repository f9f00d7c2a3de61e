/* SPDX-License-Identifier: MIT
 * remote_read.c - replies of a server as runs, series and points. A row that lacks what all rows have is told, and
 * nothing is made of it. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/remote.h"

static tare_status bad_row(const char *list, size_t i, const char *why, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "the server's reply is bad: %s[%zu]%s", list, i, why);
}

/* The list of that name in the reply; *whole is to be released. */
static tare_status open_list(const struct remote_page *p, const char *name, json_t **whole, json_t **list,
                             tare_error *err)
{
    json_error_t why;
    *whole = json_loadb(p->text, p->size, JSON_REJECT_DUPLICATES, &why);
    if (!*whole)
        return error_set(err, TARE_FORMAT, "the server's reply is no JSON: byte %d: %s", why.position,
                         why.text);
    *list = json_object_get(*whole, name);
    if (json_is_array(*list)) return TARE_OK;
    json_decref(*whole);
    *whole = NULL;
    return error_set(err, TARE_FORMAT, "the server's reply has no list \"%s\"", name);
}

static const char *text_of(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key)); /* NULL: null, not there, no text */
}

static uint64_t count_of(const json_t *row, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(row, key));
    return v > 0 ? (uint64_t)v : 0;
}

static struct known_f64 number_of(const json_t *row, const char *key)
{
    const json_t *v = json_object_get(row, key);
    return json_is_number(v) ? known_f64(json_number_value(v)) : (struct known_f64){0};
}

static struct known_bool switch_of(const json_t *row, const char *key)
{
    const json_t *v = json_object_get(row, key);
    return (struct known_bool){json_is_boolean(v), json_is_true(v)};
}

/* ---- runs ---- */

/* "a,b" of a list of texts. */
static void join_tags(const json_t *row, struct buf *out)
{
    size_t i;
    const json_t *tag;
    json_array_foreach(json_object_get(row, "tags"), i, tag) if (json_is_string(tag))
        buf_printf(out, "%s%s", out->len ? "," : "", json_string_value(tag));
}

static tare_status read_run(const json_t *row, size_t i, struct store_run *r, tare_error *err)
{
    *r = (struct store_run){
        .id = text_of(row, "id"),
        .kind = text_of(row, "kind"),
        .created = text_of(row, "created"),
        .subject = text_of(row, "subject"),
        .sha256 = text_of(row, "sha256"),
        .runtime = text_of(row, "runtime"),
        .host = text_of(row, "host"),
        .hostname = text_of(row, "hostname"),
        .commit = text_of(row, "commit"),
        .branch = text_of(row, "branch"),
        .cases = count_of(row, "cases"),
        .bytes = count_of(row, "bytes"),
    };
    if (!r->id || !ulid_is_valid(r->id)) return bad_row("runs", i, ".id is no id of a run", err);
    if (!r->kind || !r->created || !r->subject || !r->host)
        return bad_row("runs", i, " lacks its kind, time, subject or host", err);
    r->created_ms = run_unix_ms(r->created);
    return TARE_OK;
}

tare_status remote_runs(struct remote_page *p, store_run_fn *fn, void *ctx, tare_error *err)
{
    json_t *whole, *list, *row;
    struct buf tags = BUF_INIT;
    size_t i;
    tare_status s = open_list(p, "runs", &whole, &list, err);
    if (s != TARE_OK) return s;
    p->rows = json_array_size(list);
    json_array_foreach(list, i, row)
    {
        struct store_run r;
        buf_clear(&tags);
        join_tags(row, &tags);
        s = read_run(row, i, &r, err);
        if (s == TARE_OK) s = buf_status(&tags, err);
        if (tags.len) r.tags = tags.data;
        if (s == TARE_OK) snprintf(p->last, sizeof p->last, "%s", r.id);
        if (s == TARE_OK) s = fn(ctx, &r, err);
        if (s != TARE_OK) break;
    }
    buf_release(&tags);
    json_decref(whole);
    return s;
}

/* ---- series ---- */

tare_status remote_names(struct remote_page *p, store_name_fn *fn, void *ctx, tare_error *err)
{
    json_t *whole, *list, *row;
    size_t i;
    tare_status s = open_list(p, "series", &whole, &list, err);
    if (s != TARE_OK) return s;
    p->rows = json_array_size(list);
    json_array_foreach(list, i, row)
    {
        struct store_series_name n = {
            .id = json_integer_value(json_object_get(row, "id")),
            .subject = text_of(row, "subject"),
            .case_name = text_of(row, "case"),
            .metric = text_of(row, "metric"),
            .anchor = text_of(row, "anchor"),
            .host = text_of(row, "host"),
            .hostname = text_of(row, "hostname"),
            .points = count_of(row, "points"),
        };
        /* Whoever pages goes on from the last one: ids that do not grow would never end. */
        if (n.id <= p->last_series)
            s = bad_row("series", i, ".id is not greater than the one before it", err);
        else if (!n.subject || !n.case_name || !n.metric || !n.anchor || !n.host)
            s = bad_row("series", i, " lacks a part of its name", err);
        else
            s = fn(ctx, &n, err);
        if (s != TARE_OK) break;
        p->last_series = n.id;
    }
    json_decref(whole);
    return s;
}

/* ---- hosts and their latest values ---- */

tare_status remote_hosts(struct remote_page *p, store_host_fn *fn, void *ctx, tare_error *err)
{
    json_t *whole, *list, *row;
    size_t i;
    tare_status s = open_list(p, "hosts", &whole, &list, err);
    if (s != TARE_OK) return s;
    p->rows = json_array_size(list);
    json_array_foreach(list, i, row)
    {
        struct store_host h = {.name = text_of(row, "name"),
                               .project = text_of(row, "project"),
                               .first_ms = (int64_t)count_of(row, "first_heard"),
                               .heard_ms = (int64_t)count_of(row, "last_heard"),
                               .metrics = count_of(row, "metrics")};
        s = h.name && *h.name ? fn(ctx, &h, err) : bad_row("hosts", i, " has no name", err);
        if (s != TARE_OK) break;
    }
    json_decref(whole);
    return s;
}

tare_status remote_latest(struct remote_page *p, int64_t *now_ms, store_latest_fn *fn, void *ctx,
                          tare_error *err)
{
    json_t *whole, *list, *row;
    size_t i;
    tare_status s = open_list(p, "metrics", &whole, &list, err);
    if (s != TARE_OK) return s;
    *now_ms = (int64_t)count_of(whole, "now");
    p->rows = json_array_size(list);
    json_array_foreach(list, i, row)
    {
        struct known_f64 value = number_of(row, "value");
        struct store_latest v = {text_of(row, "name"), text_of(row, "label"), (int64_t)count_of(row, "at"),
                                 value.v};
        if (!v.name || !v.label)
            s = bad_row("metrics", i, " lacks a part of its name", err);
        else if (value.known && v.at_ms)
            s = fn(ctx, &v, err);
        if (s != TARE_OK) break;
    }
    json_decref(whole);
    return s;
}

/* ---- files ---- */

tare_status remote_uploads(struct remote_page *p, store_upload_fn *fn, void *ctx, tare_error *err)
{
    json_t *whole, *list, *row;
    size_t i;
    tare_status s = open_list(p, "uploads", &whole, &list, err);
    if (s != TARE_OK) return s;
    p->rows = json_array_size(list);
    json_array_foreach(list, i, row)
    {
        struct store_upload u = {.id = text_of(row, "id"),
                                 .run = text_of(row, "run"),
                                 .name = text_of(row, "name"),
                                 .bytes = count_of(row, "bytes"),
                                 .pieces = count_of(row, "pieces")};
        if (!u.id || !store_hash_ok(u.id) || !u.name || !store_file_name_ok(u.name))
            s = bad_row("uploads", i, " has no id, or a bad name", err);
        else if (!u.pieces || u.pieces > STORE_PIECES_MAX)
            s = bad_row("uploads", i, ".pieces is out of range", err);
        else
            s = fn(ctx, &u, err);
        if (s != TARE_OK) break;
    }
    json_decref(whole);
    return s;
}

/* ---- points ---- */

static void put_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

tare_status remote_points(struct remote_page *p, struct store_points *out, tare_error *err)
{
    json_t *whole, *list, *row;
    size_t i;
    tare_status s = open_list(p, "points", &whole, &list, err);
    if (s != TARE_OK) return s;
    p->rows = json_array_size(list);
    json_array_foreach(list, i, row)
    {
        const char *id = text_of(row, "run");
        struct known_f64 value = number_of(row, "value");
        const json_t *ms = json_object_get(row, "created_ms"), *samples = json_object_get(row, "samples");
        if (!id || !ulid_is_valid(id) || !value.known || !isfinite(value.v) || !json_is_integer(ms)) {
            s = bad_row("points", i, " lacks its run, time or value", err);
            break;
        }
        struct store_point at = {
            .created_ms = json_integer_value(ms),
            .value = value.v,
            .lo = number_of(row, "lo"),
            .hi = number_of(row, "hi"),
            .samples = {json_is_integer(samples), count_of(row, "samples")},
            .dirty = switch_of(row, "dirty"),
        };
        put_text(at.run, sizeof at.run, id);
        put_text(at.commit, sizeof at.commit, text_of(row, "commit"));
        put_text(at.branch, sizeof at.branch, text_of(row, "branch"));
        if ((s = vec_push(&out->at, at, err)) != TARE_OK) break;
    }
    json_decref(whole);
    return s;
}

void remote_detail(const struct remote_page *p, char *out, size_t size)
{
    json_t *whole = json_loadb(p->text, p->size, JSON_REJECT_DUPLICATES, NULL);
    put_text(out, size, text_of(whole, "detail"));
    json_decref(whole);
}
