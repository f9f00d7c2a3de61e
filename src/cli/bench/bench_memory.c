/* SPDX-License-Identifier: MIT
 * bench_memory.c - `tare bench --memory`: after measuring, a few runs of each case once more, in a process of its own
 * with libtare-agent.so in front, which records every allocation. That process writes down when each run began and
 * ended, so that nothing else counts; what is timed never has the agent in it. What fails is a warning and a reason in
 * the document: the measurement was made already. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/memory/memory_runs.h"
#include "cli/bench/bench_args.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/mem.h"
#include "probe/host.h"
#include "trace/reader.h"

enum { WARMUP_RUNS = 3, RUNS_WANTED = 10, COMMANDS_WANTED = 3 };
#define RUNS_NS UINT64_C(3000000000) /* no further run begins after so long */
#define TRACE_NAME "memory.tare"
#define PASS_NAME "pass"
#define LOG_NAME "log"

int bench_memory_check(struct cli *cli, struct bench_args *a)
{
    if (!a->memory) return 0;
    a->agent = (struct memory_agent){.on = true, .all = true};
    if (memory_agent_find(&a->agent, &cli->error) != TARE_OK)
        return cli_usage_error(cli, "%s", cli->error.text);
    return 0;
}

/* ==== in the process that has the agent ==== */

enum stage { STAGE_PID, STAGE_LOAD, STAGE_FIRST, STAGE_WARM, STAGE_RUN };

/* What one process tells the other, an array of them as a file: when a stage was, by CLOCK_MONOTONIC_RAW; of STAGE_PID
 * `from` is the process. */
struct stamp {
    uint64_t stage, from, to;
};

struct pass {
    struct subject *subject;
    struct instance *instance;
    VEC(struct stamp) told;
    tare_error *err;
};

static tare_status tell(struct pass *p, enum stage what, uint64_t from)
{
    return vec_push(&p->told, ((struct stamp){what, from, clock_raw_ns()}), p->err);
}

static tare_status run_once(struct pass *p, enum stage what)
{
    const struct subject_ops *ops = p->subject->ops;
    struct subject_cost cost = {0};
    tare_status s = ops->before_run ? ops->before_run(p->instance, 0, p->err) : TARE_OK;
    uint64_t from = clock_raw_ns();
    if (s == TARE_OK) s = ops->run(p->instance, 0, &cost, p->err);
    return s == TARE_OK ? tell(p, what, from) : s;
}

/* A command is the same each time from its start on; a model grows into its memory first. */
static tare_status run_all(struct pass *p, bool command)
{
    tare_status s = command ? TARE_OK : run_once(p, STAGE_FIRST);
    for (int i = 1; s == TARE_OK && !command && i < WARMUP_RUNS && !interrupted; i++)
        s = run_once(p, STAGE_WARM);
    uint64_t end = clock_raw_ns() + RUNS_NS;
    int most = command ? COMMANDS_WANTED : RUNS_WANTED;
    for (int i = 0; s == TARE_OK && i < most && !interrupted && (i == 0 || clock_raw_ns() < end); i++)
        s = run_once(p, STAGE_RUN);
    return s;
}

static tare_status make_pass(struct pass *p, const struct bench_case *of, struct run *scratch, bool command)
{
    struct run_map chosen = {0};
    struct case_params params = of->params;
    params.workers = 1;
    params.ungrouped = true; /* a run that is made ahead is not between its stamps */
    p->subject = of->subject;
    tare_status s = tell(p, STAGE_PID, (uint64_t)getpid());
    uint64_t from = clock_raw_ns();
    if (s == TARE_OK)
        s = p->subject->ops->prepare(p->subject, &params, &(struct case_record){scratch, &chosen},
                                     &p->instance, p->err);
    if (s != TARE_OK) return s;
    if (!command) s = tell(p, STAGE_LOAD, from);
    if (s == TARE_OK) s = run_all(p, command);
    p->subject->ops->finish(p->instance);
    return s;
}

static tare_status pass_case(struct cli *cli, const struct bench_planned *p, const struct bench_case *of)
{
    struct pass pass = {.told = VEC_INIT, .err = &cli->error};
    struct interrupt was;
    struct run scratch;
    tare_status s = run_init(&scratch, "bench", &cli->error);
    if (s == TARE_OK) s = host_read(&scratch, "", &cli->error);
    interrupt_catch(&was);
    if (s == TARE_OK) s = make_pass(&pass, of, &scratch, p->args->kind == KIND_COMMAND);
    interrupt_restore(&was);
    if (s == TARE_OK)
        s = file_write_atomic(p->args->launch_document, pass.told.items,
                              pass.told.n * sizeof pass.told.items[0], 0, &cli->error);
    vec_release(&pass.told);
    run_release(&scratch);
    return s;
}

