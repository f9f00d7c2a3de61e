/* SPDX-License-Identifier: MIT
 * profiled.c - see profiled.h. The optimised graph is written by the same session that is profiled, so that both have
 * the same nodes; its larger weights go to a link to /dev/null, so that a model of gigabytes leaves a file of
 * kilobytes. A runtime that cannot write it (nodes compiled by a provider) is asked again without. */
#include "subject/profiled.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "subject/onnx_model.h"

enum {
    RUNS_MIN = 3,
    BLOCK_RUNS_MAX = 8,
    SMALL_MAX = 64,        /* elements of inputs whose contents are kept */
    EVENTS_WANTED = 150000 /* about 140 MB of file; the runtime drops events above a million */
};
#define BLOCK_NS UINT64_C(30000000)

/* ---- the folder ---- */

struct folder {
    char path[4096], optimized[4200], prefix[4200];
};

/* After a failure there is something to remove only if `path` is not empty. */
static tare_status folder_make(struct folder *f, const char *in, tare_error *err)
{
    char link[4200];
    int n = snprintf(f->path, sizeof f->path, "%s/tare-profile-XXXXXX", in && *in ? in : "/tmp");
    if (n < 0 || (size_t)n >= sizeof f->path) {
        f->path[0] = 0; /* what was cut off may name a folder that is not ours */
        return error_set(err, TARE_INVALID, "%s: too long a path", in);
    }
    if (!mkdtemp(f->path)) {
        tare_status s = error_errno(err, "%s: cannot make a temporary folder", f->path);
        f->path[0] = 0;
        return s;
    }
    snprintf(f->optimized, sizeof f->optimized, "%s/optimized.onnx", f->path);
    snprintf(f->prefix, sizeof f->prefix, "%s/profile", f->path);
    snprintf(link, sizeof link, "%s/weights", f->path);
    return symlink("/dev/null", link) == 0 ? TARE_OK : error_errno(err, "%s", link);
}

/* All that is in it is ours: nobody else may write there. */
static void folder_remove(const struct folder *f)
{
    DIR *dir = opendir(f->path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) closedir(dir);
    rmdir(f->path);
}

/* ---- the optimised graph ---- */

static size_t graph_nodes(const struct onnx_graph *g)
{
    size_t n = g->nodes.n;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct onnx_node *node = &g->nodes.items[i];
        for (size_t k = 0; k < node->attributes.n; k++)
            if (node->attributes.items[k].g) n += graph_nodes(node->attributes.items[k].g);
    }
    return n;
}

/* What cannot be read is said, not fatal: times by node need no graph. */
static tare_status read_optimized(struct profiled_pass *out, const struct folder *f, tare_error *err)
{
    tare_error why = TARE_ERROR_INIT;
    tare_status s = file_map(f->optimized, &out->optimized_bytes, &why);
    if (s == TARE_OK)
        s = onnx_read(&out->optimized, "the optimised graph", out->optimized_bytes.data,
                      out->optimized_bytes.size, &why);
    out->has_optimized = s == TARE_OK;
    if (s == TARE_OK) return TARE_OK;
    file_unmap(&out->optimized_bytes);
    snprintf(out->optimized_why, sizeof out->optimized_why, "%.199s", why.text);
    return s == TARE_NOMEM ? error_set(err, s, "%s", why.text) : TARE_OK;
}

/* ---- the file ---- */

static tare_status read_source(struct profiled_pass *out, const struct subject *s, tare_error *err)
{
    tare_error why = TARE_ERROR_INIT;
    tare_status st = onnx_open(&out->source, ((const struct onnx_subject *)s)->path, &why);
    out->has_source = st == TARE_OK;
    snprintf(out->source_why, sizeof out->source_why, "%.199s", why.text);
    return st == TARE_NOMEM ? error_set(err, st, "%s", why.text) : TARE_OK;
}

static tare_status add_dim(struct profiled_pass *out, const struct ort_io *io, size_t axis, int64_t value,
                           tare_error *err)
{
    char label[220];
    snprintf(label, sizeof label, "%.180s.%zu", io->name, axis);
    const char *name = io->symbols[axis] && io->symbols[axis][0] ? io->symbols[axis] : label;
    for (size_t i = 0; i < out->dims.n; i++)
        if (strcmp(out->dims.items[i].name, name) == 0) return TARE_OK;
    const char *copy = arena_str(&out->texts, name);
    if (!copy) return error_nomem(err, "dimensions");
    return vec_push(&out->dims, ((struct dim_value){copy, value}), err);
}

