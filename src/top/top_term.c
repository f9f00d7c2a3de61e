/* SPDX-License-Identifier: MIT
 * top_term.c - see top_term.h. Signals are blocked but while waiting, so none is missed between a look and a wait. What
 * runs in handlers is limited to write(2), tcsetattr(3) and raise(3), which may be called there. */
#include "top/top_term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "core/clock.h"

/* The other screen, no cursor, no wrapping at the edge, the mouse told as text; and all of it back. */
static const char enter_text[] = "\033[?1049h\033[?25l\033[?7l\033[?1000h\033[?1006h";
static const char leave_text[] = "\033[?1006l\033[?1000l\033[m\033[?7h\033[?25h\033[?1049l";

static struct {
    int in, out;   /* in -1: no keys */
    bool prepared; /* handlers are set, `was` is known */
    struct termios was;
    sigset_t outside; /* the mask while waiting */
    char typed[4096]; /* all that a terminal keeps, so that nothing is cut in two */
    size_t n_typed, at;
} term = {.in = -1, .out = -1};

static volatile sig_atomic_t taken, ended_by, resized, stop_asked;

/* ---- giving back ---- */

static void give_terminal_back(void)
{
    if (!taken) return;
    taken = 0;
    ssize_t n = write(term.out, leave_text, sizeof leave_text - 1);
    (void)n; /* a terminal that is gone needs nothing back */
    if (term.in >= 0) tcsetattr(term.in, TCSANOW, &term.was);
}

void top_term_leave(void)
{
    give_terminal_back();
    if (term.prepared) sigprocmask(SIG_SETMASK, &term.outside, NULL);
}

/* What happens then is for top_term_wait(), where the signal ends the waiting. */
static void on_signal(int signal)
{
    if (signal == SIGWINCH)
        resized = 1;
    else if (signal == SIGTSTP)
        stop_asked = 1;
    else
        ended_by = signal;
}

/* A crash of ours, or what nobody sends to a top: the default action, on a terminal that can be read. */
static void on_crash(int signal)
{
    int saved = errno;
    give_terminal_back();
    errno = saved;
    raise(signal); /* SA_RESETHAND: the default, once this handler has returned */
}

/* ---- taking over ---- */

static const struct {
    int signal;
    void (*handler)(int);
    bool waits; /* blocked but while waiting */
} handlers[] = {
    {SIGINT, on_signal, true},  {SIGTERM, on_signal, true},   {SIGHUP, on_signal, true},
    {SIGQUIT, on_signal, true}, {SIGWINCH, on_signal, true},  {SIGTSTP, on_signal, true},
    {SIGPIPE, SIG_IGN, false},  {SIGSEGV, on_crash, false},   {SIGBUS, on_crash, false},
    {SIGFPE, on_crash, false},  {SIGILL, on_crash, false},    {SIGABRT, on_crash, false},
    {SIGTRAP, on_crash, false}, {SIGSYS, on_crash, false},    {SIGUSR1, on_crash, false},
    {SIGUSR2, on_crash, false}, {SIGALRM, on_crash, false},   {SIGVTALRM, on_crash, false},
    {SIGPROF, on_crash, false}, {SIGXCPU, on_crash, false},   {SIGIO, on_crash, false},
    {SIGPWR, on_crash, false},  {SIGSTKFLT, on_crash, false},
};

static void set_handlers(void)
{
    sigset_t waiting;
    sigemptyset(&waiting);
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        struct sigaction act = {.sa_handler = handlers[i].handler};
        if (handlers[i].handler == on_crash) act.sa_flags = (int)SA_RESETHAND;
        sigaction(handlers[i].signal, &act, NULL);
        if (handlers[i].waits) sigaddset(&waiting, handlers[i].signal);
    }
    sigprocmask(SIG_BLOCK, &waiting, &term.outside);
}

/* Keys at once and unseen; ^C, ^\ and ^Z stay signals. */
static tare_status take_terminal(tare_error *err)
{
    if (term.in >= 0) {
        struct termios raw = term.was;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
        raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        if (tcsetattr(term.in, TCSADRAIN, &raw) != 0) return error_errno(err, "setting up the terminal");
    }
    taken = 1;
    if (top_term_write(enter_text, sizeof enter_text - 1)) return TARE_OK;
    tare_status s = error_errno(err, "writing to the terminal");
    give_terminal_back();
    return s;
}

