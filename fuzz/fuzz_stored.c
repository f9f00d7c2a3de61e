/* SPDX-License-Identifier: MIT
 * fuzz_stored.c - any bytes as a stored file. After a first byte that is odd its sums and length are made right, so
 * that what lies behind them is reached. What is refused says why; what is read has its sum, and its head can be made
 * again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/crc.h"
#include "core/mem.h"
#include "core/stored.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void mend(unsigned char *file, size_t n)
{
    struct stored_head h;
    if (n < sizeof h) return;
    memcpy(&h, file, sizeof h);
    memcpy(h.magic, STORED_MAGIC, sizeof h.magic);
    h.version = 1;
    h.packed = n - sizeof h;
    h.packed_sum = crc32c(0, file + sizeof h, n - sizeof h);
    h.raw %= 1 << 20;
    h.sum = crc32c(0, &h, offsetof(struct stored_head, sum));
    memcpy(file, &h, sizeof h);
}

static void words(const struct stored_head *h, char codec[9], char kind[9])
{
    memset(codec, 0, 9);
    memset(kind, 0, 9);
    memcpy(codec, h->codec, 8);
    memcpy(kind, h->kind, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stored_head head, again;
    tare_error err = TARE_ERROR_INIT;
    char codec[9], kind[9];
    if (size < 1) return 0;
    size_t n = size - 1;
    unsigned char *copy = mem_new(n, 1), *raw = NULL;
    must(copy != NULL);
    if (n) memcpy(copy, data + 1, n);
    if (data[0] & 1) mend(copy, n);
    struct codec_bytes file = {copy, n};
    if (stored_read(&file, "fuzz", &head, &err) < 0) {
        must(memcmp(err.text, "fuzz: ", 6) == 0);
        goto out;
    }
    must(head.packed == n - sizeof head);
    if (head.raw > 1 << 20) goto out;
    raw = mem_new(head.raw, 1);
    must(raw != NULL);
    if (stored_unpack(&file, "fuzz", &head, raw, &err) < 0) {
        must(memcmp(err.text, "fuzz: ", 6) == 0);
        goto out;
    }
    words(&head, codec, kind);
    must(stored_head_make(&again, codec, kind, &(struct codec_bytes){raw, head.raw},
                          &(struct codec_bytes){copy + sizeof head, head.packed}) == TARE_OK);
    must(again.raw_sum == head.raw_sum && again.packed_sum == head.packed_sum && again.raw == head.raw);
out:
    mem_free(raw);
    mem_free(copy);
    return 0;
}
