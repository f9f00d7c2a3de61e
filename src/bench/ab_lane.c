/* SPDX-License-Identifier: MIT
 * ab_lane.c - the two kinds of sides, see ab.h. A worker process is started afresh for every epoch with its environment
 * and heap shifted, and asked for one measurement at a time (subject/peer.h). A subject of this process is run here: a
 * command, each measurement a launch of its own with an environment of another length, or any other. Keeps nothing
 * between launches but the subject. */
#include <string.h>
#include <unistd.h>

#include "bench/ab.h"
#include "bench/engine.h"
#include "core/clock.h"
#include "core/mem.h"
#include "subject/peer.h"

/* ---- a worker process ---- */

#define PAD_NAME "TARE_AB_PAD="

struct process_lane {
    struct ab_lane base;
    struct ab_process_options o;
    char *pad; /* PAD_NAME and room for AB_ENV_PAD_MAX */
    struct peer peer;
};

/* Ours, handed on unread, and one more. Owned. */
static tare_status make_env(struct process_lane *l, uint32_t pad, char ***out, tare_error *err)
{
    size_t n = 0;
    while (environ && environ[n]) n++;
    char **env = mem_new(n + 2, sizeof *env);
    if (!env) return error_nomem(err, "an environment");
    if (n) memcpy(env, environ, n * sizeof *env);
    size_t head = sizeof PAD_NAME - 1;
    memcpy(l->pad, PAD_NAME, head);
    memset(l->pad + head, 'x', pad);
    l->pad[head + pad] = 0;
    env[n] = l->pad;
    *out = env;
    return TARE_OK;
}

static tare_status spawn(struct process_lane *l, uint32_t pad, tare_error *err)
{
    char **env = NULL;
    tare_status s = make_env(l, pad, &env, err);
    if (s < 0) return s;
    struct spawn_options o = {.exe = l->o.exe, .argv = l->o.argv, .env = env, .n_fds = 1, .out = -1};
    s = peer_start(&l->peer, o, err);
    mem_free(env);
    return s;
}

static tare_status hear(struct process_lane *l, struct ab_reply *r, tare_error *err)
{
    struct peer_patience patience = {.timeout_ns = l->o.timeout_ns, .interrupted = l->o.interrupted};
    struct peer_packet packet = {r, sizeof *r, 0};
    tare_status s = peer_hear(&l->peer, 0, &patience, &packet, err);
    if (s < 0) return s;
    if (packet.got != sizeof *r || r->magic != AB_MAGIC)
        return error_set(err, TARE_DENIED, "its worker process sent %zu bytes that are no answer",
                         packet.got);
    r->text[sizeof r->text - 1] = 0;
    if (r->status < 0) return error_set(err, (tare_status)r->status, "%s", r->text);
    return TARE_OK;
}

static tare_status request(struct process_lane *l, uint32_t kind, uint64_t n, tare_error *err)
{
    struct ab_request q = {AB_MAGIC, kind, n};
    return peer_say(&l->peer, 0, &q, sizeof q) ? TARE_OK : peer_died(&l->peer, err);
}

static tare_status ask(struct process_lane *l, uint32_t kind, uint64_t n, struct ab_reply *r, tare_error *err)
{
    tare_status s = request(l, kind, n, err);
    return s < 0 ? s : hear(l, r, err);
}

static tare_status process_launch(struct ab_lane *base, const struct ab_layout *layout, tare_error *err)
{
    struct process_lane *l = (struct process_lane *)base;
    tare_status s = spawn(l, layout->env_pad, err);
    if (s == TARE_OK) s = request(l, AB_ASK_START, layout->heap_pad, err);
    if (s == TARE_OK && !peer_say(&l->peer, 0, l->o.spec, strlen(l->o.spec))) s = peer_died(&l->peer, err);
    return s;
}

static tare_status process_ready(struct ab_lane *base, struct ab_launched *out, tare_error *err)
{
    struct ab_reply r;
    tare_status s = hear((struct process_lane *)base, &r, err);
    if (s < 0) return s;
    *out = r.launched;
    return TARE_OK;
}

