/* SPDX-License-Identifier: MIT
 * sse.c - see sse.h. A line that lies whole in the bytes given is not copied. */
#include "load/sse.h"

#include <string.h>

void sse_release(struct sse *s)
{
    buf_release(&s->line);
    buf_release(&s->data);
}

void sse_reset(struct sse *s)
{
    buf_clear(&s->line);
    buf_clear(&s->data);
    s->name[0] = 0;
    s->begun = s->after_cr = s->any_data = s->cut = false;
    s->comments = 0;
}

static void tell(struct sse *s, const struct sse_sink *to)
{
    if (s->any_data || s->cut) {
        struct sse_event e = {s->data.data, s->data.len, s->name, s->cut || s->data.failed};
        to->event(to->ctx, &e);
    }
    buf_clear(&s->data);
    s->name[0] = 0;
    s->any_data = s->cut = false;
}

/* As far as there is room. */
static void add(struct sse *s, struct buf *to, const char *bytes, size_t n)
{
    size_t room = to->len < SSE_EVENT_MOST ? SSE_EVENT_MOST - to->len : 0;
    if (n > room) s->cut = true;
    buf_add(to, bytes, n < room ? n : room);
    if (to->failed) s->cut = true;
}

static bool is_field(const char *line, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(line, name, n) == 0;
}

static void take_line(struct sse *s, const char *line, size_t n, const struct sse_sink *to)
{
    if (!s->begun && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        n -= 3;
    }
    s->begun = true;
    if (n == 0) {
        tell(s, to);
        return;
    }
    const char *colon = memchr(line, ':', n);
    size_t n_name = colon ? (size_t)(colon - line) : n, at = colon ? n_name + 1 : n;
    if (at < n && line[at] == ' ') at++;
    if (n_name == 0) {
        s->comments++;
    } else if (is_field(line, n_name, "data")) {
        if (s->any_data) add(s, &s->data, "\n", 1);
        add(s, &s->data, line + at, n - at);
        s->any_data = true;
    } else if (is_field(line, n_name, "event") && n - at < sizeof s->name) {
        memcpy(s->name, line + at, n - at);
        s->name[n - at] = 0;
    }
}

void sse_feed(struct sse *s, const char *bytes, size_t n, const struct sse_sink *to)
{
    for (size_t at = 0; at < n;) {
        if (s->after_cr && bytes[at] == '\n') at++;
        s->after_cr = false;
        size_t end = at;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r') end++;
        if (end == n) {
            add(s, &s->line, bytes + at, n - at);
            return;
        }
        if (s->line.len || s->line.failed) {
            add(s, &s->line, bytes + at, end - at);
            take_line(s, s->line.data, s->line.len, to);
            buf_clear(&s->line);
        } else {
            take_line(s, bytes + at, end - at, to);
        }
        s->after_cr = bytes[end] == '\r';
        at = end + 1;
    }
}
