/* SPDX-License-Identifier: MIT
 * bodies.c - see bodies.h. */
#include "load/bodies.h"

#include <string.h>

static tare_status find_lines(struct bodies *b, const char *path, tare_error *err)
{
    const char *text = (const char *)b->file.data;
    tare_status s = TARE_OK;
    for (size_t at = 0; s == TARE_OK && at < b->file.size;) {
        const char *end = memchr(text + at, '\n', b->file.size - at);
        size_t n = end ? (size_t)(end - text) - at : b->file.size - at, next = at + n + 1;
        if (n && text[at + n - 1] == '\r') n--;
        if (n) s = vec_push(&b->lines, ((struct body_line){at, n}), err);
        at = next;
    }
    if (s == TARE_OK && !b->lines.n) s = error_set(err, TARE_INVALID, "%s: no line in it", path);
    return s;
}

tare_status bodies_open(struct bodies *b, const char *path, bool by_line, tare_error *err)
{
    tare_status s = file_map(path, &b->file, err);
    return s == TARE_OK && by_line ? find_lines(b, path, err) : s;
}

void bodies_close(struct bodies *b)
{
    file_unmap(&b->file);
    vec_release(&b->lines);
}

static tare_status fill(void *ctx, uint64_t number, struct load_request *out, tare_error *err)
{
    const struct bodies *b = ctx;
    struct body_line all = {0, b->file.size};
    size_t n = b->lines.n;
    if (number >= LOAD_WARM_NUMBER) number = number - LOAD_WARM_NUMBER + n / 2;
    const struct body_line *line = n ? &b->lines.items[number % n] : &all;
    buf_add(&out->body, (const char *)b->file.data + line->from, line->n);
    return buf_status(&out->body, err);
}

/* What a file of this name holds. */
static const char *type_of(const char *path)
{
    static const struct {
        const char *end, *type;
    } types[] = {{".json", "application/json"}, {".jsonl", "application/json"}, {".txt", "text/plain"}};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t m = strlen(types[i].end);
        if (n > m && strcmp(path + n - m, types[i].end) == 0) return types[i].type;
    }
    return "application/octet-stream";
}

struct load_source bodies_source(struct bodies *b, const char *path)
{
    return (struct load_source){.fill = fill, .ctx = b, .content_type = type_of(path), .same = !b->lines.n};
}
