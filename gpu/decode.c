/* SPDX-License-Identifier: MIT
 * decode.c - CUPTI's records, by place (cupti.h), into ours. Stepping is libcupti's: it knows how long its records
 * are. A record without times is counted as untimed, never booked as one of no length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"

/* When a field came that older records have no room for. */
enum { CUPTI_11_1 = 14, CUPTI_13_0 = 130000 };

struct decoding {
    struct book *book;
    const struct cupti *cupti;
};

static uint64_t lane_of(struct book *b, uint64_t device, uint64_t context, uint64_t stream)
{
    struct gpu_record r = {.kind = GPU_LANE};
    r.LANE.device = device;
    r.LANE.context = context;
    r.LANE.stream = stream;
    return book_number(b, &b->lanes, &r);
}

static uint64_t shape_of(struct book *b, const uint8_t *k)
{
    struct gpu_record r = {.kind = GPU_SHAPE};
    r.SHAPE.grid_x = at32(k, 52);
    r.SHAPE.grid_y = at32(k, 56);
    r.SHAPE.grid_z = at32(k, 60);
    r.SHAPE.block_x = at32(k, 64);
    r.SHAPE.block_y = at32(k, 68);
    r.SHAPE.block_z = at32(k, 72);
    r.SHAPE.registers = at16(k, 6);
    r.SHAPE.shared_static = at32(k, 76);
    r.SHAPE.shared_dynamic = at32(k, 80);
    r.SHAPE.local = at32(k, 84);
    return book_number(b, &b->shapes, &r);
}

/* Start and duration, which come first in every record that has both; `at`: where CUPTI has the start, the end behind
 * it. False: it has no times. */
static bool take_times(const struct decoding *d, const uint8_t *from, size_t at, struct gpu_record *r)
{
    uint64_t start = at64(from, at), end = at64(from, at + 8);
    r->v[0] = book_stamp(d->book, start);
    r->v[1] = end - start;
    if (start && end >= start) return true;
    d->book->untimed++;
    return false;
}

/* A program that ends while operations are under way leaves records of them without an end. Such a one can have run
 * only after what was before it on its stream, unless it is of a graph, whose nodes run side by side: a reader knows of
 * the time before that. */
static void put_untimed(const struct decoding *d, const uint8_t *times, uint64_t lane, uint64_t id,
                        bool in_graph)
{
    struct gpu_record r = {.kind = GPU_UNTIMED};
    uint64_t start = at64(times, 0), end = at64(times, 8);
    uint64_t before = lane < BOOK_LANES && !in_graph ? d->book->lane_ends[lane] : 0;
    r.UNTIMED.from = before > d->book->begun ? before : d->book->begun;
    r.UNTIMED.lane = lane;
    r.UNTIMED.id = id;
    if (!end && book_stamp(d->book, start) > r.UNTIMED.from) r.UNTIMED.from = book_stamp(d->book, start);
    book_put(d->book, &r);
}

/* An operation that takes its turn on the GPU, complete but for its times: the guard counts them. */
static void put_operation(const struct decoding *d, const uint8_t *times, struct gpu_record *r, uint64_t id,
                          bool in_graph)
{
    const uint64_t lane = r->KERNEL.lane; /* the third field of all of them */
    if (!take_times(d, times, 0, r)) {
        put_untimed(d, times, lane, id, in_graph);
        return;
    }
    uint64_t end = r->v[0] + r->v[1];
    d->book->operations++;
    if (r->kind == GPU_KERNEL) graphs_saw(r);
    if (end > d->book->last_end) d->book->last_end = end;
    if (lane < BOOK_LANES && end > d->book->lane_ends[lane]) d->book->lane_ends[lane] = end;
    book_put(d->book, r);
}

static void put_kernel(const struct decoding *d, const uint8_t *k)
{
    struct gpu_record r = {.kind = GPU_KERNEL};
    r.KERNEL.lane = lane_of(d->book, at32(k, 40), at32(k, 44), at32(k, 48));
    r.KERNEL.name = book_name(d->book, at_text(k, 104));
    r.KERNEL.shape = shape_of(d->book, k);
    r.KERNEL.id = at32(k, 92);
    if (d->cupti->version >= CUPTI_11_1) {
        r.KERNEL.node = at64(k, 144);
        r.KERNEL.graph = at32(k, 156);
    }
    put_operation(d, k + 16, &r, r.KERNEL.id, r.KERNEL.graph != 0);
}

static void put_copy(const struct decoding *d, const uint8_t *c)
{
    struct gpu_record r = {.kind = GPU_COPY};
    bool peer = at32(c, 0) == CUPTI_MEMCPY2;
    r.COPY.lane = lane_of(d->book, at32(c, 32), at32(c, 36), at32(c, 40));
    r.COPY.what = c[4] | (uint64_t)c[5] << 8 | (uint64_t)c[6] << 16 | (uint64_t)(c[7] & 1) << 24;
    r.COPY.bytes = at64(c, 8);
    r.COPY.id = at32(c, peer ? 60 : 44);
    if (peer) r.COPY.peer = 1 + at32(c, 52);
    if (d->cupti->version >= CUPTI_11_1) r.COPY.graph = at32(c, peer ? 80 : 72);
    put_operation(d, c + 16, &r, r.COPY.id, r.COPY.graph != 0);
}

