/* SPDX-License-Identifier: MIT
 * slots.c - records on their way: packed straight into the mapped live file, which the kernel keeps when the
 * program is killed, and from there to the archive when a slot is full. A slot is taken for one event at a time,
 * never waited for: if another thread has it, the next one is taken. The thread that fills a slot writes it out. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/hot.h"
#include "trace/extent.h"
#include "trace/pages.h"
#include "trace/recorder.h"
#include "trace/reserve.h"

enum { LOCK_TRIES_MS = 50, TAKE_ROUNDS = 200, END_ROUNDS = 100, NOTE_BLOCKS = 64 };
#define PAIR_TICKS TICKS(28)  /* about 100 ms */
#define STALL_TICKS TICKS(29) /* about 200 ms */

static struct live_header *header(void)
{
    return (struct live_header *)(void *)agent->live;
}

/* ---- the archive ---- */

bool archive_put(enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    struct chunk_header h = archive_chunk_header(type, process, payload, bytes);
    struct iovec v[2] = {{&h, sizeof h}, {(void *)(uintptr_t)payload, bytes}};
    if (__atomic_load_n(&agent->full, __ATOMIC_RELAXED)) return false; /* since the payload was read */
    if (!own_file_reach(&agent->archive, settings.trace, O_RDWR | O_APPEND | O_NONBLOCK)) return false;
    int cancel; /* writes are where a cancelled thread would end, with the slot taken */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    bool ok = archive_write(agent->archive.fd, archive_lock(agent->archive.fd, LOCK_TRIES_MS), v);
    pthread_setcancelstate(cancel, NULL);
    return ok;
}

/* ---- the live file ---- */

static void begin_slot(struct slot *s)
{
    uint8_t *from = (uint8_t *)(s->extent + 1);
    extent_retire(s->extent); /* what it held is archived: readers pass it over */
    s->state = (struct memory_state){{0}};
    s->enc = (struct enc){from, (uint8_t *)s->extent + SLOT_BYTES, false};
    s->by = 0;
    s->seq++;
    enc_uints(&s->enc, (uint64_t)(s - agent->slots), s->seq);
    __atomic_store_n(&s->extent->spare[0], (uint64_t)(s->enc.p - from), __ATOMIC_RELEASE);
    __atomic_store_n(&s->extent->seq, s->seq, __ATOMIC_RELEASE);
}

static void lay_out(const struct process_info *p, const char run_id[32])
{
    struct live_header *h = header();
    h->process = *p;
    memcpy(h->run_id, run_id, sizeof h->run_id);
    process_command(h->command, sizeof h->command, 0);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &agent->slots[i];
        s->extent = (struct extent *)(void *)(agent->live + LIVE_HEADER_BYTES + (size_t)i * SLOT_BYTES);
        s->extent->magic = EXTENT_MAGIC;
        s->extent->type = EXTENT_MEMORY;
        s->extent->bytes = SLOT_BYTES;
        s->extent->thread = i;
        begin_slot(s);
    }
    agent_pair(&h->pairs[0]);
    h->n_pairs = 1;
    h->major = TRACE_MAJOR;
    h->minor = TRACE_MINOR;
    h->header_bytes = sizeof *h;
    h->used = agent->live_bytes;
    uint64_t magic; /* last: it says that the rest is there */
    memcpy(&magic, LIVE_MAGIC, sizeof magic);
    __atomic_store_n((uint64_t *)(void *)h->magic, magic, __ATOMIC_RELEASE);
    agent->next_pair = h->pairs[0].ticks + PAIR_TICKS;
}

/* In a forked child, too, which reads zeros. */
static bool owns(const char *page)
{
    const char *live = agent ? agent->live : NULL;
    return live && page >= live && page < live + agent->live_bytes;
}

/* The slots cannot be trusted any more: nothing of them goes to the archive. What is there is kept. */
static void lost(void)
{
    __atomic_store_n(&agent->full, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&agent->state, AGENT_OFF, __ATOMIC_RELEASE);
}