static tare_status process_measure(struct ab_lane *base, uint64_t repeats, const struct ab_layout *layout,
                                   struct pair_side *out, tare_error *err)
{
    struct ab_reply r;
    (void)layout; /* it was laid out when it was launched */
    tare_status s = ask((struct process_lane *)base, AB_ASK_RUN, repeats, &r, err);
    if (s < 0) return s;
    *out = r.side;
    return TARE_OK;
}

static void process_stop(struct ab_lane *base, uint64_t *rss_peak)
{
    struct process_lane *l = (struct process_lane *)base;
    struct ab_reply r;
    if (peer_alive(&l->peer) && ask(l, AB_ASK_END, 0, &r, NULL) == TARE_OK && rss_peak)
        *rss_peak = r.side.rss_peak;
    peer_stop(&l->peer);
}

static void process_close(struct ab_lane *base)
{
    struct process_lane *l = (struct process_lane *)base;
    peer_stop(&l->peer);
    mem_free(l->pad);
    mem_free(l);
}

static const struct ab_lane_ops process_ops = {process_launch, process_ready, process_measure, process_stop,
                                               process_close};

/* Nothing is started yet: that is process_launch()'s. The room for the environment's padding is taken
 * once, for the largest, since launches differ in how much of it they use. */
tare_status ab_lane_process(struct ab_lane **out, const struct ab_process_options *o, tare_error *err)
{
    if (strlen(o->spec) >= AB_SPEC_MAX)
        return error_set(err, TARE_INVALID, "%s: too many settings for one worker", o->name);
    struct process_lane *l = mem_new(1, sizeof *l);
    char *pad = mem_new(1, sizeof PAD_NAME + AB_ENV_PAD_MAX);
    if (!l || !pad) {
        mem_free(l);
        mem_free(pad);
        return error_nomem(err, "one side");
    }
    l->base = (struct ab_lane){&process_ops, o->name, false, false};
    l->o = *o;
    l->pad = pad;
    l->peer = (struct peer)PEER_INIT("its worker process");
    *out = &l->base;
    return TARE_OK;
}

/* ---- a subject that this process runs ---- */

enum { COMPANY = 4, TRIES = 3 }; /* a service that fails now and then is counted later */

struct subject_lane {
    struct ab_lane base;
    struct ab_subject_options o;
    struct instance *instance;
    struct run scratch; /* prepare() writes what it chose into a document */
    struct run_map chosen;
};

static void set_pad(char *pad, uint32_t n)
{
    if (!pad) return;
    memset(pad, 'x', n);
    pad[n] = 0;
}

static void local_stop(struct ab_lane *base, uint64_t *rss_peak)
{
    struct subject_lane *l = (struct subject_lane *)base;
    (void)rss_peak; /* told with each measurement */
    if (l->instance) l->o.subject->ops->finish(l->instance);
    l->instance = NULL;
}

/* What kept the run from going on without being its own: tare's thread waits for a processor as well, before it starts
 * a command and after one has ended. */
static void add_others(struct pair_side *to, struct known_u64 before, const struct subject_cost *cost,
                       uint64_t own)
{
    struct known_u64 after = procstat_run_delay(NULL, 0);
    bool known = before.known && after.known && (!cost->known || cost->run_delay.known);
    uint64_t ns = after.v - before.v + (cost->known ? cost->run_delay.v + own : 0);
    to->others = known ? known_u64(to->others.v + ns) : (struct known_u64){0};
}

/* Only ops->run() stands between the two readings of the clock; all else is read outside of them. A
 * subject that tells its own cost (a command) is believed, as the CPU time of this process is then the
 * starter's and not the run's. */
static tare_status run_once(struct subject_lane *l, struct pair_side *out, tare_error *err)
{
    const struct subject_ops *ops = l->o.subject->ops;
    struct subject_cost cost = {0};
    tare_status s = ops->before_run ? ops->before_run(l->instance, 0, err) : TARE_OK;
    if (s < 0) return s;
    struct known_u64 delay = procstat_run_delay(NULL, 0);
    uint64_t cpu = clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID), start = bench_machine.now();
    s = ops->run(l->instance, 0, &cost, err);
    uint64_t end = bench_machine.now();
    if (s < 0) return s;
    out->wall_ns += end - start;
    cpu = clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    out->cpu_ns += cost.known ? cost.used.user_ns + cost.used.system_ns : cpu;
    add_others(out, delay, &cost, cpu);
    out->involuntary += cost.used.involuntary_switches;
    out->voluntary += cost.used.voluntary_switches;
    if (cost.rss_peak > out->rss_peak) out->rss_peak = cost.rss_peak;
    return TARE_OK;
}

