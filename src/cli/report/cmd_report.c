/* SPDX-License-Identifier: MIT
 * cmd_report.c - `tare report`: a trace as a call tree with the instrument's own weight taken out, or run
 * documents as tables. What a file is, is seen from its content. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/compare/compare_saved.h"
#include "analyze/gpu/gpu_sum.h"
#include "analyze/judge/judge.h"
#include "analyze/judge/launches.h"
#include "analyze/memory/memory_sum.h"
#include "analyze/stacks/stacks_sum.h"
#include "analyze/watch/watched.h"
#include "cli/browser.h"
#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/output.h"
#include "cli/input.h"
#include "cli/kept.h"
#include "cli/report/report_comparison.h"
#include "cli/report/report_fetched.h"
#include "core/file.h"
#include "report/gpu/gpu_report.h"
#include "report/memory/memory_report.h"
#include "report/stacks/stacks_report.h"
#include "report/trace/report.h"
#include "report/run/run_report.h"

struct report_args {
    bool gross, flat, json, gpu, memory, trace, open;
    int sort, format, by;
    bool stacks, wall, cpu, gil, idle, lines, no_native, fail, strict;
    uint64_t depth, tid;
    double min_percent;
    const char *output; /* NULL: stdout */
    const char *html;   /* the page in place of the text; NULL: none */
    struct history_args history;
};

/* ---- one thread of all ---- */

static void list_threads(struct buf *out, const struct trace *t)
{
    uint32_t n = trace_n_threads(t);
    for (uint32_t i = 0; i < n && i < 12; i++)
        buf_printf(out, "%s%" PRIu32, i ? ", " : "", trace_thread(t, i)->tid);
    if (n > 12) buf_printf(out, ", and %" PRIu32 " more", n - 12);
    if (n == 0) buf_add_str(out, "none");
}

/* The index of the thread asked for. 0, or the exit code after the user was told. */
static int find_thread(struct cli *cli, const struct trace *t, uint64_t tid, int *out)
{
    uint32_t found = 0;
    for (uint32_t i = trace_n_threads(t); i-- > 0;) {
        if (trace_thread(t, i)->tid != tid) continue;
        *out = (int)i;
        found++;
    }
    if (found > 1)
        cli_warn(cli, "%" PRIu32 " threads had the id %" PRIu64 " one after another; this is the first",
                 found, tid);
    if (found) return 0;
    struct buf all = BUF_INIT;
    list_threads(&all, t);
    error_set(&cli->error, TARE_INVALID, "%s: has no thread %" PRIu64 " (it has: %s)", trace_path(t), tid,
              all.data);
    buf_release(&all);
    return cli_fail(cli);
}

/* ---- a trace ---- */

/* What `tare run` or `tare top` sampled into it. */
struct sampled {
    bool any;
    struct run run;
    uint64_t moments, covered_ns;
};

static tare_status sampled_load(struct sampled *to, const char *path, tare_error *err)
{
    struct samples s = SAMPLES_INIT;
    tare_status st = TARE_OK;
    *to = (struct sampled){.any = false};
    if (samples_load(&s, path, NULL) == TARE_OK && s.at_ns.n) { /* most traces have none */
        st = run_init(&to->run, "run", err);
        to->any = st == TARE_OK;
        to->moments = s.at_ns.n;
        to->covered_ns = *vec_last(&s.at_ns) - s.at_ns.items[0];
        if (to->any) st = watched_from_samples(&to->run, &s, err);
    }
    samples_release(&s);
    return st;
}

static void write_text(struct stream *out, struct report_input *in, const struct sampled *s)
{
    in->samples = s->moments;
    in->sampled_ns = s->covered_ns;
    report_trace_text(out, in);
    if (!s->any) return;
    run_watched_text(out, &s->run);
    run_findings_text(out, &s->run);
}

static void write_json(struct stream *out, struct report_input *in, const struct sampled *s)
{
    struct buf text = BUF_INIT;
    tare_status st = s->any ? run_write_watched(&s->run, &text, out->err) : TARE_OK;
    in->watched = s->any ? &text : NULL;
    if (st == TARE_OK)
        report_trace_json(out, in);
    else
        out->status = st;
    buf_release(&text);
}

