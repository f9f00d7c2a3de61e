/* SPDX-License-Identifier: MIT
 * answer.h - the answer of a command, for people and for programs, described once. Each call says one thing twice: as
 * a member of a JSON object, and as words; which of the two is written was decided when the answer began. What only one
 * has is left out of the other: a value without words (text NULL), or words without a value (answer_say).
 *
 *     answer_begin(&a, cli_sink(cli), json, &style, &err);
 *     answer_section(&a, "clock", "clock\n");
 *     answer_f64(&a, "tick_ns", tick, "  tick         %.4g ns\n", tick);   // unknown: NAN, which JSON shows as null
 *     answer_object_end(&a);
 *     answer_table(&a, "runs", columns, 2);                                // words are the cells of a table here
 *     for (..) {
 *         answer_object(&a, NULL);
 *         answer_str(&a, "id", id, "%s", id);
 *         answer_uint(&a, "cases", n, "%" PRIu64, n);
 *         answer_object_end(&a);
 *     }
 *     answer_table_end(&a);
 *     status = answer_end(&a);
 *
 * The members of JSON come in the order of the calls, and so do the words. The outermost is an object, unless the
 * first call is a list without a key. */
#ifndef REPORT_ANSWER_H
#define REPORT_ANSWER_H

#include "core/json.h"
#include "report/sink.h"
#include "report/table.h"

struct answer {
    struct stream stream;
    bool as_json;
    struct json json;
    struct buf unsaid; /* words, where JSON is the answer: dropped */
    struct table table;
    bool in_table, in_cell;
};

void answer_begin(struct answer *a, struct sink to, bool as_json, const struct report_style *style,
                  tare_error *err);
tare_status answer_end(struct answer *a); /* the status of all of it; releases */

/* ---- values ---- */

#define ANSWER_WORDS(text, first) __attribute__((format(printf, text, first)))
void answer_str(struct answer *a, const char *key, const char *v, const char *text, ...) ANSWER_WORDS(4, 5);
void answer_f64(struct answer *a, const char *key, double v, const char *text, ...) ANSWER_WORDS(4, 5);
void answer_int(struct answer *a, const char *key, int64_t v, const char *text, ...) ANSWER_WORDS(4, 5);
void answer_uint(struct answer *a, const char *key, uint64_t v, const char *text, ...) ANSWER_WORDS(4, 5);
void answer_bool(struct answer *a, const char *key, bool v, const char *text, ...) ANSWER_WORDS(4, 5);
void answer_null(struct answer *a, const char *key, const char *text, ...) ANSWER_WORDS(3, 4);
void answer_say(struct answer *a, const char *text, ...) ANSWER_WORDS(2, 3);
/* For words that need more than a format: add to it before the next call. In a table it is a new cell. */
struct buf *answer_text(struct answer *a);

/* ---- structure; `key` is NULL within a list ---- */

/* An object, and a heading in bold with a line of space above it. Ends as an object does. */
void answer_section(struct answer *a, const char *key, const char *heading);
void answer_object(struct answer *a, const char *key);
void answer_object_flat(struct answer *a, const char *key); /* JSON on one line */
void answer_object_end(struct answer *a);
void answer_list(struct answer *a, const char *key);
void answer_list_end(struct answer *a);

/* A list whose words are the cells of a table, row after row. A cell without words does not exist, one with empty
 * words is "-". No rows: no table. */
void answer_table(struct answer *a, const char *key, const struct table_column *columns, uint32_t n);
void answer_table_drop_empty(struct answer *a); /* columns that say nothing in any row; before the end */
void answer_table_end(struct answer *a);

#endif
