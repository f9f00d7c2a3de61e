/* SPDX-License-Identifier: MIT
 * html_out.c - see html_out.h. */
#include "cli/html_out.h"
#include "report/stacks/stacks_report.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/output.h"
#include "cli/input.h"
#include "core/str.h"
#include "report/export/profile_json.h"
#include "report/memory/memory_export.h"
#include "report/memory/memory_report.h"
#include "report/page/bars_json.h"
#include "report/trace/joined.h"
#include "report/trace/report.h"
#include "trace/gpu.h"

void html_out_release(struct html_out *h)
{
    for (size_t i = 0; i < h->traces.n; i++) trace_close(h->traces.items[i]);
    for (size_t i = 0; i < h->samples.n; i++) samples_release(h->samples.items[i]);
    for (size_t i = 0; i < h->memories.n; i++) memory_profile_release(h->memories.items[i]);
    vec_release(&h->memories);
    vec_release(&h->traces);
    vec_release(&h->samples);
    vec_release(&h->items);
    arena_release(&h->arena);
}

int html_out_check(struct cli *cli, const char *path)
{
    if (!path) return 0;
    if (output_is_answer(path))
        return cli_usage_error(cli, "--html -: the text is the answer here; give the page a file");
    if (html_has_viewer()) return 0;
    error_set(&cli->error, TARE_UNSUPPORTED, "--html: %s", HTML_MISSING);
    return cli_fail(cli);
}

/* ---- gathering ---- */

static tare_status add(struct html_out *h, struct html_item item, tare_error *err)
{
    if (h->arena.failed) return error_set(err, TARE_NOMEM, "out of memory for the report page");
    return vec_push(&h->items, item, err);
}

tare_status html_out_run(struct html_out *h, const char *name, const struct run *run, size_t n_runs,
                         tare_error *err)
{
    struct html_run *ctx = arena_new(&h->arena, 1, sizeof *ctx);
    if (ctx) *ctx = (struct html_run){run, HTML_SAMPLES_MAX / (n_runs ? n_runs : 1)};
    const char *kept = arena_str(&h->arena, name ? str_file_name(name) : run->subject.name);
    return add(h, (struct html_item){"run", kept, html_run_write, ctx}, err);
}

tare_status html_out_comparison(struct html_out *h, const struct comparison *c, tare_error *err)
{
    return add(h, (struct html_item){"comparison", NULL, html_comparison_write, c}, err);
}

static tare_status write_text(struct stream *s, const void *ctx)
{
    buf_add_str(&s->out, ctx);
    return stream_poll(s);
}

tare_status html_out_text(struct html_out *h, const char *kind, const char *name, const struct buf *text,
                          tare_error *err)
{
    char *copy = arena_new(&h->arena, text->len + 1, 1);
    if (copy) memcpy(copy, text->data, text->len);
    return add(h, (struct html_item){kind, arena_str(&h->arena, name), write_text, copy}, err);
}

/* ---- traces ---- */

static tare_status write_profile(struct stream *s, const void *ctx)
{
    return profile_json_trace(s, ctx);
}

struct bars_ctx {
    struct trace **traces; /* several: of the ranks of a job */
    size_t n;
};

static tare_status write_bars(struct stream *s, const void *ctx)
{
    const struct bars_ctx *b = ctx;
    return bars_json_write(s, b->traces, b->n, 0);
}

static tare_status write_timeline(struct stream *s, const void *ctx)
{
    return timeline_json_write(s, ctx);
}

static tare_status keep_trace(struct html_out *h, struct trace *t, tare_error *err)
{
    tare_status s = vec_push(&h->traces, t, err);
    if (s < 0) trace_close(t);
    return s;
}

/* Most traces hold no samples, which is no failure. */
static tare_status add_timeline(struct html_out *h, const char *path, tare_error *err)
{
    tare_error none = TARE_ERROR_INIT;
    struct samples *samples = arena_new(&h->arena, 1, sizeof *samples);
    if (!samples) return error_set(err, TARE_NOMEM, "out of memory for the report page");
    *samples = (struct samples)SAMPLES_INIT;
    if (samples_load(samples, path, &none) < 0)
        return none.status == TARE_NOMEM ? error_set(err, TARE_NOMEM, "%s", none.text) : TARE_OK;
    tare_status s = vec_push(&h->samples, samples, err);
    if (s < 0) samples_release(samples);
    if (s < 0 || !samples->at_ns.n) return s;
    const char *name = arena_str(&h->arena, str_file_name(path));
    return add(h, (struct html_item){"timeline", name, write_timeline, samples}, err);
}