static int write_answer(struct cli *cli, struct report_input *in, const char *path,
                        const struct report_args *a)
{
    struct output out;
    struct sampled s;
    tare_status st = sampled_load(&s, path, &cli->error);
    if (st == TARE_OK) st = output_open(cli, &out, a->output);
    if (st == TARE_OK) {
        (a->format == RUN_FORMAT_json ? write_json : write_text)(&out.stream, in, &s);
        st = output_close(cli, &out);
    }
    if (s.any) run_release(&s.run);
    return cli_stream_result(cli, st);
}

static int answer_trace(struct cli *cli, struct trace *t, const struct report_args *a)
{
    struct event_source source;
    struct calltree tree = CALLTREE_INIT;
    struct report_input in = {.source = &source, .tree = &tree};
    in.options = (struct report_options){
        .view = {.sort = (enum tree_sort)a->sort,
                 .gross = a->gross,
                 .depth = (uint32_t)a->depth,
                 .min_share = a->min_percent / 100},
        .flat = a->flat,
        .thread = -1,
    };
    int rc = a->tid ? find_thread(cli, t, a->tid, &in.options.thread) : 0;
    if (rc) return rc;
    event_source_of_trace(&source, t);
    if (calltree_build(&tree, t, in.options.thread, &cli->error) < 0) return cli_fail(cli);
    rc = write_answer(cli, &in, trace_path(t), a);
    calltree_release(&tree);
    return rc;
}

/* ---- the GPUs of a trace ---- */

static tare_status write_gpu(struct stream *out, const struct gpu_profile *p, int format)
{
    if (format == RUN_FORMAT_text) {
        gpu_report_text(out, p);
        return TARE_OK;
    }
    return gpu_profile_write(p, &out->out, out->err);
}

static int answer_gpu(struct cli *cli, struct trace *const *traces, size_t n, const struct report_args *a)
{
    struct gpu_profile p = {0};
    struct output out;
    tare_status s = gpu_sum(traces, n, &p, &cli->error);
    if (s == TARE_OK) s = output_open(cli, &out, a->output);
    if (s == TARE_OK) {
        out.stream.status = write_gpu(&out.stream, &p, a->format);
        s = output_close(cli, &out);
    }
    gpu_profile_release(&p);
    return cli_stream_result(cli, s);
}

/* ---- the memory of a trace ---- */

/* Processes that the kernel killed for want of memory, as the control group counted them while `tare run` watched. */
static uint64_t oom_kills(const char *path)
{
    struct samples s = SAMPLES_INIT;
    double kills = 0;
    uint32_t at =
        samples_load(&s, path, NULL) == TARE_OK ? s.set.whole[METRIC_CG_OOM] : 0; /* most have none */
    const double *v = at ? s.columns.items[at - 1] : NULL;
    for (size_t i = 1; v && i < s.at_ns.n; i++) kills += v[i] > v[i - 1] ? v[i] - v[i - 1] : 0;
    samples_release(&s);
    return (uint64_t)kills;
}

static int answer_memory(struct cli *cli, struct trace *t, const struct report_args *a)
{
    struct memory_profile p;
    struct output out;
    struct answer answer;
    struct memory_report_options o = {.by = (enum memory_by)a->by, .oom_kills = oom_kills(trace_path(t))};
    tare_status s = memory_sum(t, &p, &cli->error);
    if (s == TARE_OK) s = memory_profile_symbols(&p, &cli->error);
    if (s == TARE_OK) s = output_open(cli, &out, a->output);
    if (s == TARE_OK) {
        answer_begin(&answer, out.stream.to, a->format == RUN_FORMAT_json, &out.stream.style, &cli->error);
        tare_status made = memory_report(&answer, &p, &o);
        out.stream.status = answer_end(&answer);
        if (made != TARE_OK) out.stream.status = made;
        s = output_close(cli, &out);
    }
    memory_profile_release(&p);
    return cli_stream_result(cli, s);
}

/* ---- sampled stacks ---- */

static int answer_stacks(struct cli *cli, struct trace *t, const struct report_args *a)
{
    struct stacks_profile p;
    struct stacks_wish wish = {.time = STACKS_WALL, .lines = a->lines, .no_native = a->no_native};
    struct output out;
    struct answer answer;
    char tid[32];
    if (a->cpu) wish.time = STACKS_CPU;
    if (a->gil) wish.time = STACKS_GIL;
    if (a->idle) wish.time = STACKS_IDLE;
    snprintf(tid, sizeof tid, "%" PRIu64, a->tid);
    if (a->tid) wish.thread = tid;
    tare_status s = stacks_sum(t, &wish, &p, &cli->error);
    if (s < 0) cli_name_file(&cli->error, trace_path(t));
    if (s == TARE_OK) s = output_open(cli, &out, a->output);
    if (s == TARE_OK) {
        answer_begin(&answer, out.stream.to, a->format == RUN_FORMAT_json, &out.stream.style, &cli->error);
        stacks_report(&answer, &p, &wish);
        out.stream.status = answer_end(&answer);
        s = output_close(cli, &out);
    }
    stacks_profile_release(&p);
    return cli_stream_result(cli, s);
}

