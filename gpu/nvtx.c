/* SPDX-License-Identifier: MIT
 * nvtx.c - ranges and marks that the program tells by NVTX. Every copy of NVTX in the process calls in here on its
 * first use and gets our functions. They run on the program's threads: a stamp and one slot of a bounded queue, no
 * lock, no allocation. A range for which there is no room is counted and left out whole: the last slots are kept for
 * the ends of those that were begun. CUPTI is told the range's number, so that kernels are joined to it exactly.
 * Between the blocks of a program that records itself (block.c) ranges are let pass, but still counted in and out. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "core/mem.h"
#include "gpu/gpu.h"
#include "trace/recorder.h"

typedef void nvtx_fn(void);
typedef int get_table_fn(int module, nvtx_fn ****table, unsigned *size);
struct nvtx_callbacks {
    size_t bytes;
    get_table_fn *get_table;
};
typedef const void *get_export_fn(uint32_t id);
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(get_export_fn *get_export);

enum {
    SLOTS = 32768, /* what PyTorch tells in 20 ms, five ranges an operator; pages not used are not there */
    FOR_ENDS = 8192,
    TEXT_BYTES = 200,
    DEPTH = 64,
    EXPORT_CALLBACKS = 1,
    MODULE_CORE = 1,
    MODULE_CORE2 = 5
};

struct slot {
    _Atomic uint64_t turn; /* position + 1 when it is filled, position + SLOTS when it is free again */
    uint32_t kind, thread;
    uint64_t at_ns, range;
    const char *domain;
    char text[TEXT_BYTES];
};

static struct {
    struct slot slots[SLOTS];
    _Atomic uint64_t head, tail, ranges, pushes, lost;
    uint64_t lost_before; /* this recording */
    const struct cupti *_Atomic cupti;
    _Atomic bool used, off, allowed;
} it;

/* What this thread has open by push. */
static __thread struct open_range {
    const void *domain;
    uint64_t range; /* 0: there was no room for it */
    bool joined;    /* CUPTI was told */
} stack[DEPTH];
static __thread unsigned depth;

/* ---- the queue ---- */

/* turn is 0 at first: a free slot of round 0 reads as position itself less its index. `room`: how many may be taken. */
static struct slot *take_slot(uint64_t *position, uint64_t room)
{
    uint64_t at = atomic_load(&it.head);
    if (atomic_load(&it.off)) return NULL;
    for (;;) {
        uint64_t tail = atomic_load(&it.tail); /* may be past `at` by now: then that is old */
        if (at >= tail && at - tail >= room) break;
        struct slot *s = &it.slots[at % SLOTS];
        uint64_t turn = atomic_load(&s->turn), free_turn = at < SLOTS ? 0 : at;
        if (turn != free_turn) {
            uint64_t again = atomic_load(&it.head);
            if (again == at) break; /* full */
            at = again;
        } else if (atomic_compare_exchange_weak(&it.head, &at, at + 1)) {
            *position = at;
            return s;
        }
    }
    atomic_fetch_add(&it.lost, 1);
    return NULL;
}

static bool queue(uint32_t kind, uint64_t range, const char *domain, const char *text)
{
    uint64_t position;
    struct slot *s = take_slot(&position, kind == GPU_RANGE_END ? SLOTS : SLOTS - FOR_ENDS);
    if (!s) return false;
    s->kind = kind;
    s->thread = process_tid();
    s->at_ns = clock_unix_ns() /* CUPTI's clock */;
    s->range = range;
    s->domain = domain;
    size_t n = text ? strnlen(text, TEXT_BYTES - 1) : 0;
    if (n) memcpy(s->text, text, n);
    s->text[n] = 0;
    atomic_store(&s->turn, position + 1);
    return true;
}

/* PyTorch's emit_nvtx() names operators "aten::mm, seq = 12, op_id = 7", no two alike: the number 7 is dropped. 12, if
 * it is there, is that of the node of the backward pass which the operator makes, or is: it is a record of its own. */
static bool is_operator(char *text, uint64_t *sequence)
{
    static const char id[] = ", op_id = ", sequence_is[] = ", seq = ";
    char *at = strstr(text, id), *number = strstr(text, sequence_is);
    *sequence = UINT64_MAX;
    if (number) *sequence = strtoull(number + sizeof sequence_is - 1, NULL, 10);
    if (number && (!at || number < at)) at = number;
    if (at) *at = 0;
    return at;
}