static tare_status local_launch(struct ab_lane *base, const struct ab_layout *layout, tare_error *err)
{
    (void)err;
    set_pad(((struct subject_lane *)base)->o.pad, layout->env_pad);
    return TARE_OK;
}

/* Requests of a service: the mean time of so many, from sending to the end of the answer by the kernel's clock, so that
 * this process is not in it. Several at once are measured four deep, so that most of them have company. */
static tare_status run_requests(struct subject_lane *l, uint64_t repeats, struct pair_side *out,
                                tare_error *err)
{
    uint64_t together = l->o.params.concurrency > 1 ? l->o.params.concurrency : 1, sum = 0;
    if (together > 1 && repeats < COMPANY) repeats = COMPANY;
    struct load_window window = {
        .concurrency = (unsigned)together, .most = together * repeats, .window_ns = UINT64_MAX / 4};
    struct load_result r = {.interrupted = false};
    tare_status s = l->o.subject->ops->load(l->instance, &window, &r, err);
    for (size_t i = 0; s == TARE_OK && i < r.outcomes.n; i++) {
        const struct load_outcome *o = &r.outcomes.items[i];
        sum += o->end - o->sent;
        if (!load_is_answered(o)) s = error_set(err, TARE_DENIED, "%s", r.failure);
    }
    if (s == TARE_OK && r.counts.due < window.most) s = error_set(err, TARE_DENIED, "interrupted");
    if (s == TARE_OK) out->wall_ns = sum / (r.outcomes.n ? r.outcomes.n : 1);
    load_result_release(&r);
    return s;
}

/* One run that does not count brings files into memory. */
static tare_status local_ready(struct ab_lane *base, struct ab_launched *out, tare_error *err)
{
    struct subject_lane *l = (struct subject_lane *)base;
    struct case_record record = {.run = &l->scratch, .params = &l->chosen};
    struct pair_side first = {0};
    uint64_t start = bench_machine.now();
    tare_status s = l->o.subject->ops->prepare(l->o.subject, &l->o.params, &record, &l->instance, err);
    if (s < 0) {
        l->instance = NULL;
        return s;
    }
    out->load_ns = bench_machine.now() - start;
    for (int i = 0; i < (base->elsewhere ? TRIES : 1); i++)
        if ((s = run_once(l, &first, err)) == TARE_OK) break;
    if (s < 0) return s;
    out->warmup_runs = 1;
    out->typical_ns = first.wall_ns;
    return TARE_OK;
}

static tare_status local_measure(struct ab_lane *base, uint64_t repeats, const struct ab_layout *layout,
                                 struct pair_side *out, tare_error *err)
{
    struct subject_lane *l = (struct subject_lane *)base;
    tare_status s = TARE_OK;
    *out = (struct pair_side){.env_pad = l->o.pad ? layout->env_pad : 0};
    set_pad(l->o.pad, layout->env_pad);
    if (base->elsewhere) {
        s = run_requests(l, repeats, out, err);
        out->wall_ns *= repeats; /* as of all others, the sum */
        return s;
    }
    for (uint64_t i = 0; s == TARE_OK && i < repeats; i++) s = run_once(l, out, err);
    return s;
}

static void local_close(struct ab_lane *base)
{
    struct subject_lane *l = (struct subject_lane *)base;
    local_stop(base, NULL);
    run_release(&l->scratch);
    mem_free(l);
}

static const struct ab_lane_ops subject_ops = {local_launch, local_ready, local_measure, local_stop,
                                               local_close};

tare_status ab_lane_subject(struct ab_lane **out, const struct ab_subject_options *o, tare_error *err)
{
    struct subject_lane *l = mem_new(1, sizeof *l);
    if (!l) return error_nomem(err, "one side");
    tare_status s = run_init(&l->scratch, "compare", err);
    if (s < 0) {
        mem_free(l);
        return s;
    }
    const struct subject_ops *ops = o->subject->ops;
    l->base = (struct ab_lane){&subject_ops, o->name, ops->runs_in_child, ops->load != NULL};
    l->o = *o;
    *out = &l->base;
    return TARE_OK;
}
