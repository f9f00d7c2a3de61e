/* SPDX-License-Identifier: MIT
 * pages.c - see pages.h. Runs inside the traced program, in a signal handler: system calls alone, by their numbers, as
 * the agent stands in for mmap(). */
#include "trace/pages.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct pages_owner *owner; /* atomic */
static uintptr_t page_bytes;
static struct sigaction before; /* another guard of ours, whose turn is after this one's; or the default */
static bool installed;          /* atomic; where another guard is on top, ours stands below it already */

static bool is_put_in_place(char *page)
{
    const struct pages_owner *o = __atomic_load_n(&owner, __ATOMIC_ACQUIRE);
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (!o || !o->owns(page)) return false;
    if (syscall(SYS_mmap, page, page_bytes, PROT_READ | PROT_WRITE, how, -1, 0) != (long)(uintptr_t)page)
        return false;
    o->lost();
    return true;
}

/* Ours: memory takes the page's place; what the file has is kept, and a record under way goes to valid addresses. Not
 * ours: the default action, as without us. */
static void catch_missing_page(int signal, siginfo_t *info, void *context)
{
    char *page = (char *)((uintptr_t)info->si_addr & ~(page_bytes - 1));
    bool missing = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
    if (missing && is_put_in_place(page)) return;
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal, info, context);
        return;
    }
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    bool comes_again = missing || info->si_code == BUS_ADRALN;
    if (!comes_again) syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
}

/* How a guard of another library of ours is known: nobody else waits with just these, while it runs. Were it the
 * program's own after all, it would still get every signal but those of our pages. */
static const int mark[] = {SIGURG, SIGWINCH, SIGXFSZ, SIGTTOU, SIGVTALRM};
enum { MARKS = sizeof mark / sizeof *mark };

static bool has_mark(const struct sigaction *a)
{
    int n = 0;
    for (int s = 1; s < 32; s++) n += sigismember(&a->sa_mask, s) == 1;
    for (int i = 0; i < MARKS; i++)
        if (sigismember(&a->sa_mask, mark[i]) != 1) return false;
    return n == MARKS && (a->sa_flags & SA_SIGINFO);
}

void pages_guard(const struct pages_owner *o)
{
    struct sigaction now,
        guard = {.sa_sigaction = catch_missing_page, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    __atomic_store_n(&owner, o, __ATOMIC_RELEASE);
    if (sigaction(SIGBUS, NULL, &now) < 0) return;
    bool ours = has_mark(&now), none = !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL;
    if ((!ours && !none) || (ours && installed)) return;
    before = now;
    __atomic_store_n(&installed, true, __ATOMIC_RELAXED);
    sigemptyset(&guard.sa_mask);
    for (int i = 0; i < MARKS; i++) sigaddset(&guard.sa_mask, mark[i]);
    sigaction(SIGBUS, &guard, NULL);
}

void pages_guard_thread(void)
{
    uint64_t bus = UINT64_C(1) << (SIGBUS - 1); /* as the kernel has it */
    struct sigaction now;
    if (!__atomic_load_n(&installed, __ATOMIC_RELAXED)) return;
    if (sigaction(SIGBUS, NULL, &now) == 0 && has_mark(&now)) /* the program may have a handler by now */
        syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bus, NULL, sizeof bus);
}
