/* SPDX-License-Identifier: MIT
 * answer.c - see answer.h. A failed allocation sticks in the stream and is its status at the end. */
#include "report/answer.h"

#include <stdarg.h>

void answer_begin(struct answer *a, struct sink to, bool as_json, const struct report_style *style,
                  tare_error *err)
{
    *a = (struct answer){.as_json = as_json, .unsaid = BUF_INIT};
    stream_init(&a->stream, to, err);
    a->stream.style = *style;
    json_init(&a->json, &a->stream.out, JSON_STYLE_PRETTY);
}

tare_status answer_end(struct answer *a)
{
    if (a->as_json && a->json.depth) json_object_end(&a->json);
    if (a->as_json) json_finish(&a->json, NULL);
    buf_release(&a->unsaid);
    return stream_finish(&a->stream);
}

/* ---- words ---- */

static void end_cell(struct answer *a)
{
    if (!a->in_cell) return;
    if (table_cell_is_empty(&a->table)) buf_add_char(&a->table.text, '-');
    a->in_cell = false;
}

struct buf *answer_text(struct answer *a)
{
    if (a->as_json) {
        buf_clear(&a->unsaid);
        return &a->unsaid;
    }
    if (!a->in_table) return &a->stream.out;
    end_cell(a);
    a->in_cell = true;
    return table_cell(&a->table);
}

#define SAY_WORDS(a, text)                                    \
    do {                                                      \
        va_list ap_;                                          \
        va_start(ap_, text);                                  \
        if (text && !(a)->as_json) buf_vprintf(answer_text(a), text, ap_); \
        va_end(ap_);                                          \
    } while (0)

void answer_say(struct answer *a, const char *text, ...)
{
    SAY_WORDS(a, text);
}

/* ---- values ---- */

/* Is there JSON to write a value to? Then its key is written, and before the first one the beginning of it all. */
static bool has_place(struct answer *a, const char *key)
{
    if (!a->as_json) return false;
    if (key && a->json.depth == 0) json_object_begin(&a->json);
    if (key) json_key(&a->json, key);
    return true;
}

/* A value for JSON, its words for people. */
#define ANSWER_VALUE(name, type, kind)                                                                \
    void answer_##name(struct answer *a, const char *key, type v, const char *text, ...)              \
    {                                                                                                 \
        if (has_place(a, key)) json_put_##kind(&a->json, v);                                          \
        SAY_WORDS(a, text);                                                                           \
    }
ANSWER_VALUE(str, const char *, string)
ANSWER_VALUE(f64, double, double)
ANSWER_VALUE(int, int64_t, int)
ANSWER_VALUE(uint, uint64_t, uint)
ANSWER_VALUE(bool, bool, bool)

void answer_null(struct answer *a, const char *key, const char *text, ...)
{
    if (has_place(a, key)) json_put_null(&a->json);
    SAY_WORDS(a, text);
}

/* ---- structure ---- */

void answer_section(struct answer *a, const char *key, const char *heading)
{
    bool first = a->stream.out.len == 0 && a->stream.written == 0;
    answer_object(a, key);
    answer_say(a, "%s%s%s%s", first ? "" : "\n", a->stream.style.bold, heading, a->stream.style.plain);
}

void answer_object(struct answer *a, const char *key)
{
    if (has_place(a, key)) json_object_begin(&a->json);
}

void answer_object_flat(struct answer *a, const char *key)
{
    if (has_place(a, key)) json_object_begin_flat(&a->json);
}

void answer_object_end(struct answer *a)
{
    if (a->as_json) json_object_end(&a->json);
}

void answer_list(struct answer *a, const char *key)
{
    if (has_place(a, key)) json_array_begin(&a->json);
}

void answer_list_end(struct answer *a)
{
    if (a->as_json) json_array_end(&a->json);
}

void answer_table(struct answer *a, const char *key, const struct table_column *columns, uint32_t n)
{
    answer_list(a, key);
    a->in_table = !a->as_json;
    table_init(&a->table, columns, n);
}

void answer_table_drop_empty(struct answer *a)
{
    end_cell(a);
    table_drop_empty(&a->table);
}

void answer_table_end(struct answer *a)
{
    answer_list_end(a);
    end_cell(a);
    a->in_table = false;
    table_end(&a->table, &a->stream, a->stream.style.bold);
}
