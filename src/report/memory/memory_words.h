/* SPDX-License-Identifier: MIT
 * memory_words.h - bytes with their interval, frames, stacks and groups of memory, as words and as JSON. */
#ifndef REPORT_MEMORY_WORDS_H
#define REPORT_MEMORY_WORDS_H

#include "analyze/memory/memory_group.h"
#include "report/answer.h"

void memory_add_bytes(struct buf *b, struct memory_bytes v); /* "62.3 MiB (52.9 MiB to 72.5 MiB)" */
void memory_put_bytes(struct answer *a, const char *key, struct memory_bytes v);
uint64_t memory_whole(double n); /* who lies about sizes may claim more than there can be */
void memory_add_group(struct buf *b, const struct memory_group *g, enum memory_by by);

#endif