tare_status top_term_enter(int in, int out, tare_error *err)
{
    term.in = isatty(in) && tcgetattr(in, &term.was) == 0 ? in : -1;
    term.out = out;
    if (!term.prepared) {
        atexit(give_terminal_back);
        set_handlers();
        term.prepared = true;
    }
    return take_terminal(err);
}

/* ---- lending ---- */

/* In the child: signals as they were before us. */
static void run_borrower(char *const *argv, int said)
{
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) signal(handlers[i].signal, SIG_DFL);
    sigprocmask(SIG_SETMASK, &term.outside, NULL);
    if (dup2(said, STDERR_FILENO) >= 0) execv(argv[0], argv);
    _exit(127);
}

/* How the child ended; its stop is ours, and so is the going on of both. A signal to end waits here, blocked. */
static int await_borrower(pid_t child)
{
    static const int ends[] = {SIGTERM, SIGHUP, SIGQUIT};
    sigset_t pending;
    int status = 0;
    for (pid_t seen = 0;
         (seen = waitpid(child, &status, WNOHANG | WUNTRACED)) != child || WIFSTOPPED(status);) {
        if (seen < 0 && errno != EINTR) break;
        if (seen == child) {
            raise(SIGSTOP);
            kill(child, SIGCONT);
        }
        sigpending(&pending);
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            if (sigismember(&pending, ends[i]) == 1) kill(child, SIGTERM);
        poll(NULL, 0, 20);
    }
    return status;
}

/* What fits into the pipe is enough: a child that says more than that has said its first line. */
static void first_line(int from, char *said, size_t size)
{
    ssize_t n = read(from, said, size - 1);
    said[n > 0 ? n : 0] = 0;
    said[strcspn(said, "\n")] = 0;
}

tare_status top_term_lend(char *const *argv, char *said, size_t size, tare_error *err)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) return error_errno(err, "a pipe");
    give_terminal_back();
    signal(SIGINT, SIG_IGN); /* ^C is for whom the terminal is lent to */
    signal(SIGTSTP, SIG_IGN);
    pid_t child = fork();
    if (child == 0) run_borrower(argv, pipes[1]);
    tare_status s = child < 0 ? error_errno(err, "%s", argv[0]) : TARE_OK;
    int status = child > 0 ? await_borrower(child) : 0;
    signal(SIGINT, on_signal);
    signal(SIGTSTP, on_signal);
    first_line(pipes[0], said, size);
    if (!said[0] && WIFSIGNALED(status))
        snprintf(said, size, "%s: ended by signal %d", argv[1], WTERMSIG(status));
    if (!said[0] && WIFEXITED(status) && WEXITSTATUS(status))
        snprintf(said, size, "%s: ended with exit code %d", argv[1], WEXITSTATUS(status));
    close(pipes[0]);
    close(pipes[1]);
    resized = 1;
    tare_status taken_again = take_terminal(err);
    if (taken_again != TARE_OK) ended_by = SIGHUP;
    return s == TARE_OK ? taken_again : s;
}

