/* SPDX-License-Identifier: MIT
 * seeds_trace.c - writes the corpora of fuzz_trace, fuzz_live and fuzz_memory: small whole files of every chunk and
 * extent type, and for each way of lying a file that does. Deterministic, so that the corpora can be made again:
 *     cc -O2 -std=gnu11 -D_GNU_SOURCE -Iinclude -Isrc -Itests/unit fuzz/seeds_trace.c src/core/{crc,mem,error}.c \
 *        src/trace/{fold,pack,memory_pack}.c -lzstd -o build/seeds && build/seeds fuzz/corpus */
#include <zstd.h>

#include "made_live.h"
#include "trace/memory.h"
#include "trace_fixture.h"

static const char *root;

static void save(const char *name, const void *bytes, size_t n)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", root, name);
    file_put(path, bytes, n);
}

/* ---- archives ---- */

static void basics(struct made *m)
{
    struct process_info p = made_info(MADE_UID);
    made_header(m);
    made_process(m, &p);
    made_site(m, MADE_UID, 1, TARE_SITE_SCOPE, "outer");
    made_site(m, MADE_UID, 2, TARE_SITE_SCOPE, "inner");
    made_site(m, MADE_UID, 3, TARE_SITE_COUNTER, "bytes");
    made_site(m, MADE_UID, 4, TARE_SITE_MARK, "epoch");
    made_thread(m, MADE_UID, 0, 0);
}

static void some_events(struct made *m)
{
    struct raw_event e[12] = {raw(RAW_BEGIN, 1, 100), raw(RAW_BEGIN, 2, 200), raw(RAW_END, 0, 300)};
    e[3] = (struct raw_event){MADE_TICKS + 700, raw_what(RAW_COUNT, 0, 1, 0, 3)};
    e[4] = (struct raw_event){1, (uint64_t)-5};
    e[5] = (struct raw_event){MADE_TICKS + 800, raw_what(RAW_MARK, 0, 1, 5, 4)};
    e[6].ticks = 1;
    memcpy(&e[6].what, "hello", 5);
    e[7] = raw(RAW_BEGIN, 2, 500);
    e[8] = raw(RAW_END, 0, 600);
    e[9] = raw(RAW_END, 0, 100000);
    made_events(m, 0, 1, e, 10);
}

static void some_tree(struct made *m)
{
    static const struct weigh_pair pairs[] = {{1000, 1100, 2}, {1010, 1100, 2}};
    const struct made_node nodes[] = {
        {.site = 0},
        {.site = 1, .count = 10, .total = 20000, .off_count = 2, .off_total = 3000, .pairs = pairs, .n_pairs = 2},
        {.parent = 1, .site = 2, .count = 20, .total = 8000},
        {.parent = 1, .site = 3, .kind = TARE_SITE_COUNTER, .count = 10, .total = -50},
    };
    made_tree(m, MADE_UID, 0, nodes, 4);
}

static void rest(struct made *m)
{
    struct clock_pair pairs[2] = {made_pair(0), made_pair(1000000)};
    made_clock(m, MADE_UID, pairs, 2);
    made_end(m, MADE_UID);
}

static void whole(struct made *m)
{
    basics(m);
    some_events(m);
    some_tree(m);
    rest(m);
}

static void zstd_chunk(struct made *m, unsigned type, const void *plain, size_t n, uint32_t claim)
{
    uint8_t packed[4096];
    size_t size = ZSTD_compress(packed, sizeof packed, plain, n, 3);
    MUST(!ZSTD_isError(size));
    struct chunk_header h = {.type = (uint16_t)type, .codec = CODEC_ZSTD, .process = MADE_UID};
    h.stored_bytes = (uint32_t)size;
    h.plain_bytes = claim;
    made_chunk_header(m, h, packed);
}

static void save_trace(struct made *m, const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "trace/%s", name);
    save(path, m->bytes, m->n);
    memset(m->bytes, 0, m->n);
    m->n = 0;
}

/* A scope that waits twice, and what was said of events that are not there. */
static void pauses(struct made *m)
{
    struct raw_event e[8] = {raw(RAW_BEGIN, 1, 100), raw(RAW_END, 1, 200), raw(RAW_RESUME, 1, 300),
                             raw(RAW_BEGIN, 1, 300), raw(RAW_END, 2, 400), raw(RAW_RESUME, 2, 500),
                             raw(RAW_BEGIN, 1, 500), raw(RAW_END, 0, 600)};
    e[1].what |= RAW_FLAG_PAUSED << 8, e[4].what |= RAW_FLAG_PAUSED << 8, e[2].what |= RAW_FLAG_WAITED << 8;
    basics(m);
    made_events(m, 0, 1, e, 8);
    rest(m);
    save_trace(m, "pauses");
    basics(m);
    some_events(m);
    struct enc *x = made_open(m);
    const uint64_t lies[] = {0, 1, 0, UINT64_MAX, 1, 5, 0, 5, UINT64_MAX, 7};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) enc_uint(x, lies[i]);
    made_close(m, CHUNK_PAUSES, MADE_UID);
    rest(m);
    save_trace(m, "pauses-lie");
}

