/* SPDX-License-Identifier: MIT
 * watch_child.c - see watch_child.h. Between fork and exec the child calls only what is safe there. */
#include "watch/watch_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/str.h"
#include "probe/procfs.h"

/* What is passed on. Stops, continues and changes of the window reach the program by itself: it is in tare's group. */
static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};

static void close_once(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Those that tare takes while the program runs: ends of children, and what may be meant for the program. */
static void wanted_signals(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) sigaddset(out, passed_on[i]);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++) sigaddset(out, s);
}

/* ---- the witness: was a signal meant for tare alone, or for the whole process group, program and all? The signal does
 * not say. A process of the same group that does nothing knows: what was sent to the group waits in it as well, because
 * the signals are blocked in it as in tare. It dies with tare, whatever ends that, and holds none of tare's files: a
 * pipe must end when the program closes it, not when tare does. ---- */

/* timeout(1) tells its child and then the group: by then both have arrived, on a busy machine too. */
#define SENDER_NS 5000000

static void close_all(void)
{
    if (syscall(SYS_close_range, 0U, ~0U, 0U) == 0) return;
    for (int fd = (int)sysconf(_SC_OPEN_MAX) - 1; fd >= 0; fd--) close(fd);
}

/* The witness's whole life: signals that are blocked stay pending in it, where the kernel shows them. */
static _Noreturn void stay_until_killed(pid_t tare)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "tare-witness");
    close_all();
    while (getppid() == tare) pause();
    _exit(0);
}

static void witness_start(struct child *c)
{
    pid_t tare = getpid(), pid = fork();
    if (pid == 0) stay_until_killed(tare);
    c->witness = pid > 0 ? pid : 0;
}

/* The signals that are pending for the process as a whole, as a mask. */
static bool read_pending(pid_t pid, uint64_t *out)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (!procfs_text("", path, text, sizeof text)) return false;
    const char *line = strstr(text, "\nShdPnd:");
    if (!line) return false;
    *out = strtoull(line + strlen("\nShdPnd:"), NULL, 16);
    return true;
}

static void witness_end(struct child *c)
{
    if (!c->witness) return;
    kill(c->witness, SIGKILL);
    while (waitpid(c->witness, NULL, 0) < 0 && errno == EINTR) continue;
    c->witness = 0;
}

/* Which signals (bit n - 1 for signal n) the whole group had since the last question; false: nobody knows. To be asked
 * just after a signal: it waits for the sender to finish. */
static bool witness_ask(struct child *c, uint64_t *group)
{
    const struct timespec a_moment = {0, SENDER_NS};
    if (!c->witness) return false;
    nanosleep(&a_moment, NULL);
    bool known = read_pending(c->witness, group);
    if (known && *group == 0) return true;
    witness_end(c); /* only another one has not heard of it yet */
    witness_start(c);
    return known;
}

/* ---- starting ---- */

/* Block what is wanted, for the signalfd, and keep what was there for the program, which must not notice tare. */
static void set_signals(struct child *c, bool ignored_sigpipe)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    sigset_t wanted;
    wanted_signals(&wanted);
    sigprocmask(SIG_BLOCK, &wanted, &c->mask);
    sigaction(SIGCHLD, &standard, &c->chld);        /* inherited as ignored, children would vanish unseen */
    sigaction(SIGXFSZ, &ignored, &c->xfsz);         /* a trace that may not grow is an error, not the end */
    c->pipe = ignored_sigpipe ? ignored : standard; /* tare itself ignores it: main.c */
}

static void restore_signals(const struct child *c)
{
    sigaction(SIGCHLD, &c->chld, NULL);
    sigaction(SIGXFSZ, &c->xfsz, NULL);
    sigaction(SIGPIPE, &c->pipe, NULL);
    sigprocmask(SIG_SETMASK, &c->mask, NULL);
}

/* TARE_TRACE has %% for %; the libraries that are injected take a name as it is. */
static void plain_name(char out[PATH_MAX], const char *named)
{
    size_t n = 0;
    for (const char *c = named; *c && n + 1 < PATH_MAX; c++) {
        if (c[0] == '%' && c[1] == '%') c++;
        out[n++] = *c;
    }
    out[n] = 0;
}

static void set_environment(const struct child_surroundings *s)
{
    char trace[PATH_MAX];
    if (s->trace) {
        plain_name(trace, s->trace);
        setenv("TARE_TRACE", s->trace, 1);
        watch_gpu_environment(s->gpu, trace);
        memory_agent_environment(s->memory, trace);
    }
    setenv(WATCH_CHILD_MARK, "1", 1);
}

/* In the child: wait for the word, then become the program. */
static _Noreturn void become_program(const struct child *c, char *const *argv,
                                     const struct child_surroundings *s, int go, int failed)
{
    char word;
    ssize_t n;
    while ((n = read(go, &word, 1)) < 0 && errno == EINTR) continue;
    if (n != 1) _exit(0); /* tare thought better of it, or is gone */
    set_environment(s);
    restore_signals(c);
    execvp(argv[0], argv);
    int why = errno;
    n = write(failed, &why, sizeof why);
    (void)n;
    _exit(127);
}

/* Signals are blocked before the fork: one that comes right after it must wait for the signalfd. As subreaper tare sees
 * the end of what the program left behind, too. */