static void put_sequence(struct book *b, uint64_t range, uint64_t sequence)
{
    struct gpu_record r = {.kind = GPU_RANGE_SEQUENCE};
    r.RANGE_SEQUENCE.range = range;
    r.RANGE_SEQUENCE.sequence = sequence;
    if (sequence != UINT64_MAX) book_put(b, &r);
}

static void put_range(struct book *b, struct slot *s)
{
    struct gpu_record r = {.kind = (enum gpu_kind)s->kind};
    uint64_t sequence = UINT64_MAX;
    book_make_room(b);
    if (s->kind == GPU_RANGE_BEGIN && !s->domain && is_operator(s->text, &sequence))
        s->domain = GPU_DOMAIN_OP;
    uint64_t name = s->kind == GPU_RANGE_END ? 0 : book_text(b, s->text);
    uint64_t domain = s->domain ? book_text(b, s->domain) : 0;
    uint64_t at = book_stamp(b, s->at_ns);
    if (s->kind == GPU_RANGE_END) {
        r.RANGE_END.at = at;
        r.RANGE_END.range = s->range;
    } else if (s->kind == GPU_RANGE_BEGIN) {
        r.RANGE_BEGIN.at = at;
        r.RANGE_BEGIN.thread = s->thread;
        r.RANGE_BEGIN.range = s->range;
        r.RANGE_BEGIN.name = name;
        r.RANGE_BEGIN.domain = domain;
    } else {
        r.RANGE_MARK.at = at;
        r.RANGE_MARK.thread = s->thread;
        r.RANGE_MARK.name = name;
        r.RANGE_MARK.domain = domain;
    }
    book_put(b, &r);
    put_sequence(b, s->range, sequence);
}

void nvtx_collect(struct book *b)
{
    uint64_t tail = atomic_load(&it.tail); /* ours alone to move */
    for (;; tail++) {
        struct slot *s = &it.slots[tail % SLOTS];
        if (atomic_load(&s->turn) != tail + 1) break;
        put_range(b, s);
        atomic_store(&s->turn, tail + SLOTS);
        atomic_store(&it.tail, tail + 1);
    }
    b->ranges_lost = atomic_load(&it.lost) - it.lost_before;
}

/* ---- joining kernels to ranges ---- */

static void join_kernels(void)
{
    const struct cupti *c = atomic_load(&it.cupti);
    if (c && c->push_external && c->pop_external && atomic_load(&it.used))
        c->enable(CUPTI_EXTERNAL_CORRELATION);
}

/* Before the thread that collects is there. What was told as the last block ended is no part of this one. */
void nvtx_forget(void)
{
    uint64_t tail = atomic_load(&it.tail);
    if (!atomic_load(&it.off)) return;
    for (; atomic_load(&it.slots[tail % SLOTS].turn) == tail + 1; tail++) {
        atomic_store(&it.slots[tail % SLOTS].turn, tail + SLOTS);
        atomic_store(&it.tail, tail + 1);
    }
    it.lost_before = atomic_load(&it.lost);
}

void nvtx_use(const struct cupti *c)
{
    atomic_store(&it.off, false);
    atomic_store(&it.cupti, c);
    join_kernels();
}

/* CUPTI stays known: what was pushed is popped when its range ends, though nothing is told of it. */
void nvtx_rest(void)
{
    atomic_store(&it.off, true);
}

void nvtx_allow(void)
{
    if (!atomic_exchange(&it.allowed, true)) atomic_store(&it.off, true);
}

uint64_t nvtx_pushes(void)
{
    return atomic_load(&it.pushes);
}

void nvtx_abandon(void)
{
    atomic_store(&it.off, true);
    atomic_store(&it.cupti, NULL);
}

/* ---- what the program calls ---- */

struct handle { /* of a domain or a registered text; never freed: the program may keep it */
    char text[TEXT_BYTES];
};

/* 0: no room, and nothing is told of its end. */
static uint64_t begin_range(const char *domain, const char *text)
{
    if (atomic_load(&it.off)) return 0;
    uint64_t range = atomic_fetch_add(&it.ranges, 1) + 1;
    return queue(GPU_RANGE_BEGIN, range, domain, text) ? range : 0;
}

static void end_range(uint64_t range)
{
    if (range) queue(GPU_RANGE_END, range, NULL, NULL);
}

static const char *domain_name(const void *domain)
{
    return domain ? ((const struct handle *)domain)->text : NULL;
}

static void tell_cupti(struct open_range *r)
{
    const struct cupti *c = atomic_load(&it.cupti);
    r->joined = r->range && c && c->push_external && c->pop_external &&
                c->push_external(CUPTI_CUSTOM2, r->range) == CUPTI_OK;
}

