/* SPDX-License-Identifier: MIT
 * bodies.c - see bodies.h. */
#include "load/bodies.h"

#include <string.h>

#include "core/str.h"
#include "load/address.h"

/* What a file of this name holds. */
static const char *type_of(const char *path)
{
    static const struct {
        const char *end, *type;
    } types[] = {{".json", "application/json"}, {".jsonl", "application/json"}, {".txt", "text/plain"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_ends_with(path, types[i].end)) return types[i].type;
    return "application/octet-stream";
}

/* ---- filled ---- */

static const struct line *line_of(const struct bodies *b, uint64_t number)
{
    if (!b->lines.all.n) return NULL;
    if (number >= LOAD_WARM_NUMBER) number = number - LOAD_WARM_NUMBER + b->lines.all.n / 2;
    return lines_at(&b->lines, number);
}

static tare_status fill_template(const struct bodies *b, const struct template *t, uint64_t number,
                                 struct buf *out, tare_error *err)
{
    const struct line *line = line_of(b, number);
    struct template_facts f = {.id = number, .seed = b->seed};
    if (line) {
        f.line = line->text;
        f.n_line = line->n;
        f.line_number = line->number;
    }
    return template_fill(t, &f, out, err);
}

static tare_status fill(void *ctx, uint64_t number, struct load_request *out, tare_error *err)
{
    const struct bodies *b = ctx;
    const struct line *line = line_of(b, number);
    tare_status s = b->target ? fill_template(b, b->target, number, &out->target, err) : TARE_OK;
    if (s < 0) return s;
    if (b->made) return fill_template(b, b->made, number, &out->body, err);
    if (line)
        buf_add(&out->body, line->text, line->n);
    else
        buf_add(&out->body, b->whole.data, b->whole.size);
    return buf_status(&out->body, err);
}

struct load_source bodies_source(struct bodies *b)
{
    bool asks = b->target || b->made || b->lines.all.n || b->whole.data;
    bool same = !b->lines.all.n && (!b->made || template_is_fixed(b->made)) && !b->target;
    bool in_turn = b->lines.all.n && !b->made && !b->target;
    return (struct load_source){.fill = asks ? fill : NULL,
                                .ctx = b,
                                .content_type = b->content_type,
                                .same = same,
                                .period = in_turn ? b->lines.all.n : same};
}

/* ---- opened ---- */

static tare_status read_template(struct bodies *b, const char *path, tare_error *err)
{
    struct file_view file = FILE_VIEW_INIT;
    tare_status s = file_map(path, &file, err);
    struct buf text = {.data = (char *)(uintptr_t)file.data, .len = file.size}; /* template_new() copies it */
    if (s == TARE_OK) s = template_new(&b->made, path, text, err);
    file_unmap(&file);
    return s;
}

/* A path by chance has digits in it, and numbers; lines have blanks, which no path has. */
static tare_status read_target(struct bodies *b, const char *url, tare_error *err)
{
    struct load_address address;
    if (!strstr(url, "{{")) return TARE_OK;
    tare_status s = load_address_read(&address, url, err);
    struct buf text = {.data = address.target, .len = strlen(address.target)};
    if (s == TARE_OK) s = template_new(&b->target, url, text, err);
    if (s == TARE_OK && (template_needs_lines(b->target) || strstr(address.target, "{{random:words")))
        s = error_set(err, TARE_INVALID,
                      "%s: only {{id}}, {{random:1..9}} and {{random:hex:8}} fit an address", url);
    return s;
}

/* Each line is filled in once before any is sent: a mistake in the last one is better known now. */
static tare_status check_lines(struct bodies *b, tare_error *err)
{
    struct buf filled = BUF_INIT;
    tare_status s = TARE_OK;
    size_t n = b->made ? b->lines.all.n : 0;
    for (size_t i = 0; s == TARE_OK && i < n; i++) {
        buf_clear(&filled);
        s = fill_template(b, b->made, i, &filled, err);
    }
    buf_release(&filled);
    return s;
}

static tare_status check_together(const struct bodies *b, const struct bodies_files *f, tare_error *err)
{
    bool wants = b->made && template_needs_lines(b->made);
    if (wants && !f->lines)
        return error_set(err, TARE_INVALID, "%s has {{line}}, and there is no file of lines", f->template);
    if (b->made && f->lines && !wants)
        return error_set(err, TARE_INVALID, "%s: no {{line}} or {{line:NAME}} takes the lines of %s",
                         f->template, f->lines);
    return TARE_OK;
}

tare_status bodies_open(struct bodies *b, const struct bodies_files *f, tare_error *err)
{
    const char *named = f->template ? f->template : f->lines;
    tare_status s = f->whole ? file_map(f->whole, &b->whole, err) : TARE_OK;
    if (f->whole) named = f->whole;
    b->seed = f->seed;
    b->content_type = named ? type_of(named) : NULL;
    if (s == TARE_OK && f->lines) s = lines_open(&b->lines, f->lines, err);
    if (s == TARE_OK && f->template) s = read_template(b, f->template, err);
    if (s == TARE_OK && f->url) s = read_target(b, f->url, err);
    if (s == TARE_OK) s = check_together(b, f, err);
    return s == TARE_OK ? check_lines(b, err) : s;
}

void bodies_close(struct bodies *b)
{
    file_unmap(&b->whole);
    lines_close(&b->lines);
    template_free(b->made);
    template_free(b->target);
    b->made = b->target = NULL;
}
