/* SPDX-License-Identifier: MIT
 * probe_gpu.c - NVIDIA GPUs by NVML: one row per quantity and card, labelled "gpu0", and the slices of a split card
 * (MIG), "gpu0/mig1". What a card does not have is asked once and then left alone; it is unknown, never 0. What the
 * driver answers slowly is asked less often. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "probe/gpu_card.h"
#include "probe/probe.h"

/* The cards, and what it takes to ask them. It is made by a thread of its own where a program is to be watched, and
 * then belongs to whoever comes last: the thread, or the probe that was closed meanwhile. */
enum set_state { SET_STARTING, SET_DONE, SET_LEFT };
struct gpu_set {
    struct nvml nvml;
    struct gpu_owner owner;
    bool recorded;
    VEC(struct gpu_card) cards;
    struct buf blind, told;
    tare_status status; /* of opening, and why */
    tare_error why;
    int news; /* an eventfd; -1: nobody waits */
    _Atomic int state;
};

struct gpu_probe {
    struct probe base;
    struct gpu_set *set;
    bool ready; /* the set is ours alone */
};

static atomic_int starting; /* threads that are at it */

bool probe_gpu_is_starting(void)
{
    return atomic_load(&starting) > 0;
}

static void set_free(struct gpu_set *s)
{
    for (size_t i = 0; i < s->cards.n; i++) gpu_card_close(&s->nvml, &s->cards.items[i]);
    vec_release(&s->cards);
    nvml_close(&s->nvml);
    buf_release(&s->blind);
    buf_release(&s->told);
    if (s->news >= 0) close(s->news);
    mem_free(s);
}

/* What opening found is the probe's from here on. */
static tare_status take_over(struct gpu_probe *p)
{
    struct gpu_set *s = p->set;
    p->ready = true;
    p->base.news = -1;
    buf_add(&p->base.blind, s->blind.data, s->blind.len);
    buf_add(&p->base.told, s->told.data, s->told.len);
    return s->status;
}

/* Not yet ready: nothing is read, and that is told if there was no other chance. */
static bool is_ready(struct gpu_probe *p)
{
    if (p->ready) return true;
    if (atomic_load(&p->set->state) != SET_DONE) {
        if (p->base.thorough)
            buf_add_str(&p->base.blind, "not read: NVML was still starting when the program ended\n");
        return false;
    }
    if (take_over(p) == TARE_OK) return true;
    buf_printf(&p->base.blind, "%s\n", p->set->why.text);
    p->base.gone = true;
    return false;
}

/* All cards are asked at one time: a sum over cards is of one moment. */
static void gpu_sample(struct probe *base, struct probe_put *put)
{
    struct gpu_probe *p = (struct gpu_probe *)base;
    if (!is_ready(p)) return;
    struct gpu_set *s = p->set;
    struct gpu_moment now = {clock_raw_ns(), base->thorough, s->recorded, &s->owner, 0};
    for (size_t i = 0; i < s->cards.n; i++) now.due |= gpu_card_due(&s->cards.items[i], &now);
    for (size_t i = 0; i < s->cards.n; i++) {
        struct gpu_card *c = &s->cards.items[i];
        gpu_card_read(&s->nvml, c, &now);
        for (int r = 0; r < GPU_ROWS; r++)
            if (!isnan(c->value[r])) probe_put(put, gpu_row_metric(r), c->label, c->value[r]);
    }
}

static void gpu_close(struct probe *base)
{
    const struct gpu_probe *p = (struct gpu_probe *)base;
    if (p->set && (p->ready || atomic_exchange(&p->set->state, SET_LEFT) == SET_DONE)) set_free(p->set);
}

/* ---- opening ---- */

static tare_status add_card(struct gpu_set *p, nvml_device device, const char *label, bool slice,
                            tare_error *err)
{
    struct gpu_card fresh = {.device = device, .slice = slice};
    snprintf(fresh.label, sizeof fresh.label, "%s", label);
    tare_status s = vec_push(&p->cards, fresh, err);
    if (s == TARE_OK) gpu_card_open(&p->nvml, vec_last(&p->cards));
    return s;
}

static tare_status add_slices(struct gpu_set *p, nvml_device device, unsigned number, tare_error *err)
{
    unsigned now = 0, later = 0, most = 0;
    char label[32];
    tare_status s = TARE_OK;
    const struct nvml *n = &p->nvml;
    if (!n->mig_mode || n->mig_mode(device, &now, &later) != NVML_OK || now != 1) return TARE_OK;
    if (!n->mig_count || !n->mig_device || n->mig_count(device, &most) != NVML_OK) return TARE_OK;
    for (unsigned i = 0; i < most && s == TARE_OK; i++) {
        nvml_device slice;
        if (n->mig_device(device, i, &slice) != NVML_OK) continue; /* no slice has this number */
        snprintf(label, sizeof label, "gpu%u/mig%u", number, i);
        s = add_card(p, slice, label, true, err);
    }
    return s;
}

