/* SPDX-License-Identifier: MIT
 * json_expect.h - what must stand in answers that are JSON, as a reader of answers (reader.h):
 *   label=positive     the value at this path; texts without quotes, else as JSON writes it
 *   scores.0>=0.5      a number at least, or at most (<=), this; a number in a path counts the values of an array
 *   choices            there is such a value, whatever it is
 * Keys that have a dot or an operator in them cannot be named. */
#ifndef LOAD_JSON_EXPECT_H
#define LOAD_JSON_EXPECT_H

#include "core/vec.h"
#include "load/reader.h"

struct json_expectation {
    char *path, *value; /* value NULL: any */
    char op;            /* '=', '>', '<'; the last two include the value itself */
    double number;      /* of '>' and '<' */
};

struct json_expect {
    VEC(struct json_expectation) all;
    char why[256]; /* of the last answer that was not as it should be */
};

/* TARE_INVALID names the text. */
tare_status json_expect_add(struct json_expect *e, const char *text, tare_error *err);
void json_expect_close(struct json_expect *e); /* a zeroed one is fine */
/* Is it so? False: e->why says what is not. */
bool json_expect_holds(struct json_expect *e, const char *body, size_t n);
struct load_reader json_expect_reader(struct json_expect *e);

#endif
