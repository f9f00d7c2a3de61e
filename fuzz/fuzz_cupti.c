/* SPDX-License-Identifier: MIT
 * fuzz_cupti.c - decode_buffer() on any bytes, as a CUPTI of the version that the first byte chooses would hand them
 * over: cut off, of unknown kinds, with times that run backwards or overflow. What was booked must read back. The
 * second byte says whether the clock was set meanwhile and whether there is a file. TARE_CUPTI names a real libcupti,
 * whose iterator is then used in place of ours. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "fuzz/cupti_steps.h"
#include "gpu/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static int callback_name(int domain, uint32_t id, const char **name)
{
    static const char *const names[] = {"cudaLaunchKernel_v7000", "cuLaunch_v", "_v", "cudaFree_v3020x"};
    if (id > 3) return 7;
    *name = names[(id + (uint32_t)domain) % 4];
    return CUPTI_OK;
}

static int (*iterator(void))(uint8_t *, size_t, uint8_t **)
{
    static int (*found)(uint8_t *, size_t, uint8_t **);
    const char *real = getenv("TARE_CUPTI");
    if (found) return found;
    void *lib = real ? dlopen(real, RTLD_NOW) : NULL;
    if (lib) *(void **)&found = dlsym(lib, "cuptiActivityGetNextRecord");
    if (!found) found = cupti_step;
    return found;
}

/* What is not written yet. */
static void walk(const struct book *b)
{
    struct gpu_state state = {{0}};
    struct gpu_record r;
    struct dec d = {b->room, b->enc.p, false};
    while (gpu_unpack(&state, &d, &r)) {
        if (gpu_has_time(r.kind) && r.kind <= GPU_OVERHEAD && !b->clock.steps)
            must(r.v[0] != 0 && r.v[1] <= UINT64_MAX - r.v[0]);
        if (r.kind == GPU_NAME) must(r.text_bytes <= GPU_TEXT_MOST);
    }
    must(!d.failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t versions[] = {14, 18, 22, 28, 130000, 130001};
    struct cupti c = {.next_record = iterator(), .callback_name = callback_name};
    struct book b = {.to = {.fd = -1, .out = BUF_INIT}};
    if (size < 2) return 0;
    c.version = versions[data[0] % (sizeof versions / sizeof *versions)];
    if (data[1] & 2) b.to.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (data[1] & 1) b.clock = (struct book_clock){1, 0, 1000, (uint64_t)-1000, 1u << 30, 1u << 31, 1};
    uint8_t *exact = (malloc)(size - 2 ? size - 2 : 1);
    b.room = mem_new(1, BOOK_ROOM);
    must(exact && b.room);
    b.enc = (struct enc){b.room, b.room + BOOK_ROOM, false};
    memcpy(exact, data + 2, size - 2);
    cupti_mend_pointers(&c, exact, size - 2);
    decode_buffer(&b, &c, exact, size - 2);
    walk(&b);
    (free)(exact);
    book_close(&b); /* no file: what was left counts as not written */
    return 0;
}
