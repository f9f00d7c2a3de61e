/* SPDX-License-Identifier: MIT
 * cmd_export.c - `tare export`: a trace in the format of another tool. Nothing half-written is ever left, and
 * the trace itself is never overwritten. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/stacks_words.h"
#include "core/mem.h"
#include "core/fmt.h"
#include "report/export/export.h"
#include "report/memory/memory_export.h"
#include "report/stacks/stacks_export.h"
#include "report/trace/joined.h"

enum { FORMATS_MAX = 16 };

/* Who allocated, and sampled stacks: in these formats, which are of the same names where the call tree has them too. */
struct other_format {
    const char *name, *extension, *help;
    bool binary;
    memory_write_fn *memory;
    stacks_write_fn *stacks;
};
static const struct other_format memory_formats[] = {
#define X(name, extension, help, binary) {#name, extension, help, binary, memory_write_##name, NULL},
    MEMORY_FORMAT_MAP(X)
#undef X
        {.name = NULL}};
static const struct other_format stacks_formats[] = {
#define X(name, extension, help, binary) {#name, extension, help, binary, NULL, stacks_write_##name},
    STACKS_FORMAT_MAP(X)
#undef X
        {.name = NULL}};

#define CHROME_LARGE (UINT64_C(250) * 1000 * 1000) /* viewers of JSON fail somewhere above this */

struct export_args {
    const char *trace;
    const struct export_format *format;
    const char *output; /* NULL: named after the trace */
    bool gross, memory, stacks, no_native;
    int weight; /* of memory, folded */
    int time;   /* of stacks */
};

/* ---- the name of the output ---- */

