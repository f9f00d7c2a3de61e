/* SPDX-License-Identifier: MIT
 * html_run.c - run and comparison documents for the report page: as they are saved, without white space, and with raw
 * samples as plain numbers, because a page has no decompressor. Changes nothing else. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "core/mem.h"
#include "report/html.h"

static tare_status no_memory(tare_error *err)
{
    return error_nomem(err, "the report page");
}

/* Which samples these are: "all", "random", "one in 7 of all". */
static void kept_text(struct buf *b, const struct run_samples *raw, size_t step)
{
    if (step > 1) buf_printf(b, "one in %zu of ", step);
    buf_add_str(b, raw->kept ? raw->kept : "all");
}

static json_t *sample_list(const struct run_samples *raw, size_t step)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < raw->n; i += step) {
        if (json_array_append_new(list, json_integer((json_int_t)raw->ns[i])) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

/* samples_raw, which needs a codec, becomes samples_ns and samples_kept. */
static bool spell_out(json_t *c, const struct run_samples *raw, size_t step)
{
    struct buf kept = BUF_INIT;
    json_object_del(c, "samples_raw");
    if (!raw->known) return true;
    kept_text(&kept, raw, step);
    bool ok = json_object_set_new(c, "samples_ns", sample_list(raw, step)) == 0 &&
              json_object_set_new(c, "samples_kept", json_string(kept.data)) == 0;
    buf_release(&kept);
    return ok;
}

static size_t step_of(const struct html_run *h)
{
    size_t n = 0, most = h->samples_max ? h->samples_max : HTML_SAMPLES_MAX;
    for (size_t i = 0; i < h->run->cases.n; i++) n += h->run->cases.at[i]->samples_raw.n;
    return n <= most ? 1 : (n + most - 1) / most;
}

static tare_status add_compact(struct stream *s, json_t *root)
{
    char *text = json_dumps(root, JSON_COMPACT);
    if (!text) return no_memory(s->err);
    buf_add_str(&s->out, text);
    mem_free_libc(text);
    return stream_poll(s);
}

/* The text of a document, read again. */
static tare_status parse(const struct buf *text, json_t **out, tare_error *err)
{
    json_error_t why;
    errno = 0; /* jansson takes a refused allocation for a syntax error of the text, at some places */
    *out = json_loadb(text->data, text->len, 0, &why);
    if (*out) return TARE_OK;
    if (errno == ENOMEM) return no_memory(err);
    return error_set(err, TARE_FORMAT, "report page: line %d: %s", why.line, why.text);
}

tare_status html_run_write(struct stream *s, void *ctx)
{
    const struct html_run *h = ctx;
    struct buf text = BUF_INIT;
    json_t *root = NULL;
    size_t step = step_of(h);
    tare_status st = run_write(h->run, &text, s->err);
    if (st == TARE_OK) st = parse(&text, &root, s->err);
    buf_release(&text);
    json_t *cases = root ? json_object_get(root, "cases") : NULL;
    for (size_t i = 0; st == TARE_OK && i < h->run->cases.n; i++)
        if (!spell_out(json_array_get(cases, i), &h->run->cases.at[i]->samples_raw, step))
            st = no_memory(s->err);
    if (st == TARE_OK) st = add_compact(s, root);
    json_decref(root);
    return st;
}

tare_status html_comparison_write(struct stream *s, const struct comparison *c)
{
    struct buf text = BUF_INIT;
    json_t *root = NULL;
    tare_status st = comparison_write(c, &text, s->err);
    if (st == TARE_OK) st = parse(&text, &root, s->err);
    buf_release(&text);
    if (st == TARE_OK) st = add_compact(s, root);
    json_decref(root);
    return st;
}
