/* SPDX-License-Identifier: MIT
 * start.c - from the environment to a process that records, and to its end. Whatever is missing, the program runs
 * as if we were not there. A forked child joins the trace when it has something to tell; what a process left
 * behind when it became another program is folded in by that one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/hot.h"
#include "trace/fold.h"
#include "trace/recorder.h"

uint8_t no_filter[FILTER_PLACES];
uint8_t *set_filter = no_filter;
struct agent *agent;
struct settings settings;
__thread struct self self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- who we were before exec ---- */

static bool put_folded(void *ctx, enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    (void)ctx;
    return archive_put(type, process, payload, bytes);
}

static bool was_us(const struct live_header *h, size_t bytes, const char *run_id)
{
    return fold_valid(h, bytes) && (h->process.mode & MODE_MEMORY) && h->process.pid == (uint32_t)getpid() &&
           h->process.start_time == process_start_time((uint32_t)getpid()) &&
           memcmp(h->run_id, run_id, sizeof h->run_id) == 0;
}

static void fold_past(const char *path, void *run_id)
{
    char ours[32];
    struct stat st;
    int n = snprintf(ours, sizeof ours, ".live-%d-", (int)getpid());
    const char *name = strrchr(path, '/'), *tail = strstr(name ? name : path, ".live-");
    if (!tail || strncmp(tail, ours, (size_t)n) != 0) return;
    int fd = archive_open_own(path, &st);
    if (fd < 0) return;
    size_t bytes = (size_t)st.st_size;
    void *p = bytes >= LIVE_HEADER_BYTES ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED) return;
    struct fold *f = was_us(p, bytes, run_id) ? process_memory(sizeof *f) : NULL;
    if (f) {
        f->base = p;
        f->bytes = bytes;
        f->closed = true; /* it ended by itself: it became another program */
        f->emit = put_folded;
        if (fold_rest(f)) unlink(path);
        munmap(f, sizeof *f);
    }
    munmap(p, bytes);
}

/* ---- joining ---- */

static bool put_process(const struct process_info *p)
{
    uint8_t room[sizeof *p + LIVE_COMMAND_MAX + 10];
    char command[LIVE_COMMAND_MAX];
    struct enc e = {room, room + sizeof room, false};
    process_command(command, sizeof command, 0);
    enc_bytes(&e, p, sizeof *p);
    enc_str(&e, command, strlen(command));
    struct chunk_header h = archive_chunk_header(CHUNK_PROCESS, p->uid, room, (size_t)(e.p - room));
    struct iovec v[2] = {{&h, sizeof h}, {room, (size_t)(e.p - room)}};
    return archive_write(agent->archive.fd, true, v); /* gives the lock back that archive_open() took */
}

static void tell_start(void)
{
    struct slot *s = slot_take();
    struct memory_record r = {.kind = MEMORY_START,
                              .v = {settings.every, settings.frames, (uint64_t)sysconf(_SC_PAGESIZE)}};
    if (!s) return;
    slot_text(s, r, TARE_VERSION);
    if (!settings.libc_malloc)
        slot_text(s, (struct memory_record){.kind = MEMORY_NOTE, .v = {MEMORY_NOTE_OWN_MALLOC}},
                  "the program, or a library of it, has its own malloc: what it hands out is not recorded");
    if (!settings.native)
        slot_text(s, (struct memory_record){.kind = MEMORY_NOTE, .v = {MEMORY_NOTE_NO_NATIVE}},
                  "native frames are known on x86-64 only");
    python_tell(s);
    slot_give(s);
}

