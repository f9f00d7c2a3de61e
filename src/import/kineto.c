/* SPDX-License-Identifier: MIT
 * kineto.c - see kineto.h: the walk through the file, and what GPUs did as records. */
#include "import/kineto.h"

#include <stdio.h>
#include <string.h>

#include "core/mem.h"

enum { TEXT_MOST = GPU_TEXT_MOST, DEVICES_MOST = 1024 };

struct importing {
    const char *name;
    struct json_pull json;
    struct trace_out to;
    struct kineto_host *host;
    struct kineto_event event;
    struct kineto_counts *counts;
    int64_t first;             /* the earliest time of all that is taken */
    int64_t base_ns;           /* the wall clock at time 0 of the file; KINETO_ABSENT: not told */
    int64_t pid;               /* of the host; KINETO_ABSENT: none yet */
    struct buf command, ranks; /* ranks: what distributedInfo says */
    int64_t rank, world_size;  /* of it; below 0: not told */
    struct map_u64 reserved;   /* device -> bytes of the pool that were told last */
    tare_error *err;
};

/* ---- one event ---- */

static uint64_t or_zero(int64_t v)
{
    return v > 0 ? (uint64_t)v : 0;
}

static uint64_t lane_of(struct importing *i, const struct kineto_event *e)
{
    struct gpu_record r = {.kind = GPU_LANE};
    r.LANE.device = or_zero(e->device) & UINT32_MAX;
    r.LANE.context = or_zero(e->context);
    r.LANE.stream = or_zero(e->stream);
    return trace_out_number(&i->to, &r);
}

static uint64_t shape_of(struct importing *i, const struct kineto_event *e)
{
    struct gpu_record r = {.kind = GPU_SHAPE};
    if (e->grid[0] == KINETO_ABSENT || e->block[0] == KINETO_ABSENT) return 0;
    r.SHAPE.grid_x = or_zero(e->grid[0]);
    r.SHAPE.grid_y = or_zero(e->grid[1]);
    r.SHAPE.grid_z = or_zero(e->grid[2]);
    r.SHAPE.block_x = or_zero(e->block[0]);
    r.SHAPE.block_y = or_zero(e->block[1]);
    r.SHAPE.block_z = or_zero(e->block[2]);
    r.SHAPE.registers = or_zero(e->registers);
    r.SHAPE.shared_static = or_zero(e->shared); /* Kineto tells the sum of both */
    return trace_out_number(&i->to, &r);
}

static void put_kernel(struct importing *i, const struct kineto_event *e)
{
    struct gpu_record r = {.kind = GPU_KERNEL};
    r.KERNEL.start = (uint64_t)e->ts + KINETO_OFFSET;
    r.KERNEL.duration = (uint64_t)e->dur;
    r.KERNEL.lane = lane_of(i, e);
    r.KERNEL.name = trace_out_name(&i->to, e->name.data, e->name.len);
    r.KERNEL.shape = shape_of(i, e);
    r.KERNEL.id = or_zero(e->correlation) & UINT32_MAX;
    r.KERNEL.node = or_zero(e->graph_node);
    trace_out_put(&i->to, &r);
    i->counts->kernels++;
    i->counts->kernel_ns += (uint64_t)e->dur;
}

static unsigned memory_named(const char *s, const char *end)
{
    static const struct {
        const char *word;
        unsigned memory;
    } words[] = {{"Pageable", GPU_PAGEABLE},
                 {"Pinned", GPU_PINNED},
                 {"Device", GPU_DEVICE_MEMORY},
                 {"Array", GPU_ARRAY},
                 {"Managed", GPU_MANAGED}};
    for (size_t i = 0; s && i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(end - s) >= n && memcmp(s, words[i].word, n) == 0) return words[i].memory;
    }
    return 0;
}

/* "Memcpy HtoD (Pageable -> Device)": direction and memory are in the name alone. */
static uint64_t copy_named(const struct buf *name)
{
    static const struct {
        const char *word;
        enum gpu_direction direction;
    } words[] = {{"HtoD", GPU_TO_DEVICE}, {"HtoA", GPU_TO_DEVICE}, {"DtoH", GPU_TO_HOST},
                 {"AtoH", GPU_TO_HOST},   {"DtoD", GPU_ON_DEVICE}, {"AtoA", GPU_ON_DEVICE},
                 {"AtoD", GPU_ON_DEVICE}, {"DtoA", GPU_ON_DEVICE}, {"HtoH", GPU_ON_HOST},
                 {"PtoP", GPU_PEER}};
    const char *s = name->data, *end = s + name->len, *open = strchr(s, '('), *arrow = strstr(s, " -> ");
    uint64_t what = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words && !what; i++)
        if (strstr(s, words[i].word)) what = words[i].direction;
    return what | (uint64_t)memory_named(open ? open + 1 : NULL, end) << 8 |
           (uint64_t)memory_named(arrow ? arrow + 4 : NULL, end) << 16;
}