/* One card that cannot be asked (lost, taken away) does not blind the others: it is named among what is
 * not seen. */
static tare_status add_cards(struct gpu_set *p, tare_error *err)
{
    unsigned n = 0;
    tare_status s = TARE_OK;
    int code = p->nvml.count(&n);
    if (code != NVML_OK) return error_set(err, TARE_UNSUPPORTED, "NVML: %s", nvml_why(&p->nvml, code));
    for (unsigned i = 0; i < n && s == TARE_OK; i++) {
        nvml_device device;
        char label[32];
        snprintf(label, sizeof label, "gpu%u", i);
        code = p->nvml.by_index(i, &device);
        if (code != NVML_OK) {
            buf_printf(&p->blind, "%s: %s\n", label, nvml_why(&p->nvml, code));
            continue;
        }
        char uuid[96] = "";
        if (p->nvml.uuid && p->nvml.uuid(device, uuid, sizeof uuid) == NVML_OK)
            buf_printf(&p->told, "%s is %.95s\n", label, uuid);
        s = add_card(p, device, label, false, err);
        if (s == TARE_OK) s = add_slices(p, device, i, err);
    }
    if (s == TARE_OK && !p->cards.n) s = error_set(err, TARE_UNSUPPORTED, "NVML works, but there is no GPU");
    return s;
}

/* The number of the first namespace of processes, a constant of the kernel. */
static bool in_first_namespace(const char *root)
{
    char path[4096], text[64] = "";
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    ssize_t n = readlink(path, text, sizeof text - 1);
    return n < 0 || strcmp(text, "pid:[4026531836]") == 0;
}

/* All is asked once, so that what the card refuses is known before the first sample. */
static void tell_blind(struct gpu_set *p)
{
    for (size_t i = 0; i < p->cards.n; i++) {
        struct gpu_card *c = &p->cards.items[i];
        gpu_card_read(&p->nvml, c, &(struct gpu_moment){clock_raw_ns(), true, p->recorded, &p->owner, ~0u});
        gpu_card_all_due(c);
        for (int r = 0; r < GPU_ROWS; r++)
            if (c->refused[r])
                buf_printf(&p->blind, "%s %s: %s\n", c->label, metric_table[gpu_row_metric(r)].name,
                           nvml_why(&p->nvml, c->refused[r]));
    }
    if (p->owner.program && !in_first_namespace(p->owner.root))
        buf_add_str(&p->blind,
                    "memory of the program: in a container the driver may number processes otherwise; a lone "
                    "process of a card that cannot be found here is taken for the program\n");
}

static tare_status set_open(struct gpu_set *p)
{
    p->status = nvml_start(&p->nvml, &p->why);
    if (p->status == TARE_OK) p->status = add_cards(p, &p->why);
    if (p->status == TARE_OK) tell_blind(p);
    return p->status;
}

static void *open_beside(void *arg)
{
    struct gpu_set *p = arg;
    int expected = SET_STARTING, news = fcntl(p->news, F_DUPFD_CLOEXEC, 0); /* the set may be gone by then */
    prctl(PR_SET_NAME, "tare-nvml");
    set_open(p);
    if (atomic_compare_exchange_strong(&p->state, &expected, SET_DONE))
        eventfd_write(news, 1); /* if that fails, the next sample finds it, too */
    else
        set_free(p);
    if (news >= 0) close(news);
    atomic_fetch_sub(&starting, 1);
    return NULL;
}

/* Signals are for the thread that watches. */
static bool start_thread(struct gpu_set *p)
{
    pthread_t thread;
    sigset_t all, before;
    p->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->news < 0) return false;
    atomic_fetch_add(&starting, 1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, NULL, open_beside, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok)
        pthread_detach(thread);
    else
        atomic_fetch_sub(&starting, 1);
    return ok;
}

/* A program does not wait for what NVML takes to start, unless it is asked for by name. */
static tare_status gpu_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct gpu_probe *p = (struct gpu_probe *)base;
    struct gpu_set *s = p->set = mem_new(1, sizeof *s);
    if (!s) return error_nomem(err, "GPUs");
    *s = (struct gpu_set){.recorded = at->gpu, .news = -1, .blind = BUF_INIT, .told = BUF_INIT};
    s->owner.program = at->program;
    snprintf(s->owner.root, sizeof s->owner.root, "%s", at->root);
    p->ready = true;
    tare_status status = nvml_load(&s->nvml, at->root, err);
    if (status < 0) return status;
    p->ready = !at->program || base->asked || !start_thread(s);
    if (!p->ready) {
        base->news = s->news;
        return TARE_OK;
    }
    if (set_open(s) == TARE_OK) return take_over(p);
    *err = s->why;
    return s->status;
}

const struct probe_ops probe_gpu = {
    "gpu", "NVIDIA GPUs: work, memory, power, clocks, heat",
    sizeof(struct gpu_probe), gpu_open, gpu_sample, gpu_close};
