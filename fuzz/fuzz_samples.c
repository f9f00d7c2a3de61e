/* SPDX-License-Identifier: MIT
 * fuzz_samples.c - an archive of any bytes read as samples of probes: once as it is, once with the checksums made
 * right. Holds the reader to its promises: time goes forward, columns are whole, texts are UTF-8. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/str.h"
#include "mend_trace.h"
#include "trace/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(ok)                                                              \
    do {                                                                      \
        if (!(ok)) {                                                          \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #ok); \
            abort();                                                          \
        }                                                                     \
    } while (0)

static void look(const struct samples *s)
{
    volatile double sum = 0;
    must(s->columns.n == s->set.items.n);
    for (size_t i = 1; i < s->at_ns.n; i++) must(s->at_ns.items[i] > s->at_ns.items[i - 1]);
    for (size_t i = 0; i < s->set.items.n; i++) {
        const struct series *x = &s->set.items.items[i];
        must(x->metric < METRIC_COUNT && str_is_utf8(x->label, strlen(x->label)));
        for (size_t k = 0; k < s->at_ns.n; k++) sum += s->columns.items[i][k];
    }
    (void)sum;
    for (size_t i = 0; i < s->marks.n; i++) {
        const struct sample_mark *m = &s->marks.items[i];
        must(m->kind <= SAMPLE_NOTE && str_is_utf8(m->text, strlen(m->text)));
    }
}

static void walk(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char path[40];
    struct samples s = SAMPLES_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (fd < 0) fd = memfd_create("samples", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tare_status status = samples_load(&s, path, &err);
    if (status == TARE_OK)
        look(&s);
    else
        must(status == err.status && err.text[0]);
    samples_release(&s);
    must(mem_live_blocks() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk(data, size);
    uint8_t *copy = malloc(size + 1);
    must(copy != NULL);
    memcpy(copy, data, size);
    mend(copy, size);
    walk(copy, size);
    free(copy);
    return 0;
}
