/* SPDX-License-Identifier: MIT
 * processes.c - victim: processes that fork, exec and end in every way. Usage: processes WHAT [N] */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tare/tare.h>

extern char **environ;
static volatile int stop;

static void work(int n)
{
    for (int i = 0; i < n; i++) {
        TARE_SCOPE("work");
        TARE_SCOPE("inner");
    }
}

static void child_work(int n)
{
    for (int i = 0; i < n; i++) {
        TARE_SCOPE("child");
        work(1);
    }
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

static int do_fork(char **argv, int n)
{
    (void)argv;
    TARE_SCOPE("parent");
    work(n);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        child_work(n);
        exit(3);
    }
    work(n);
    printf("child ended with %d\n", WEXITSTATUS(wait_for(pid)));
    return 0;
}

/* n levels, each forks one: every scope open at a fork ends in parent and child. */
static int do_nested(char **argv, int n)
{
    (void)argv;
    TARE_SCOPE("level");
    work(10);
    if (n == 0) return 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) exit(do_nested(NULL, n - 1) + 1);
    printf("%d\n", WEXITSTATUS(wait_for(pid)));
    return 0;
}

static void *recorder(void *p)
{
    while (!stop) {
        work(50);
        char name[32];
        snprintf(name, sizeof name, "dynamic%ld", (long)(random() % 1000));
        tare_site_new(TARE_SITE_SCOPE, name, "processes.c", 1);
    }
    return p;
}

static int do_threads(char **argv, int n)
{
    (void)argv;
    pthread_t ids[3];
    for (int i = 0; i < 3; i++) pthread_create(&ids[i], NULL, recorder, NULL);
    int bad = 0;
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            tare_site *s = tare_site_new(TARE_SITE_SCOPE, "forked", "processes.c", 2);
            tare_scope scope = {{0}};
            if (tare_recording) tare_begin(&scope, s);
            child_work(2);
            if (scope.private_[0]) tare_end(&scope);
            exit(0);
        }
        bad += wait_for(pid) != 0;
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(ids[i], NULL);
    printf("%d bad\n", bad);
    return bad;
}

static int do_loop(char **argv, int n)
{
    (void)argv;
    int bad = 0;
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i % 10 == 0) child_work(1);
            _exit(i % 7);
        }
        bad += wait_for(pid) != (i % 7) << 8;
    }
    work(1);
    printf("%d bad\n", bad);
    return bad;
}

static int do_childkill(char **argv, int n)
{
    (void)argv;
    int pipes[2];
    char c;
    if (pipe(pipes) < 0) return 1;
    work(n);
    pid_t pid = fork();
    if (pid == 0) {
        child_work(n);
        if (write(pipes[1], "x", 1) != 1) _exit(1);
        for (;;) child_work(1);
    }
    if (read(pipes[0], &c, 1) != 1) return 1;
    kill(pid, SIGKILL);
    printf("signal %d\n", WTERMSIG(wait_for(pid)));
    work(n);
    return 0;
}

static int do_parentfirst(char **argv, int n)
{
    (void)argv;
    int pipes[2];
    char c;
    if (pipe(pipes) < 0) return 1;
    work(n);
    if (fork() == 0) {
        close(pipes[1]);
        child_work(n);
        while (read(pipes[0], &c, 1) > 0) continue; /* the parent is gone */
        usleep(20000);
        child_work(n);
        printf("child ends last\n");
        exit(0);
    }
    return 4;
}

static int do_vfork(char **argv, int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    work(n);
    pid_t pid = vfork();
    if (pid == 0) {
        execl(argv[0], argv[0], "code", "9", (char *)NULL);
        _exit(127);
    }
    printf("%d\n", WEXITSTATUS(wait_for(pid)));
    return 0;
}

static int do_execself(char **argv, int n)
{
    char text[16];
    work(10);
    if (n == 0) return 6;
    snprintf(text, sizeof text, "%d", n - 1);
    execl(argv[0], argv[0], "execself", text, (char *)NULL);
    return 127;
}

