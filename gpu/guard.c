/* SPDX-License-Identifier: MIT
 * guard.c - once a flush: is what we record still all there is? Another tool in the process (torch.profiler) can take
 * CUPTI's buffers away or switch kinds off, and nothing tells us. So when no operation has come for a while, CUPTI
 * calls us at launches, which costs nothing while there are none. Launches a second old without a record: the buffers
 * are taken back, and the time since the last record is a HOLE. Nobody says what it held; a reader drops it if a late
 * record runs within it, for then only a long kernel ran. */
#include <stdatomic.h>
#include <string.h>

#include "core/clock.h"
#include "gpu/gpu.h"

#define OLD_NS UINT64_C(1000000000)
enum { QUIET_LOOKS = 2 };

static struct {
    const struct cupti *cupti;
    void *subscriber;
    bool watching;
    uint64_t operations;   /* of the book, at the last look */
    unsigned quiet;        /* looks since */
    uint64_t since;        /* where the record ends */
    uint64_t first_launch; /* without a record; 0: none */
    bool told;             /* a hole that still goes on */
    _Atomic uint64_t launches;
} it;

void guard_callback(void *user, int domain, uint32_t id, const void *data)
{
    (void)user;
    if (graphs_callback(domain, id)) return;
    if (data && at32(data, 0) == CUPTI_ENTER)
        atomic_fetch_add_explicit(&it.launches, 1, memory_order_relaxed);
}

void guard_start(const struct cupti *c, void *subscriber, const struct book *b)
{
    uint64_t now = book_stamp(b, clock_unix_ns());
    memset(&it, 0, sizeof it);
    it.cupti = c;
    it.subscriber = subscriber;
    it.operations = b->operations;
    it.since = now;
}

/* Every way to launch goes through the driver's. */
static void watch_launches(bool on)
{
    static const char *const launches[] = {"cuLaunchKernel", "cuLaunchCooperativeKernel", "cuGraphLaunch"};
    it.watching = on;
    it.first_launch = 0;
    if (on) atomic_store(&it.launches, 0);
    for (uint32_t id = 1; id < CALL_IDS; id++) {
        const char *name = NULL;
        if (it.cupti->callback_name(CUPTI_DOMAIN_DRIVER, id, &name) != CUPTI_OK || !name) break;
        for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
            if (strncmp(name, launches[i], strlen(launches[i])) == 0)
                it.cupti->enable_callback(on, it.subscriber, CUPTI_DOMAIN_DRIVER, id);
    }
}

static void put_hole(struct book *b, uint64_t now)
{
    struct gpu_record r = {.kind = GPU_HOLE};
    r.HOLE.start = it.since;
    r.HOLE.duration = now > it.since ? now - it.since : 0;
    r.HOLE.launches = atomic_load(&it.launches);
    book_put(b, &r);
}

static void look_for_hole(struct book *b, uint64_t now)
{
    if (b->operations != it.operations) {
        it.operations = b->operations;
        it.since = b->last_end > now ? now : b->last_end;
        it.quiet = 0;
        it.told = false;
        if (it.watching) watch_launches(false);
        return;
    }
    if (++it.quiet >= QUIET_LOOKS && !it.watching) watch_launches(true);
    if (!it.watching || it.told || !atomic_load(&it.launches)) return;
    if (!it.first_launch) it.first_launch = now; /* it was a little earlier */
    if (now - it.first_launch < OLD_NS) return;
    it.told = true;
    put_hole(b, now);
    inject_again(); /* whoever took the buffers may also have switched kinds off */
}

void guard_look(struct book *b)
{
    uint64_t now = book_stamp(b, clock_unix_ns()); /* CUPTI's clock */
    if (it.subscriber) look_for_hole(b, now);
    graphs_look(b);
}

void guard_end(struct book *b)
{
    graphs_end(b);
    bool fresh = b->operations != it.operations;
    if (!fresh && it.watching && (it.told || it.first_launch)) put_hole(b, book_stamp(b, clock_unix_ns()));
}
