/* SPDX-License-Identifier: MIT
 * ab_process.c - a side that is a worker process: started afresh for every epoch with its environment and heap
 * shifted, asked for one measurement at a time (subject/peer.h). */
#include <string.h>
#include <unistd.h>

#include "bench/ab.h"
#include "bench/engine.h"
#include "core/mem.h"
#include "subject/peer.h"

#define PAD_NAME "TARE_AB_PAD="

struct process_lane {
    struct ab_lane base;
    struct ab_process_options o;
    char *pad; /* PAD_NAME and room for AB_ENV_PAD_MAX */
    struct peer peer;
};

/* ---- the process ---- */

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

/* ---- asking ---- */

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

/* ---- ops ---- */

static tare_status lane_launch(struct ab_lane *base, const struct ab_layout *layout, tare_error *err)
{
    struct process_lane *l = (struct process_lane *)base;
    tare_status s = spawn(l, layout->env_pad, err);
    if (s == TARE_OK) s = request(l, AB_ASK_START, layout->heap_pad, err);
    if (s == TARE_OK && !peer_say(&l->peer, 0, l->o.spec, strlen(l->o.spec))) s = peer_died(&l->peer, err);
    return s;
}

static tare_status lane_ready(struct ab_lane *base, struct ab_launched *out, tare_error *err)
{
    struct ab_reply r;
    tare_status s = hear((struct process_lane *)base, &r, err);
    if (s < 0) return s;
    *out = r.launched;
    return TARE_OK;
}

static tare_status lane_measure(struct ab_lane *base, uint64_t repeats, const struct ab_layout *layout,
                                struct pair_side *out, tare_error *err)
{
    struct ab_reply r;
    (void)layout; /* it was laid out when it was launched */
    tare_status s = ask((struct process_lane *)base, AB_ASK_RUN, repeats, &r, err);
    if (s < 0) return s;
    *out = r.side;
    return TARE_OK;
}

static void lane_stop(struct ab_lane *base, uint64_t *rss_peak)
{
    struct process_lane *l = (struct process_lane *)base;
    struct ab_reply r;
    if (peer_alive(&l->peer) && ask(l, AB_ASK_END, 0, &r, NULL) == TARE_OK && rss_peak)
        *rss_peak = r.side.rss_peak;
    peer_stop(&l->peer);
}

static void lane_close(struct ab_lane *base)
{
    struct process_lane *l = (struct process_lane *)base;
    peer_stop(&l->peer);
    mem_free(l->pad);
    mem_free(l);
}

static const struct ab_lane_ops process_ops = {lane_launch, lane_ready, lane_measure, lane_stop, lane_close};

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
    l->base = (struct ab_lane){&process_ops, o->name, false};
    l->o = *o;
    l->pad = pad;
    l->peer = (struct peer)PEER_INIT("its worker process");
    *out = &l->base;
    return TARE_OK;
}
