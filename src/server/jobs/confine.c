/* SPDX-License-Identifier: MIT
 * confine.c - see confine.h. Two processes: the first makes the room and then only waits (in a namespace of
 * processes it is number 1, whose end is the end of all), the second becomes the program. Between fork and exec
 * nothing is allocated. Landlock and the filter are in confine_rules.c. */
#include "server/jobs/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/jobs/confine_rules.h"

static _Noreturn void give_up(struct confine_state *shared, const char *at)
{
    shared->failed = errno ? errno : EINVAL;
    shared->failed_at = at;
    _exit(127);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return good;
}

/* The same numbers within as without: root outside would be root within. */
static bool map_ids(void)
{
    char text[64];
    unsigned uid = geteuid(), gid = getegid();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* who changed its user has lost its own files in /proc */
    snprintf(text, sizeof text, "%u %u 1\n", uid, uid);
    return write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", text) &&
           (snprintf(text, sizeof text, "%u %u 1\n", gid, gid), write_text("/proc/self/gid_map", text));
}

/* A view of processes of its own, memory of its own to share, and nothing where the server's data was. */
static bool set_mounts(const char *hidden)
{
    const unsigned long safe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return false;
    mount("proc", "/proc", "proc", safe, NULL); /* refused in some containers: the old one then shows more */
    mount("tare", "/dev/shm", "tmpfs", safe, "mode=1777");
    return !hidden || mount("tare", hidden, "tmpfs", safe | MS_RDONLY, "size=4k,mode=000") == 0;
}

static void raise_loopback(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return;
    ioctl(s, SIOCSIFFLAGS, &lo);
    close(s);
}

static bool set_limits(const struct limits *l)
{
    const struct {
        int what;
        uint64_t most;
    } rows[] = {
        {RLIMIT_CPU, l->cpu_s},         {RLIMIT_AS, l->memory_mb << 20}, {RLIMIT_FSIZE, l->file_mb << 20},
        {RLIMIT_NOFILE, l->open_files}, {RLIMIT_NPROC, l->processes},    {RLIMIT_CORE, 0},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rlimit now, want = {rows[i].most, rows[i].most};
        if (getrlimit((__rlimit_resource_t)rows[i].what, &now) == 0 && want.rlim_max > now.rlim_max)
            want.rlim_cur = want.rlim_max = now.rlim_max; /* stricter already */
        good &= setrlimit((__rlimit_resource_t)rows[i].what, &want) == 0;
    }
    return good;
}

static void usual_signals(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int i = 1; i < SIGRTMAX; i++) sigaction(i, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The child that becomes the program. Its variables were made before the fork. */
static _Noreturn void become(const struct confine_spec *spec, char *const *env, struct confine_state *shared)
{
    const int fds[] = {spec->in, spec->out, spec->err};
    if (chdir(spec->folder) < 0) give_up(shared, "its folder");
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0) give_up(shared, "its files");
    if (syscall(SYS_close_range, 3U, ~0U, 0U) < 0)
        for (int fd = 3; fd < 65536; fd++) close(fd);
    usual_signals();
    if (set_limits(&spec->op->limits)) shared->parts |= 1u << CONFINE_LIMITS;
    bool refuse_sockets = !spec->op->network && !(shared->parts >> CONFINE_NETWORK & 1);
    if (rules_calls(refuse_sockets, spec->op->perf)) {
        shared->parts |= 1u << CONFINE_CALLS;
        if (refuse_sockets) shared->parts |= 1u << CONFINE_NETWORK;
    }
    execve(spec->argv[0], spec->argv, env);
    give_up(shared, "exec");
}

/* Waits for the program and whatever was left to it. */
static _Noreturn void watch(pid_t program, struct confine_state *shared, bool alone)
{
    int status = 0;
    pid_t got;
    struct rusage used;
    signal(SIGTERM, SIG_IGN); /* meant for the program, which is in the same group */
    while ((got = wait(&status)) != program)
        if (got < 0 && errno != EINTR) _exit(126);
    getrusage(RUSAGE_CHILDREN, &used);
    shared->cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                     (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    shared->peak_kb = (uint64_t)used.ru_maxrss;
    shared->status = status;
    __atomic_store_n(&shared->ended, true, __ATOMIC_RELEASE);
    if (!alone) kill(0, SIGKILL); /* number 1 of a namespace takes all along by its end */
    _exit(0);
}

enum { ENV_MAX = WORDS_MAX + 8 };

/* Empty but for what a program cannot do without, and what the operator names. */
static void make_environment(const struct confine_spec *spec, char home[2][400], char *env[ENV_MAX])
{
    static char fixed[][24] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "LC_ALL=C.UTF-8"};
    size_t n = 0;
    snprintf(home[0], 400, "HOME=%s", spec->folder);
    snprintf(home[1], 400, "TMPDIR=%s", spec->folder);
    for (size_t i = 0; i < 3; i++) env[n++] = fixed[i];
    env[n++] = home[0];
    env[n++] = home[1];
    for (size_t i = 0; i < spec->op->env.n && n < ENV_MAX - 1; i++)
        memcpy(&env[n++], &spec->op->env.at[i], sizeof *env);
    env[n] = NULL;
}

static _Noreturn void make_room(const struct confine_spec *spec, unsigned long spaces,
                                struct confine_state *shared)
{
    char home[2][400], *env[ENV_MAX];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "tare-job");
    setsid();
    make_environment(spec, home, env);
    if (geteuid() != 0) shared->parts |= 1u << CONFINE_UID;
    if (spaces & CLONE_NEWUSER && !map_ids()) give_up(shared, "its user namespace");
    if (spaces & CLONE_NEWPID) shared->parts |= 1u << CONFINE_PROCESSES;
    if (spaces & CLONE_NEWNS && set_mounts(spec->hidden)) shared->parts |= 1u << CONFINE_MOUNTS;
    if (spaces & CLONE_NEWNET) {
        raise_loopback();
        shared->parts |= 1u << CONFINE_NETWORK;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) shared->parts |= 1u << CONFINE_PRIVILEGES;
    if (rules_files(spec, spaces & CLONE_NEWNS)) shared->parts |= 1u << CONFINE_FILES;
    pid_t program = fork();
    if (program == 0) become(spec, env, shared);
    if (program < 0) give_up(shared, "fork");
    watch(program, shared, spaces & CLONE_NEWPID);
}

pid_t confine_start(const struct confine_spec *spec, struct confine_state *shared)
{
    const unsigned long net = spec->op->network ? 0 : CLONE_NEWNET;
    const unsigned long most = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    const unsigned long tries[] = {most | net, most, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, 0};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        pid_t pid = (pid_t)syscall(SYS_clone, tries[i] | SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) make_room(spec, tries[i], shared);
        if (pid > 0) return pid;
    }
    return -1;
}
