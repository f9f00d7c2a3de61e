/* SPDX-License-Identifier: MIT
 * ort_profile_line.h - inside of the reader of ONNX Runtime's profiles: one record of the file taken apart without
 * trusting it. Points into the record; allocates nothing. For ort_profile.c only. */
#ifndef MODEL_ORT_PROFILE_LINE_H
#define MODEL_ORT_PROFILE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    const char *at;
    size_t n;
};

struct profile_line {
    struct span category, name; /* the name as it stands in the file: escaped or not */
    struct span args;           /* from "args" on */
    int64_t start_us, duration_us, thread;
};

/* false: no event, or one that lacks a name, a start or a duration that make sense. */
bool profile_line_read(struct profile_line *out, struct span record);

/* The text of a string among the arguments; n 0 when there is none. */
struct span profile_line_text(const struct profile_line *l, const char *key);
uint64_t profile_line_number(const struct profile_line *l, const char *key); /* 0 when there is none */
/* A list among the arguments with its brackets; n 0 when there is none. */
struct span profile_line_list(const struct profile_line *l, const char *key);

/* The next record of the file at *at; n 0 at the end. `whole` is set to whether the record was closed. */
struct span profile_line_next(struct span file, size_t *at, bool by_line, bool *whole);
/* Does the file have one record a line, as the runtime writes it? */
bool profile_line_is_by_line(struct span file);

#endif