static void put_copy(struct importing *i, const struct kineto_event *e)
{
    struct gpu_record r = {.kind = GPU_COPY};
    r.COPY.start = (uint64_t)e->ts + KINETO_OFFSET;
    r.COPY.duration = (uint64_t)e->dur;
    r.COPY.lane = lane_of(i, e);
    r.COPY.what = copy_named(&e->name);
    r.COPY.bytes = or_zero(e->bytes);
    r.COPY.id = or_zero(e->correlation) & UINT32_MAX;
    trace_out_put(&i->to, &r);
    i->counts->copies++;
    i->counts->copy_ns += (uint64_t)e->dur;
}

static void put_fill(struct importing *i, const struct kineto_event *e)
{
    const char *open = strchr(e->name.data, '(');
    struct gpu_record r = {.kind = GPU_SET};
    r.SET.start = (uint64_t)e->ts + KINETO_OFFSET;
    r.SET.duration = (uint64_t)e->dur;
    r.SET.lane = lane_of(i, e);
    r.SET.memory = memory_named(open ? open + 1 : NULL, e->name.data + e->name.len);
    r.SET.bytes = or_zero(e->bytes);
    r.SET.id = or_zero(e->correlation) & UINT32_MAX;
    trace_out_put(&i->to, &r);
    i->counts->fills++;
    i->counts->copy_ns += (uint64_t)e->dur;
}

/* PyTorch's allocator is a pool: it keeps what it has from the driver and hands out pieces. Kineto tells with every
 * piece what the pool has in all, so that what was there before the profiler began counts, too. */
static tare_status put_memory(struct importing *i, const struct kineto_event *e)
{
    enum { CUDA = 1, THE_POOL = 1 };
    uint64_t *told;
    struct gpu_record r = {.kind = GPU_MEMORY};
    if (e->device_type != CUDA || e->device_id < 0 || e->device_id >= DEVICES_MOST) return TARE_OK;
    r.MEMORY.at = (uint64_t)e->ts + KINETO_OFFSET;
    r.MEMORY.kind = GPU_DEVICE_MEMORY;
    r.MEMORY.device = (uint64_t)e->device_id;
    tare_status s = map_u64_ref(&i->reserved, (uint64_t)e->device_id, &told, i->err);
    if (s < 0) return s;
    if (e->reserved >= 0 && *told != (uint64_t)e->reserved) {
        *told = (uint64_t)e->reserved;
        r.MEMORY.what = GPU_POOL_SIZE;
        r.MEMORY.address = THE_POOL;
        r.MEMORY.bytes = *told;
        trace_out_put(&i->to, &r);
    }
    if (e->bytes != KINETO_ABSENT) {
        r.MEMORY.what = e->bytes < 0 ? GPU_POOL_RETURN : GPU_POOL_PIECE;
        r.MEMORY.address = or_zero(e->address);
        r.MEMORY.bytes = (uint64_t)(e->bytes < 0 ? -e->bytes : e->bytes);
        trace_out_put(&i->to, &r);
    }
    i->counts->memory++;
    return TARE_OK;
}

/* A file of several processes: their numbers of launches are not told apart, so that kernels would be given to
 * strangers. */
static tare_status put_host(struct importing *i, const struct kineto_event *e)
{
    struct kineto_counts *c = i->counts;
    uint64_t *const counters[] = {[KINETO_CALL] = &c->calls,
                                  [KINETO_OPERATOR] = &c->operators,
                                  [KINETO_ANNOTATION] = &c->annotations,
                                  [KINETO_FRAME] = &c->frames,
                                  [KINETO_MODULE] = &c->frames};
    if (e->host_pid && i->pid == KINETO_ABSENT) i->pid = e->pid;
    if (e->host_pid && e->pid != i->pid)
        return json_pull_error(&i->json, i->err,
                               "events of process %lld beside those of %lld: import each process's own file",
                               (long long)e->pid, (long long)i->pid);
    ++*counters[e->kind];
    return kineto_host_add(i->host, e, c, i->err);
}