static tare_status add_job(struct html_out *h, struct trace *const *traces, size_t n, tare_error *err)
{
    struct bars_ctx *b = arena_new(&h->arena, 1, sizeof *b);
    if (b) *b = (struct bars_ctx){arena_new(&h->arena, n, sizeof *b->traces), n};
    if (!b || !b->traces) return error_set(err, TARE_NOMEM, "out of memory for the report page");
    memcpy(b->traces, traces, n * sizeof *traces);
    const char *name = arena_str(&h->arena, str_file_name(trace_path(traces[0])));
    return add(h, (struct html_item){"bars", name, write_bars, b}, err);
}

static tare_status add_bars(struct html_out *h, struct trace *t, tare_error *err)
{
    return add_job(h, &t, 1, err);
}

/* What was sampled from outside, as a profile. */
static tare_status add_stacks(struct html_out *h, const char *path, struct trace *of, tare_error *err)
{
    struct stacks_profile p;
    struct buf text = BUF_INIT;
    const struct stacks_wish wish = {.time = STACKS_WALL};
    tare_status s = stacks_sum(of, &wish, &p, err);
    if (s == TARE_OK) s = stacks_profile_json(&text, &p, str_file_name(path), err);
    if (s == TARE_OK) s = html_out_text(h, "profile", arena_str(&h->arena, str_file_name(path)), &text, err);
    stacks_profile_release(&p);
    buf_release(&text);
    return s;
}

/* What GPUs did, samples over time, the profile, and last the scopes over time: shown beside the profile.
 * Of a trace with samples or a GPU and no scope there is no profile. */
static tare_status add_parts(struct html_out *h, const char *path, struct trace *of, struct trace *base,
                             tare_error *err)
{
    struct profile_wish *p = arena_new(&h->arena, 1, sizeof *p);
    if (!p) return error_set(err, TARE_NOMEM, "out of memory for the report page");
    *p = (struct profile_wish){.of = of, .base = base, .gross = h->gross};
    size_t before = h->items.n;
    tare_status s = base && trace_has_gpu(base) ? add_bars(h, base, err) : TARE_OK;
    if (s == TARE_OK && trace_has_gpu(of)) s = add_bars(h, of, err);
    if (s == TARE_OK) s = add_timeline(h, path, err);
    if (s == TARE_OK && trace_has_stacks(of)) s = add_stacks(h, path, of, err);
    if (s < 0 || (h->items.n > before && !profile_json_has_scopes(of))) return s;
    const char *name = arena_str(&h->arena, str_file_name(path));
    s = add(h, (struct html_item){"profile", name, write_profile, p}, err);
    return s == TARE_OK && !trace_has_gpu(of) && bars_json_has_any(of) ? add_bars(h, of, err) : s;
}

int html_out_trace_arg(struct html_out *h, struct cli *cli, const char *path, const char *base)
{
    struct trace *of = NULL, *against = NULL;
    int rc = input_trace(cli, path, &of);
    if (!rc && keep_trace(h, of, &cli->error) < 0) rc = cli_fail(cli);
    if (!rc && base) rc = input_trace(cli, base, &against);
    if (!rc && against && keep_trace(h, against, &cli->error) < 0) rc = cli_fail(cli);
    if (!rc && add_parts(h, path, of, against, &cli->error) < 0) rc = cli_fail(cli);
    return rc;
}

/* ---- memory ---- */

struct flame_ctx {
    const struct memory_process *of;
    struct arena *arena;
    enum memory_weight weight;
};

static tare_status write_flame(struct stream *s, const void *ctx)
{
    const struct flame_ctx *f = ctx;
    return memory_write_profile(s, f->of, f->arena, f->weight);
}

static tare_status write_memory(struct stream *s, const void *ctx)
{
    struct answer a;
    struct memory_report_options o = {.by = MEMORY_BY_LINE, .no_sites = true};
    answer_begin(&a, sink_to_buf(&s->out), true, &s->style, s->err);
    tare_status made = memory_report(&a, (struct memory_profile *)(uintptr_t)ctx, &o);
    tare_status ended = answer_end(&a);
    return stream_end(s, made == TARE_OK ? ended : made);
}

