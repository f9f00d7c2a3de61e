/* SPDX-License-Identifier: MIT
 * graphs.c - --gpu-graphs auto: is a record of every kernel of a CUDA graph worth its cost? On an H200 each makes the
 * launch of its graph some 1.5 us longer on the host, and the GPU's work 0.2 us: 1.4 times as long for kernels of
 * 1 us, not to be seen for those of 30 us. CUPTI's own account stays below 5 % in all of them. It must be settled
 * before there is a graph: to switch while graphs are in use crashes the program (CUDA 13.0). So the kernels that ran
 * before the first graph decide; programs run once without a graph what they capture then. Graphs are recorded as a
 * whole until enough kernels were seen that are long, and from the first capture on nothing is changed any more. */
#include <stdatomic.h>
#include <string.h>

#include "gpu/gpu.h"

#define LONG_NS 5000.0
enum { RECENT = 1024, ENOUGH = 20 };

static struct {
    const struct cupti *cupti;
    bool automatic, whole, told;
    bool makes_graphs[CALL_IDS]; /* by the driver's number of a call */
    _Atomic bool settled;        /* a graph is being made */
    uint32_t recent[RECENT];     /* ns of the latest kernels */
    size_t n;
} it;

static void watch_captures(void *subscriber)
{
    static const char *const calls[] = {"cuStreamBeginCapture", "cuGraphCreate", "cuGraphInstantiate"};
    for (uint32_t id = 1; id < CALL_IDS; id++) {
        const char *name = NULL;
        if (it.cupti->callback_name(CUPTI_DOMAIN_DRIVER, id, &name) != CUPTI_OK || !name) break;
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            if (strncmp(name, calls[i], strlen(calls[i])) == 0)
                it.makes_graphs[id] =
                    it.cupti->enable_callback(1, subscriber, CUPTI_DOMAIN_DRIVER, id) == CUPTI_OK;
    }
}

/* Without a subscription nobody tells of captures: then graphs stay as they are recorded at first. */
void graphs_start(const struct cupti *c, void *subscriber, bool automatic)
{
    memset(&it, 0, sizeof it);
    it.cupti = c;
    it.automatic = automatic;
    if (!automatic) return;
    it.whole = c->enable(CUPTI_GRAPH_TRACE) == CUPTI_OK;
    if (subscriber) watch_captures(subscriber);
    atomic_store(&it.settled, !subscriber || !it.whole);
}

/* On the program's thread. */
bool graphs_callback(int domain, uint32_t id)
{
    if (domain != CUPTI_DOMAIN_DRIVER || id >= CALL_IDS || !it.makes_graphs[id]) return false;
    atomic_store_explicit(&it.settled, true, memory_order_relaxed);
    return true;
}

void graphs_saw(const struct gpu_record *kernel)
{
    if (!it.automatic || kernel->KERNEL.graph) return;
    it.recent[it.n++ % RECENT] =
        kernel->KERNEL.duration < UINT32_MAX ? (uint32_t)kernel->KERNEL.duration : UINT32_MAX;
}

/* 0: too few to say. */
static double mean_ns(void)
{
    double sum = 0;
    size_t n = it.n < RECENT ? it.n : RECENT;
    for (size_t i = 0; i < n; i++) sum += it.recent[i];
    return n < ENOUGH ? 0 : sum / (double)n;
}

static void tell(struct book *b)
{
    const char *how = it.whole ? "as a whole" : "by their kernels";
    double mean = mean_ns();
    it.told = true;
    if (mean > 0)
        book_note(
            b,
            "CUDA graphs are recorded %s: kernels before the first one took %.1f us on average, and records "
            "of kernels cost too much below %.0f us (--gpu-graphs)",
            how, mean / 1e3, LONG_NS / 1e3);
    else
        book_note(
            b,
            "CUDA graphs are recorded %s: too few kernels were seen before the first one to say what records "
            "of each would cost (--gpu-graphs)",
            how);
}

void graphs_look(struct book *b)
{
    if (!it.automatic || it.told) return;
    if (atomic_load(&it.settled)) {
        tell(b);
        return;
    }
    bool whole = mean_ns() < LONG_NS;
    if (whole == it.whole) return;
    int result = whole ? it.cupti->enable(CUPTI_GRAPH_TRACE) : it.cupti->disable(CUPTI_GRAPH_TRACE);
    if (result == CUPTI_OK) it.whole = whole;
}

void graphs_end(struct book *b)
{
    if (it.automatic && !it.told && atomic_load(&it.settled)) tell(b);
}
