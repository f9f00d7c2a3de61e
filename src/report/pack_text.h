/* SPDX-License-Identifier: MIT
 * pack_text.h - columns of whole numbers as text in a JSON document (docs/profile-format.md): half the bytes of a list,
 * and read several times as fast by the page (web/src/data/packed.ts). */
#ifndef REPORT_PACK_TEXT_H
#define REPORT_PACK_TEXT_H

#include "core/json.h"
#include "report/sink.h"

#define PACK_UNKNOWN INT64_MIN

void pack_begin(struct stream *s, struct json *j); /* where a value belongs */
void pack_add(struct stream *s, int64_t v);
void pack_end(struct stream *s);

#endif