int bench_memory_pass(struct cli *cli, const struct bench_planned *p)
{
    struct bench_subjects subjects = {0};
    struct grid_cases cases = {0};
    char *model = NULL;
    bench_launch_bound();
    tare_status s = bench_model_file(cli, p, &model);
    if (s == TARE_OK) s = bench_open(cli, p, model, &subjects);
    if (s == TARE_OK) s = grid_build(&p->grid, subjects.named.items, subjects.named.n, &cases, &cli->error);
    if (s == TARE_OK && p->args->memory_pass > cases.cases.n)
        s = error_set(&cli->error, TARE_INVALID, "there is no case %" PRIu64, p->args->memory_pass);
    if (s == TARE_OK) s = pass_case(cli, p, &cases.cases.items[p->args->memory_pass - 1]);
    grid_cases_release(&cases);
    bench_close(&subjects);
    mem_free(model);
    return s == TARE_OK ? CLI_GOOD : cli_fail(cli);
}

/* ==== in the process that was asked ==== */

struct recording {
    struct cli *cli;
    const struct bench_planned *p;
    struct run *run;
    struct run_case *c;
    size_t number; /* of the case */
    char folder[4096];
    struct memory_runs of;
    VEC(struct memory_window) runs;
    tare_error *err;
};

static const char *in_folder(const struct recording *r, const char *name, char room[4200])
{
    snprintf(room, 4200, "%s/%s", r->folder, name);
    return room;
}

static tare_status folder_make(struct recording *r)
{
    const char *in = secure_getenv("TMPDIR");
    int n = snprintf(r->folder, sizeof r->folder, "%s/tare-memory-XXXXXX", in && *in ? in : "/tmp");
    tare_status s = TARE_OK;
    if (n < 0 || (size_t)n >= sizeof r->folder)
        s = error_set(r->err, TARE_INVALID, "TMPDIR is too long a path");
    else if (!mkdtemp(r->folder))
        s = error_errno(r->err, "%s: cannot make a temporary folder", r->folder);
    if (s != TARE_OK) r->folder[0] = 0;
    return s;
}

/* All that is in it is ours: nobody else may write there. */
static void folder_remove(const struct recording *r)
{
    DIR *dir = r->folder[0] ? opendir(r->folder) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) closedir(dir);
    if (r->folder[0]) rmdir(r->folder);
}

/* ---- running it ---- */

/* What it said last, without what is said in front of each error. */
static tare_status pass_failed(const struct recording *r, int code)
{
    char room[4200];
    struct file_view log = FILE_VIEW_INIT;
    if (file_map(in_folder(r, LOG_NAME, room), &log, NULL) != TARE_OK)
        return error_set(r->err, TARE_DENIED, "the pass ended with exit code %d", code);
    const char *text = (const char *)log.data;
    size_t end = log.size, from;
    while (end > 0 && text[end - 1] == '\n') end--;
    for (from = end; from > 0 && text[from - 1] != '\n';) from--;
    const char *colon = memmem(text + from, end - from, ": ", 2);
    if (colon && strncmp(text + from, "tare", 4) == 0) from = (size_t)(colon + 2 - text);
    error_set(r->err, TARE_DENIED, "%.*s", end - from > 300 ? 300 : (int)(end - from), text + from);
    file_unmap(&log);
    return r->err->status;
}

/* The environment is ours for as long as the process is started; nobody else reads it then. */
static tare_status start_with_agent(const struct recording *r, const struct bench_program *program, int *code)
{
    static const char *const names[] = {"LD_PRELOAD", "TARE_MEMORY_TRACE", "TARE_MEMORY_EVERY"};
    enum { N = sizeof names / sizeof *names };
    char room[4200], *before[N];
    for (size_t i = 0; i < N; i++) {
        const char *was = secure_getenv(names[i]);
        before[i] = was ? mem_strdup(was) : NULL;
    }
    memory_agent_environment(&r->p->args->agent, in_folder(r, TRACE_NAME, room));
    tare_status s = bench_run_program(program, code, r->err);
    for (size_t i = 0; i < N; i++) {
        if (before[i])
            setenv(names[i], before[i], 1);
        else
            unsetenv(names[i]);
        mem_free(before[i]);
    }
    return s;
}