static void put_set(const struct decoding *d, const uint8_t *m)
{
    struct gpu_record r = {.kind = GPU_SET};
    r.SET.lane = lane_of(d->book, at32(m, 32), at32(m, 36), at32(m, 40));
    r.SET.memory = at16(m, 50);
    r.SET.bytes = at64(m, 8);
    r.SET.id = at32(m, 44);
    if (d->cupti->version >= CUPTI_11_1) r.SET.graph = at32(m, 72);
    put_operation(d, m + 16, &r, r.SET.id, r.SET.graph != 0);
}

static void put_graph(const struct decoding *d, const uint8_t *g)
{
    struct gpu_record r = {.kind = GPU_GRAPH};
    r.GRAPH.lane = lane_of(d->book, at32(g, 24), at32(g, 32), at32(g, 36));
    r.GRAPH.id = at32(g, 4);
    r.GRAPH.graph = at32(g, 28);
    put_operation(d, g + 8, &r, r.GRAPH.id, false);
}

/* "cudaLaunchKernel_v7000" is cudaLaunchKernel to its users. */
static uint64_t call_name(const struct decoding *d, int domain, uint32_t id)
{
    const char *known = NULL;
    char name[128] = "";
    uint64_t unknown = 0, *number = id < CALL_IDS ? &d->book->call_names[domain][id] : &unknown;
    if (*number) return *number;
    if (d->cupti->callback_name(domain, id, &known) == CUPTI_OK && known)
        snprintf(name, sizeof name, "%s", known);
    char *version = strstr(name, "_v");
    if (version && strspn(version + 2, "0123456789") == strlen(version + 2) && version[3]) *version = 0;
    *number = book_text(d->book, name[0] ? name : "a call that CUPTI does not name");
    return *number;
}

static void put_call(const struct decoding *d, const uint8_t *a)
{
    struct gpu_record r = {.kind = GPU_CALL};
    int domain = at32(a, 0) == CUPTI_DRIVER ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
    if (!take_times(d, a, 8, &r)) return;
    r.CALL.thread = at32(a, 28);
    r.CALL.name = call_name(d, domain, at32(a, 4));
    r.CALL.id = at32(a, 32);
    r.CALL.result = at32(a, 36);
    host_watch(d->book, (uint32_t)r.CALL.thread);
    book_put(d->book, &r);
}

static void put_overhead(const struct decoding *d, const uint8_t *o)
{
    struct gpu_record r = {.kind = GPU_OVERHEAD};
    if (d->cupti->version >= CUPTI_13_0) (free)((void *)(uintptr_t)at64(o, 48)); /* handed to us */
    if (!take_times(d, o, 24, &r)) return;
    r.OVERHEAD.what = at32(o, 4);
    r.OVERHEAD.thread = at32(o, 16);
    book_put(d->book, &r);
}

/* What the driver did to make code for the GPU: its own compiler, and the cache of that. */
static void put_jit(const struct decoding *d, const uint8_t *j)
{
    struct gpu_record r = {.kind = GPU_OVERHEAD};
    if (!take_times(d, j, 16, &r)) return;
    r.OVERHEAD.what = GPU_OVERHEAD_JIT + (at32(j, 8) & 0xff);
    if (d->cupti->version >= CUPTI_13_0) r.OVERHEAD.thread = at32(j, 68);
    book_put(d->book, &r);
}

static bool take_moment(const struct decoding *d, uint64_t at, struct gpu_record *r)
{
    r->MEMORY.at = book_stamp(d->book, at);
    if (!at) d->book->untimed++;
    return at != 0;
}

/* Told when it changes: every piece that is taken from a pool says how large the pool is. */
static void put_pool(const struct decoding *d, const struct gpu_record *piece, uint64_t address,
                     uint64_t bytes)
{
    uint64_t *known;
    struct gpu_record r = *piece;
    if (map_u64_ref(&d->book->pools, address + 1, &known, NULL) != TARE_OK || *known == bytes + 1) return;
    *known = bytes + 1;
    r.MEMORY.what = GPU_POOL_SIZE;
    r.MEMORY.address = address;
    r.MEMORY.bytes = bytes;
    book_put(d->book, &r);
}

static void put_memory(const struct decoding *d, const uint8_t *m)
{
    enum { OWN_POOL = 1 };
    struct gpu_record r = {.kind = GPU_MEMORY};
    bool pooled = at32(m, 72) != 0;
    if (!take_moment(d, at64(m, 32), &r)) return;
    r.MEMORY.what = at32(m, 4) + (pooled ? GPU_POOL_PIECE - GPU_TAKEN : 0);
    r.MEMORY.kind = at32(m, 8);
    r.MEMORY.bytes = at64(m, 24);
    r.MEMORY.address = at64(m, 16);
    r.MEMORY.device = at32(m, 52);
    r.MEMORY.id = at32(m, 12);
    book_put(d->book, &r);
    if (pooled && at32(m, 80) == OWN_POOL) put_pool(d, &r, at64(m, 88), at64(m, 104));
}

