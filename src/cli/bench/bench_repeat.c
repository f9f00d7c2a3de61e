/* SPDX-License-Identifier: MIT
 * bench_repeat.c - `tare bench --repeat`: the same bench again in fresh processes, each laid out in memory a little
 * differently, and their documents made one. This process only waits: it measures nothing itself. */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyze/judge/launches.h"
#include "cli/bench/bench_args.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/rng.h"

enum { PAD_MOST = 4096 };
#define PAD_NAME "TARE_LAUNCH_PAD"

struct launches {
    struct cli *cli;
    const struct bench_args *a;
    char folder[64]; /* "": not made */
    VEC(struct run) runs;
    VEC(uint64_t) pads;
    struct rng rng;
};

/* ---- one launch ---- */

void bench_launch_bound(void)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
}

char **bench_child_words(const struct bench_args *a, char *const *options)
{
    static char name[] = "tare", command[] = "bench";
    size_t n = 0;
    while (options[n]) n++;
    char **words = mem_new(a->words.n + n + 1, sizeof *words);
    if (!words) return NULL;
    words[0] = name;
    words[1] = command;
    for (size_t i = 0; i < n; i++) words[i + 2] = options[i];
    for (size_t i = 1; i < a->words.n; i++) words[n + i + 1] = a->words.items[i]; /* NULL too */
    return words;
}

static tare_status await(pid_t pid, int *code, tare_error *err)
{
    int status = 0;
    bool told = false;
    struct timespec step = {0, 10000000};
    for (pid_t got; (got = waitpid(pid, &status, WNOHANG)) != pid; nanosleep(&step, NULL)) {
        if (got < 0 && errno != EINTR) return error_errno(err, "waiting for a launch");
        if (!interrupted || told) continue;
        kill(pid, SIGTERM); /* a signal that was for us alone is for the launch too: an orderly end */
        told = true;
    }
    if (WIFSIGNALED(status))
        return error_set(err, TARE_DENIED, "a launch was ended by signal %d (%s)", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    *code = WEXITSTATUS(status);
    return TARE_OK;
}

tare_status bench_run_program(const struct bench_program *p, int *code, tare_error *err)
{
    pid_t pid = 0;
    posix_spawn_file_actions_t files;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed) return error_set(err, TARE_NOMEM, "cannot launch: %s", strerror(failed));
    for (int fd = STDOUT_FILENO; !failed && p->log >= 0 && fd <= STDERR_FILENO; fd++)
        failed = posix_spawn_file_actions_adddup2(&files, p->log, fd);
    if (!failed) failed = posix_spawnp(&pid, p->exe, &files, NULL, p->words, environ);
    posix_spawn_file_actions_destroy(&files);
    return failed ? error_set(err, TARE_DENIED, "cannot launch %s: %s", p->exe, strerror(failed))
                  : await(pid, code, err);
}

static tare_status start_and_wait(char *const *words, int *code, tare_error *err)
{
    return bench_run_program(&(struct bench_program){"/proc/self/exe", words, -1}, code, err);
}

/* The environment is padded by a random length, which moves the stack of the launch: layouts differ as they do between
 * machines, and their spread is seen. */
static tare_status spawn(struct launches *l, const char *path, int *code)
{
    char option[128], pad[PAD_MOST + 1];
    tare_error *err = &l->cli->error;
    uint64_t n = rng_next(&l->rng) % PAD_MOST;
    tare_status s = vec_push(&l->pads, n, err);
    if (s < 0) return s;
    memset(pad, 'x', n);
    pad[n] = 0;
    if (setenv(PAD_NAME, pad, 1) != 0) return error_errno(err, "the environment of a launch");
    snprintf(option, sizeof option, "--launch-document=%s", path);
    char **words = bench_child_words(l->a, (char *const[]){option, NULL});
    if (!words) return error_set(err, TARE_NOMEM, "out of memory for a launch");
    s = start_and_wait(words, code, err);
    mem_free(words);
    unsetenv(PAD_NAME);
    return s;
}

