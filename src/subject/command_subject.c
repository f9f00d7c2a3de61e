/* SPDX-License-Identifier: MIT
 * command_subject.c - a command as a subject: one run is one new process, from spawn to exit. Its output
 * goes nowhere, but the end of what it says on stderr is kept for the error text. Each process leads a group
 * of its own, so that a timeout or an interruption ends all that it started. Allocates nothing between
 * prepare() and finish(). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/mem.h"
#include "subject/subject.h"

enum { TAIL_SIZE = 4096, SHOWN = 360 };
#define LOOK_NS UINT64_C(200000000)  /* how often an interruption is looked for while a command runs */
#define PATIENCE_NS (10 * LOOK_NS)   /* for a command that was asked to end */
#define POLL_STEP_NS UINT64_C(100000) /* without pidfd */

/* ---- the guard: commands do not outlive the tare that measures them, whatever ends it. A process that does nothing
 * waits for tare's end and then kills the groups that were running. Commands themselves are started as ever: nothing of
 * this is in what is measured. What left its group, as daemons do, is left alone. After the fork the guard calls only
 * what is safe there, and holds none of tare's files: a reader of tare's output must see its end ---- */

enum { GUARD_SLOTS = 1024 };
#define SHARED_BYTES (GUARD_SLOTS * sizeof(pid_t))

struct guard {
    pid_t pid;   /* 0: there is none */
    int alive;   /* our end of a pipe: its closing is our end */
    pid_t *held; /* shared with it: a group per slot, 0 for none */
};
#define GUARD_INIT  \
    {               \
        0, -1, NULL \
    }

static void close_but(unsigned fd)
{
    if (fd) syscall(SYS_close_range, 0U, fd - 1, 0U);
    syscall(SYS_close_range, fd + 1, ~0U, 0U);
}

static _Noreturn void stand_by(const struct guard *g, int end)
{
    char none;
    setsid(); /* no signal of the terminal is for it */
    prctl(PR_SET_NAME, "tare-guard");
    close_but((unsigned)end);
    while (read(end, &none, 1) < 0 && errno == EINTR) continue;
    for (size_t i = 0; i < GUARD_SLOTS; i++) {
        pid_t group = __atomic_load_n(&g->held[i], __ATOMIC_SEQ_CST);
        if (group > 1) kill(-group, SIGKILL);
    }
    _exit(0);
}

static void guard_close(struct guard *g)
{
    for (size_t i = 0; g->held && i < GUARD_SLOTS; i++) __atomic_store_n(&g->held[i], 0, __ATOMIC_SEQ_CST);
    if (g->alive >= 0) close(g->alive);
    while (g->pid > 0 && waitpid(g->pid, NULL, 0) < 0 && errno == EINTR) continue;
    if (g->held) munmap(g->held, SHARED_BYTES);
    *g = (struct guard)GUARD_INIT;
}

/* Without one, which is no failure, commands may outlive tare. */
static void guard_open(struct guard *g)
{
    int ends[2];
    *g = (struct guard)GUARD_INIT;
    void *shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return;
    g->held = shared;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        g->pid = fork();
        if (g->pid == 0) stand_by(g, ends[0]);
        close(ends[0]);
        g->alive = ends[1];
    }
    if (g->pid > 0) return;
    g->pid = 0;
    guard_close(g);
}

/* 0: no longer. */
static void guard_hold(struct guard *g, unsigned slot, pid_t group)
{
    if (g->held && slot < GUARD_SLOTS) __atomic_store_n(&g->held[slot], group, __ATOMIC_SEQ_CST);
}

/* ---- the command ---- */

struct command {
    struct subject base;
    struct command_options o; /* its words and its `prepare` are copies in `texts` */
    char *shell_argv[4], *prepare_argv[4];
    struct arena texts;
    struct guard guard;
};

struct channel { /* of one worker */
    int said[2]; /* pipe that is the commands' stderr */
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    bool open;
    char tail[TAIL_SIZE]; /* the last bytes said, as a ring */
    size_t said_bytes;
};

struct command_instance {
    struct instance base;
    struct command *command;
    int nowhere;
    unsigned workers;
    struct channel *lanes;
};

/* ---- what it said ---- */