static void note_bad(struct importing *i, const char *what)
{
    tare_error why = TARE_ERROR_INIT;
    if (i->counts->unusable++) return;
    json_pull_error(&i->json, &why, "an event without %s", what);
    snprintf(i->counts->first_bad, sizeof i->counts->first_bad, "%.199s", why.text);
}

/* NULL: it can be used. */
static const char *missing(const struct kineto_event *e)
{
    const int64_t most = INT64_MAX / 4;
    if (e->ts == KINETO_ABSENT || e->ts > most || e->ts < 0) return "a time (ts)";
    if (e->kind == KINETO_MEMORY) return NULL;
    if (e->dur == KINETO_ABSENT || e->dur < 0 || e->dur > most) return "a length (dur) that is not negative";
    if (!e->name.len) return "a name";
    return NULL;
}

static tare_status take_metadata(struct importing *i, const struct kineto_event *e)
{
    bool process = strcmp(e->name.data, "process_name") == 0;
    if (process && !i->command.len && e->meta.len) buf_add(&i->command, e->meta.data, e->meta.len);
    if (strcmp(e->name.data, "thread_name") != 0 || !e->host_pid || e->pid != i->pid) return TARE_OK;
    return e->tid == KINETO_ABSENT ? TARE_OK : kineto_host_thread(i->host, e->tid, e->meta.data, i->err);
}

static tare_status take_event(struct importing *i)
{
    const struct kineto_event *e = &i->event;
    i->counts->events++;
    if (e->phase == 'M') return take_metadata(i, e);
    bool taken = e->kind == KINETO_MEMORY ? e->phase == 'i' : e->kind && e->phase == 'X';
    if (!taken) {
        i->counts->unknown++;
        return TARE_OK;
    }
    const char *lacks = missing(e);
    if (lacks) {
        note_bad(i, lacks);
        return TARE_OK;
    }
    if (e->ts < i->first) i->first = e->ts;
    if (e->kind >= KINETO_CALL) return put_host(i, e);
    if (e->kind == KINETO_MEMORY) return put_memory(i, e);
    if (e->kind == KINETO_KERNEL) put_kernel(i, e);
    if (e->kind == KINETO_COPY) put_copy(i, e);
    if (e->kind == KINETO_FILL) put_fill(i, e);
    return i->to.status;
}

/* ---- the file ---- */

/* Every item of an array whose '[' was just read. */
static tare_status each_event(struct importing *i)
{
    for (;;) {
        enum pull_token t;
        tare_status s = json_pull_next(&i->json, &t, i->err);
        if (s < 0 || t == PULL_ARRAY_END) return s;
        if (t == PULL_OBJECT) {
            s = kineto_event_read(&i->event, &i->json, i->err);
            if (s == TARE_OK) s = take_event(i);
        } else {
            i->counts->events++;
            note_bad(i, "braces");
            s = json_pull_skip(&i->json, t, i->err);
        }
        if (s < 0) return s;
    }
}

struct card {
    int64_t id, memory, major, minor, sms, warp, threads;
    struct buf name;
};

static tare_status take_card_field(struct importing *i, struct card *c, const char *key)
{
    enum pull_token t;
    tare_status s = json_pull_next(&i->json, &t, i->err);
    if (s < 0) return s;
    const struct {
        const char *key;
        int64_t *to;
    } rows[] = {{"id", &c->id},
                {"totalGlobalMem", &c->memory},
                {"computeMajor", &c->major},
                {"computeMinor", &c->minor},
                {"numSms", &c->sms},
                {"warpSize", &c->warp},
                {"maxThreadsPerMultiprocessor", &c->threads}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows && t == PULL_NUMBER; k++)
        if (strcmp(rows[k].key, key) == 0 && !json_pull_scaled(i->json.text.data, 0, rows[k].to))
            *rows[k].to = 0;
    if (t == PULL_STRING && strcmp(key, "name") == 0) {
        buf_clear(&c->name);
        buf_add(&c->name, i->json.text.data, i->json.text.len);
    }
    return json_pull_skip(&i->json, t, i->err);
}

