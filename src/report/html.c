/* SPDX-License-Identifier: MIT
 * html.c - see html.h. The viewer is inflated, and documents are written through a sink that escapes the few
 * characters by which text inside a script element could end it or break its line. */
#include "report/html.h"

#include <string.h>
#include <zlib.h>

#include "core/json.h"
#include "core/mem.h"

#define VIEWER_MAX ((size_t)16 << 20)
#define PLACE_BEFORE "<script id=\"tare-data\" type=\"application/json\">"
#define PLACE_EMPTY "null"

extern const unsigned char page_embed_begin[],
    page_embed_end[]; /* page_embed.c: the viewer as gzip bytes, or none */

static size_t viewer_bytes(void)
{
    return (size_t)(page_embed_end - page_embed_begin);
}

bool html_has_viewer(void)
{
    return viewer_bytes() > 0;
}

/* ---- the viewer ---- */

static tare_status inflate_all(z_stream *z, struct buf *out, tare_error *err)
{
    int rc = Z_OK;
    while (rc == Z_OK) {
        if (out->len > VIEWER_MAX) return error_set(err, TARE_FORMAT, "the viewer is too large");
        if (buf_reserve(out, STREAM_PIECE) < 0) return buf_status(out, err);
        z->next_out = (unsigned char *)out->data + out->len;
        z->avail_out = (unsigned)STREAM_PIECE;
        rc = inflate(z, Z_NO_FLUSH);
        out->len += STREAM_PIECE - z->avail_out;
    }
    out->data[out->len] = 0;
    if (rc == Z_MEM_ERROR) return error_nomem(err, "the report page");
    return rc == Z_STREAM_END
               ? TARE_OK
               : error_set(err, TARE_FORMAT, "the viewer in this build is damaged (zlib %d)", rc);
}

static tare_status inflate_viewer(struct buf *out, tare_error *err)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)page_embed_begin,
                  .avail_in = (unsigned)viewer_bytes()};
    if (!html_has_viewer()) return error_set(err, TARE_UNSUPPORTED, "%s", HTML_MISSING);
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) return error_nomem(err, "the report page");
    tare_status s = inflate_all(&z, out, err);
    inflateEnd(&z);
    return s;
}

/* Where the word that waits for the data is; NULL: nowhere. */
static char *find_place(const struct buf *viewer)
{
    char *at = strstr(viewer->data, PLACE_BEFORE);
    if (!at) return NULL;
    at += strlen(PLACE_BEFORE);
    return strncmp(at, PLACE_EMPTY, strlen(PLACE_EMPTY)) == 0 ? at : NULL;
}

/* ---- escaping ---- */

struct escape {
    struct stream *to;
    unsigned seen; /* bytes of U+2028 or U+2029 held back: E2 80 */
};

static void release_held(struct escape *e)
{
    buf_add(&e->to->out, "\xe2\x80", e->seen);
    e->seen = 0;
}

static void escape_byte(struct escape *e, unsigned char c)
{
    if (e->seen == 2 && (c == 0xa8 || c == 0xa9)) {
        buf_add_str(&e->to->out, c == 0xa8 ? "\\u2028" : "\\u2029");
        e->seen = 0;
    } else if (e->seen == 1 && c == 0x80) {
        e->seen = 2;
    } else {
        release_held(e);
        if (c == 0xe2)
            e->seen = 1;
        else if (c == '<')
            buf_add_str(&e->to->out, "\\u003c");
        else
            buf_add_char(&e->to->out, (char)c);
    }
}

/* Runs of bytes that need no escape are handed on whole. */
static tare_status escape_write(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct escape *e = ctx;
    const unsigned char *p = bytes, *end = p + n;
    (void)err;
    while (p < end) {
        const unsigned char *from = p;
        while (e->seen == 0 && p < end && *p != '<' && *p != 0xe2) p++;
        buf_add(&e->to->out, from, (size_t)(p - from));
        if (p < end) escape_byte(e, *p++);
    }
    return stream_poll(e->to);
}

/* ---- the data ---- */

static void put_head(struct json *j, const struct html_page *page, const struct run *stamp)
{
    json_object_begin(j);
    json_kv_string(j, "schema", HTML_SCHEMA);
    json_kv_string(j, "title", page->title);
    json_kv_string(j, "created", stamp->created);
    json_key(j, "tool");
    json_object_begin(j);
    json_kv_string(j, "version", stamp->tool.version);
    json_kv_string(j, "commit", stamp->tool.commit);
    json_object_end(j);
    json_key(j, "items");
    json_array_begin(j);
}

/* {"kind":..,"name":..,"document": what the item itself writes }. */
static tare_status put_item(struct stream *s, const struct html_item *item, bool first)
{
    struct buf name = BUF_INIT;
    struct json j;
    json_init(&j, &name, JSON_STYLE_COMPACT);
    json_put_string(&j, item->name);
    tare_status st = json_finish(&j, s->err);
    if (st == TARE_OK)
        buf_printf(&s->out, "%s\n{\"kind\":\"%s\",\"name\":%s,\"document\":", first ? "" : ",", item->kind,
                   name.data);
    buf_release(&name);
    if (st == TARE_OK) st = item->write(s, item->ctx);
    buf_add_char(&s->out, '}');
    return st == TARE_OK ? stream_poll(s) : st;
}

tare_status html_write_data(struct stream *s, const struct html_page *page)
{
    struct run stamp; /* who writes, and when */
    struct json j;
    tare_status st = run_init(&stamp, "report", s->err);
    if (st < 0) return st;
    json_init(&j, &s->out, JSON_STYLE_COMPACT);
    put_head(&j, page, &stamp);
    run_release(&stamp);
    for (size_t i = 0; i < page->n && st == TARE_OK; i++) st = put_item(s, &page->items[i], i == 0);
    buf_add_str(&s->out, "]}");
    return st;
}

static tare_status put_escaped(struct stream *s, const struct html_page *page)
{
    struct escape e = {.to = s};
    struct stream inner;
    stream_init(&inner, (struct sink){escape_write, &e}, s->err);
    tare_status st = html_write_data(&inner, page);
    if (st < 0) inner.status = st;
    tare_status ended = stream_finish(&inner);
    release_held(&e);
    return st < 0 ? st : ended;
}

/* The data goes into the viewer at the one place that waits for it, escaped, so that no text of a run can end the
 * script that it stands in. */
tare_status html_write(struct stream *s, const struct html_page *page)
{
    struct buf viewer = BUF_INIT;
    tare_status st = inflate_viewer(&viewer, s->err);
    char *place = st == TARE_OK ? find_place(&viewer) : NULL;
    if (st == TARE_OK && !place)
        st = error_set(s->err, TARE_FORMAT, "the viewer in this build has no place for data");
    if (st == TARE_OK) {
        buf_add(&s->out, viewer.data, (size_t)(place - viewer.data));
        st = put_escaped(s, page);
    }
    if (st == TARE_OK) {
        const char *rest = place + strlen(PLACE_EMPTY);
        buf_add(&s->out, rest, viewer.len - (size_t)(rest - viewer.data));
        st = stream_poll(s);
    }
    buf_release(&viewer);
    return stream_end(s, st);
}

/* ---- documents ---- */

tare_status html_run_write(struct stream *s, const void *ctx)
{
    const struct html_run *h = ctx;
    size_t most = h->samples_max ? h->samples_max : HTML_SAMPLES_MAX;
    return stream_end(s, run_write_page(h->run, most, &s->out, s->err));
}

tare_status html_comparison_write(struct stream *s, const void *ctx)
{
    return stream_end(s, comparison_write_page(ctx, &s->out, s->err));
}
