/* SPDX-License-Identifier: MIT
 * top_cost.c - what `tare top` itself takes on a terminal of 80x24 at one moment a second, with some 200 processes to
 * show: processor time by the scheduler's own count, memory, bytes written a frame; and what others take for
 * the same, where they are installed. usage: top_cost TARE [SECONDS] */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "batch.h"

enum { CHILDREN = 150, WARM_S = 3 };

static int spawn_top(char *const *argv, pid_t *pid)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return -1;
    ioctl(master, TIOCSWINSZ, &size);
    *pid = fork();
    if (*pid != 0) return *pid > 0 ? master : -1;
    setsid();
    int slave = open(ptsname(master), O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(slave, fd);
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    execvp(argv[0], argv);
    _exit(127);
}

/* The number after `key` in a file of the process, or its first one. */
static double read_number(pid_t pid, const char *file, const char *key)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return NAN;
    text[n] = 0;
    const char *at = strstr(text, key);
    return at ? strtod(at + strlen(key), NULL) : NAN;
}

/* Takes what it writes for so long, as a terminal would; how many bytes and pieces that were. */
static void drain(int fd, double seconds, double *bytes, unsigned *frames)
{
    char space[65536];
    uint64_t end = clock_raw_ns() + (uint64_t)(seconds * 1e9);
    for (uint64_t now; (now = clock_raw_ns()) < end;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)((end - now) / 1000000) + 1) <= 0) continue;
        ssize_t n = read(fd, space, sizeof space);
        if (n <= 0) return;
        *bytes += (double)n;
        ++*frames;
    }
}

static bool measure(char *const *argv, double seconds, bool ours)
{
    pid_t pid = -1;
    double warm = 0, bytes = 0;
    unsigned warm_frames = 0, frames = 0;
    int fd = spawn_top(argv, &pid);
    if (fd < 0) return false;
    drain(fd, WARM_S, &warm, &warm_frames);
    uint64_t begun = clock_raw_ns();
    double before = read_number(pid, "schedstat", "");
    drain(fd, seconds, &bytes, &frames);
    double used = (read_number(pid, "schedstat", "") - before) / (double)(clock_raw_ns() - begun);
    double peak = read_number(pid, "status", "VmHWM:") / 1024;
    if (write(fd, "q", 1) != 1) kill(pid, SIGTERM);
    drain(fd, 0.5, &warm, &warm_frames);
    close(fd);
    waitpid(pid, NULL, 0);
    if (!ours && !(peak > 0)) return false; /* not installed */
    printf("%s: 80x24, every second, %d processes added, %.0f s: %u pieces, %.0f bytes each\n",
           ours ? "tare top" : argv[0], CHILDREN, seconds, frames, frames ? bytes / frames : NAN);
    bench_say("  of one processor", used * 100, "%", ours ? 1 : NAN);
    bench_say("  peak resident", peak, "MiB", ours ? 20 : NAN);
    return true;
}

int main(int argc, char **argv)
{
    pid_t children[CHILDREN];
    if (argc < 2) return 2;
    for (int i = 0; i < CHILDREN; i++)
        if ((children[i] = fork()) == 0) {
            pause();
            _exit(0);
        }
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 20;
    char word[3][8] = {"top", "-d", "1"}, htop[3][8] = {"htop", "-d", "10"};
    measure((char *[]){argv[1], word[0], NULL}, seconds, true);
    measure((char *[]){word[0], word[1], word[2], NULL}, seconds, false);
    measure((char *[]){htop[0], htop[1], htop[2], NULL}, seconds, false);
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] > 0) kill(children[i], SIGKILL);
    while (wait(NULL) > 0) continue;
    return 0;
}