static tare_status take_card(struct importing *i)
{
    struct card c = {.id = -1, .name = BUF_INIT};
    tare_status s = TARE_OK;
    enum pull_token t;
    char key[40];
    while (s == TARE_OK && (s = json_pull_next(&i->json, &t, i->err)) == TARE_OK && t != PULL_OBJECT_END) {
        snprintf(key, sizeof key, "%s", i->json.text.data);
        s = take_card_field(i, &c, key);
    }
    if (s == TARE_OK && c.id >= 0 && c.id < DEVICES_MOST) {
        struct gpu_record r = {.kind = GPU_DEVICE, .text = c.name.data, .text_bytes = c.name.len};
        r.DEVICE.device = (uint64_t)c.id;
        r.DEVICE.sms = or_zero(c.sms);
        r.DEVICE.memory = or_zero(c.memory);
        r.DEVICE.capability = (or_zero(c.major) & 255) << 8 | (or_zero(c.minor) & 255);
        if (c.warp > 0) r.DEVICE.warps = or_zero(c.threads) / (uint64_t)c.warp;
        trace_out_put(&i->to, &r);
    }
    buf_release(&c.name);
    return s;
}

static tare_status each_card(struct importing *i)
{
    for (;;) {
        enum pull_token t;
        tare_status s = json_pull_next(&i->json, &t, i->err);
        if (s < 0 || t == PULL_ARRAY_END) return s;
        s = t == PULL_OBJECT ? take_card(i) : json_pull_skip(&i->json, t, i->err);
        if (s < 0) return s;
    }
}

enum { RANKS_MOST = 200 };

/* {"backend": "nccl", "rank": 3, "world_size": 8, ..}: the plain values, as words; a file may tell them often. */
static tare_status take_ranks(struct importing *i)
{
    for (;;) {
        enum pull_token t;
        char key[40];
        tare_status s = json_pull_next(&i->json, &t, i->err);
        if (s < 0 || t == PULL_OBJECT_END) return s;
        snprintf(key, sizeof key, "%s", i->json.text.data);
        s = json_pull_next(&i->json, &t, i->err);
        if (s < 0) return s;
        bool plain = t == PULL_STRING || t == PULL_NUMBER;
        if (plain && i->ranks.len < RANKS_MOST &&
            (strcmp(key, "rank") == 0 || strcmp(key, "world_size") == 0 || strcmp(key, "backend") == 0))
            buf_printf(&i->ranks, "%s%s %.40s", i->ranks.len ? ", " : "", key, i->json.text.data);
        int64_t *number = NULL;
        if (strcmp(key, "rank") == 0) number = &i->rank;
        if (strcmp(key, "world_size") == 0) number = &i->world_size;
        if (plain && number && *number < 0 && !json_pull_scaled(i->json.text.data, 0, number)) *number = -1;
        s = json_pull_skip(&i->json, t, i->err);
        if (s < 0) return s;
    }
}

static tare_status take_member(struct importing *i, bool *events)
{
    enum pull_token t;
    char key[40];
    snprintf(key, sizeof key, "%s", i->json.text.data);
    tare_status s = json_pull_next(&i->json, &t, i->err);
    if (s < 0) return s;
    if (t == PULL_ARRAY && strcmp(key, "traceEvents") == 0) {
        *events = true;
        return each_event(i);
    }
    if (t == PULL_ARRAY && strcmp(key, "deviceProperties") == 0) return each_card(i);
    if (t == PULL_OBJECT && strcmp(key, "distributedInfo") == 0) return take_ranks(i);
    if (t == PULL_NUMBER && strcmp(key, "baseTimeNanoseconds") == 0 &&
        !json_pull_scaled(i->json.text.data, 0, &i->base_ns))
        i->base_ns = KINETO_ABSENT;
    return json_pull_skip(&i->json, t, i->err);
}

/* An object with traceEvents, or the bare list of them. */
static tare_status walk_file(struct importing *i)
{
    enum pull_token t;
    bool events = false;
    tare_status s = json_pull_next(&i->json, &t, i->err);
    if (s == TARE_OK && t == PULL_ARRAY) {
        events = true;
        s = each_event(i);
    } else if (s == TARE_OK && t == PULL_OBJECT) {
        while ((s = json_pull_next(&i->json, &t, i->err)) == TARE_OK && t == PULL_KEY)
            if ((s = take_member(i, &events)) < 0) break;
    }
    if (s == TARE_OK) s = json_pull_next(&i->json, &t, i->err); /* nothing may follow */
    if (s < 0) return s;
    const struct kineto_counts *c = i->counts;
    uint64_t taken = c->kernels + c->copies + c->fills + c->calls + c->operators + c->annotations + c->frames;
    if (!events)
        return error_set(
            i->err, TARE_FORMAT,
            "%s: has no \"traceEvents\": not a file of torch.profiler (a run document: tare history "
            "import)",
            i->name);
    if (!taken)
        return error_set(
            i->err, TARE_FORMAT,
            "%s: none of its events is of a kind that torch.profiler records: no kernel, no call, "
            "no operator%s%s",
            i->name, c->first_bad[0] ? "; " : "", c->first_bad);
    return TARE_OK;
}