/* One record of each kind; `seq` as of a chunk of slot 1. */
static void memory_payload(struct enc *e, uint64_t seq, uint64_t from)
{
    struct memory_state s = {{0}};
    enc_uints(e, 1, seq);
    for (int kind = 1; kind < MEMORY_KINDS; kind++) {
        struct memory_record r = {.kind = (enum memory_kind)kind, .text = "\xe9\x01\xd8", .text_bytes = 3};
        for (int i = 0; i < 12; i++) r.v[i] = (uint64_t)i + 1;
        if (memory_has_time(r.kind)) r.v[0] = from + (uint64_t)kind * 100;
        MUST(memory_pack(&s, e, &r));
    }
}

static void memory(struct made *m)
{
    basics(m);
    for (uint64_t seq = 3; seq; seq--) { /* the last one comes first, and one of them twice */
        memory_payload(made_open(m), seq > 1 ? seq : 2, MADE_TICKS + seq * 5000);
        made_close(m, CHUNK_MEMORY, MADE_UID);
    }
    rest(m);
    save_trace(m, "memory");
    struct enc *e = made_open(m);
    memory_payload(e, 1, MADE_TICKS);
    save("memory/each-kind", m->payload, (size_t)(e->p - m->payload));
    save("memory/torn", m->payload, (size_t)(e->p - m->payload) / 2);
}

static void tell(struct memory_state *s, struct enc *e, struct memory_record r, const char *text)
{
    r.text = text;
    r.text_bytes = strlen(text);
    MUST(memory_pack(s, e, &r));
}

/* Who allocates in a program of 4 s: stacks 1 main, 2 main > load, 3 main > cache, 4 main > libtmp.so. */
static void memory_who(struct memory_state *s, struct enc *e, uint64_t every)
{
    static const char *const names[] = {"/app/train.py", "main", "/app/data.py", "load", "cache"};
    static const uint64_t codes[][5] = {{1, 1, 2, 10, 0x030b}, {2, 3, 4, 20, 0x030b}, {3, 3, 5, 30, 0x030b}};
    static const uint64_t stacks[][5] = {
        {1, 0, MEMORY_PYTHON, 1, 0}, {2, 1, MEMORY_PYTHON, 2, 0}, {3, 1, MEMORY_PYTHON, 3, 0},
        {4, 1, MEMORY_NATIVE, 0x7234, 1}};
    tell(s, e, (struct memory_record){.kind = MEMORY_START, .v = {every, 64, 4096}}, "made");
    for (uint64_t i = 0; i < 5; i++) tell(s, e, (struct memory_record){.kind = MEMORY_NAME, .v = {i + 1}}, names[i]);
    tell(s, e, (struct memory_record){.kind = MEMORY_MODULE, .v = {1, 0x7000, 0x9000, 0x7000}},
         "ab01 /lib/libtmp.so.1");
    for (int i = 0; i < 3; i++) {
        struct memory_record r = {.kind = MEMORY_CODE};
        memcpy(r.v, codes[i], sizeof codes[i]);
        tell(s, e, r, "\xef"); /* no column, 8 units, the first line; the difference is missing: 0 */
    }
    for (int i = 0; i < 4; i++) {
        struct memory_record r = {.kind = MEMORY_STACK, .text = ""};
        memcpy(r.v, stacks[i], sizeof stacks[i]);
        MUST(memory_pack(s, e, &r));
    }
}

static void happens(struct memory_state *s, struct enc *e, enum memory_kind kind, const uint64_t *v)
{
    struct memory_record r = {.kind = kind, .text = ""};
    memcpy(r.v, v, 7 * sizeof *v);
    r.v[0] = MADE_RAW_NS + v[0] * 1000000;
    MUST(memory_pack(s, e, &r));
}

/* main maps 8 MiB and holds them, load takes 4 MiB for 1 s at 1 s, cache grows by 64 KiB in 40 ms, a library takes
 * 1 MiB and gives it back at once each 40 ms. */