static int answer_of(struct cli *cli, struct trace *const *traces, size_t n, const struct report_args *a)
{
    if (a->memory) return answer_memory(cli, traces[0], a);
    if (a->stacks) return answer_stacks(cli, traces[0], a);
    return a->gpu || n > 1 ? answer_gpu(cli, traces, n, a) : answer_trace(cli, traces[0], a);
}

/* Several traces are those of the ranks of a job: what joins them is what their GPUs did. */
static int report_trace(struct cli *cli, int argc, char **argv, const struct report_args *a)
{
    size_t n = 0;
    int rc = 0;
    bool of_tree =
        a->gross || a->flat || a->depth || a->tid || a->min_percent > 0 || a->sort != TREE_SORT_TOTAL;
    if (a->format > RUN_FORMAT_json)
        return cli_usage_error(cli, "a trace is reported as text or json; `tare export` knows other formats");
    if (argc > 1 && of_tree)
        return cli_usage_error(
            cli, "several traces are joined by what their GPUs did; options about the call tree are "
                 "for one trace");
    if (argc > 1 && (a->memory || a->stacks))
        return cli_usage_error(cli, "--%s is for one trace", a->memory ? "memory" : "stacks");
    struct trace **all = mem_new((size_t)argc, sizeof *all);
    if (!all) {
        error_nomem(&cli->error, "%d traces", argc);
        return cli_fail(cli);
    }
    for (; n < (size_t)argc && !rc; n += !rc) rc = input_trace(cli, argv[n], &all[n]);
    if (!rc) rc = answer_of(cli, all, n, a);
    while (n) trace_close(all[--n]);
    mem_free(all);
    return rc;
}

/* ---- run documents ---- */

/* The worst of the runs. One without targets has nothing that could have been kept: undecided, too. */
static int gate_of(struct cli *cli, const struct input_runs *runs, bool strict)
{
    bool open = false;
    for (size_t i = 0; i < runs->n; i++) {
        const struct run *run = runs->list[i];
        if (targets_missed(run)) return CLI_FINDING;
        if (run->targets.n == 0)
            cli_note(cli, "%s has no targets: --fail has nothing to judge", run->subject.name);
        open = open || run->targets.n == 0;
        for (size_t t = 0; t < run->targets.n; t++)
            open = open || strcmp(run->targets.at[t]->verdict, "pass") != 0;
    }
    return open && strict ? CLI_FAILED : CLI_GOOD;
}

static int report_runs(struct cli *cli, int argc, char **argv, const struct report_args *a)
{
    struct input_runs args;
    int rc = input_runs_load(cli, &args, &a->history, argv, (size_t)argc);
    if (rc) return rc;
    struct run_report report = {.runs = args.list, .n = args.n};
    tare_status s = output_runs(cli, a->output, &report, run_formats[a->format].write);
    rc = cli_stream_result(cli, s);
    if (!rc && a->fail) rc = gate_of(cli, &args, a->strict);
    input_runs_release(&args);
    return rc;
}

/* ---- a page: run documents and traces; two of a kind are compared, the first being the base ---- */

struct given { /* the files by kind, in the order they were named */
    char **runs, **traces;
    size_t n_runs, n_traces;
};

/* Runs to the beginning of argv, in place; traces into a list of their own. */
static tare_status sort_files(int argc, char **argv, struct given *g, struct arena *a, tare_error *err)
{
    char **traces = arena_new(a, (size_t)argc, sizeof *traces);
    *g = (struct given){.runs = argv, .traces = traces};
    if (!traces) return error_set(err, TARE_NOMEM, "out of memory for %d files", argc);
    for (int i = 0; i < argc; i++) {
        if (input_holds_run(argv[i]))
            argv[g->n_runs++] = argv[i];
        else
            traces[g->n_traces++] = argv[i];
    }
    return TARE_OK;
}

/* ---- a comparison of two runs ---- */