/* Ranges deeper than DEPTH are counted as lost: nothing remembers them until their end. */
static int push(const void *domain, const char *text)
{
    atomic_fetch_add_explicit(&it.pushes, 1, memory_order_relaxed);
    if (depth < DEPTH) {
        stack[depth] = (struct open_range){domain, begin_range(domain_name(domain), text), false};
        tell_cupti(&stack[depth]);
    } else if (!atomic_load(&it.off)) {
        atomic_fetch_add(&it.lost, 1);
    }
    return (int)depth++;
}

/* The innermost of that domain: others may have been pushed since. CUPTI has a plain stack: it forgets those, too, and
 * is told them anew. */
static int pop(const void *domain)
{
    const struct cupti *c = atomic_load(&it.cupti);
    unsigned at = depth;
    if (!depth) return -1;
    if (depth > DEPTH) { /* too deep to be told apart */
        depth--;
        return (int)depth;
    }
    while (at && stack[at - 1].domain != domain) at--;
    if (!at) return -1;
    end_range(stack[at - 1].range);
    for (unsigned i = at - 1; i < depth; i++)
        if (stack[i].joined && c) c->pop_external(CUPTI_CUSTOM2, NULL);
    memmove(&stack[at - 1], &stack[at], (depth - at) * sizeof *stack);
    depth--;
    for (unsigned i = at - 1; i < depth; i++) tell_cupti(&stack[i]);
    return (int)depth;
}

/* UTF-8 from wchar_t, which is 32 bits wide on Linux: one unit is one character. The loop ends while four
 * bytes and the NUL still fit, so that no character is cut in two. */
static void from_wide(char out[TEXT_BYTES], const wchar_t *text)
{
    size_t n = 0;
    for (; text && *text && n + 5 < TEXT_BYTES; text++) {
        uint32_t c = (uint32_t)*text;
        if (c < 0x80) {
            out[n++] = (char)c;
        } else if (c < 0x800) {
            out[n++] = (char)(0xc0 | c >> 6);
            out[n++] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            out[n++] = (char)(0xe0 | c >> 12);
            out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[n++] = (char)(0x80 | (c & 0x3f));
        } else {
            out[n++] = (char)(0xf0 | (c >> 18 & 7));
            out[n++] = (char)(0x80 | (c >> 12 & 0x3f));
            out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[n++] = (char)(0x80 | (c & 0x3f));
        }
    }
    out[n] = 0;
}

/* The message of an event's attributes: plain, wide or registered. */
static const char *message(const uint8_t *attributes, char room[TEXT_BYTES])
{
    enum { TYPE_AT = 32, VALUE_AT = 40, PLAIN = 1, WIDE = 2, REGISTERED = 3 };
    if (!attributes || at16(attributes, 2) < VALUE_AT + 8) return "";
    const char *value = at_text(attributes, VALUE_AT);
    switch (value ? at32(attributes, TYPE_AT) : 0) {
    case PLAIN: return value;
    case WIDE: from_wide(room, (const wchar_t *)(const void *)value); return room;
    case REGISTERED: return ((const struct handle *)(const void *)value)->text;
    default: return "";
    }
}

static struct handle *new_handle(const char *text)
{
    struct handle *h = mem_new(1, sizeof *h);
    if (h && text) memcpy(h->text, text, strnlen(text, TEXT_BYTES - 1));
    return h;
}