tare_status child_fork(struct child *c, char *const *argv, const struct child_surroundings *surroundings,
                       tare_error *err)
{
    int go[2] = {-1, -1}, failed[2];
    *c = (struct child){.go = -1, .failed = -1, .signals = -1};
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0) {
        tare_status s = error_errno(err, "no pipe to start the program");
        close_once(&go[0]);
        close_once(&go[1]);
        return s;
    }
    set_signals(c, surroundings->ignored_sigpipe);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    c->pid = fork();
    if (c->pid == 0) {
        close(go[1]);
        become_program(c, argv, surroundings, go[0], failed[1]);
    }
    int why = errno;
    close(go[0]);
    close(failed[1]);
    c->go = go[1];
    c->failed = failed[0];
    sigset_t wanted;
    wanted_signals(&wanted);
    c->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->pid < 0) errno = why;
    return c->pid < 0 || c->signals < 0 ? error_errno(err, "cannot start a process") : TARE_OK;
}

static const struct {
    int why, code;
    const char *text;
} failures[] = {
    {ENOENT, 127, "no such command (or its interpreter is missing)"},
    {ENOTDIR, 127, "no such command"},
    {EACCES, 126, "no permission to execute it"},
    {EISDIR, 126, "a folder, not a program"},
    {ENOEXEC, 126, "not a program that this machine can run"},
};

/* The kernel calls it a lack of permission. */
static bool is_folder(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What was meant by the name of a file of the working folder; "": nothing is known. */
static void what_instead(char *out, size_t size, const char *name)
{
    *out = 0;
    if (!file_is_here(name)) return;
    if (str_ends_with(name, ".py"))
        snprintf(out, size, "; it is a Python program: python %s", name);
    else
        snprintf(out, size, "; the file in this folder is ./%s", name);
}

/* The error for a failed exec, and the exit code that a shell gives for it. */
static tare_status cannot_start(const char *name, int why, int *exit_code, tare_error *err)
{
    char instead[300];
    if ((why == EACCES || why == ENOENT) && is_folder(name)) why = EISDIR;
    what_instead(instead, sizeof instead, name);
    *exit_code = 126;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (failures[i].why != why) continue;
        *exit_code = failures[i].code;
        return error_set(err, TARE_INVALID, "%s: %s%s", name, failures[i].text, why == ENOENT ? instead : "");
    }
    errno = why;
    return error_errno(err, "%s: cannot be started", name);
}

/* The witness first: a signal that comes with the program's first breath is told apart too. The other end of `failed`
 * closes by itself when exec succeeds; so 0 bytes are success, and anything else is the errno of exec. */
tare_status child_start(struct child *c, const char *name, int *exit_code, tare_error *err)
{
    int why = 0;
    witness_start(c);
    c->start_ns = clock_raw_ns(); /* after the word it may be over before tare is heard of again */
    ssize_t n = write(c->go, "", 1);
    close_once(&c->go);
    if (n != 1) return cannot_start(name, EPIPE, exit_code, err);
    while ((n = read(c->failed, &why, sizeof why)) < 0 && errno == EINTR) continue;
    close_once(&c->failed);
    c->started = n == 0;
    return c->started ? TARE_OK : cannot_start(name, why, exit_code, err);
}

void child_drop(struct child *c)
{
    close_once(&c->go);
    close_once(&c->failed);
    witness_end(c);
    if (c->pid > 0 && !c->started)
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) continue;
    close_once(&c->signals);
}

/* ---- signals ---- */

/* Signals of one reading, and who had them: asked once for all of them. */
struct heard {
    bool asked, known;
    uint64_t group;
};

/* Has the program had it already, as one of the group? The terminal tells groups, but of its end only the leader of
 * the session, which tare may be. */
static bool program_has_it(struct child *c, const struct signalfd_siginfo *info, struct heard *h)
{
    if (!h->asked) h->known = witness_ask(c, &h->group);
    h->asked = true;
    if (!h->known) return info->ssi_code == SI_KERNEL;
    return h->group >> (info->ssi_signo - 1) & 1;
}

bool child_signals(struct child *c)
{
    struct signalfd_siginfo info;
    struct heard heard = {0};
    bool ended = false;
    while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        c->interrupted = c->interrupted || info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM;
        if (info.ssi_signo == SIGCHLD)
            ended = true;
        else if (c->reaped)
            c->told_to_end = true;
        else if (c->started && !program_has_it(c, &info, &heard))
            kill(c->pid, (int)info.ssi_signo);
    }
    return ended;
}

/* ---- the end ---- */

pid_t child_ended(void)
{
    siginfo_t info = {.si_pid = 0};
    int rc;
    while ((rc = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT)) < 0 && errno == EINTR) continue;
    return rc < 0 ? -1 : info.si_pid;
}

/* Times and counts add up; the peak of memory is that of the largest process. */
static void add_use(struct rusage *to, const struct rusage *more)
{
    timeradd(&to->ru_utime, &more->ru_utime, &to->ru_utime);
    timeradd(&to->ru_stime, &more->ru_stime, &to->ru_stime);
    if (more->ru_maxrss > to->ru_maxrss) to->ru_maxrss = more->ru_maxrss;
    to->ru_minflt += more->ru_minflt;
    to->ru_majflt += more->ru_majflt;
    to->ru_inblock += more->ru_inblock;
    to->ru_oublock += more->ru_oublock;
    to->ru_nvcsw += more->ru_nvcsw;
    to->ru_nivcsw += more->ru_nivcsw;
}

void child_reap(struct child *c, pid_t pid, bool counted, int *status, struct rusage *use)
{
    pid_t got;
    memset(use, 0, sizeof *use);
    while ((got = wait4(pid, status, 0, use)) < 0 && errno == EINTR) continue;
    if (got != pid) return;
    if (counted) add_use(&c->use, use);
    if (pid != c->pid) return;
    witness_end(c); /* or tare would never be without children */
    c->reaped = true;
    c->status = *status;
}

int child_exit_code(const struct child *c)
{
    return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}
