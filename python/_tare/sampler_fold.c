/* SPDX-License-Identifier: MIT
 * sampler_fold.c - see sampler.h: the quantities, one moment of them, and what many moments come to. No
 * thread, no lock. */
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "probe/procfs.h"
#include "sampler.h"

const char *const sampler_probe_names[SAMPLER_PROBE_COUNT] = {
#define X(name, pace) #name,
    SAMPLER_PROBES(X)
#undef X
};
const enum sampler_pace sampler_probe_pace[SAMPLER_PROBE_COUNT] = {
#define X(name, pace) SAMPLER_##pace,
    SAMPLER_PROBES(X)
#undef X
};

enum over { OVER_WHOLE, OVER_SUM, OVER_MOST };

static const struct quantity {
    enum sampler_probe probe;
    enum metric_id metric;
    enum over over;
} quantities[QUANTITY_RSS] = {
#define X(id, probe, metric, over) {SAMPLER_##probe, METRIC_##metric, OVER_##over},
    SAMPLER_QUANTITIES(X)
#undef X
};

const char *sampler_name(enum sampler_quantity q)
{
    if (q == QUANTITY_RSS) return "self.memory.rss";
    if (q == QUANTITY_GPU_SHARE) return "gpu.memory.share";
    return metric_table[quantities[q].metric].name;
}

enum sampler_probe sampler_probe_of(enum sampler_quantity q)
{
    if (q == QUANTITY_RSS) return SAMPLER_self;
    if (q == QUANTITY_GPU_SHARE) return SAMPLER_gpu;
    return quantities[q].probe;
}

/* ---- the process itself: read at both ends of every block, so by one open file and one call ---- */

/* The file and whose it is, in one word: several threads read. After a fork it is the parent's, and is left
 * alone: a child that closed all it inherited may have given the number to a file of its own. */
static int own_statm(void)
{
    static _Atomic uint64_t kept; /* pid, then file + 1 */
    uint64_t now = atomic_load(&kept), pid = (uint64_t)getpid();
    if (now >> 32 == pid) return (int)(now & UINT32_MAX) - 1;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    if (!atomic_compare_exchange_strong(&kept, &now, pid << 32 | (uint32_t)(fd + 1))) {
        close(fd);
        return own_statm();
    }
    return fd;
}

struct self_memory self_memory(void)
{
    char text[128];
    uint64_t pages;
    struct rusage usage;
    struct self_memory out = {.rss = NAN};
    int fd = own_statm();
    const char *at = fd >= 0 && procfs_line(fd, text, sizeof text) > 0 ? procfs_number(text, &pages) : NULL;
    if (at && procfs_number(at, &pages)) out.rss = (double)pages * (double)sysconf(_SC_PAGESIZE);
    getrusage(RUSAGE_SELF, &usage);
    out.most = (double)usage.ru_maxrss * 1024;
    return out;
}

/* ---- a moment ---- */

/* Of slices of a card nothing is added: the card is counted as a whole. */
static bool is_counted(const struct series *s, enum metric_id m)
{
    return s->metric == m && s->label[0] && !strchr(s->label, '/');
}

static double over_labels(const struct probes *p, const struct quantity *q)
{
    double out = NAN, v;
    for (size_t i = 0; i < p->set.items.n; i++) {
        if (!is_counted(&p->set.items.items[i], q->metric) || !sample_get(&p->now, i, &v)) continue;
        if (isnan(out))
            out = v;
        else
            out = q->over == OVER_SUM ? out + v : fmax(out, v);
    }
    return out;
}

static double of_whole(const struct probes *p, enum metric_id m)
{
    double v;
    uint32_t at = p->set.whole[m];
    return at && sample_get(&p->now, at - 1, &v) ? v : NAN;
}

static double fullest_card(const struct probes *p)
{
    double out = NAN, used, total;
    for (size_t i = 0; i < p->set.items.n; i++) {
        const struct series *s = &p->set.items.items[i];
        if (!is_counted(s, METRIC_GPU_MEM_USED) || !sample_get(&p->now, i, &used)) continue;
        for (size_t k = 0; k < p->set.items.n; k++) {
            const struct series *t = &p->set.items.items[k];
            if (!is_counted(t, METRIC_GPU_MEM_TOTAL) || strcmp(s->label, t->label) != 0) continue;
            if (sample_get(&p->now, k, &total) && total > 0) out = fmax(isnan(out) ? 0 : out, used / total);
        }
    }
    return out;
}

void moment_take(struct moment *m, const struct sampler_slot *slots, unsigned read)
{
    for (int q = 0; q < QUANTITY_COUNT; q++) m->value[q] = NAN;
    for (int q = 0; q < QUANTITY_RSS; q++) {
        const struct sampler_slot *s = &slots[quantities[q].probe];
        if (!s->open || !(read >> quantities[q].probe & 1)) continue;
        m->value[q] = quantities[q].over == OVER_WHOLE ? of_whole(&s->probes, quantities[q].metric)
                                                       : over_labels(&s->probes, &quantities[q]);
    }
    if (read >> SAMPLER_self & 1) m->value[QUANTITY_RSS] = self_memory().rss;
    if (read >> SAMPLER_gpu & 1 && slots[SAMPLER_gpu].open)
        m->value[QUANTITY_GPU_SHARE] = fullest_card(&slots[SAMPLER_gpu].probes);
}

/* ---- folding ---- */

void fold_begin(struct fold *f, double before, uint64_t before_ns)
{
    *f = (struct fold){.before = before, .before_ns = before_ns, .after = NAN};
}

void fold_add(struct fold *f, double value, uint64_t at_ns)
{
    if (!f->n) f->first = f->min = f->max = value, f->first_ns = at_ns;
    f->min = fmin(f->min, value);
    f->max = fmax(f->max, value);
    f->sum += value;
    f->last = value;
    f->last_ns = at_ns;
    f->n++;
}

/* The samples around the block, as far as they are known. */
static struct fold_result of_edges(const struct fold *f)
{
    struct fold_result r = {.n = 0, .delta = NAN, .span_s = NAN};
    r.min = fmin(f->before, f->after); /* of a number and NAN it is the number */
    r.max = fmax(f->before, f->after);
    r.mean = (r.min + r.max) / 2;
    return r;
}

struct fold_result fold_result(const struct fold *f)
{
    struct fold_result r = of_edges(f);
    if (f->n) r.n = f->n, r.min = f->min, r.max = f->max, r.mean = f->sum / (double)f->n;
    double from = f->before, to = f->after;
    uint64_t from_ns = f->before_ns, to_ns = f->after_ns;
    if (f->n >= 2 || (f->n && isnan(from))) from = f->first, from_ns = f->first_ns;
    if (f->n >= 2 || (f->n && isnan(to))) to = f->last, to_ns = f->last_ns;
    if (!isnan(from) && !isnan(to) && to_ns > from_ns) {
        r.delta = to - from;
        r.span_s = (double)(to_ns - from_ns) / 1e9;
    }
    return r;
}

static void thin_course(struct course *c)
{
    for (size_t i = 0; 2 * i < c->n; i++) c->at_s[i] = c->at_s[2 * i], c->value[i] = c->value[2 * i];
    c->n = (c->n + 1) / 2;
    c->stride *= 2;
}

void course_add(struct course *c, double at_s, double value)
{
    if (!c->stride) c->stride = 1;
    if (c->skipped++ % c->stride) return;
    if (c->n == COURSE_POINTS) {
        thin_course(c);
        if ((c->skipped - 1) % c->stride) return;
    }
    c->at_s[c->n] = at_s;
    c->value[c->n++] = value;
}