static tare_status keep_small(struct profiled_pass *out, const struct tensor *t, tare_error *err)
{
    struct tensor copy;
    if (tensor_elements(t) > SMALL_MAX) return TARE_OK;
    tare_status s = tensor_make(&copy, &(struct tensor_spec){t->name, t->type, t->dims, t->rank}, err);
    if (s < 0) return s;
    memcpy(copy.data, t->data, t->bytes);
    return tensor_set_take(&out->inputs, &copy, err);
}

/* From the inputs that were made, so that costs are of exactly what ran. */
static tare_status read_inputs(struct profiled_pass *out, const struct onnx_instance *i, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t k = 0; s == TARE_OK && k < i->inputs.items.n; k++) {
        const struct ort_io *io = &i->inputs.items.items[k];
        const struct tensor *t = &i->workers[0].inputs.items.items[k];
        for (size_t d = 0; s == TARE_OK && d < io->rank && d < t->rank; d++)
            if (io->dims[d] < 0) s = add_dim(out, io, d, t->dims[d], err);
        if (s == TARE_OK) s = keep_small(out, t, err);
    }
    return s;
}

/* ---- sessions ---- */

struct passing {
    struct subject *subject;
    const struct profiled_options *o;
    struct run *run;
    struct run_map scratch; /* parameters chosen: the case has its own already */
    struct case_params params;
    struct instance *profiled, *plain; /* plain NULL: no runs asked for */
    struct folder folder;
    struct profiled_pass *out;
    uint64_t end_ns; /* of the budget */
    tare_error *err;
};

static tare_status open_one(struct passing *p, const struct case_records *records, struct instance **out,
                            tare_error *err)
{
    struct case_record to = {p->run, &p->scratch};
    struct case_params params = p->params;
    p->scratch = (struct run_map){0};
    params.records = records;
    return p->subject->ops->prepare(p->subject, &params, &to, out, err);
}

/* With the graph if that can be had, else without. */
static tare_status open_profiled(struct passing *p)
{
    struct case_records records = {p->o->runs ? p->folder.prefix : NULL, p->folder.optimized, "weights"};
    tare_error why = TARE_ERROR_INIT;
    tare_status s = open_one(p, &records, &p->profiled, &why);
    if (s == TARE_OK) return read_optimized(p->out, &p->folder, p->err);
    if (s == TARE_NOMEM) return error_set(p->err, s, "%s", why.text);
    snprintf(p->out->optimized_why, sizeof p->out->optimized_why, "%.199s", why.text);
    records.optimized = records.weights = NULL;
    return open_one(p, &records, &p->profiled, p->err);
}

/* ---- running in turns ---- */

static tare_status run_once(struct passing *p, struct instance *i, uint64_t *ns)
{
    struct subject_cost cost = {0};
    uint64_t start = clock_raw_ns();
    tare_status s = p->subject->ops->run(i, 0, &cost, p->err);
    *ns = clock_raw_ns() - start;
    return s;
}

static tare_status run_block(struct passing *p, bool profiled, uint64_t n)
{
    struct instance *i = profiled ? p->profiled : p->plain;
    tare_status s = TARE_OK;
    for (uint64_t k = 0, ns; s == TARE_OK && k < n; k++) {
        struct profiled_window window = {.start_ns = clock_unix_ns(), .profiled = profiled};
        s = run_once(p, i, &ns);
        window.end_ns = clock_unix_ns();
        if (s == TARE_OK) s = vec_push(&p->out->windows, window, p->err);
        if (s < 0) break;
        s = profiled ? vec_push(&p->out->profiled_ns, ns, p->err) : vec_push(&p->out->plain_ns, ns, p->err);
    }
    return s;
}

static bool is_over(const struct passing *p)
{
    bool stopped = p->o->interrupted && *p->o->interrupted;
    return p->out->profiled_ns.n >= RUNS_MIN && (stopped || (p->end_ns && clock_raw_ns() >= p->end_ns));
}

/* Long enough that the caches belong to one session for most of it, short enough that drift is shared. */
static uint64_t block_of(uint64_t run_ns, uint64_t runs)
{
    uint64_t n = run_ns ? BLOCK_NS / run_ns : BLOCK_RUNS_MAX;
    if (n > BLOCK_RUNS_MAX) n = BLOCK_RUNS_MAX;
    if (n > runs / 2) n = runs / 2;
    return n > 1 ? n : 1;
}