static void memory_what(struct memory_state *s, struct enc *e)
{
    happens(s, e, MEMORY_MAP, (uint64_t[7]){1, 0x100000000, 8 << 20, 1, MEMORY_MAP_ANONYMOUS});
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t t = 10 + i * 40;
        if (i == 25) happens(s, e, MEMORY_ALLOC, (uint64_t[7]){t, 0x200000, 4 << 20, 2});
        if (i == 50) happens(s, e, MEMORY_FREE, (uint64_t[7]){t, 0x200000});
        happens(s, e, MEMORY_ALLOC, (uint64_t[7]){t, 0x1000000 + i * 0x10000, 64 << 10, 3});
        happens(s, e, MEMORY_ALLOC, (uint64_t[7]){t, 0x8000000, 1 << 20, 4});
        happens(s, e, MEMORY_FREE, (uint64_t[7]){t + 1, 0x8000000});
    }
    happens(s, e, MEMORY_HEAP, (uint64_t[7]){4000, 20 << 20, 3 << 20});
}

/* Two processes with the same history: one recorded all of it, of the other it is said that it sampled, and lost. */
static void memory_history(struct made *m)
{
    made_header(m);
    for (uint64_t i = 0; i < 2; i++) {
        struct process_info p = made_info(MADE_UID + i);
        struct memory_state s = {{0}};
        p.mode = MODE_MEMORY;
        p.tsc = 0;
        p.pid += (uint32_t)i;
        made_process(m, &p);
        struct enc *e = made_open(m);
        enc_uints(e, 0, 1);
        memory_who(&s, e, i * (512 << 10));
        if (i) tell(&s, e, (struct memory_record){.kind = MEMORY_LOST, .v = {7, 0, 2}}, "");
        if (i) tell(&s, e, (struct memory_record){.kind = MEMORY_NOTE}, "a remark of the agent");
        memory_what(&s, e);
        made_close(m, CHUNK_MEMORY, MADE_UID + i);
        made_end(m, MADE_UID + i);
    }
    save_trace(m, "memory-history");
}

static void honest(struct made *m)
{
    pauses(m);
    memory(m);
    memory_history(m);
    whole(m);
    save("trace/truncated", m->bytes, m->n - 70);
    save("trace/header-only", m->bytes, sizeof(struct archive_header));
    m->bytes[200] ^= 4;
    save("trace/flipped", m->bytes, m->n);
    m->bytes[200] ^= 4;
    save_trace(m, "whole");
    basics(m);
    some_events(m);
    rest(m);
    save_trace(m, "events-only");
    basics(m);
    static uint8_t plain[60000];
    struct enc e = {plain, plain + sizeof plain, false};
    for (unsigned i = 5; i < 40; i++) {
        enc_uint(&e, i), enc_uint(&e, i), enc_uint(&e, 0);
        enc_str(&e, "same", 4), enc_str(&e, "file", 4);
    }
    zstd_chunk(m, CHUNK_SITES, plain, (size_t)(e.p - plain), (uint32_t)(e.p - plain));
    rest(m);
    save_trace(m, "zstd");
}

static void one_payload(struct made *m, const char *name, unsigned type, const uint64_t *v, size_t n)
{
    basics(m);
    struct enc *e = made_open(m);
    for (size_t i = 0; i < n; i++) enc_uint(e, v[i]);
    made_close(m, type, MADE_UID);
    rest(m);
    save_trace(m, name);
}

static void lies(struct made *m)
{
    static uint8_t zeros[1 << 20];
    const uint64_t big = UINT64_MAX >> 1;
    one_payload(m, "huge-count", CHUNK_EVENTS, (const uint64_t[]){0, 1, 0, 0, 0, big, 1, 9, 2, 1, 2, 0x80},
                12);
    one_payload(m, "huge-sites", CHUNK_EVENTS, (const uint64_t[]){0, 1, 0, 0, 0, 3, 1, 9, big, 1, 2}, 11);
    one_payload(m, "huge-depth", CHUNK_EVENTS, (const uint64_t[]){0, 1, 0, big, 9, 3, 1, 9, 1, 1, 0x80, 0x80},
                12);
    one_payload(
        m, "time-wraps", CHUNK_EVENTS,
        (const uint64_t[]){0, 1, 16, 0, 0, 3, UINT64_MAX >> 18, 9, 1, 1, 0x60, UINT64_MAX, 0xc0, UINT64_MAX},
        14);
    one_payload(m, "huge-name", CHUNK_SITES, (const uint64_t[]){9, 1, 0, big}, 4);
    one_payload(m, "tree-cycle", CHUNK_TREE,
                (const uint64_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0}, 20);
    one_payload(m, "tree-buckets", CHUNK_TREE,
                (const uint64_t[]){0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 767, big, 768, big, 0, 0},
                21);
    one_payload(m, "tree-number", CHUNK_TREE, (const uint64_t[]){0, UINT32_MAX, 5, 1, 0, 1}, 6);
    one_payload(m, "many-pairs", CHUNK_CLOCK, (const uint64_t[]){big, 1, 2}, 3);
    one_payload(m, "unknown-type", 99, (const uint64_t[]){1, 2, 3}, 3);
    basics(m);
    zstd_chunk(m, CHUNK_SITES, zeros, sizeof zeros, sizeof zeros);
    zstd_chunk(m, CHUNK_SITES, zeros, 1000, 64 << 20);
    zstd_chunk(m, CHUNK_THREAD, zeros, sizeof zeros, sizeof zeros);
    rest(m);
    save_trace(m, "giant-plain");
    basics(m);
    struct chunk_header h = {
        .magic = CHUNK_MAGIC, .type = CHUNK_SITES, .stored_bytes = 64, .plain_bytes = 64};
    for (int i = 0; i < 40; i++) made_add(m, &h, sizeof h);
    rest(m);
    save_trace(m, "only-headers");
    struct process_info p = made_info(MADE_UID), q = made_info(MADE_UID + 1);
    p.parent_uid = q.uid, q.parent_uid = p.uid, p.site_base = q.site_base = UINT32_MAX;
    made_header(m);
    made_process(m, &p);
    made_process(m, &q);
    some_events(m);
    rest(m);
    save_trace(m, "parents-in-a-ring");
}