/* The child has said why it failed; its exit code is all that is left to tell. */
static tare_status launch(struct launches *l, size_t i, int *worst)
{
    char path[96];
    int code = 0;
    struct run run;
    snprintf(path, sizeof path, "%s/%zu.json", l->folder, i);
    tare_status s = spawn(l, path, &code);
    if (s < 0) return s;
    if (code > *worst) *worst = code;
    if (code > CLI_FINDING)
        return error_set(&l->cli->error, code == CLI_USAGE ? TARE_INVALID : TARE_DENIED,
                         "launch %zu of %llu failed with exit code %d", i + 1,
                         (unsigned long long)l->a->repeat, code);
    s = run_load(&run, path, &l->cli->error);
    unlink(path);
    if (s < 0) return s;
    s = vec_push(&l->runs, run, &l->cli->error);
    if (s < 0) run_release(&run);
    return s;
}

/* ---- all of them ---- */

static void wait_until(uint64_t when)
{
    struct timespec step = {0, 50000000};
    while (!interrupted && clock_raw_ns() < when) nanosleep(&step, NULL);
}

static tare_status launch_all(struct launches *l, int *worst)
{
    struct interrupt was;
    tare_status s = TARE_OK;
    interrupt_catch(&was);
    for (size_t i = 0; s == TARE_OK && i < l->a->repeat && !interrupted; i++) {
        uint64_t began = clock_raw_ns();
        cli_note(l->cli, "launch %zu of %llu", i + 1, (unsigned long long)l->a->repeat);
        s = launch(l, i, worst);
        if (s == TARE_OK && i + 1 < l->a->repeat) wait_until(began + (uint64_t)l->a->pause.ns);
    }
    interrupt_restore(&was);
    if (s == TARE_OK && l->runs.n == 0)
        s = error_set(&l->cli->error, TARE_DENIED, "interrupted: nothing was measured");
    return s;
}

static tare_status pool(struct launches *l, struct run *out)
{
    VEC(const struct run *) rest = VEC_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 1; s == TARE_OK && i < l->runs.n; i++)
        s = vec_push(&rest, &l->runs.items[i], &l->cli->error);
    struct launches_more more = {rest.items, rest.n, l->pads.items};
    if (s == TARE_OK) s = launches_pool(&l->runs.items[0], &more, &l->cli->error);
    vec_release(&rest);
    if (s < 0) return s;
    *out = l->runs.items[0];
    l->runs.items[0] = (struct run){0};
    if (l->a->entry) run_map_text(&out->arena, &out->config, "suite_entry", l->a->entry);
    return TARE_OK;
}

static tare_status make_folder(char folder[64], tare_error *err)
{
    snprintf(folder, 64, "/tmp/tare-launches-XXXXXX");
    if (mkdtemp(folder)) return TARE_OK;
    tare_status s = error_errno(err, "%s: cannot be made", folder);
    folder[0] = 0;
    return s;
}

int bench_child(struct cli *cli, const struct opt_list *options, struct run *out)
{
    char folder[64], option[128];
    static char name[] = "tare", command[] = "bench";
    char **words = mem_new(options->n + 4, sizeof *words);
    int code = CLI_GOOD;
    tare_status s = words ? make_folder(folder, &cli->error) : error_nomem(&cli->error, "a launch");
    if (s == TARE_OK) {
        snprintf(option, sizeof option, "--launch-document=%s/d.json", folder);
        words[0] = name;
        words[1] = command;
        words[2] = option;
        for (size_t i = 0; i < options->n; i++) words[i + 3] = options->items[i];
        s = start_and_wait(words, &code, &cli->error);
        char *path = strchr(option, '=') + 1;
        if (s == TARE_OK && code <= CLI_FINDING) s = run_load(out, path, &cli->error);
        unlink(path);
        rmdir(folder);
    }
    mem_free(words);
    if (s < 0) return cli_fail(cli);
    return code <= CLI_FINDING ? 0 : code; /* the child has said why */
}

tare_status bench_repeat(struct cli *cli, const struct bench_args *a, struct run *out, int *worst)
{
    struct launches l = {.cli = cli, .a = a};
    rng_seed(&l.rng, clock_unix_ns() ^ (uint64_t)getpid() << 40);
    tare_status s = make_folder(l.folder, &cli->error);
    if (s == TARE_OK) s = launch_all(&l, worst);
    if (s == TARE_OK) s = pool(&l, out);
    for (size_t i = 0; i < l.runs.n; i++) run_release(&l.runs.items[i]);
    vec_release(&l.runs);
    vec_release(&l.pads);
    if (l.folder[0]) rmdir(l.folder);
    return s;
}
