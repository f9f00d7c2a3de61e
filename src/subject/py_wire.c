/* SPDX-License-Identifier: MIT
 * py_wire.c - see py_wire.h. */
#include "subject/py_wire.h"

#include <stdio.h>
#include <string.h>

/* A reply that says why not. */
static tare_status refusal(const struct py_reply *head, const char *text, size_t n, tare_error *err)
{
    size_t len = head->n < n ? head->n : n;
    tare_status s = head->status < TARE_BUSY ? TARE_DENIED : (tare_status)head->status;
    return error_set(err, s, "%.*s", (int)strnlen(text, len), text);
}

tare_status py_reply_read(const void *bytes, size_t n, struct py_reply *out, uint64_t *numbers,
                          tare_error *err)
{
    const char *rest = (const char *)bytes + sizeof *out;
    if (n < sizeof *out) return error_set(err, TARE_FORMAT, "a reply of %zu bytes", n);
    memcpy(out, bytes, sizeof *out);
    n -= sizeof *out;
    if (out->status < 0) return refusal(out, rest, n, err);
    if (out->n > PY_TIMES_MAX || out->n * sizeof *numbers != n)
        return error_set(err, TARE_FORMAT, "a reply of %zu bytes for %u numbers", n, out->n);
    memcpy(numbers, rest, n);
    return TARE_OK;
}

tare_status py_hello_read(const void *bytes, size_t n, struct py_hello *out, tare_error *err)
{
    struct py_reply head;
    const char *at = bytes, *end = at + n;
    char *const to[] = {out->name, out->path, out->version};
    const size_t room[] = {sizeof out->name, sizeof out->path, sizeof out->version};
    if (n < sizeof head) return error_set(err, TARE_FORMAT, "a greeting of %zu bytes", n);
    memcpy(&head, bytes, sizeof head);
    if (head.status < 0) return refusal(&head, at + sizeof head, n - sizeof head, err);
    if (head.value != PY_PROTOCOL)
        return error_set(err, TARE_UNSUPPORTED,
                         "the Python package tare there is of another version: install this one");
    at += sizeof head;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        const char *stop = memchr(at, 0, (size_t)(end - at));
        if (!stop) return error_set(err, TARE_FORMAT, "a greeting without its end");
        snprintf(to[i], room[i], "%s", at);
        at = stop + 1;
    }
    return TARE_OK;
}

static struct known_u64 known_at(const uint64_t *words)
{
    return (struct known_u64){words[0] != 0, words[0] ? words[1] : 0};
}

void py_state_read(const uint64_t *words, struct process_state *out)
{
    *out = (struct process_state){
        .used = {.user_ns = words[0],
                 .system_ns = words[1],
                 .minor_faults = words[2],
                 .major_faults = words[3],
                 .voluntary_switches = words[4],
                 .involuntary_switches = words[5],
                 .migrations = known_at(words + 6),
                 .read_bytes = known_at(words + 8),
                 .write_bytes = known_at(words + 10)},
        .rss = known_at(words + 12),
        .rss_peak = known_at(words + 14),
        .peak_reset = words[16] != 0,
    };
}
