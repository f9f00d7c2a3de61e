/* SPDX-License-Identifier: MIT
 * confine_rules.c - see confine_rules.h. Numbers of the kernel's interface are written here where the headers of older
 * systems lack them. */
#include "server/jobs/confine_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- files ---- */

enum { LL_CREATE = 444, LL_ADD = 445, LL_RESTRICT = 446 }; /* the same on every architecture */

#define LL_EXECUTE (UINT64_C(1) << 0)
#define LL_READ (UINT64_C(1) << 2 | UINT64_C(1) << 3) /* files, folders */
#define LL_OF_FILES (LL_EXECUTE | UINT64_C(1) << 1 | UINT64_C(1) << 2 | UINT64_C(1) << 14)

struct ll_ruleset {
    uint64_t files, network, scoped;
};
struct ll_path {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

/* What versions of it know: all about files but ioctl, which GPUs need; TCP; signals and abstract sockets. */
static uint64_t known_files(long version)
{
    uint64_t all = 0x1fff;
    if (version >= 2) all |= UINT64_C(1) << 13;
    if (version >= 3) all |= UINT64_C(1) << 14;
    return all;
}

static void allow(int rules, const char *path, uint64_t what)
{
    struct stat st;
    struct ll_path rule = {what, open(path, O_PATH | O_CLOEXEC)};
    if (rule.fd < 0) return;
    if (fstat(rule.fd, &st) == 0) {
        if (!S_ISDIR(st.st_mode)) rule.allowed &= LL_OF_FILES;
        syscall(LL_ADD, rules, 1, &rule, 0U);
    }
    close(rule.fd);
}

bool rules_files(const struct confine_spec *spec, bool own_mounts)
{
    static const char *const system[] = {"/usr", "/bin",  "/sbin", "/lib",         "/lib32",     "/lib64",
                                         "/etc", "/proc", "/sys",  "/dev/urandom", "/dev/random"};
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full"};
    long version = syscall(LL_CREATE, NULL, (size_t)0, 1U);
    if (version < 1) return false;
    struct ll_ruleset want = {.files = known_files(version)};
    if (version >= 4 && !spec->op->network) want.network = 3;
    if (version >= 6) want.scoped = 3;
    size_t size = version >= 6 ? sizeof want : 16;
    int rules = (int)syscall(LL_CREATE, &want, version >= 4 ? size : 8, 0U);
    if (rules < 0) return false;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++) allow(rules, system[i], LL_EXECUTE | LL_READ);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) allow(rules, devices[i], want.files);
    for (size_t i = 0; i < spec->op->reads.n; i++) allow(rules, spec->op->reads.at[i], LL_EXECUTE | LL_READ);
    for (size_t i = 0; i < spec->op->writes.n; i++) allow(rules, spec->op->writes.at[i], want.files);
    allow(rules, spec->argv[0], LL_EXECUTE | LL_READ);
    allow(rules, spec->folder, want.files);
    if (own_mounts) allow(rules, "/dev/shm", want.files);
    bool good = syscall(LL_RESTRICT, rules, 0U) == 0;
    close(rules);
    return good;
}

/* ---- calls ---- */

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef THIS_ARCH

/* What a measurement never needs, and what has been a way out before. */
static const unsigned refused[] = {
    SYS_mount,          SYS_umount2,       SYS_pivot_root,       SYS_chroot,           SYS_unshare,
    SYS_setns,          SYS_bpf,           SYS_userfaultfd,      SYS_keyctl,           SYS_add_key,
    SYS_request_key,    SYS_init_module,   SYS_finit_module,     SYS_delete_module,    SYS_kexec_load,
    SYS_reboot,         SYS_swapon,        SYS_swapoff,          SYS_open_by_handle_at, SYS_name_to_handle_at,
    SYS_process_vm_readv, SYS_process_vm_writev, SYS_acct,       SYS_quotactl,         SYS_settimeofday,
    SYS_clock_settime,  SYS_clock_adjtime, SYS_adjtimex,         SYS_sethostname,      SYS_setdomainname,
    425 /* io_uring_setup */, 426, 427,
    428 /* open_tree */, 429 /* move_mount */, 430 /* fsopen */, 442 /* mount_setattr */,
};
static const unsigned for_perf[] = {SYS_perf_event_open, SYS_ptrace};

enum { CLONE3 = 435, FILTER_MAX = 160 };
#define NEW_SPACES \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

struct program {
    struct sock_filter at[FILTER_MAX];
    unsigned short n;
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (p->n < FILTER_MAX) p->at[p->n++] = (struct sock_filter){code, yes, no, k};
}

static void answer(struct program *p, uint32_t what)
{
    put(p, BPF_RET | BPF_K, what, 0, 0);
}

static void load(struct program *p, size_t offset)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void refuse_call(struct program *p, unsigned number, int why)
{
    put(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    answer(p, SECCOMP_RET_ERRNO | (uint32_t)why);
}

/* The first argument of `number` has one of the bits. */
static void refuse_bits(struct program *p, unsigned number, uint32_t bits)
{
    put(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    load(p, offsetof(struct seccomp_data, args[0]));
    put(p, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    answer(p, SECCOMP_RET_ERRNO | EPERM);
    load(p, offsetof(struct seccomp_data, nr));
}

/* Sockets of this machine alone. */
static void refuse_network(struct program *p)
{
    put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4);
    load(p, offsetof(struct seccomp_data, args[0]));
    put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0);
    answer(p, SECCOMP_RET_ERRNO | EACCES);
    load(p, offsetof(struct seccomp_data, nr));
}

bool rules_calls(bool refuse_sockets, bool perf)
{
    struct program p = {.n = 0};
    load(&p, offsetof(struct seccomp_data, arch));
    put(&p, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    answer(&p, SECCOMP_RET_KILL_PROCESS);
    load(&p, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    put(&p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* x32 has numbers of its own */
    answer(&p, SECCOMP_RET_ERRNO | ENOSYS);
#endif
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) refuse_call(&p, refused[i], EPERM);
    for (size_t i = 0; !perf && i < sizeof for_perf / sizeof *for_perf; i++)
        refuse_call(&p, for_perf[i], EPERM);
    refuse_call(&p, CLONE3, ENOSYS); /* its flags are in memory, out of sight: libc then uses clone */
    refuse_bits(&p, SYS_clone, NEW_SPACES);
    if (refuse_sockets) refuse_network(&p);
    answer(&p, SECCOMP_RET_ALLOW);
    const struct sock_fprog prog = {p.n, p.at};
    return p.n < FILTER_MAX && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) == 0;
}

#else

bool rules_calls(bool refuse_sockets, bool perf)
{
    (void)refuse_sockets;
    (void)perf;
    return false; /* numbers of calls differ on every architecture */
}

#endif
