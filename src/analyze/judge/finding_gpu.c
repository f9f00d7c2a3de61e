/* SPDX-License-Identifier: MIT
 * finding_gpu.c - rules about cases that ran on a GPU, by the pass that recorded its operations. */
#include <math.h>
#include <string.h>

#include "analyze/judge/finding.h"

#define BUSY_ENOUGH 0.7
#define SMALL_KERNEL_NS 20000
#define COPIES_MATTER 0.05 /* of a run */

/* The upper end of the interval counts: what may be busy enough is not told of. Large kernels in a GPU that is idle
 * between them have another cause, such as a processor that prepares inputs. */
void find_gpu_launch_bound(struct judging *j, const struct run_case *c)
{
    const struct run_gpu_pass *p = &c->gpu.pass;
    if (!c->gpu.known || !p->known || !p->busy_share.known || !p->busy_share.hi.known) return;
    double kernels = (double)p->operations.v - (double)p->copies.v, each = p->kernel_ns.v / kernels;
    if (!(kernels > 0) || !(p->busy_share.hi.v < BUSY_ENOUGH) || !(each < SMALL_KERNEL_NS)) return;
    struct run_finding *f =
        finding_start(j, c, "the GPU works %s of a run (at most %s): it waits for %s of %s each",
                      show_percent(p->busy_share.value).s, show_percent(p->busy_share.hi.v).s,
                      show_count(kernels, "kernel").s, show_time(each).s);
    finding_estimate(j, f, "busy_share", p->busy_share);
    finding_numbers(j, f, {"kernels", kernels}, {"kernel_ns", each},
                    {"speedup_at_most", p->busy_share.value > 0 ? 1 / p->busy_share.value : NAN});
}

/* What is copied on the device by the model itself stays with --io gpu, too: only what no node launched counts. */
static double outside_ns(const struct run_case *c, double *share)
{
    for (size_t i = 0; i < c->layers.n; i++) {
        const struct run_layer *l = c->layers.at[i];
        if (l->op || !l->gpu_ns.known || !l->group || strcmp(l->group, "copy") != 0) continue;
        *share = l->share.known ? l->share.v : NAN;
        return l->gpu_ns.value;
    }
    return NAN;
}

void find_gpu_copies(struct judging *j, const struct run_case *c)
{
    double share = NAN, ns = c->gpu.known && c->gpu.pass.known ? outside_ns(c, &share) : NAN;
    if (!(ns > 0) || !(share >= COPIES_MATTER) || strcmp(param_text(c, "io"), "host") != 0) return;
    struct run_finding *f = finding_start(j, c, "inputs and outputs are copied in each run: %s, %s of it",
                                          show_time(ns).s, show_percent(share).s);
    finding_numbers(j, f, {"copy_ns", ns}, {"share", share}, {"bytes", (double)c->gpu.pass.copy_bytes.v});
}