static void put_pool_event(const struct decoding *d, const uint8_t *p)
{
    enum { DESTROYED = 2, OWN_POOL = 1 };
    struct gpu_record r = {.kind = GPU_MEMORY};
    if (at32(p, 8) != OWN_POOL || !take_moment(d, at64(p, 56), &r)) return;
    r.MEMORY.kind = GPU_DEVICE_MEMORY;
    r.MEMORY.device = at32(p, 20);
    r.MEMORY.id = at32(p, 12);
    put_pool(d, &r, at64(p, 32), at32(p, 4) == DESTROYED ? 0 : at64(p, 40));
}

static void put_in_range(const struct decoding *d, const uint8_t *e)
{
    struct gpu_record r = {.kind = GPU_IN_RANGE};
    if (at32(e, 4) != CUPTI_CUSTOM2) return; /* another tool's */
    r.IN_RANGE.range = at64(e, 8);
    r.IN_RANGE.id = at32(e, 16);
    book_put(d->book, &r);
}

/* CUPTI may tell of a device more than once; the trace has it once. CUPTI counts bandwidth in kilobytes a
 * second, and its UUID is 16 bytes in the order they are printed: hence the swaps. */
static void put_device(const struct decoding *d, const uint8_t *v)
{
    struct gpu_record r = {.kind = GPU_DEVICE};
    uint64_t *told;
    uint64_t number = at32(v, 112);
    if (map_u64_ref(&d->book->devices, number + 1, &told, NULL) != TARE_OK || *told) return;
    *told = 1;
    r.DEVICE.device = number;
    r.DEVICE.sms = at32(v, 44);
    r.DEVICE.clock_khz = at32(v, 36);
    r.DEVICE.memory = at64(v, 16);
    r.DEVICE.bandwidth = at64(v, 8) * 1000;
    r.DEVICE.capability = (uint64_t)at32(v, 104) << 8 | at32(v, 108);
    r.DEVICE.warps = at32(v, 52);
    r.DEVICE.uuid_high = __builtin_bswap64(at64(v, 120));
    r.DEVICE.uuid_low = __builtin_bswap64(at64(v, 128));
    r.text = at_text(v, 136) ? at_text(v, 136) : "";
    r.text_bytes = strlen(r.text);
    book_put(d->book, &r);
}

/* How much of a record is read; CUDA 13 has the longest, and no record of a kind was ever shorter than what is read of
 * it in its own version. */
typedef void put_fn(const struct decoding *d, const uint8_t *record);
static const struct decoder {
    put_fn *put;
    uint32_t bytes, bytes_before_13;
} decoders[] = {
    [CUPTI_MEMCPY] = {put_copy, 76, 76},
    [CUPTI_MEMSET] = {put_set, 76, 76},
    [CUPTI_DRIVER] = {put_call, 40, 40},
    [CUPTI_RUNTIME] = {put_call, 40, 40},
    [CUPTI_DEVICE] = {put_device, 144, 144},
    [CUPTI_CONCURRENT_KERNEL] = {put_kernel, 160, 160},
    [CUPTI_OVERHEAD] = {put_overhead, 56, 40},
    [CUPTI_MEMCPY2] = {put_copy, 84, 84},
    [CUPTI_EXTERNAL_CORRELATION] = {put_in_range, 20, 20},
    [CUPTI_MEMORY2] = {put_memory, 112, 112},
    [CUPTI_MEMORY_POOL] = {put_pool_event, 64, 64},
    [CUPTI_GRAPH_TRACE] = {put_graph, 40, 40},
    [CUPTI_JIT] = {put_jit, 72, 64},
};

/* A record that does not lie whole in the buffer, or behind the one before it, ends the reading: what CUPTI gives is
 * taken as it comes only as far as it can be true. */
static bool put_record(const struct decoding *d, const uint8_t *record, size_t left)
{
    uint32_t kind = at32(record, 0);
    const struct decoder *how = kind < sizeof decoders / sizeof *decoders ? &decoders[kind] : NULL;
    if (!how || !how->put) return true;
    if (left < (d->cupti->version >= CUPTI_13_0 ? how->bytes : how->bytes_before_13)) return false;
    book_make_room(d->book);
    how->put(d, record);
    return true;
}

void decode_buffer(struct book *b, const struct cupti *c, uint8_t *buffer, size_t valid)
{
    const struct decoding d = {b, c};
    const uint8_t *end = buffer + valid, *before = NULL;
    uint8_t *record = NULL;
    int result;
    while ((result = c->next_record(buffer, valid, &record)) == CUPTI_OK) {
        bool inside = record >= buffer && record > before && record + sizeof(uint32_t) <= end;
        if (!inside || !put_record(&d, record, (size_t)(end - record))) break;
        before = record;
    }
    if (result != CUPTI_END_OF_BUFFER) b->unread++;
}