/* ---- all of it ---- */

/* As launchers tell it: its value + 1, so that 0 is: not told. Nor is the machine. */
static uint64_t told(int64_t v)
{
    return v >= 0 && v < INT32_MAX ? (uint64_t)v + 1 : 0;
}

static void put_rank(struct importing *i)
{
    struct gpu_record r = {.kind = GPU_RANK, .text = ""};
    r.RANK.rank = told(i->rank);
    r.RANK.size = told(i->world_size);
    if (r.RANK.rank || r.RANK.size) trace_out_put(&i->to, &r);
}

static void put_losses(struct importing *i)
{
    const struct kineto_counts *c = i->counts;
    struct gpu_record r = {.kind = GPU_LOST};
    trace_out_note(&i->to, "imported from a file of torch.profiler%s%s; what recording it cost is not known",
                   i->ranks.len ? ": " : "", i->ranks.data);
    if (c->renamed)
        trace_out_note(&i->to, "%llu events have more names than are told apart: they are '(other names)'",
                       (unsigned long long)c->renamed);
    r.LOST.untimed = c->unusable;
    r.LOST.ranges = c->too_deep;
    if (c->unusable || c->too_deep) trace_out_put(&i->to, &r);
}

static tare_status convert(struct importing *i)
{
    tare_status s = walk_file(i);
    if (s == TARE_OK) s = kineto_host_write(i->host, &i->to, i->counts, i->err);
    if (s < 0) return s;
    put_losses(i);
    put_rank(i);
    int64_t base = i->base_ns == KINETO_ABSENT ? 0 : i->base_ns; /* before 2.2 times were of the wall clock */
    bool known = base >= 0 && base <= INT64_MAX / 4;
    struct trace_out_process p = {.pid = i->pid > 0 ? (uint32_t)i->pid : 0,
                                  .command = i->command.len ? i->command.data : "python",
                                  .begun_ns = (uint64_t)i->first + KINETO_OFFSET,
                                  .begun_unix_ns = known ? (uint64_t)(base + i->first) : 0};
    if (i->command.failed || i->ranks.failed) return error_nomem(i->err, "a trace");
    return trace_out_finish(&i->to, &p);
}

static const char *folder_of(const char *path, char *room, size_t size)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return ".";
    snprintf(room, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return room;
}

tare_status kineto_convert(struct inflow *from, const char *name, const char *to, struct kineto_counts *out,
                           tare_error *err)
{
    char folder[4096];
    struct importing i = {.name = name,
                          .event = {.name = BUF_INIT, .meta = BUF_INIT},
                          .counts = out,
                          .first = INT64_MAX,
                          .base_ns = KINETO_ABSENT,
                          .pid = KINETO_ABSENT,
                          .command = BUF_INIT,
                          .ranks = BUF_INIT,
                          .rank = -1,
                          .world_size = -1,
                          .err = err};
    *out = (struct kineto_counts){0};
    tare_status s = trace_out_open(&i.to, to, err);
    if (s < 0) return s;
    s = json_pull_init(&i.json, (struct json_source){name, inflow_read, from}, TEXT_MOST, err);
    if (s == TARE_OK) s = kineto_host_new(&i.host, name, folder_of(to, folder, sizeof folder), err);
    if (s == TARE_OK) s = convert(&i);
    kineto_host_free(i.host);
    json_pull_release(&i.json);
    kineto_event_release(&i.event);
    buf_release(&i.command);
    buf_release(&i.ranks);
    map_u64_release(&i.reserved);
    trace_out_release(&i.to);
    return s;
}

tare_status kineto_import(const char *path, const char *to, struct kineto_counts *out, tare_error *err)
{
    struct inflow *from;
    tare_status s = inflow_open(&from, path, err);
    if (s < 0) return s;
    s = kineto_convert(from, path, to, out, err);
    inflow_close(from);
    return s;
}