static void domain_mark_ex(const void *domain, const uint8_t *attributes)
{
    char room[TEXT_BYTES];
    queue(GPU_RANGE_MARK, 0, domain_name(domain), message(attributes, room));
}
static uint64_t domain_start_ex(const void *domain, const uint8_t *attributes)
{
    char room[TEXT_BYTES];
    return begin_range(domain_name(domain), message(attributes, room));
}
static void domain_end(const void *domain, uint64_t range)
{
    (void)domain;
    end_range(range);
}
static int domain_push_ex(const void *domain, const uint8_t *attributes)
{
    char room[TEXT_BYTES];
    return push(domain, message(attributes, room));
}
static int domain_pop(const void *domain)
{
    return pop(domain);
}
static struct handle *register_a(const void *domain, const char *text)
{
    (void)domain;
    return new_handle(text);
}
static struct handle *register_w(const void *domain, const wchar_t *text)
{
    char room[TEXT_BYTES];
    (void)domain;
    from_wide(room, text);
    return new_handle(room);
}
static struct handle *domain_create_w(const wchar_t *name)
{
    return register_w(NULL, name);
}
static void mark_ex(const uint8_t *attributes)
{
    domain_mark_ex(NULL, attributes);
}
static void mark_a(const char *text)
{
    queue(GPU_RANGE_MARK, 0, NULL, text);
}
static void mark_w(const wchar_t *text)
{
    char room[TEXT_BYTES];
    from_wide(room, text);
    mark_a(room);
}
static uint64_t start_ex(const uint8_t *attributes)
{
    return domain_start_ex(NULL, attributes);
}
static uint64_t start_a(const char *text)
{
    return begin_range(NULL, text);
}
static uint64_t start_w(const wchar_t *text)
{
    char room[TEXT_BYTES];
    from_wide(room, text);
    return start_a(room);
}
static void end(uint64_t range)
{
    domain_end(NULL, range);
}
static int push_ex(const uint8_t *attributes)
{
    return domain_push_ex(NULL, attributes);
}
static int push_a(const char *text)
{
    return push(NULL, text);
}
static int push_w(const wchar_t *text)
{
    char room[TEXT_BYTES];
    from_wide(room, text);
    return push(NULL, room);
}
static int pop_plain(void)
{
    return pop(NULL);
}

/* By NVTX's numbers of its functions; those that are missing stay NVTX's own, which do nothing. */
static nvtx_fn *const core[] = {
    [1] = (nvtx_fn *)mark_ex,  [2] = (nvtx_fn *)mark_a,   [3] = (nvtx_fn *)mark_w,
    [4] = (nvtx_fn *)start_ex, [5] = (nvtx_fn *)start_a,  [6] = (nvtx_fn *)start_w,
    [7] = (nvtx_fn *)end,      [8] = (nvtx_fn *)push_ex,  [9] = (nvtx_fn *)push_a,
    [10] = (nvtx_fn *)push_w,  [11] = (nvtx_fn *)pop_plain,
};
static nvtx_fn *const core2[] = {
    [1] = (nvtx_fn *)domain_mark_ex, [2] = (nvtx_fn *)domain_start_ex, [3] = (nvtx_fn *)domain_end,
    [4] = (nvtx_fn *)domain_push_ex, [5] = (nvtx_fn *)domain_pop,      [10] = (nvtx_fn *)register_a,
    [11] = (nvtx_fn *)register_w,    [12] = (nvtx_fn *)new_handle,     [13] = (nvtx_fn *)domain_create_w,
};

static bool fill(get_table_fn *get_table, int module, nvtx_fn *const *ours, unsigned n)
{
    nvtx_fn ***table = NULL;
    unsigned size = 0;
    if (!get_table(module, &table, &size) || !table) return false;
    for (unsigned i = 1; i < n && i < size; i++)
        if (ours[i] && table[i]) *table[i] = ours[i];
    return true;
}

/* A child that a program forks before it uses CUDA may use it itself: what the parent had open or queued is the
 * parent's, and a slot that another thread was about to fill will never be filled. */
static void forget_parent(void)
{
    for (size_t i = 0; i < SLOTS; i++) atomic_store(&it.slots[i].turn, 0);
    atomic_store(&it.head, 0);
    atomic_store(&it.tail, 0);
    atomic_store(&it.lost, 0);
    for (unsigned i = 0; i < depth && i < DEPTH; i++) stack[i].range = 0;
}

int InitializeInjectionNvtx2(get_export_fn *get_export)
{
    const struct nvtx_callbacks *c = get_export ? get_export(EXPORT_CALLBACKS) : NULL;
    const char *trace = secure_getenv("TARE_GPU_TRACE");
    bool wanted = (trace && trace[0]) || atomic_load(&it.allowed);
    if (!wanted || !c || c->bytes < sizeof *c || !c->get_table) return 0;
    fill(c->get_table, MODULE_CORE, core, sizeof core / sizeof *core);
    fill(c->get_table, MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
    if (!atomic_exchange(&it.used, true)) {
        pthread_atfork(NULL, NULL, forget_parent);
        join_kernels();
    }
    return 1;
}

/* ---- what a program that records itself tells (block.c) ---- */

static struct handle module_domain = {GPU_DOMAIN_MODULE};

void nvtx_push(const char *name, bool module)
{
    if (!atomic_exchange(&it.used, true)) join_kernels();
    push(module ? &module_domain : NULL, name);
}

void nvtx_pop(bool module)
{
    pop(module ? &module_domain : NULL);
}