/* Two runs that do not compare are no failure of the page: it shows both, and the user is told why that is all. */
static bool compared(struct cli *cli, struct comparison *c, const struct input_runs *runs, char **names)
{
    tare_error err = TARE_ERROR_INIT;
    struct compare_saved in = {.base = &runs->list[0],
                               .n_base = 1,
                               .new_ = &runs->list[1],
                               .n_new = 1,
                               .rule = BETWEEN_RULE_INIT,
                               .apart_ms = LAUNCHES_APART_MS};
    if (comparison_init(c, "saved", &err) == TARE_OK) {
        c->base.name = names[0];
        c->new_.name = names[1];
        c->base.path = kept_is_name(names[0]) ? NULL : names[0];
        c->new_.path = kept_is_name(names[1]) ? NULL : names[1];
        if (compare_saved(c, &in, &err) == TARE_OK) return true;
        comparison_release(c);
    }
    cli_warn(cli, "the page is without a comparison: %s", err.text);
    return false;
}

/* ---- the page ---- */

static tare_status add_runs(struct cli *cli, struct html_out *h, const struct input_runs *runs, char **names)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < runs->n && s == TARE_OK; i++) {
        s = html_out_run(h, names[i], runs->list[i], runs->n, &cli->error);
        if (s == TARE_OK && !kept_is_name(names[i])) html_out_trace_beside(h, cli, runs->list[i], names[i]);
    }
    return s;
}

static int add_traces(struct cli *cli, struct html_out *h, const struct given *g)
{
    int rc = 0;
    bool job = false;
    if (g->n_traces > 1 && g->n_runs == 0) rc = html_out_job(h, cli, g->traces, g->n_traces, &job);
    if (rc || job) return rc;
    if (g->n_traces == 2 && g->n_runs == 0) return html_out_trace_arg(h, cli, g->traces[1], g->traces[0]);
    for (size_t i = 0; i < g->n_traces && !rc; i++) rc = html_out_trace_arg(h, cli, g->traces[i], NULL);
    return rc;
}

static const char *title_of(const struct input_runs *runs, const struct given *g)
{
    return runs->n ? runs->list[0]->subject.name : g->traces[g->n_traces - 1];
}

static int write_page(struct cli *cli, const struct input_runs *runs, const struct given *g, const char *path,
                      bool gross)
{
    struct html_out h = HTML_OUT_INIT;
    struct comparison c;
    h.gross = gross;
    bool both = runs->n == 2 && g->n_traces == 0 && compared(cli, &c, runs, g->runs);
    tare_status s = both ? html_out_comparison(&h, &c, &cli->error) : TARE_OK;
    if (s == TARE_OK) s = add_runs(cli, &h, runs, g->runs);
    int rc = s == TARE_OK ? add_traces(cli, &h, g) : cli_fail(cli);
    if (!rc && html_out_write(cli, &h, path, title_of(runs, g)) < 0) rc = cli_fail(cli);
    html_out_release(&h);
    if (both) comparison_release(&c); /* before the runs it borrows from */
    return rc;
}

static int memory_page(struct cli *cli, int argc, char **argv, const struct report_args *a)
{
    struct html_out h = HTML_OUT_INIT;
    if (argc > 1) return cli_usage_error(cli, "--memory is for one trace");
    int rc = html_out_memory(&h, cli, argv[0]);
    if (!rc && html_out_write(cli, &h, a->html, argv[0]) < 0) rc = cli_fail(cli);
    html_out_release(&h);
    return rc;
}

static int report_page(struct cli *cli, int argc, char **argv, const struct report_args *a)
{
    struct arena arena = ARENA_INIT;
    struct input_runs runs = {0};
    struct given g;
    if (a->memory) return memory_page(cli, argc, argv, a);
    int rc = sort_files(argc, argv, &g, &arena, &cli->error) == TARE_OK ? 0 : cli_fail(cli);
    if (!rc && g.n_runs) rc = input_runs_load(cli, &runs, &a->history, g.runs, g.n_runs);
    if (!rc) {
        rc = write_page(cli, &runs, &g, a->html, a->gross);
        input_runs_release(&runs);
    }
    arena_release(&arena);
    return rc;
}

/* Several traces of a run are those of the ranks of a job. */
static int report_fetched(struct cli *cli, const char *name, const struct report_args *a)
{
    struct fetched f;
    tare_status s = fetched_open(&f, &a->history, name, &cli->error);
    int rc = s == TARE_OK ? 0 : cli_fail(cli);
    if (!rc) rc = (a->html ? report_page : report_trace)(cli, (int)f.n, f.paths, a);
    fetched_close(&f);
    return rc;
}