bool agent_join(void)
{
    char run_id[32] = "";
    struct process_info p = {.pid = (uint32_t)getpid(),
                             .parent_pid = (uint32_t)getppid(),
                             .begun_raw_ns = clock_raw_ns(),
                             .begun_unix_ns = clock_unix_ns(),
                             .mode = MODE_MEMORY,
                             .tsc = settings.clock.tsc,
                             .site_base = 1};
    p.uid = process_random();
    p.start_time = process_start_time(p.pid);
    agent->archive = (struct own_file)OWN_FILE_INIT;
    int fd = archive_open(settings.trace, run_id, NULL);
    if (fd < 0) return false;
    if (!own_file_take(&agent->archive, fd) || !put_process(&p)) {
        own_file_close(&agent->archive);
        return false;
    }
    agent->uid = p.uid;
    agent->pid = p.pid;
    snprintf(agent->live_path, sizeof agent->live_path, "%s.live-%u-%08x", settings.trace, p.pid,
             (unsigned)p.uid);
    fold_each_live(settings.trace, fold_past, run_id);
    if (!slots_open(&p, run_id)) return false;
    if (!settings.every) memset(agent->filter, 255, sizeof agent->filter);
    modules_look(false);
    tell_start();
    return true;
}

/* One thread joins; what others do meanwhile is not recorded. Cancellation waits: there are system calls in here. */
bool agent_ready(void)
{
    uint32_t none = AGENT_NONE;
    if (!agent) return false;
    uint32_t state = __atomic_load_n(&agent->state, __ATOMIC_ACQUIRE);
    if (state != AGENT_NONE) return state == AGENT_ON;
    if (!settings.on || !__atomic_compare_exchange_n(&agent->state, &none, AGENT_JOINING, false,
                                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    if (settings.attached && settings.attached != (uint32_t)getpid()) { /* a block is of one process */
        __atomic_store_n(&agent->state, AGENT_OFF, __ATOMIC_RELEASE);
        return false;
    }
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    bool ok = agent_join() && !agent->full; /* a live file that is gone already */
    pthread_setcancelstate(cancel, NULL);
    __atomic_store_n(&agent->state, ok ? AGENT_ON : AGENT_OFF, __ATOMIC_RELEASE);
    return ok;
}

/* ---- before main, after main ---- */

static uint64_t number_of(const char *name, uint64_t otherwise, uint64_t most)
{
    const char *text = secure_getenv(name);
    char *end;
    if (!text || text[0] < '0' || text[0] > '9') return otherwise;
    uint64_t v = strtoull(text, &end, 10);
    return *end || v > most ? otherwise : v;
}

/* In a program with raised privileges secure_getenv() knows of nothing, and nothing is recorded. */
__attribute__((constructor)) static void start_before_main(void)
{
    const char *trace = secure_getenv("TARE_MEMORY_TRACE");
    int saved = errno;
    if (!trace || !trace[0] || strlen(trace) >= sizeof settings.trace - 40) return;
    self.busy = __builtin_frame_address(0);
    snprintf(settings.trace, sizeof settings.trace, "%s", trace);
    settings.every = number_of("TARE_MEMORY_EVERY", 512 << 10, UINT64_C(1) << 40);
    settings.frames = (uint32_t)number_of("TARE_MEMORY_FRAMES", 64, FRAMES_MOST - 1);
#if defined(__x86_64__)
    settings.native = true;
#endif
    clock_detect(&settings.clock, false);
    python_find();
    struct agent *block = process_memory(sizeof *block);
    if (block && madvise(block, sizeof *block, MADV_WIPEONFORK) == 0) {
        agent = block;
        set_filter = block->filter;
        settings.on = true;
        agent_ready();
    }
    self.left = 0;
    self.busy = NULL;
    errno = saved;
}

__attribute__((destructor)) void agent_end(void)
{
    uint32_t on = AGENT_ON;
    int saved = errno;
    if (!agent || !__atomic_compare_exchange_n(&agent->state, &on, AGENT_OFF, false, __ATOMIC_ACQ_REL,
                                               __ATOMIC_RELAXED))
        return;
    self.busy = __builtin_frame_address(0);
    slots_close();
    self.busy = NULL;
    errno = saved;
}
