/* SPDX-License-Identifier: MIT
 * ort_profile_line.c - see ort_profile_line.h. The runtime writes its keys in one order and up to 1.30 escapes nothing,
 * so a name ends where the arguments begin, whatever quotes it holds; a file written anew by another program has the
 * keys in any order, but then its strings are proper. Both are read by the same few searches. */
#include "model/profile/ort_profile_line.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_space(struct span s, size_t i)
{
    while (i < s.n && is_space(s.at[i])) i++;
    return i;
}

static struct span part(struct span s, size_t from, size_t to)
{
    return (struct span){s.at + from, to - from};
}

/* ---- finding keys ---- */

/* Where the value of "key" begins if the key stands at i; 0: it does not. */
static size_t value_at(struct span s, size_t i, const char *key, size_t len)
{
    if (i + len + 2 > s.n || s.at[i] != '"' || memcmp(s.at + i + 1, key, len) != 0 ||
        s.at[i + 1 + len] != '"')
        return 0;
    size_t at = skip_space(s, i + len + 2);
    return at < s.n && s.at[at] == ':' ? skip_space(s, at + 1) : 0;
}

/* Where the first "key" at `from` or later has its value; 0: nowhere. *key_at: where the key stands; may be NULL. */
static size_t find_value(struct span s, size_t from, const char *key, size_t *key_at)
{
    size_t len = strlen(key);
    for (size_t i = from; i < s.n; i++) {
        const char *quote = memchr(s.at + i, '"', s.n - i);
        if (!quote) return 0;
        i = (size_t)(quote - s.at);
        size_t at = value_at(s, i, key, len);
        if (!at) continue;
        if (key_at) *key_at = i;
        return at;
    }
    return 0;
}

static size_t find_last_value(struct span s, const char *key, size_t *key_at)
{
    size_t len = strlen(key);
    for (size_t i = s.n; i-- > 0;) {
        size_t at = value_at(s, i, key, len);
        if (!at) continue;
        *key_at = i;
        return at;
    }
    return 0;
}

/* ---- values ---- */

/* The end of a proper JSON string whose first letter is at i; s.n: it has none. */
static size_t string_end(struct span s, size_t i)
{
    for (; i < s.n && s.at[i] != '"'; i++) {
        if (s.at[i] == '\\') i++;
    }
    return i < s.n ? i : s.n;
}

/* A whole number, bare or in quotes. */
static bool read_number(struct span s, size_t i, int64_t *out)
{
    bool negative = false;
    uint64_t v = 0;
    if (i < s.n && s.at[i] == '"') i++;
    if (i < s.n && s.at[i] == '-') {
        negative = true;
        i++;
    }
    size_t first = i;
    for (; i < s.n && s.at[i] >= '0' && s.at[i] <= '9'; i++) {
        if (v > (uint64_t)INT64_MAX / 40) return false;
        v = v * 10 + (uint64_t)(s.at[i] - '0');
    }
    *out = negative ? -(int64_t)v : (int64_t)v;
    return i > first;
}

static struct span read_text(struct span s, size_t i)
{
    if (i >= s.n || s.at[i] != '"') return (struct span){0};
    size_t end = string_end(s, i + 1);
    return end < s.n ? part(s, i + 1, end) : (struct span){0};
}

/* ---- one record ---- */

/* The name ends at the quote before the comma before "args"; without arguments behind it, where a string ends. */
static bool read_name(struct profile_line *out, struct span r, size_t name_at, size_t *after)
{
    size_t args_key = 0, end;
    size_t args = find_last_value(r, "args", &args_key);
    out->args = args ? part(r, args, r.n) : (struct span){r.at + r.n, 0};
    if (name_at >= r.n || r.at[name_at] != '"') return false;
    if (args && args_key > name_at) {
        end = args_key;
        while (end > name_at + 1 && (is_space(r.at[end - 1]) || r.at[end - 1] == ',')) end--;
        if (end <= name_at + 1 || r.at[end - 1] != '"') return false;
        end--;
    } else {
        end = string_end(r, name_at + 1);
        if (end >= r.n) return false;
    }
    out->name = part(r, name_at + 1, end);
    *after = end + 1;
    return true;
}

/* Before the name, where the runtime writes all but the arguments; else behind it. Never inside of it. */
static size_t find_outside(struct span r, size_t name_key, size_t after, const char *key)
{
    size_t at = find_value(part(r, 0, name_key), 0, key, NULL);
    return at ? at : find_value(r, after, key, NULL);
}