static void read_stderr(struct channel *l)
{
    char bytes[4096];
    ssize_t n;
    while ((n = read(l->said[0], bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < n; i++) l->tail[l->said_bytes++ % TAIL_SIZE] = bytes[i];
}

/* The end of it on one line. */
static void quote_stderr(const struct channel *l, char *out, size_t size)
{
    size_t n = l->said_bytes < TAIL_SIZE ? l->said_bytes : TAIL_SIZE, used = 0;
    size_t show = n < size - 1 ? n : size - 1;
    for (size_t at = l->said_bytes - show; at < l->said_bytes; at++) {
        unsigned char c = (unsigned char)l->tail[at % TAIL_SIZE];
        bool blank = c < ' ' || c == 127;
        if (blank && (used == 0 || out[used - 1] == ' ')) continue;
        out[used++] = blank ? ' ' : (char)c;
    }
    while (used > 0 && out[used - 1] == ' ') used--;
    out[used] = 0;
}

/* ---- one process ---- */

struct ended {
    int status;
    struct rusage use;
    struct known_u64 run_delay;
    bool timed_out, interrupted;
};

/* Wait until the process has ended or `until`, reading what it says. True: it has ended. */
static bool await_end(struct channel *l, int pidfd, pid_t pid, uint64_t until)
{
    for (;;) {
        uint64_t now = clock_raw_ns(), left = until > now ? until - now : 0;
        uint64_t step = pidfd < 0 && left > POLL_STEP_NS ? POLL_STEP_NS : left;
        struct timespec t = {(time_t)(step / UINT64_C(1000000000)), (long)(step % UINT64_C(1000000000))};
        struct pollfd fds[2] = {{l->said[0], POLLIN, 0}, {pidfd, POLLIN, 0}};
        int ready = ppoll(fds, pidfd < 0 ? 1 : 2, &t, NULL);
        if (ready > 0 && fds[0].revents) read_stderr(l);
        if (ready > 0 && fds[1].revents) return true;
        siginfo_t info = {.si_pid = 0};
        if (pidfd < 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == pid)
            return true;
        if (left == 0 || (ready < 0 && errno == EINTR)) return false;
    }
}

static void end_group(struct channel *l, int pidfd, pid_t pid, bool gently)
{
    if (gently) {
        kill(-pid, SIGTERM);
        uint64_t until = clock_raw_ns() + PATIENCE_NS;
        while (clock_raw_ns() < until)
            if (await_end(l, pidfd, pid, until)) break;
    }
    kill(-pid, SIGKILL);
}

static void see_through(const struct command *c, struct channel *l, pid_t pid, struct ended *out)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    uint64_t start = clock_raw_ns(), limit = c->o.timeout_ns ? start + c->o.timeout_ns : UINT64_MAX;
    for (;;) {
        uint64_t look = clock_raw_ns() + (c->o.interrupted ? LOOK_NS : UINT64_C(3600000000000));
        if (await_end(l, pidfd, pid, look < limit ? look : limit)) break;
        out->timed_out = clock_raw_ns() >= limit;
        out->interrupted = c->o.interrupted && *c->o.interrupted;
        if (!out->timed_out && !out->interrupted) continue;
        end_group(l, pidfd, pid, !out->timed_out);
        break;
    }
    out->run_delay = procstat_run_delay(NULL, pid);
    while (wait4(pid, &out->status, 0, &out->use) < 0 && errno == EINTR) continue;
    if (pidfd >= 0) close(pidfd);
}

static tare_status cannot_spawn(const char *name, int code, tare_error *err)
{
    struct stat st;
    if (code == ENOENT && stat(name, &st) == 0 && S_ISDIR(st.st_mode)) code = EISDIR;
    if (code == EISDIR) return error_set(err, TARE_INVALID, "%s: a folder, not a program", name);
    if (code == ENOENT)
        return error_set(err, TARE_INVALID, "%s: no such command (or its interpreter is missing)%s%s", name,
                         file_is_here(name) ? "; the file in this folder is ./" : "",
                         file_is_here(name) ? name : "");
    if (code == EACCES) return error_set(err, TARE_INVALID, "%s: not executable", name);
    if (code == ENOEXEC) return error_set(err, TARE_INVALID, "%s: not a program", name);
    errno = code;
    return error_errno(err, "%s: cannot be started", name);
}

static tare_status judge_end(const struct command *c, const struct channel *l, const struct ended *e,
                             tare_error *err)
{
    char said[SHOWN];
    quote_stderr(l, said, sizeof said);
    const char *lead = said[0] ? ": " : "";
    if (e->interrupted) return error_set(err, TARE_DENIED, "interrupted");
    if (e->timed_out)
        return error_set(err, TARE_DENIED, "no end after %g s, killed%s%s", (double)c->o.timeout_ns / 1e9,
                         lead, said);
    if (c->o.ignore_failure) return TARE_OK;
    if (WIFSIGNALED(e->status))
        return error_set(err, TARE_DENIED, "killed by signal %d (%s)%s%s", WTERMSIG(e->status),
                         strsignal(WTERMSIG(e->status)), lead, said);
    if (WEXITSTATUS(e->status) != 0)
        return error_set(err, TARE_DENIED, "exit code %d%s%s", WEXITSTATUS(e->status), lead, said);
    return TARE_OK;
}

static tare_status run_one(struct command_instance *i, unsigned worker, char *const *argv, struct ended *out,
                           tare_error *err)
{
    struct channel *l = &i->lanes[worker];
    pid_t pid;
    l->said_bytes = 0;
    memset(out, 0, sizeof *out);
    char *const *env = i->command->o.env ? i->command->o.env : environ; /* handed on unread */
    int code = posix_spawnp(&pid, argv[0], &l->actions, &l->attr, argv, env);
    if (code != 0) return cannot_spawn(argv[0], code, err);
    guard_hold(&i->command->guard, worker, pid);
    see_through(i->command, l, pid, out);
    guard_hold(&i->command->guard, worker, 0);
    read_stderr(l);
    return judge_end(i->command, l, out, err);
}

/* ---- ops ---- */

static tare_status command_run(struct instance *base, unsigned worker, struct subject_cost *cost,
                               tare_error *err)
{
    struct command_instance *i = (struct command_instance *)base;
    struct ended e;
    tare_status s =
        run_one(i, worker, i->command->o.shell ? i->command->shell_argv : i->command->o.argv, &e, err);
    if (s < 0) return s;
    *cost = (struct subject_cost){.known = true,
                                  .rss_peak = (uint64_t)e.use.ru_maxrss * 1024,
                                  .used = procstat_of_usage(&e.use),
                                  .run_delay = e.run_delay};
    return TARE_OK;
}

static tare_status command_before_run(struct instance *base, unsigned worker, tare_error *err)
{
    struct command_instance *i = (struct command_instance *)base;
    struct ended e;
    tare_status s = run_one(i, worker, i->command->prepare_argv, &e, err);
    return s < 0 ? error_wrap(err, "what prepares it") : s;
}

static void command_finish(struct instance *base)
{
    struct command_instance *i = (struct command_instance *)base;
    for (unsigned w = 0; i->lanes && w < i->workers; w++) {
        struct channel *l = &i->lanes[w];
        if (!l->open) continue;
        posix_spawn_file_actions_destroy(&l->actions);
        posix_spawnattr_destroy(&l->attr);
        close(l->said[0]);
        close(l->said[1]);
    }
    if (i->nowhere >= 0) close(i->nowhere);
    mem_free(i->lanes);
    mem_free(i);
}

/* SIGPIPE as programs expect it, nothing blocked, a group of its own. */
static int set_attributes(posix_spawnattr_t *a)
{
    sigset_t none, pipe_only;
    sigemptyset(&none);
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    int code =
        posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    if (code == 0) code = posix_spawnattr_setsigdefault(a, &pipe_only);
    if (code == 0) code = posix_spawnattr_setsigmask(a, &none);
    return code == 0 ? posix_spawnattr_setpgroup(a, 0) : code;
}

/* Made once for each worker and used for every start: preparing them is not part of what is timed. `open`
 * is set as soon as there is something to destroy, so that command_finish() can clean up after the rest
 * fails. */
static tare_status lane_open(struct channel *l, int nowhere, const char *dir, tare_error *err)
{
    if (pipe2(l->said, O_CLOEXEC) < 0) return error_errno(err, "no pipe for stderr");
    int code = posix_spawn_file_actions_init(&l->actions);
    if (code == 0 && (code = posix_spawnattr_init(&l->attr)) != 0)
        posix_spawn_file_actions_destroy(&l->actions);
    if (code != 0) {
        close(l->said[0]);
        close(l->said[1]);
        errno = code;
        return error_errno(err, "cannot prepare to start commands");
    }
    l->open = true;
    fcntl(l->said[0], F_SETFL, O_NONBLOCK); /* ours only: the command may block when it says much at once */
    code = set_attributes(&l->attr);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&l->actions, nowhere, 0);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&l->actions, nowhere, 1);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&l->actions, l->said[1], 2);
    if (code == 0 && dir) code = posix_spawn_file_actions_addchdir_np(&l->actions, dir);
    errno = code;
    return code == 0 ? TARE_OK : error_errno(err, "cannot prepare to start commands");
}

