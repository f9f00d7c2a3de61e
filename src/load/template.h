/* SPDX-License-Identifier: MIT
 * template.h - a request made of a text with places to fill, so that no two need be the same:
 *   {{id}}             number of the request
 *   {{random:1..100}}  a whole number, even over these
 *   {{random:hex:16}}  so many hexadecimal digits
 *   {{random:words:50}}  so many English words; {{random:words:20..80}}: from 20 to 80 of them
 *   {{line}}           the line of the file of inputs, as it stands
 *   {{line:name}}      of that line, which is JSON, the value of this key: a text without its quotes, escaped as JSON
 *                      wants it, so that it fits between quotes; anything else as JSON
 * Twice the opening braces ({{{{) are two braces. What is random hangs on the seed and the number alone: the same
 * request every time. */
#ifndef LOAD_TEMPLATE_H
#define LOAD_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/json_tree.h"

struct template;

/* Errors name `name`, the line and the column. */
tare_status template_new(struct template **out, const char *name, struct buf text, tare_error *err);
void template_free(struct template *t);
bool template_needs_lines(const struct template *t);
bool template_is_fixed(const struct template *t); /* every request is the same */

struct template_facts {
    uint64_t id, seed;
    const char *line;           /* NULL: there is no file of inputs */
    size_t n_line, line_number; /* from 1, for errors */
};
tare_status template_fill(const struct template *t, const struct template_facts *facts, struct buf *out,
                          tare_error *err);

/* A value as it stands in JSON; a text without its quotes. It must fit: not too deep for the writer. */
bool template_fits(const struct json_node *value);
void template_add_value(struct buf *out, const struct json_node *value);

#endif
