/* SPDX-License-Identifier: MIT
 * pack_text.c - see pack_text.h. A column is one text, for which no memory is taken: its signs go between the quotes of
 * an empty one. */
#include "report/pack_text.h"

void pack_begin(struct stream *s, struct json *j)
{
    json_put_string(j, "");
    if (s->out.len && !s->out.failed) s->out.len--;
}

/* Five bits a sign, the lowest first, a sixth where more follow; the lowest of all is minus, minus zero is unknown. */
void pack_add(struct stream *s, int64_t v)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v, rest = size << 1 | (v < 0);
    if (v == PACK_UNKNOWN) rest = 1;
    do {
        uint64_t digit = rest & 31;
        rest >>= 5;
        buf_add_char(&s->out, signs[rest ? digit | 32 : digit]);
    } while (rest);
}

void pack_end(struct stream *s)
{
    buf_add_char(&s->out, '"');
}