#define DURATION_MAX INT64_C(1000000000000) /* us; nothing runs for 11 days, and sums of such stay exact */

bool profile_line_read(struct profile_line *out, struct span r)
{
    size_t name_key = 0, after = 0;
    size_t name_at = find_value(r, 0, "name", &name_key);
    *out = (struct profile_line){0};
    if (!name_at || !read_name(out, r, name_at, &after)) return false;
    size_t category = find_outside(r, name_key, after, "cat");
    size_t start = find_outside(r, name_key, after, "ts");
    size_t duration = find_outside(r, name_key, after, "dur");
    size_t thread = find_outside(r, name_key, after, "tid");
    if (!category || !start || !duration) return false;
    out->category = read_text(r, category);
    if (thread) (void)read_number(r, thread, &out->thread);
    return read_number(r, start, &out->start_us) && read_number(r, duration, &out->duration_us) &&
           out->duration_us >= 0 && out->duration_us <= DURATION_MAX;
}

struct span profile_line_text(const struct profile_line *l, const char *key)
{
    size_t at = find_value(l->args, 0, key, NULL);
    return at ? read_text(l->args, at) : (struct span){0};
}

uint64_t profile_line_number(const struct profile_line *l, const char *key)
{
    int64_t v = 0;
    size_t at = find_value(l->args, 0, key, NULL);
    return at && read_number(l->args, at, &v) && v > 0 ? (uint64_t)v : 0;
}

struct span profile_line_list(const struct profile_line *l, const char *key)
{
    struct span s = l->args;
    size_t at = find_value(s, 0, key, NULL), depth = 0;
    if (!at || at >= s.n || s.at[at] != '[') return (struct span){0};
    for (size_t i = at; i < s.n; i++) {
        depth += s.at[i] == '[';
        depth -= s.at[i] == ']';
        if (depth == 0) return part(s, at, i + 1);
    }
    return (struct span){0};
}

/* ---- records of a file ---- */

bool profile_line_is_by_line(struct span file)
{
    size_t i = skip_space(file, 0);
    if (i < file.n && file.at[i] == '[') i = skip_space(file, i + 1);
    const char *end = i < file.n ? memchr(file.at + i, '\n', file.n - i) : NULL;
    struct span first = part(file, i, end ? (size_t)(end - file.at) : file.n);
    size_t key;
    if (!end) return false;
    for (size_t n = 0, at = 0; (at = find_value(first, at, "name", &key)) != 0;)
        if (++n > 1) return false; /* the whole file on one line */
    return find_value(first, 0, "name", NULL) && find_value(first, 0, "ts", NULL);
}

static struct span next_line(struct span file, size_t *at, bool *whole)
{
    const char *end = memchr(file.at + *at, '\n', file.n - *at);
    size_t to = end ? (size_t)(end - file.at) : file.n, from = skip_space(file, *at);
    *at = end ? to + 1 : file.n;
    if (from > to) from = to; /* an empty line: skip_space went on into the next */
    while (to > from && (is_space(file.at[to - 1]) || file.at[to - 1] == ',')) to--;
    if (to > from && file.at[from] == '[') from++;
    if (to > from && file.at[to - 1] == ']') to--;
    *whole = to > from && file.at[to - 1] == '}';
    return part(file, from, to);
}

/* The next {...} at any place, minding strings: for files that are proper JSON. */
static struct span next_object(struct span file, size_t *at, bool *whole)
{
    size_t i = *at, depth = 0, from = 0;
    for (; i < file.n; i++) {
        char c = file.at[i];
        if (c == '"') {
            i = string_end(file, i + 1);
        } else if (c == '{') {
            if (depth++ == 0) from = i;
        } else if (c == '}' && depth > 0 && --depth == 0) {
            break;
        }
    }
    *whole = i < file.n;
    *at = i < file.n ? i + 1 : file.n;
    if (*whole) return part(file, from, i + 1);
    return depth ? part(file, from, file.n) : (struct span){file.at, 0};
}

struct span profile_line_next(struct span file, size_t *at, bool by_line, bool *whole)
{
    while (*at < file.n) {
        struct span r = by_line ? next_line(file, at, whole) : next_object(file, at, whole);
        if (r.n && r.at[0] == '{') return r;
    }
    return (struct span){file.at, 0};
}
