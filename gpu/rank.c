/* SPDX-License-Identifier: MIT
 * rank.c - who this process is in a job of several: its rank, as launchers tell it by the environment, and the machine
 * it runs on. Two processes with the same boot id share one clock. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/gpu.h"

/* The first of which the rank is set counts: torchrun beneath another launcher knows better. */
static const struct {
    const char *rank, *local, *size;
} launchers[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"}, /* torchrun, accelerate, deepspeed */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

/* Its value + 1, so that 0 is: not told. */
static uint64_t number(const char *name)
{
    enum { DIGITS_MOST = 9 };
    const char *text = secure_getenv(name);
    size_t n = text ? strlen(text) : 0;
    if (!n || n > DIGITS_MOST || strspn(text, "0123456789") != n) return 0;
    return strtoull(text, NULL, 10) + 1;
}

/* The first 64 bits of the boot id; 0: unknown. */
static uint64_t boot(void)
{
    char text[40] = "", digits[17] = "";
    size_t n = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    for (ssize_t i = 0; i < got && n < sizeof digits - 1; i++)
        if (text[i] != '-') digits[n++] = text[i];
    return n == sizeof digits - 1 ? strtoull(digits, NULL, 16) : 0;
}

void rank_tell(struct book *b)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) < 0) host[0] = 0;
    struct gpu_record r = {.kind = GPU_RANK, .text = host, .text_bytes = strlen(host)};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && !r.RANK.rank; i++) {
        r.RANK.rank = number(launchers[i].rank);
        if (!r.RANK.rank) continue;
        r.RANK.local_rank = number(launchers[i].local);
        r.RANK.size = number(launchers[i].size);
    }
    r.RANK.boot = boot();
    book_put(b, &r);
}
