/* SPDX-License-Identifier: MIT
 * text.h - names as a person, or a file format, may see them. Names come from the program
 * that was measured: any bytes, any length. Whatever they are, what is written here is valid UTF-8 and
 * cannot move a terminal's cursor. */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "report/sink.h"

#define TEXT_NAME_MAX 4096 /* where a name is repeated for each event or path, it is cut here */

/* The bytes of s that make at most `max`, whole characters only. */
size_t text_clip(const char *s, size_t max);

void text_plain(struct buf *b, const char *s, size_t n);  /* for terminals: controls as \n, \x1b */
void text_name(struct buf *b, const char *s, size_t max); /* the same of at most `max` bytes of it */
void text_folded(struct buf *b, const char *s, size_t n); /* also ';' as \x3b: one frame of a folded stack */
void text_json(struct buf *b, const char *s, size_t n);   /* quoted */
uint32_t text_columns(const char *s, size_t n);           /* characters, for aligning */

/* Words from a column on; further lines begin at `indent`. */
struct text_box {
    unsigned column, indent, width; /* width 0: one line */
};
void text_wrap(struct buf *out, const char *text, struct text_box box);

/* ---- lines of a report for people ---- */

/* The colour of a verdict or a severity: "regressed", "pass", "warn"; "" where the word is neither. */
const char *text_verdict_style(const struct report_style *style, const char *word, size_t n);

void text_heading(struct stream *s, const char *title);
/* "name       value", nothing for an empty value, which is released. */
void text_line(struct stream *s, const char *name, struct buf *value);
void text_note(struct stream *s, struct buf *text); /* a dim line, likewise */

#endif