void top_term_size(unsigned *width, unsigned *height)
{
    struct winsize size;
    *width = 80;
    *height = 24;
    if (ioctl(term.out, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
    *width = size.ws_col;
    *height = size.ws_row;
}

int top_term_signal(void)
{
    return ended_by;
}

bool top_term_write(const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(term.out, bytes, n);
        if (done < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = term.out, .events = POLLOUT};
            poll(&room, 1, 1000);
            if (ended_by) return false;
            continue;
        }
        if (done < 0 && errno != EINTR) return false;
        if (done < 0) continue;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* ---- waiting ---- */

/* ^Z: the shell gets its terminal, and we take it again when we go on. */
static void stop_here(void)
{
    stop_asked = 0;
    give_terminal_back();
    raise(SIGSTOP);
    if (take_terminal(NULL) != TARE_OK) ended_by = SIGHUP;
    resized = 1;
}

static void read_keys(short events)
{
    ssize_t n = read(term.in, term.typed, sizeof term.typed);
    term.at = 0;
    term.n_typed = n > 0 ? (size_t)n : 0;
    if (n <= 0 && (events & (POLLHUP | POLLERR | POLLNVAL))) ended_by = SIGHUP; /* the terminal is gone */
}

unsigned top_term_wait(uint64_t due_ns)
{
    uint64_t now = clock_raw_ns(), left = due_ns > now ? due_ns - now : 0;
    struct timespec timeout = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
    struct pollfd in = {.fd = term.in, .events = POLLIN};
    int n = ppoll(&in, term.in >= 0 ? 1 : 0, &timeout, &term.outside);
    if (n > 0) read_keys(in.revents);
    if (stop_asked) stop_here();
    unsigned wake = n > 0 && term.n_typed > 0 ? TOP_WAKE_KEYS : TOP_WAKE_DUE;
    if (ended_by) wake |= TOP_WAKE_END;
    if (resized) wake |= TOP_WAKE_RESIZED;
    resized = 0;
    return wake;
}

/* ---- keys ---- */

static const struct {
    const char *bytes;
    int key;
} sequences[] = {
    {"\033[A", TOP_KEY_UP},         {"\033[B", TOP_KEY_DOWN}, {"\033[C", TOP_KEY_RIGHT},
    {"\033[D", TOP_KEY_LEFT},       {"\033OA", TOP_KEY_UP},   {"\033OB", TOP_KEY_DOWN},
    {"\033OC", TOP_KEY_RIGHT},      {"\033OD", TOP_KEY_LEFT}, {"\033[5~", TOP_KEY_PAGE_UP},
    {"\033[6~", TOP_KEY_PAGE_DOWN}, {"\033[H", TOP_KEY_HOME}, {"\033[F", TOP_KEY_END},
    {"\033[1~", TOP_KEY_HOME},      {"\033[4~", TOP_KEY_END},
};

/* How long the sequence at ESC [ or ESC O is: up to its letter or tilde. */
static size_t sequence_length(const char *bytes, size_t n)
{
    size_t i = 2;
    if (bytes[1] == 'O') return n < 3 ? n : 3;
    while (i < n && (bytes[i] < '@' || bytes[i] > '~')) i++;
    return i < n ? i + 1 : n;
}

/* ESC [ < button ; column ; row M, columns and rows from 1. Only presses of the first button, and the wheel. */
static int mouse_key(const char *bytes, size_t n)
{
    enum { BUTTON, COLUMN, ROW, PARTS, WHEEL = 64, MOST = 0xfff };
    unsigned part[PARTS] = {0}, at = 0;
    for (size_t i = 3; i + 1 < n; i++) {
        if (bytes[i] == ';')
            at++;
        else if (bytes[i] >= '0' && bytes[i] <= '9' && at < PARTS && part[at] <= MOST)
            part[at] = part[at] * 10 + (unsigned)(bytes[i] - '0');
        else
            return TOP_KEY_OTHER;
        if (at >= PARTS) return TOP_KEY_OTHER;
    }
    if (bytes[n - 1] != 'M' || at != ROW) return TOP_KEY_OTHER;
    if (part[BUTTON] == WHEEL) return TOP_KEY_WHEEL_UP;
    if (part[BUTTON] == WHEEL + 1) return TOP_KEY_WHEEL_DOWN;
    if (part[BUTTON] != 0 || part[COLUMN] - 1 > MOST || part[ROW] - 1 > MOST) return TOP_KEY_OTHER;
    return (int)((unsigned)TOP_KEY_CLICK | (part[ROW] - 1) << 12 | (part[COLUMN] - 1));
}

int top_key_parse(const char *bytes, size_t n, size_t *taken_bytes)
{
    *taken_bytes = 1;
    if (bytes[0] == '\b') return TOP_KEY_BACKSPACE;
    if (bytes[0] != '\033') return bytes[0] ? (unsigned char)bytes[0] : TOP_KEY_OTHER;
    if (n < 2 || (bytes[1] != '[' && bytes[1] != 'O')) return TOP_KEY_ESCAPE;
    *taken_bytes = sequence_length(bytes, n);
    if (*taken_bytes > 3 && bytes[1] == '[' && bytes[2] == '<') return mouse_key(bytes, *taken_bytes);
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
        if (strlen(sequences[i].bytes) == *taken_bytes &&
            memcmp(bytes, sequences[i].bytes, *taken_bytes) == 0)
            return sequences[i].key;
    return TOP_KEY_OTHER;
}

bool top_term_has_keys(void)
{
    return term.in >= 0;
}

int top_term_key(void)
{
    size_t used;
    if (term.at >= term.n_typed) return TOP_KEY_NONE;
    int key = top_key_parse(term.typed + term.at, term.n_typed - term.at, &used);
    term.at += used;
    return key;
}