/* ---- the command ---- */

enum { TRACE = 1, RUNS = 2, PAGE = 4, COMPARISON = 8 };
static const struct opt_kind kinds[] = {
    {TRACE, "traces", "this is a trace"},
    {RUNS, "run documents", "this is a run document"},
    {COMPARISON, "comparisons", "this is a comparison"},
    {PAGE, "pages", "a page shows the whole tree, and finds its way in it"},
    {0, NULL, NULL}};

static const struct opt_usage usage = {
    .synopsis = "tare report [options] [<folder>]\ntare report [options] <trace>...\n"
                "tare report [options] <run.json | @id>...\n"
                "tare report [options] <comparison.json>\n"
                "tare report --html <file> <run.json | @id | trace>...",
    .about = "Without a name, print the latest run that was kept here, or in the folder that is named. "
             "Print the call tree of a trace: how often each scope ran, its total and self time, the mean "
             "with its 95 % interval, percentiles, and its share. Times are net: the cost of tare itself, "
             "measured in the running program, is subtracted. Percentiles and the maximum are as read. "
             "Several traces are those of the ranks of one job: what their GPUs did is shown side by side, as with "
             "--gpu. "
             "Or print runs that `tare bench` kept, documents or by their id in the history: a row per case, findings, "
             "recommendations and targets; or a comparison that `tare compare` kept. "
             "With --html, write one page with plots that needs no network; two run "
             "documents are also compared, traces of the ranks of a job are lanes of one timeline, two other "
             "traces give a flame graph of their difference.",
    .tail = "record a trace:    TARE_TRACE=app.tare ./app",
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .kinds = kinds,
};

static const struct opt_choice formats[] = {
#define ONLY(name, function, help, ...) {#name, RUN_FORMAT_##name, help},
    RUN_FORMAT_MAP(ONLY, ONLY)
#undef ONLY
    {NULL, 0, NULL}};

/* Nothing, or a folder of results, means the latest run that is kept there. */
static void name_latest(struct report_args *a, int *argc, char ***argv)
{
    static char latest[] = "latest", *names[] = {latest, NULL};
    struct stat st;
    bool folder = *argc == 1 && stat((*argv)[0], &st) == 0 && S_ISDIR(st.st_mode);
    if (*argc && !folder) return;
    if (folder) a->history.output_dir = (*argv)[0];
    *argc = 1;
    *argv = names;
}

/* --open without --html. */
static int name_page(struct cli *cli, struct report_args *a, char *page, size_t size)
{
    tare_status s = file_make_folders(a->history.output_dir, &cli->error);
    snprintf(page, size, "%s/report.html", a->history.output_dir);
    a->html = page;
    return s == TARE_OK ? 0 : cli_fail(cli);
}

static int show(struct cli *cli, int argc, char **argv, const struct report_args *a, unsigned kind)
{
    if (a->trace) return report_fetched(cli, argv[0], a);
    if (argc == 1 && input_is_comparison(argv[0]))
        return report_comparison(cli, argv[0], a->html, a->output, formats[a->format].name);
    if (a->html) return report_page(cli, argc, argv, a);
    return (kind == RUNS ? report_runs : report_trace)(cli, argc, argv, a);
}

