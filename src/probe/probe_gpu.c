/* SPDX-License-Identifier: MIT
 * probe_gpu.c - NVIDIA GPUs by NVML: one row per quantity and card, labelled "gpu0", and the slices of a split card
 * (MIG), "gpu0/mig1". What a card does not have is asked once and then left alone; it is unknown, never 0. What the
 * driver answers slowly is asked less often. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/gpu_card.h"
#include "probe/probe.h"

struct gpu_probe {
    struct probe base;
    struct nvml nvml;
    struct gpu_owner owner;
    bool recorded;
    VEC(struct gpu_card) cards;
};

/* All cards are asked at one time: a sum over cards is of one moment. */
static void gpu_sample(struct probe *base, struct probe_put *put)
{
    struct gpu_probe *p = (struct gpu_probe *)base;
    struct gpu_moment now = {clock_raw_ns(), base->thorough, p->recorded, &p->owner, 0};
    for (size_t i = 0; i < p->cards.n; i++) now.due |= gpu_card_due(&p->cards.items[i], &now);
    for (size_t i = 0; i < p->cards.n; i++) {
        struct gpu_card *c = &p->cards.items[i];
        gpu_card_read(&p->nvml, c, &now);
        for (int r = 0; r < GPU_ROWS; r++)
            if (!isnan(c->value[r])) probe_put(put, gpu_row_metric(r), c->label, c->value[r]);
    }
}

static void gpu_close(struct probe *base)
{
    struct gpu_probe *p = (struct gpu_probe *)base;
    for (size_t i = 0; i < p->cards.n; i++) gpu_card_close(&p->nvml, &p->cards.items[i]);
    vec_release(&p->cards);
    nvml_close(&p->nvml);
}

/* ---- opening ---- */

static tare_status add_card(struct gpu_probe *p, nvml_device device, const char *label, bool slice,
                            tare_error *err)
{
    struct gpu_card fresh = {.device = device, .slice = slice};
    snprintf(fresh.label, sizeof fresh.label, "%s", label);
    tare_status s = vec_push(&p->cards, fresh, err);
    if (s == TARE_OK) gpu_card_open(&p->nvml, vec_last(&p->cards));
    return s;
}

static tare_status add_slices(struct gpu_probe *p, nvml_device device, unsigned number, tare_error *err)
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
static tare_status add_cards(struct gpu_probe *p, tare_error *err)
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
            buf_printf(&p->base.blind, "%s: %s\n", label, nvml_why(&p->nvml, code));
            continue;
        }
        char uuid[96] = "";
        if (p->nvml.uuid && p->nvml.uuid(device, uuid, sizeof uuid) == NVML_OK)
            buf_printf(&p->base.told, "%s is %.95s\n", label, uuid);
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
static void tell_blind(struct gpu_probe *p, const struct probe_place *at)
{
    for (size_t i = 0; i < p->cards.n; i++) {
        struct gpu_card *c = &p->cards.items[i];
        gpu_card_read(&p->nvml, c, &(struct gpu_moment){clock_raw_ns(), true, p->recorded, &p->owner, ~0u});
        gpu_card_all_due(c);
        for (int r = 0; r < GPU_ROWS; r++)
            if (c->refused[r])
                buf_printf(&p->base.blind, "%s %s: %s\n", c->label, metric_table[gpu_row_metric(r)].name,
                           nvml_why(&p->nvml, c->refused[r]));
    }
    if (at->program && !in_first_namespace(at->root))
        buf_add_str(&p->base.blind,
                    "memory of the program: in a container the driver may number processes otherwise; a lone "
                    "process of a card that cannot be found here is taken for the program\n");
}

static tare_status gpu_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct gpu_probe *p = (struct gpu_probe *)base;
    p->owner = (struct gpu_owner){.root = "", .program = at->program};
    p->recorded = at->gpu;
    snprintf(p->owner.root, sizeof p->owner.root, "%s", at->root);
    tare_status s = nvml_open(&p->nvml, at->root, err);
    if (s == TARE_OK) s = add_cards(p, err);
    if (s == TARE_OK) tell_blind(p, at);
    return s;
}

const struct probe_ops probe_gpu = {
    "gpu", "NVIDIA GPUs: work, memory, power, clocks, heat",
    sizeof(struct gpu_probe), gpu_open, gpu_sample, gpu_close};
