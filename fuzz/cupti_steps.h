/* SPDX-License-Identifier: MIT
 * cupti_steps.h - an iterator over CUPTI's records for the fuzzer and the unit test: it steps by the lengths of CUDA 13
 * and, as the real one may, gives a last record that the buffer does not hold whole. The pointers of a record are made
 * to point at texts of ours, chosen by what stood there: what hostile bytes there mean is decided by the loader, not by
 * us. */
#ifndef FUZZ_CUPTI_STEPS_H
#define FUZZ_CUPTI_STEPS_H

#include <stdlib.h>
#include <string.h>

#include "gpu/cupti.h"

static inline size_t cupti_step_bytes(uint32_t kind)
{
    static const uint8_t words[] = {[CUPTI_MEMCPY] = 12,
                                    [CUPTI_MEMSET] = 11,
                                    [CUPTI_DRIVER] = 5,
                                    [CUPTI_RUNTIME] = 5,
                                    [CUPTI_DEVICE] = 23,
                                    [CUPTI_CONCURRENT_KERNEL] = 27,
                                    [CUPTI_OVERHEAD] = 7,
                                    [CUPTI_MEMCPY2] = 12,
                                    [38] = 7,
                                    [CUPTI_EXTERNAL_CORRELATION] = 3,
                                    [CUPTI_MEMORY2] = 16,
                                    [CUPTI_MEMORY_POOL] = 10,
                                    [CUPTI_GRAPH_TRACE] = 7,
                                    [CUPTI_JIT] = 9};
    return kind < sizeof words ? 8u * words[kind] : 0;
}

static inline int cupti_step(uint8_t *buffer, size_t valid, uint8_t **record)
{
    uint8_t *at = *record ? *record + cupti_step_bytes(at32(*record, 0)) : buffer;
    if (at >= buffer + valid) return CUPTI_END_OF_BUFFER;
    if (at + 4 > buffer + valid || !cupti_step_bytes(at32(at, 0))) return CUPTI_INVALID_KIND;
    *record = at;
    return CUPTI_OK;
}

static inline void cupti_set_pointer(uint8_t *at, const void *p)
{
    memcpy(at, &p, sizeof p);
}

/* Before it is decoded, with the iterator that will be used. Since CUDA 13 overhead data is freed by who decodes. */
static inline void cupti_mend_pointers(const struct cupti *c, uint8_t *buffer, size_t valid)
{
    static char longest[6000];
    const char *const texts[] = {NULL, "", "kernel", "_Z6kernelI7FunctorEvi", "\x1b[31m\xff\xfe", longest};
    uint8_t *record = NULL;
    memset(longest, 'n', sizeof longest - 1);
    while (c->next_record(buffer, valid, &record) == CUPTI_OK) {
        size_t left = (size_t)(buffer + valid - record), kind = at32(record, 0);
        size_t place = kind == CUPTI_CONCURRENT_KERNEL ? 104 : 0;
        if (kind == CUPTI_DEVICE) place = 136;
        if (place && left >= place + 8)
            cupti_set_pointer(record + place, texts[record[place] % (sizeof texts / sizeof *texts)]);
        if (kind == CUPTI_OVERHEAD && left >= 56)
            cupti_set_pointer(record + 48, record[48] & 1 && c->version >= 130000 ? (malloc)(16) : NULL);
    }
}

#endif