int cmd_report(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice bys[] = {
#define X(name, word, help) {word, MEMORY_BY_##name, help},
        MEMORY_BY_MAP(X)
#undef X
            {NULL, 0, NULL}};
    static const struct opt_choice sorts[] = {
#define X(name, text) {text, TREE_SORT_##name, NULL},
        TREE_SORT_MAP(X)
#undef X
            {NULL, 0, NULL}};
    struct report_args a = {.sort = TREE_SORT_TOTAL, .format = RUN_FORMAT_text, .history = HISTORY_ARGS_INIT};
    const struct opt rows[] = {
        OPT_ENUM('f', "format", &a.format, formats, "how to print it"),
        OPT_OUT('o', "output", &a.output, "<file>", "write to this file instead of stdout"),
        OPT_JSON(&a.json),
        OPT_FLAG(0, "open", &a.open, "show that page in the browser (default file: report.html in --output-dir)"),
        OPT_OUT(0, "html", &a.html, "<file>", "a page with plots instead: one file, no network; - is stdout",
                 .not_with = "format json output", .hint = "a page is an answer of its own"),
        OPT_GROUP("of runs"),
        OPT_ASKED(&a.history),
        OPT_FLAG(0, "fail", &a.fail, "exit 1 if a target of the run was missed", .only_for = RUNS, .not_with = "html"),
        OPT_FLAG(0, "strict", &a.strict, "exit 3 when a target is undecided, or there is none", .needs = "fail"),
        OPT_GROUP("of traces"),
        OPT_FLAG(0, "trace", &a.trace, "the trace of a run that a server keeps (@id, with --server)"),
        OPT_FLAG(0, "gpu", &a.gpu, "what GPUs did: busy and idle by cause, kernels, copies, calls, ranges",
                 .only_for = TRACE, .not_with = "gross flat sort depth min-share thread",
                 .hint = "these are about the call tree"),
        OPT_FLAG(0, "memory", &a.memory, "who held memory at the peak, what grows, what is freed at once, by site",
                 .only_for = TRACE | PAGE, .not_with = "gpu gross flat sort depth min-share thread",
                 .hint = "memory is an answer of its own"),
        OPT_ENUM(0, "by", &a.by, bys, "memory summed up so", .needs = "memory"),
        OPT_FLAG(0, "stacks", &a.stacks, "which functions the time of sampled threads went to (tare attach -o)",
                 .only_for = TRACE, .not_with = "gpu memory gross flat sort depth min-share",
                 .hint = "sampled stacks are an answer of their own"),
        OPT_FLAG(0, "wall", &a.wall, "with --stacks: all of the time, waiting too (this is what it does anyway)",
                 .needs = "stacks", .not_with = "cpu gil idle"),
        OPT_FLAG(0, "cpu", &a.cpu, "with --stacks: time on processors", .needs = "stacks", .not_with = "gil idle"),
        OPT_FLAG(0, "gil", &a.gil, "with --stacks: time with the GIL of Python held", .needs = "stacks",
                 .not_with = "idle"),
        OPT_FLAG(0, "idle", &a.idle, "with --stacks: time neither on a processor nor ready for one", .needs = "stacks"),
        OPT_FLAG(0, "lines", &a.lines, "with --stacks: by line, not by function", .needs = "stacks"),
        OPT_FLAG(0, "no-native", &a.no_native,
                 "with --stacks: native code as part of the function of Python that called it", .needs = "stacks"),
        OPT_FLAG(0, "gross", &a.gross, "times as read, with the cost of tare still in them",
                 .only_for = TRACE | PAGE),
        OPT_FLAG(0, "flat", &a.flat, "one row per scope over all paths; recursion is counted once",
                 .only_for = TRACE),
        OPT_ENUM('s', "sort", &a.sort, sorts, "order of the rows", .only_for = TRACE),
        OPT_UINT_IN('d', "depth", &a.depth, 0, UINT32_MAX, "levels of the tree to show; 0: all",
                 .only_for = TRACE),
        OPT_DOUBLE(0, "min-share", &a.min_percent, 0, 100, "leave out what takes less than this, in percent",
                 .only_for = TRACE),
        OPT_UINT_IN(0, "thread", &a.tid, 1, UINT32_MAX, "only the thread with this id", .flags = OPT_NO_DEFAULT,
                 .arg = "<tid>", .only_for = TRACE),
        OPT_END,
    };
    char page[4096];
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    name_latest(&a, &argc, &argv);
    if (a.open && !a.html && (rc = name_page(cli, &a, page, sizeof page)) != 0) return rc;
    if (a.json && a.format > RUN_FORMAT_json)
        return cli_usage_error(cli, "--json and --format %s contradict each other", formats[a.format].name);
    if (a.json) a.format = RUN_FORMAT_json;
    if (a.trace && (argc != 1 || !kept_is_name(argv[0])))
        return cli_usage_error(cli, "--trace is for one run that a server keeps: @id, @latest");
    unsigned kind = input_holds_run(argv[0]) && !a.trace ? RUNS : TRACE;
    if (argc == 1 && input_is_comparison(argv[0])) kind = COMPARISON;
    if (a.html) kind = PAGE;
    rc = cli_check_kind(cli, &usage, rows, kind);
    if (rc) return rc;
    rc = output_is_answer(a.html) ? 0 : html_out_check(cli, a.html);
    if (rc) return rc;
    rc = show(cli, argc, argv, &a, kind);
    if (!rc && a.open && !output_is_answer(a.html)) browser_open(cli, a.html);
    return rc;
}