/* One lane per worker: each has a pipe of its own for stderr, so that what one command says is not taken
 * for another's. */
static tare_status command_prepare(struct subject *base, const struct case_params *p,
                                   const struct case_record *to, struct instance **out, tare_error *err)
{
    (void)to;
    struct command_instance *i = mem_new(1, sizeof *i);
    if (!i) return error_nomem(err, "a command");
    i->base.subject = base;
    i->command = (struct command *)base;
    i->workers = p->workers ? p->workers : 1;
    tare_status s = TARE_OK;
    i->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (i->nowhere < 0) s = error_errno(err, "/dev/null");
    if (s == TARE_OK && !(i->lanes = mem_new(i->workers, sizeof *i->lanes)))
        s = error_nomem(err, "%u workers", i->workers);
    for (unsigned w = 0; s == TARE_OK && w < i->workers; w++)
        s = lane_open(&i->lanes[w], i->nowhere, i->command->o.dir, err);
    if (s < 0) {
        command_finish(&i->base);
        return s;
    }
    *out = &i->base;
    return TARE_OK;
}

static tare_status command_describe(struct subject *base, struct run *run, tare_error *err)
{
    const struct command_options *c = &((struct command *)base)->o;
    struct arena *a = &run->arena;
    run_describe_command(run, (const char *const *)c->argv, c->shell);
    if (c->shell) run_map_bool(a, &run->config, "shell", true);
    if (c->prepare) run_map_text(a, &run->config, "prepare", c->prepare);
    if (c->timeout_ns) run_map_real(a, &run->config, "timeout_s", (double)c->timeout_ns / 1e9);
    if (c->ignore_failure) run_map_bool(a, &run->config, "ignore_failure", true);
    return a->failed ? error_nomem(err, "the description of a command") : TARE_OK;
}