static tare_status run_pass(struct recording *r)
{
    const struct bench_args *a = r->p->args;
    char document[4300], number[64], room[4200];
    int code = CLI_GOOD;
    snprintf(document, sizeof document, "--launch-document=%s", in_folder(r, PASS_NAME, room));
    snprintf(number, sizeof number, "--memory-pass=%zu", r->number + 1);
    int log = open(in_folder(r, LOG_NAME, room), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0) return error_errno(r->err, "%s", room);
    char *const options[] = {document, number, NULL};
    char **words = bench_child_words(a, options);
    tare_status s = words ? TARE_OK : error_nomem(r->err, "the allocations of a run");
    if (s == TARE_OK) s = start_with_agent(r, &(struct bench_program){"/proc/self/exe", words, log}, &code);
    close(log);
    mem_free(words);
    return s == TARE_OK && code != CLI_GOOD ? pass_failed(r, code) : s;
}

/* ---- reading it ---- */

static tare_status read_stamp(struct recording *r, const struct trace *t, struct stamp told)
{
    struct memory_window when = {trace_raw_time(t, told.from), trace_raw_time(t, told.to)};
    if (told.stage == STAGE_PID) r->of.pid = (uint32_t)told.from;
    if (told.stage == STAGE_LOAD) r->of.load = when;
    if (told.stage == STAGE_FIRST) r->of.first = when;
    return told.stage == STAGE_RUN ? vec_push(&r->runs, when, r->err) : TARE_OK;
}

static tare_status read_windows(struct recording *r, const struct trace *t)
{
    char room[4200];
    struct file_view told = FILE_VIEW_INIT;
    struct stamp one;
    tare_status s = file_map(in_folder(r, PASS_NAME, room), &told, r->err);
    for (size_t at = 0; s == TARE_OK && told.size - at >= sizeof one; at += sizeof one) {
        memcpy(&one, told.data + at, sizeof one);
        s = read_stamp(r, t, one);
    }
    file_unmap(&told);
    if (s == TARE_OK && r->runs.n == 0) s = error_set(r->err, TARE_DENIED, "interrupted before it ran");
    r->of.others =
        r->p->args->kind != KIND_MODEL; /* a model runs in that process, all else in one of its own */
    r->of.runs = (struct memory_windows){r->runs.items, r->runs.n};
    return s;
}

static tare_status read_pass(struct recording *r)
{
    char room[4200];
    struct trace *t = NULL;
    tare_status s = trace_open(&t, in_folder(r, TRACE_NAME, room), r->err);
    if (s == TARE_OK) s = read_windows(r, t);
    if (s == TARE_OK) s = memory_runs_record(t, &r->of, r->run, r->c, r->err);
    trace_close(t);
    return s;
}

/* ---- one case ---- */

static tare_status record_case_memory(struct recording *r)
{
    tare_error why = TARE_ERROR_INIT;
    r->err = &why;
    tare_status s = folder_make(r);
    if (s == TARE_OK) s = run_pass(r);
    if (s == TARE_OK) s = read_pass(r);
    folder_remove(r);
    vec_release(&r->runs);
    if (s == TARE_OK) {
        run_map_drop(&r->c->unknown, "allocations");
        run_explain_case(r->run, r->c, RUN_BY_BENCH);
        return TARE_OK;
    }
    cli_warn(r->cli, "%s%sallocations are unknown: %s", r->c->name, *r->c->name ? ": " : "", why.text);
    run_unknown(r->run, &r->c->unknown, "allocations", "%s", why.text);
    return s == TARE_NOMEM ? error_set(&r->cli->error, s, "%s", why.text) : TARE_OK;
}

/* The subject's program, where the agent cannot be put in front of it, is told early. */
static void say_doubt(struct cli *cli, const struct bench_args *a)
{
    const char *doubt = a->kind == KIND_COMMAND && !a->call.shell ? memory_agent_doubt(a->command[0]) : NULL;
    if (doubt) cli_warn(cli, "--memory: %s %s", a->command[0], doubt);
}

tare_status bench_memory(struct cli *cli, const struct bench_planned *p, struct run *run)
{
    struct progress shown = PROGRESS_INIT(cli);
    struct interrupt was;
    tare_status s = TARE_OK;
    sig_atomic_t before = interrupted; /* who wanted an end then wants no further pass now */
    interrupt_catch(&was);
    if (before) interrupted = before;
    say_doubt(cli, p->args);
    for (size_t i = 0; s == TARE_OK && i < run->cases.n; i++) {
        struct run_case *c = run->cases.at[i];
        struct recording r = {.cli = cli, .p = p, .run = run, .c = c, .number = i};
        progress_at(&shown, "recording allocations", i, run->cases.n);
        if (c->failure && !c->samples.known)
            run_unknown(run, &c->unknown, "allocations", "the case failed");
        else if (interrupted)
            run_unknown(run, &c->unknown, "allocations", "interrupted before its turn");
        else
            s = record_case_memory(&r);
    }
    interrupt_restore(&was);
    progress_end(&shown);
    return s;
}