/* Disk is reserved before memory is touched: a full disk is a refusal here, and no SIGBUS later. */
bool slots_open(const struct process_info *p, const char run_id[32])
{
    agent->live_bytes = LIVE_HEADER_BYTES + (size_t)SLOTS * SLOT_BYTES;
    int fd = open(agent->live_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    agent->waits = reserve_in_place(fd);
    void *map = reserve_disk(fd, 0, agent->live_bytes) == 0
                    ? mmap(NULL, agent->live_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                    : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED) {
        unlink(agent->live_path);
        return false;
    }
    madvise(map, agent->live_bytes, MADV_DONTFORK); /* a child must not scribble into its parent's record */
    static const struct pages_owner slots = {owns, lost};
    agent->live = map;
    pages_guard(&slots);
    pages_guard_thread();
    lay_out(p, run_id);
    return true;
}

/* ---- slots ---- */

struct slot *slot_take_another(void)
{
    if (!self.guarded) pages_guard_thread();
    self.guarded = true;
    unsigned first = slot_home();
    for (unsigned i = 0; i < TAKE_ROUNDS * SLOTS; i++) {
        struct slot *s = &agent->slots[(first + i) % SLOTS];
        if (!__atomic_load_n(&s->lock, __ATOMIC_RELAXED) &&
            !__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
            return s;
    }
    __atomic_fetch_add(&agent->lost_records, 1, __ATOMIC_RELAXED);
    return NULL;
}

static bool put_one(struct slot *s, const struct memory_record *r)
{
    if (!memory_pack(&s->state, &s->enc, r)) return false;
    slot_publish(s);
    return true;
}

/* A disk that is full stays so as far as we are concerned: the slot keeps what it has, and what follows is counted. */
static bool write_out(struct slot *s)
{
    uint8_t *from = (uint8_t *)(s->extent + 1);
    if (__atomic_load_n(&agent->full, __ATOMIC_RELAXED)) return false;
    if (!archive_put(CHUNK_MEMORY, agent->uid, from, (size_t)(s->enc.p - from))) {
        __atomic_store_n(&agent->full, 1, __ATOMIC_RELAXED);
        return false;
    }
    begin_slot(s);
    return true;
}

static void register_thread(struct slot *s)
{
    char name[17] = "";
    if (self.uid != agent->uid) self.number = self.on_main = 0;
    self.uid = agent->uid;
    if (!self.number) {
        self.number = __atomic_add_fetch(&agent->threads, 1, __ATOMIC_RELAXED);
        prctl(PR_GET_NAME, name, 0, 0, 0);
        struct memory_record r = {.kind = MEMORY_THREAD, .v = {self.number, process_tid()}};
        slot_text(s, r, name);
    }
}

static bool put_by(struct slot *s)
{
    if (s->by == self.number) return true;
    struct memory_record by = {.kind = MEMORY_BY, .text = "", .v = {self.number}};
    if (!put_one(s, &by)) return false;
    s->by = self.number;
    return true;
}

/* What a thread did stands behind its BY, in each chunk anew. */
bool slot_put(struct slot *s, const struct memory_record *r)
{
    bool timed = memory_has_time(r->kind);
    if (timed && (self.uid != agent->uid || !self.number)) register_thread(s);
    if ((!timed || put_by(s)) && put_one(s, r)) return true;
    if (write_out(s) && (!timed || put_by(s)) && put_one(s, r)) return true;
    __atomic_fetch_add(&agent->lost_records, 1, __ATOMIC_RELAXED);
    return false;
}

void slot_block_apart(struct slot *s, enum memory_kind kind, const uint64_t *v)
{
    struct memory_record r = {.kind = kind, .text = ""};
    memcpy(r.v, v, (kind == MEMORY_ALLOC ? 4 : 2) * sizeof *v);
    slot_put(s, &r);
}

void slot_text(struct slot *s, struct memory_record r, const char *text)
{
    r.text = text;
    r.text_bytes = strlen(text);
    slot_put(s, &r);
}

/* ---- time ---- */

/* When there is no more room every second one is forgotten, as in the recorder. */
static void keep_pair(struct live_header *h)
{
    uint32_t n = h->n_pairs;
    if (n == LIVE_PAIRS) {
        for (uint32_t i = 1; i < LIVE_PAIRS / 2; i++) h->pairs[i] = h->pairs[2 * i];
        n = LIVE_PAIRS / 2;
    }
    agent_pair(&h->pairs[n]);
    __atomic_store_n(&h->n_pairs, n + 1, __ATOMIC_RELEASE);
}

/* The disk is left to the program. */
static void end_for_disk(struct slot *s, const char *why)
{
    __atomic_store_n(&agent->full, 1, __ATOMIC_RELAXED); /* not to the archive */
    if (why) slot_text(s, (struct memory_record){.kind = MEMORY_NOTE, .v = {MEMORY_NOTE_PLAIN}}, why);
    __atomic_store_n(&agent->state, AGENT_OFF, __ATOMIC_RELEASE);
}

/* btrfs lets a store into a page of the live file wait for room, for seconds, each time the page was written back: half
 * a minute was seen. So it is asked before, each time about 100 ms have passed. */
bool slots_time_due(struct slot *s, uint64_t ticks)
{
    static const char before[] =
        "the disk was nearly full, where a program can be held up: recording ended there";
    uint64_t blocks;
    if (__atomic_exchange_n(&agent->pairs_lock, 1, __ATOMIC_ACQUIRE)) return true;
    bool stays = !agent->waits || !reserve_is_nearly_full(agent->live_path, &blocks);
    if (stays)
        keep_pair(header());
    else
        end_for_disk(s, blocks >= NOTE_BLOCKS ? before : NULL); /* without room the note would wait, too */
    __atomic_store_n(&agent->next_pair, ticks + PAIR_TICKS, __ATOMIC_RELAXED);
    __atomic_store_n(&agent->pairs_lock, 0, __ATOMIC_RELEASE);
    return stays;
}

/* For other file systems, and a disk that was filled within 100 ms. Asked once a page, as a page that was written to
 * waits no more. A thread that was only preempted for as long does not end it: the disk has room. */
void slots_stalled_at(struct slot *s, uint64_t ticks)
{
    s->page = (uintptr_t)s->enc.p >> 12;
    if (agent_ticks() - ticks > STALL_TICKS && reserve_is_nearly_full(agent->live_path, NULL))
        end_for_disk(s, "the disk was nearly full and held the program up: recording ended there");
}

/* ---- the end ---- */

static void put_lost(struct slot *s)
{
    struct memory_record r = {.kind = MEMORY_LOST, .text = ""};
    r.LOST.records = __atomic_load_n(&agent->lost_records, __ATOMIC_RELAXED);
    r.LOST.stacks = __atomic_load_n(&agent->lost_stacks, __ATOMIC_RELAXED);
    r.LOST.samples = __atomic_load_n(&agent->lost_samples, __ATOMIC_RELAXED);
    uint64_t sum = r.LOST.records + r.LOST.stacks + r.LOST.samples;
    if (sum != agent->told_lost) slot_put(s, &r);
    agent->told_lost = sum;
}

/* A thread that is within a record at the very end is given a moment. */
static bool take_at_end(struct slot *s)
{
    for (int i = 0; i < END_ROUNDS; i++) {
        if (!__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE)) return true;
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    return false;
}

/* All that is left goes to the archive, END last; then the live file is not needed. If anything cannot be written it
 * stays: a reader takes it from there. */
void slots_close(void)
{
    pages_guard_thread(); /* it may have blocked all signals since its first block */
    struct live_header *h = header();
    bool ok = !agent->full;
    uint8_t room[64 + sizeof h->pairs];
    struct enc e = {room, room + sizeof room, false};
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &agent->slots[i];
        bool taken = take_at_end(s);
        if (taken && !i) put_lost(s);
        bool any = taken && s->enc.p - (uint8_t *)(s->extent + 1) > 10;
        if (!taken || (any && ok && !write_out(s))) ok = false;
    } /* they stay taken: nobody writes any more */
    keep_pair(h);
    enc_uint(&e, h->n_pairs);
    enc_bytes(&e, h->pairs, h->n_pairs * sizeof h->pairs[0]);
    if (ok) ok = archive_put(CHUNK_CLOCK, agent->uid, room, (size_t)(e.p - room));
    e = (struct enc){room, room + sizeof room, false};
    enc_uints(&e, 1, 0, agent->lost_records, 0);
    if (ok) ok = archive_put(CHUNK_END, agent->uid, room, (size_t)(e.p - room));
    if (ok) unlink(agent->live_path);
    own_file_close(&agent->archive);
}