/* Flame graphs of the process with the highest peak: of the peak, of what grew and of churn, where there is any. */
static tare_status add_flames(struct html_out *h, struct memory_profile *p, const char *name, tare_error *err)
{
    static const enum memory_weight shown[] = {MEMORY_WEIGHT_PEAK, MEMORY_WEIGHT_GROWN, MEMORY_WEIGHT_CHURN};
    tare_status s = TARE_OK;
    for (size_t i = 0; i < sizeof shown / sizeof *shown && p->n && s == TARE_OK; i++) {
        struct flame_ctx *f = arena_new(&h->arena, 1, sizeof *f);
        if (f) *f = (struct flame_ctx){&p->processes[0], &p->arena, shown[i]};
        const char *title = arena_printf(&h->arena, "%s, %s", name, memory_weight_words[shown[i]]);
        s = add(h, (struct html_item){"profile", title, write_flame, f}, err);
    }
    return s;
}

static tare_status add_memory(struct html_out *h, struct trace *t, const char *path, tare_error *err)
{
    struct memory_profile *p = arena_new(&h->arena, 1, sizeof *p);
    if (!p) return error_nomem(err, "the report page");
    tare_status s = memory_sum(t, p, err);
    if (s == TARE_OK) s = memory_profile_symbols(p, err);
    tare_status kept = vec_push(&h->memories, p, err);
    if (kept != TARE_OK) memory_profile_release(p);
    if (s == TARE_OK) s = kept;
    const char *name = arena_str(&h->arena, str_file_name(path));
    if (s == TARE_OK) s = add(h, (struct html_item){"memory", name, write_memory, p}, err);
    return s == TARE_OK ? add_flames(h, p, name, err) : s;
}

int html_out_memory(struct html_out *h, struct cli *cli, const char *path)
{
    struct trace *t = NULL;
    int rc = input_trace(cli, path, &t);
    if (!rc && keep_trace(h, t, &cli->error) < 0) rc = cli_fail(cli);
    if (!rc && add_memory(h, t, path, &cli->error) < 0) rc = cli_fail(cli);
    return rc;
}

int html_out_job(struct html_out *h, struct cli *cli, char **paths, size_t n, bool *is_job)
{
    const size_t first = h->traces.n;
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        struct trace *t = NULL;
        rc = input_trace(cli, paths[i], &t);
        if (!rc && keep_trace(h, t, &cli->error) < 0) rc = cli_fail(cli);
    }
    *is_job = !rc && joined_is_job(h->traces.items + first, n);
    if (*is_job && add_job(h, h->traces.items + first, n, &cli->error) < 0) rc = cli_fail(cli);
    return rc;
}

tare_status html_out_trace(struct html_out *h, const char *path, tare_error *err)
{
    struct trace *t = NULL;
    tare_status s = trace_open(&t, path, err);
    if (s == TARE_OK) s = keep_trace(h, t, err);
    return s == TARE_OK ? add_parts(h, path, t, NULL, err) : s;
}

void html_out_trace_file(struct html_out *h, struct cli *cli, const char *path)
{
    tare_error err = TARE_ERROR_INIT;
    if (html_out_trace(h, path, &err) < 0) cli_warn(cli, "the page is without the trace: %s", err.text);
}

void html_out_trace_beside(struct html_out *h, struct cli *cli, const struct run *run, const char *path)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    if (!run->trace || strchr(run->trace, '/')) return;
    const char *trace =
        arena_printf(&h->arena, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, run->trace);
    if (trace && stat(trace, &st) == 0) html_out_trace_file(h, cli, trace);
}

/* ---- writing ---- */

tare_status html_out_write(struct cli *cli, const struct html_out *h, const char *path, const char *title)
{
    struct html_page page = {title, h->items.items, h->items.n};
    struct output o;
    tare_status s = output_open(cli, &o, path);
    if (s < 0) return s;
    o.exact = true; /* the viewer's bytes are our own, the documents escaped */
    html_write(&o.stream, &page);
    s = output_close(cli, &o);
    if (s == TARE_OK && o.is_file && !h->quiet) cli_note(cli, "page written to %s", path);
    return s;
}

tare_status html_out_runs(struct cli *cli, const char *path, const struct run *const *runs, size_t n)
{
    struct html_out h = HTML_OUT_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < n && s == TARE_OK; i++) s = html_out_run(&h, NULL, runs[i], n, &cli->error);
    if (s == TARE_OK) s = html_out_write(cli, &h, path, n ? runs[0]->subject.name : NULL);
    html_out_release(&h);
    return s;
}