static tare_status warm_up(struct passing *p, uint64_t *run_ns)
{
    tare_status s = TARE_OK;
    uint64_t n = p->o->warmup_runs ? p->o->warmup_runs : 1, ns;
    for (uint64_t k = 0; s == TARE_OK && k < n; k++) {
        s = run_once(p, p->plain, run_ns);
        if (s == TARE_OK) s = run_once(p, p->profiled, &ns);
        if (s == TARE_OK) p->out->warmup_runs++;
        if (p->o->interrupted && *p->o->interrupted) break;
        if (p->end_ns && clock_raw_ns() >= p->end_ns) break;
    }
    return s;
}

/* The runtime drops events beyond its limit in silence, and its file grows by a kilobyte for each. */
static uint64_t runs_wanted(const struct passing *p)
{
    uint64_t nodes = p->out->has_optimized ? graph_nodes(&p->out->optimized.graph) + 2 : 1000;
    uint64_t most = EVENTS_WANTED / nodes;
    if (most < RUNS_MIN) most = RUNS_MIN;
    return p->o->runs < most ? p->o->runs : most;
}

/* plain, profiled, profiled, plain, plain, ..: neither is always the one that comes later. */
static tare_status run_turns(struct passing *p)
{
    uint64_t run_ns = 0, runs = runs_wanted(p);
    if (p->o->budget_ns) p->end_ns = clock_raw_ns() + p->o->budget_ns;
    tare_status s = warm_up(p, &run_ns);
    uint64_t block = block_of(run_ns, runs);
    for (bool profiled_first = false; s == TARE_OK && p->out->profiled_ns.n < runs && !is_over(p);
         profiled_first = !profiled_first) {
        uint64_t left = runs - p->out->profiled_ns.n, n = block < left ? block : left;
        s = run_block(p, profiled_first, n);
        if (s == TARE_OK) s = run_block(p, !profiled_first, n);
    }
    return s;
}

/* ---- all of it ---- */

static tare_status make_pass(struct passing *p)
{
    tare_status s = read_source(p->out, p->subject, p->err);
    if (s == TARE_OK) s = open_profiled(p);
    if (s == TARE_OK && p->o->runs) s = open_one(p, NULL, &p->plain, p->err);
    if (s < 0) return s;
    const struct onnx_instance *i = (const struct onnx_instance *)p->profiled;
    s = read_inputs(p->out, i, p->err);
    if (s < 0 || !p->o->runs) return s;
    s = run_turns(p);
    if (s < 0) return s;
    if (i->ort->call.SessionGetProfilingStartTimeNs)
        ort_done(i->ort, i->ort->call.SessionGetProfilingStartTimeNs(i->session, &p->out->profile_start_ns));
    return ort_session_profile(i->ort, i->session, &p->out->profile, p->err);
}

/* The sessions are finished before their folder is removed, as the runtime may have files open there. *out
 * is written only when all went well. */
tare_status profiled_run(struct profiled_pass *out, struct subject *s, const struct profiled_options *o,
                         struct run *run, tare_error *err)
{
    struct profiled_pass made = PROFILED_PASS_INIT;
    struct passing p = {.subject = s, .o = o, .run = run, .params = o->params, .out = &made, .err = err};
    p.params.workers = 1;
    p.params.has_neighbours = o->runs > 0; /* two sessions: neither may spin while the other runs */
    tare_status st = folder_make(&p.folder, o->folder, err);
    if (st < 0) {
        if (p.folder.path[0]) folder_remove(&p.folder);
        return st;
    }
    st = make_pass(&p);
    if (p.plain) s->ops->finish(p.plain);
    if (p.profiled) s->ops->finish(p.profiled);
    folder_remove(&p.folder);
    if (st < 0) {
        profiled_release(&made);
        return st;
    }
    *out = made;
    return TARE_OK;
}

void profiled_release(struct profiled_pass *p)
{
    onnx_close(&p->source);
    arena_release(&p->texts);
    vec_release(&p->dims);
    tensor_set_release(&p->inputs);
    onnx_close(&p->optimized);
    file_unmap(&p->optimized_bytes);
    ort_profile_release(&p->profile);
    vec_release(&p->profiled_ns);
    vec_release(&p->plain_ns);
    vec_release(&p->windows);
    *p = (struct profiled_pass)PROFILED_PASS_INIT;
}
