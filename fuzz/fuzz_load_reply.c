/* SPDX-License-Identifier: MIT
 * fuzz_load_reply.c - any bytes as answers to the load client, and as addresses and headers of a user. However the
 * bytes are cut, the same becomes of the request; times are in order; limits hold. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "load/address.h"
#include "load/reply.h"
#include "load/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

enum { BODY_MAX = 1000 };
static const struct reply_rules rules = {.expect_body = "tok", .body_max = BODY_MAX};

/* Answers one after the other, until the bytes or the connection end. Returns a digest of what became of them. */
static uint64_t play(const char *bytes, size_t n, size_t piece)
{
    static struct http_head head;
    struct reply r;
    uint64_t digest = 1;
    size_t at = 0;
    reply_open(&r, &rules, NULL);
    do {
        struct load_outcome o = {.sent = 1};
        enum reply_step step = REPLY_MORE;
        reply_begin(&r, &head);
        while (step == REPLY_MORE && at < n) {
            struct reply_bytes b = {bytes + at, n - at < piece ? n - at : piece, 0, 2 + at};
            step = reply_take(&r, &b, &o);
            must(b.used <= b.n && (step != REPLY_MORE || b.used == b.n));
            at += b.used;
        }
        if (step == REPLY_MORE) step = reply_ended(&r, 2 + n, &o);
        must(o.end >= o.first_byte && o.fault < LOAD_FAULTS);
        bool whole = o.fault == LOAD_NONE || o.fault == LOAD_STATUS || o.fault == LOAD_BODY;
        must(step == REPLY_DONE ? whole : o.fault != LOAD_NONE && o.fault != LOAD_BODY);
        must(step != REPLY_DONE || o.bytes <= BODY_MAX);
        must(strlen(r.glimpse) < LOAD_GLIMPSE);
        digest = digest * 31 + o.fault;
        digest =
            digest * 31 + (step == REPLY_DONE ? o.bytes : 0); /* else it hangs on the cut how much was seen */
        digest = digest * 1009 + o.status;
        if (step == REPLY_FAILED || r.closes) break;
    } while (at < n);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct load_address a;
    struct buf lines = BUF_INIT;
    if (size > 1 << 16) return 0;
    char *text = malloc(size + 1);
    must(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    uint64_t whole = play(text, size, size ? size : 1);
    must(whole == play(text, size, 1) && whole == play(text, size, 7));
    if (load_address_read(&a, text, NULL) == TARE_OK) must(a.host[0] && a.target[0] == '/');
    if (load_add_header(&lines, text, NULL) == TARE_OK)
        must(strstr(lines.data, "\r\n") == lines.data + lines.len - 2);
    buf_release(&lines);
    free(text);
    return 0;
}