/* FILE.tare becomes FILE.chrome.json. NULL: no memory. */
static char *default_name(const char *trace, const char *extension)
{
    struct buf name = BUF_INIT;
    size_t n = strlen(trace), tail = strlen(".tare");
    buf_add(&name, trace, n > tail && strcmp(trace + n - tail, ".tare") == 0 ? n - tail : n);
    buf_add_str(&name, extension);
    return buf_take(&name);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Whether `output` may be written. Sets cli->error if not. */
static bool may_write(struct cli *cli, const struct export_args *a, const char *output)
{
    if (is_same_file(a->trace, output)) {
        error_set(&cli->error, TARE_INVALID, "%s: the output is the trace itself; name another file with -o",
                  output);
        return false;
    }
    if (!a->output && access(output, F_OK) == 0) {
        error_set(&cli->error, TARE_INVALID, "%s: exists already; name the output with -o to replace it",
                  output);
        return false;
    }
    return true;
}

/* ---- progress: a source that counts the events that pass ---- */

struct counted {
    const struct event_source *inner;
    struct progress bar;
    uint64_t done, total;
    trace_event_fn *fn;
    void *fn_ctx;
};

static int count_event(void *ctx, const struct trace_event *e)
{
    struct counted *c = ctx;
    if ((++c->done & 0xFFFF) == 0) progress_at(&c->bar, "exporting", c->done, c->total);
    return c->fn(c->fn_ctx, e);
}

static tare_status counted_events(void *ctx, uint32_t thread, trace_event_fn *fn, void *fn_ctx,
                                  tare_error *err)
{
    struct counted *c = ctx;
    c->fn = fn;
    c->fn_ctx = fn_ctx;
    return source_events(c->inner, thread, count_event, c, err);
}

/* ---- writing ---- */

/* The source is wrapped for as long as it takes, so that the bar knows how far it is. */
static tare_status write_to(struct cli *cli, struct sink to, const struct export_args *a,
                            struct export_input *in)
{
    struct counted counted = {.inner = in->source, .bar = PROGRESS_INIT(cli)};
    struct event_source source = *in->source;
    struct stream s;
    for (uint32_t i = 0; i < source.n_threads; i++) counted.total += source_thread(&source, i)->events;
    source.events = counted_events;
    source.events_ctx = &counted;
    in->source = &source;
    stream_init(&s, to, &cli->error);
    progress_at(&counted.bar, "exporting", 0, counted.total); /* from now on time counts */
    a->format->write(&s, in);
    progress_end(&counted.bar);
    tare_status status = stream_finish(&s);
    in->source = counted.inner;
    if (status == TARE_OK && a->format == &export_chrome && s.written > CHROME_LARGE)
        cli_warn(cli,
                 "%" PRIu64 " MB of JSON: most viewers fail above 250 MB; --format perfetto is a third of it",
                 s.written / 1000000);
    return status;
}

/* What an export writes, whatever it is made of. */
struct making {
    const struct export_args *a;
    struct export_input *in;      /* NULL: one of the next two */
    struct memory_export *memory; /* NULL: not asked for */
    struct stacks_export *stacks;
    const struct other_format *as;
};

static tare_status make(struct cli *cli, struct sink to, const struct making *m)
{
    if (!m->as) return write_to(cli, to, m->a, m->in);
    struct stream s;
    stream_init(&s, to, &cli->error);
    if (m->memory)
        m->as->memory(&s, m->memory);
    else
        m->as->stacks(&s, m->stacks);
    return stream_finish(&s);
}

static const char *help_of(const struct making *m)
{
    return m->as ? m->as->help : m->a->format->help;
}

/* A name that cannot be written is bad input; what fails later is not. */
static int write_file(struct cli *cli, const char *output, const struct making *m)
{
    const struct export_args *a = m->a;
    struct file_out file;
    struct stat st;
    if (!may_write(cli, a, output)) return cli_fail(cli);
    tare_status s = file_out_open(&file, output, FILE_SHARED, &cli->error);
    if (s < 0) return cli_fail_input(cli);
    s = make(cli, sink_to_file(&file), m);
    if (s == TARE_OK)
        s = file_out_commit(&file, &cli->error);
    else
        file_out_close(&file);
    if (s < 0) return cli_fail(cli);
    if (stat(output, &st) < 0 || !S_ISREG(st.st_mode)) return CLI_GOOD;
    struct buf line = BUF_INIT;
    term_clean(&line, output);
    buf_add_str(&line, ": ");
    fmt_bytes(&line, (uint64_t)st.st_size);
    buf_printf(&line, ", %s\n", help_of(m));
    int rc = cli_put(cli, &line);
    buf_release(&line);
    return rc;
}

static int write_output(struct cli *cli, const struct making *m)
{
    const struct export_args *a = m->a;
    bool binary = m->as ? m->as->binary : a->format->flags & EXPORT_BINARY;
    if (a->output && strcmp(a->output, "-") == 0) {
        if (binary && cli->out_term.tty)
            return cli_usage_error(cli, "%s is binary and would garble the terminal; use -o <file>",
                                   m->as ? m->as->name : a->format->name);
        return cli_stream_result(cli, make(cli, cli_sink_exact(cli), m));
    }
    const char *extension = m->as ? m->as->extension : a->format->extension;
    char *name = a->output ? mem_strdup(a->output) : default_name(a->trace, extension);
    int rc = CLI_FAILED;
    if (name)
        rc = write_file(cli, name, m);
    else
        cli_usage_error(cli, "out of memory");
    mem_free(name);
    return rc;
}

/* A timeline of GPUs says why nothing ran on them, which takes all records to be looked at first. */
static int write_with_idle(struct cli *cli, const struct export_args *a, struct export_input *in,
                           struct event_source *source)
{
    const struct making m = {.a = a, .in = in};
    struct gpu_profile p = {0};
    struct gpu_courses courses = {.with_gaps = true};
    struct arena memory = ARENA_INIT;
    struct trace *t = in->trace;
    if (!source->has_gpu || !(a->format->flags & EXPORT_EVENTS)) return write_output(cli, &m);
    if (gpu_sum_over_time(&t, 1, &p, &courses, &cli->error) < 0) return cli_fail(cli);
    source_idle_of(source, &courses, &memory);
    if (memory.failed) error_nomem(&cli->error, "idle times");
    int rc = memory.failed ? cli_fail(cli) : write_output(cli, &m);
    arena_release(&memory);
    gpu_courses_release(&courses);
    gpu_profile_release(&p);
    return rc;
}

static int export_trace(struct cli *cli, struct trace *t, const struct samples *samples,
                        const struct export_args *a)
{
    struct event_source source;
    struct calltree tree = CALLTREE_INIT;
    struct export_input in = {.source = &source, .trace = t, .gross = a->gross};
    event_source_of_trace(&source, t);
    source.has_samples = samples->at_ns.n > 0;
    if (source.has_samples) in.samples = samples;
    if (export_check(a->format, &source, &cli->error) < 0) return cli_fail(cli);
    if (export_needs_tree(a->format, &source)) {
        if (calltree_build(&tree, t, -1, &cli->error) < 0) return cli_fail(cli);
        in.tree = &tree;
    }
    if (source.loss->dropped || source.loss->damaged_chunks)
        cli_warn(cli, "%s: a part was not recorded or is damaged (see tare report)", a->trace);
    int rc = write_with_idle(cli, a, &in, &source);
    calltree_release(&tree);
    return rc;
}

static const struct other_format *other_format(const struct other_format *all, const char *name)
{
    while (all->name && strcmp(all->name, name) != 0) all++;
    return all->name ? all : NULL;
}

static int export_memory(struct cli *cli, struct trace *t, const struct export_args *a,
                         const struct other_format *as)
{
    struct memory_profile p;
    tare_status s = memory_sum(t, &p, &cli->error);
    if (s == TARE_OK) s = memory_profile_symbols(&p, &cli->error);
    struct memory_export e = {.profile = &p, .name = trace_path(t), .weight = (enum memory_weight)a->weight};
    if (s == TARE_OK && p.n) e.start_unix_ns = trace_process(t, 0)->start_unix_ns;
    if (s == TARE_OK && p.n && p.processes[0].command && *p.processes[0].command)
        e.name = p.processes[0].command;
    int rc =
        s == TARE_OK ? write_output(cli, &(struct making){.a = a, .memory = &e, .as = as}) : cli_fail(cli);
    memory_profile_release(&p);
    return rc;
}

static int export_stacks(struct cli *cli, struct trace *t, const struct export_args *a,
                         const struct other_format *as)
{
    struct stacks_profile p;
    struct stacks_export e = {.profile = &p, .name = trace_path(t), .time = (enum stacks_time)a->time};
    tare_status s =
        stacks_sum(t, &(struct stacks_wish){.time = e.time, .no_native = a->no_native}, &p, &cli->error);
    if (s < 0) cli_name_file(&cli->error, trace_path(t));
    if (s == TARE_OK && trace_n_processes(t)) {
        const struct trace_process *first = trace_process(t, 0);
        e.start_unix_ns = first->start_unix_ns;
        if (first->command && *first->command) e.name = first->command;
    }
    int rc =
        s == TARE_OK ? write_output(cli, &(struct making){.a = a, .stacks = &e, .as = as}) : cli_fail(cli);
    stacks_profile_release(&p);
    return rc;
}

/* The ranks of a job on one axis, with what each waited for the others. */
static int export_ranks(struct cli *cli, struct trace *const *traces, size_t n, const struct export_args *a)
{
    struct gpu_profile p = {0};
    struct gpu_courses courses = {.with_gaps = true};
    struct joined j;
    int rc = CLI_GOOD;
    if (!(a->format->flags & EXPORT_EVENTS) || (a->format->flags & EXPORT_TREE_IF_NO_EVENTS))
        return cli_usage_error(cli, "several traces go into one timeline: --format chrome or perfetto");
    if (gpu_sum_over_time(traces, n, &p, &courses, &cli->error) < 0) return cli_fail(cli);
    if (joined_open(&j, &(struct joined_of){traces, n, &p.job, &courses}, &cli->error) == TARE_OK) {
        struct export_input in = {.source = &j.source, .trace = traces[0]};
        rc = write_output(cli, &(struct making){.a = a, .in = &in});
        joined_release(&j);
    } else {
        rc = cli_fail(cli);
    }
    gpu_courses_release(&courses);
    gpu_profile_release(&p);
    return rc;
}

static int export_several(struct cli *cli, int argc, char **argv, const struct export_args *a)
{
    size_t n = 0;
    int rc = 0;
    struct trace **all = mem_new((size_t)argc, sizeof *all);
    if (!all) {
        error_nomem(&cli->error, "%d traces", argc);
        return cli_fail(cli);
    }
    for (; n < (size_t)argc && !rc; n += !rc) rc = input_trace(cli, argv[n], &all[n]);
    if (!rc) rc = export_ranks(cli, all, n, a);
    while (n) trace_close(all[--n]);
    mem_free(all);
    return rc;
}

/* Which format of --memory or --stacks; NULL: neither was asked for. */
static int other_format_asked(struct cli *cli, const struct export_args *a, const char *word,
                              const struct other_format **out)
{
    *out = NULL;
    if (a->memory) *out = other_format(memory_formats, word);
    if (a->stacks) *out = other_format(stacks_formats, word);
    if (*out) return 0;
    if (a->memory)
        return cli_usage_error(cli, "memory is exported as pprof, speedscope or folded, not %s", word);
    if (a->stacks)
        return cli_usage_error(cli, "stacks are exported as pprof, speedscope, folded or prof, not %s", word);
    return 0;
}

static int refuse_without_subject(struct cli *cli, bool prof)
{
    return cli_usage_error(cli,
                           prof ? "prof is a format of sampled stacks: --stacks"
                                : "pprof is a format of memory and of sampled stacks: --memory or --stacks");
}

int cmd_export(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare export [options] --format <format> <trace>...",
        .about =
            "Write a trace in the format of another tool. chrome and perfetto show a timeline of events, of what "
            "`tare run --gpu` recorded and of what probes sampled; folded is made of the call tree's net self times; "
            "speedscope takes what there is; tare packs the trace itself into one closed file. With --memory, who "
            "allocated: pprof is a heap profile. With --stacks, where the time of sampled threads went: prof is for "
            "pstats. Several traces are those of the ranks of a job: chrome and perfetto show them on one timeline.",
        .tail = "tare export app.tare -f perfetto              writes app.pftrace\n"
                "tare export app.tare --memory -f pprof        writes app.heap.pb\n"
                "tare export app.tare --stacks -f prof         writes app.prof\n"
                "tare export app.tare -f folded -o - | flamegraph.pl > app.svg",
        .min_args = 1,
        .max_args = OPT_ANY,
        .args = OPT_ARGS_FILES,
    };
    enum { PPROF = FORMATS_MAX, PROF };
    static const struct opt_choice weights[] = {
#define X(name, word, meaning) {word, MEMORY_WEIGHT_##name, meaning},
        MEMORY_WEIGHT_MAP(X)
#undef X
            {NULL, 0, NULL}};
    struct opt_choice words[FORMATS_MAX + 3] = {{NULL, 0, NULL}};
    int n_words = 0;
    for (int i = 0; export_formats[i] && i < FORMATS_MAX; i++)
        words[n_words++] = (struct opt_choice){export_formats[i]->name, i, export_formats[i]->help};
    words[n_words++] = (struct opt_choice){"pprof", PPROF, memory_formats[0].help};
    words[n_words] = (struct opt_choice){"prof", PROF, other_format(stacks_formats, "prof")->help};
    int format = -1;
    struct export_args a = {0};
    const struct opt rows[] = {
        OPT_ENUM('f', "format", &format, words, "what to write", .flags = OPT_NO_DEFAULT,
                 .required = "chrome, perfetto, speedscope, folded, tare; pprof with --memory or --stacks, prof with "
                             "--stacks"),
        OPT_STRING('o', "output", &a.output, "<file>", "where to; - is stdout (default: named after the trace)",
                 .flags = OPT_FILE | OPT_WRITTEN | OPT_NO_ENV),
        OPT_FLAG(0, "memory", &a.memory, "who allocated, of a trace of tare run --memory: pprof, speedscope or folded",
                 .not_with = "gross", .hint = "bytes have no cost of tare in them"),
        OPT_ENUM(0, "weight", &a.weight, weights, "bytes of folded stacks of memory", .needs = "memory"),
        OPT_FLAG(0, "stacks", &a.stacks,
                 "where sampled threads were, of a trace of tare run --stacks or tare attach: pprof, speedscope, "
                 "folded or prof",
                 .not_with = "gross memory", .hint = "sampled time has no cost of tare in it"),
        OPT_ENUM(0, "time", &a.time, stacks_time_choices, "which time of sampled stacks", .needs = "stacks"),
        OPT_FLAG(0, "no-native", &a.no_native, "native code as part of the function of Python that called it",
                 .needs = "stacks"),
        OPT_FLAG(0, "gross", &a.gross, "folded, speedscope: times with the cost of tare still in them"),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    a.format = format >= PPROF ? NULL : export_formats[format];
    const struct other_format *as = NULL;
    rc =
        other_format_asked(cli, &a, a.format ? a.format->name : words[n_words - (format == PPROF)].name, &as);
    if (rc) return rc;
    if (!as && !a.format) return refuse_without_subject(cli, format == PROF);
    if (as && argc > 1) return cli_usage_error(cli, "--%s is for one trace", a.memory ? "memory" : "stacks");
    a.trace = argv[0];
    if (argc > 1) return export_several(cli, argc, argv, &a);
    struct trace *t = NULL;
    rc = input_trace(cli, a.trace, &t);
    if (rc) return rc;
    if (as) {
        rc = a.memory ? export_memory(cli, t, &a, as) : export_stacks(cli, t, &a, as);
        trace_close(t);
        return rc;
    }
    struct samples samples = SAMPLES_INIT;
    if (a.format->flags & EXPORT_EVENTS) samples_load(&samples, a.trace, NULL); /* most traces have none */
    rc = export_trace(cli, t, &samples, &a);
    samples_release(&samples);
    trace_close(t);
    return rc;
}