/* ---- live files: the header cut to 256 bytes, as fuzz_live expects ---- */

static void save_live(struct made *m, const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "live/%s", name);
    memmove(m->bytes + 256, m->bytes + LIVE_HEADER_BYTES, m->n - LIVE_HEADER_BYTES);
    save(path, m->bytes, m->n - LIVE_HEADER_BYTES + 256);
    memset(m->bytes, 0, m->n);
    m->n = 0;
}

static struct node *live_whole(struct made *m, uint32_t nodes)
{
    made_live(m);
    struct extent *x = made_extent(m, EXTENT_SITES, 64);
    size_t at = 0;
    made_live_site(x, &at, 1, TARE_SITE_SCOPE, "outer");
    made_live_site(x, &at, 2, TARE_SITE_MARK, "m");
    struct node *n = made_live_slot(m, 0, nodes);
    x = made_extent(m, EXTENT_EVENTS, 8 * sizeof(struct raw_event));
    x->seq = 1;
    struct raw_event *e = (struct raw_event *)(x + 1);
    e[0] = raw(RAW_BEGIN, 1, 100);
    e[1] = (struct raw_event){MADE_TICKS + 300, raw_what(RAW_MARK, 0, 2, 9, 2)};
    e[2] = (struct raw_event){1, 0x4141414141414141};
    e[3] = (struct raw_event){1, 0x42};
    e[4] = raw(RAW_END, 0, 90);
    return n;
}

static void live_memory(struct made *m)
{
    made_live(m);
    for (uint64_t i = 0; i < 3; i++) {
        struct extent *x = made_extent(m, EXTENT_MEMORY, 400);
        struct enc e = {(uint8_t *)(x + 1), (uint8_t *)(x + 1) + 400, false};
        memory_payload(&e, i + 1, MADE_TICKS);
        x->seq = i;                                                             /* the first is not in use */
        x->spare[0] = i < 2 ? (uint64_t)(e.p - (uint8_t *)(x + 1)) : UINT64_MAX; /* and the last one lies */
    }
    save_live(m, "memory");
}

static void live_files(struct made *m)
{
    live_memory(m);
    live_whole(m, 2);
    save_live(m, "whole");
    struct node *n = live_whole(m, 2);
    n[2].child = made_ref(m, &n[1]);
    save_live(m, "cycle-down");
    n = live_whole(m, 2);
    n[2].next = made_ref(m, &n[2]);
    save_live(m, "cycle-across");
    n = live_whole(m, 2);
    n[2].parent = made_ref(m, &n[2]);
    n[1].child = made_ref(m, &n[1]);
    n[1].next = UINT32_MAX;
    save_live(m, "wild-links");
    n = live_whole(m, 2);
    for (int i = 0; i < OCTAVES; i++) n[1].octave[i] = n[1].octave[bucket_octave(1000)];
    n[1].pairs = made_ref(m, n);
    n[2].child = n[0].child;
    for (int i = 0; i < 20; i++) {
        struct extent *x = made_extent(m, EXTENT_TREE, 64);
        x->spare[1] = 1;
        x->thread = (uint32_t)i;
        ((struct slot_header *)(x + 1))->root = made_ref(m, n);
    }
    save_live(m, "many-slots-one-tree");
    live_whole(m, 1);
    ((struct extent *)(void *)(m->bytes + LIVE_HEADER_BYTES))->bytes = UINT64_MAX - 63;
    save_live(m, "huge-extent");
    live_whole(m, 1);
    ((struct live_header *)(void *)m->bytes)->used = UINT64_MAX;
    save_live(m, "huge-used");
}

int main(int argc, char **argv)
{
    if (argc != 2) return 1;
    root = argv[1];
    struct made *m = made_new();
    honest(m);
    lies(m);
    live_files(m);
    made_free(m);
    return 0;
}
