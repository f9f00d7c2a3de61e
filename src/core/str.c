/* SPDX-License-Identifier: MIT
 * str.c - see str.h. */
#include "core/str.h"

#include <math.h>
#include <string.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* ---- UTF-8 ---- */

/* The table is the one of the Unicode standard (well-formed sequences): only the byte after the lead can
 * make a form overlong, a surrogate or too large, and the ranges there rule those out; the rest are plain
 * continuations. */
int str_step(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    static const struct {
        unsigned char first, last, low, high; /* range of the lead byte, and of the byte after it */
        int size;
    } leads[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    if (s[0] < 0x80) return 1;
    for (size_t k = 0; k < sizeof leads / sizeof leads[0]; k++) {
        if (s[0] < leads[k].first || s[0] > leads[k].last) continue;
        if (n < 2 || s[1] < leads[k].low || s[1] > leads[k].high) return -1;
        for (int i = 2; i < leads[k].size; i++) {
            if ((size_t)i >= n || (s[i] & 0xC0) != 0x80) return -i;
        }
        return leads[k].size;
    }
    return -1;
}

size_t str_decode(const char *text, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)text;
    int len = str_step(text, n);
    if (len < 0) return 0;
    *cp = len == 1 ? s[0] : s[0] & (0x7Fu >> len);
    for (int i = 1; i < len; i++) *cp = *cp << 6 | (s[i] & 0x3F);
    return (size_t)len;
}

bool str_is_control(uint32_t cp)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},   {0x200E, 0x200F},   {0x2028, 0x202E},
        {0x2066, 0x2069}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
    };
    for (size_t i = 0; i < COUNT_OF(ranges); i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last) return true;
    return false;
}

bool str_is_utf8(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        int step = str_step(s + i, n - i);
        if (step < 0) return false;
        i += (size_t)step;
    }
    return true;
}

void str_add_utf8(struct buf *out, const char *s, size_t n)
{
    size_t good = 0; /* start of the good bytes not yet added */
    for (size_t i = 0; i < n;) {
        int step = str_step(s + i, n - i);
        if (step > 0) {
            i += (size_t)step;
            continue;
        }
        buf_add(out, s + good, i - good);
        buf_add(out, "\xEF\xBF\xBD", 3);
        i += (size_t)-step;
        good = i;
    }
    buf_add(out, s + good, n - good);
}

bool str_ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

const char *str_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