static void command_close(struct subject *base)
{
    struct command *c = (struct command *)base;
    guard_close(&c->guard);
    arena_release(&c->texts);
    mem_free(c);
}

#define COMMAND_OPS                                                                                         \
    .type = "command", .runs_in_child = true, .describe = command_describe,           \
    .prepare = command_prepare, .run = command_run, .finish = command_finish, .close = command_close
static const struct subject_ops command_ops = {COMMAND_OPS};
static const struct subject_ops prepared_command_ops = {COMMAND_OPS, .before_run = command_before_run};

/* ---- opening ---- */

static char shell_name[] = "/bin/sh", shell_flag[] = "-c";

static void set_shell(char **argv, char *line)
{
    argv[0] = shell_name;
    argv[1] = shell_flag;
    argv[2] = line;
    argv[3] = NULL;
}

static tare_status check_program(const struct command_options *o, tare_error *err)
{
    if (!o->argv || !o->argv[0] || !o->argv[0][0]) return error_set(err, TARE_INVALID, "no command to run");
    if (o->shell && o->argv[1])
        return error_set(err, TARE_INVALID, "a shell takes one line: quote the command");
    if (o->shell || o->dir || !strchr(o->argv[0], '/'))
        return TARE_OK; /* PATH, or the folder, is looked at when it starts */
    if (access(o->argv[0], F_OK) < 0) return error_set(err, TARE_INVALID, "%s: no such command", o->argv[0]);
    if (access(o->argv[0], X_OK) < 0) return error_set(err, TARE_INVALID, "%s: not executable", o->argv[0]);
    return TARE_OK;
}

/* A copy that a program may write to, as it may to any of its arguments. */
static char *keep_text(struct command *c, const char *text)
{
    return (char *)(uintptr_t)arena_str(&c->texts, text);
}

static void copy_words(struct command *c, char *const *argv)
{
    size_t n = 0;
    while (argv[n]) n++;
    char **copy = arena_new(&c->texts, n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) copy[i] = keep_text(c, argv[i]);
    c->o.argv = copy;
}

/* The words and `prepare` are copied, as the subject outlives the caller's options; `env` and `dir` stay
 * borrowed. */
tare_status subject_open_command(struct subject **out, const struct command_options *o, tare_error *err)
{
    tare_status s = check_program(o, err);
    if (s < 0) return s;
    struct command *c = mem_new(1, sizeof *c);
    if (!c) return error_nomem(err, "a command");
    c->base.ops = o->prepare ? &prepared_command_ops : &command_ops;
    c->guard = (struct guard)GUARD_INIT;
    c->o = *o;
    copy_words(c, o->argv);
    char *prepare = keep_text(c, o->prepare);
    if (c->texts.failed) {
        command_close(&c->base);
        return error_nomem(err, "a command");
    }
    guard_open(&c->guard);
    c->o.prepare = prepare;
    set_shell(c->shell_argv, c->o.argv[0]);
    if (prepare) set_shell(c->prepare_argv, prepare);
    *out = &c->base;
    return TARE_OK;
}