static int do_spawn(char **argv, int n)
{
    (void)n;
    char *args[] = {argv[0], (char *)"code", (char *)"8", NULL};
    pid_t pid;
    work(1);
    if (posix_spawn(&pid, argv[0], NULL, NULL, args, environ) != 0) return 1;
    printf("%d\n", WEXITSTATUS(wait_for(pid)));
    return 0;
}

static int do_system(char **argv, int n)
{
    char command[4200];
    work(1);
    for (int i = 0; i < n; i++) {
        snprintf(command, sizeof command, "'%s' code %d", argv[0], i);
        printf("%d\n", WEXITSTATUS(system(command)));
    }
    return 0;
}

static void write_own_files(const char *prefix)
{
    char name[64];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%s%02d", prefix, i);
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        if (fd < 0 || dprintf(fd, "file %d in descriptor %d\n", i, fd) < 0) _exit(99);
    }
}

static int do_daemon(char **argv, int n)
{
    (void)argv;
    work(n);
    if (fork() != 0) return 0;
    setsid();
    if (fork() != 0) _exit(0);
    for (int fd = 0; fd < 1024; fd++) close(fd);
    write_own_files("daemon");
    child_work(20000);
    int fd = open("done", O_WRONLY | O_CREAT, 0644);
    return fd < 0;
}

static int do_closeall(char **argv, int n)
{
    (void)argv;
    work(1);
    for (int fd = 0; fd < 1024; fd++) close(fd);
    write_own_files("own");
    work(n);
    return 0;
}

static int do_fds(char **argv, int n)
{
    (void)argv;
    (void)n;
    work(1);
    int a = open("/", O_RDONLY), b = dup(a);
    dprintf(STDERR_FILENO, "%d %d\n", a, b);
    printf("printed\n");
    return fflush(stdout) ? 2 : 0;
}

static int do_end(char **argv, int n)
{
    work(5);
    if (strcmp(argv[1], "_exit") == 0) _exit(n);
    if (strcmp(argv[1], "abort") == 0) abort();
    if (strcmp(argv[1], "segv") == 0) *(volatile int *)16 = 1;
    if (strcmp(argv[1], "term") == 0) raise(SIGTERM);
    return n;
}

/* A child that stops what its parent began, and starts anew. */
static int do_restart(char **argv, int n)
{
    (void)argv;
    pthread_t id;
    pthread_create(&id, NULL, recorder, NULL);
    work(n);
    pid_t pid = fork();
    if (pid == 0) {
        tare_options o = TARE_OPTIONS_INIT;
        o.path = "t.tare.child";
        int was = (int)tare_recording;
        tare_stop(NULL);
        if (was && tare_start(&o, NULL) != TARE_OK) exit(1);
        child_work(n);
        exit(tare_stop(NULL) == TARE_OK ? 0 : 2);
    }
    printf("%d\n", WEXITSTATUS(wait_for(pid)));
    stop = 1;
    pthread_join(id, NULL);
    return 0;
}

/* Until there is a file "go": others meet us here, however slow the machine is. */
static int do_linger(char **argv, int n)
{
    (void)argv;
    (void)n;
    work(1000);
    while (access("go", F_OK) != 0) usleep(1000);
    work(1000);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(char **argv, int n);
    } rows[] = {{"fork", do_fork},     {"nested", do_nested},       {"threads", do_threads},
                {"loop", do_loop},     {"childkill", do_childkill}, {"parentfirst", do_parentfirst},
                {"vfork", do_vfork},   {"execself", do_execself},   {"spawn", do_spawn},
                {"system", do_system}, {"daemon", do_daemon},       {"closeall", do_closeall},
                {"fds", do_fds},       {"restart", do_restart},     {"linger", do_linger}};
    int n = argc > 2 ? atoi(argv[2]) : 1;
    for (size_t i = 0; argc > 1 && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(argv[1], rows[i].name) == 0) return rows[i].run(argv, n);
    return argc > 1 ? do_end(argv, n) : 0;
}
