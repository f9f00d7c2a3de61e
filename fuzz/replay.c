/* SPDX-License-Identifier: MIT
 * replay.c - main() for a fuzz target without a fuzzer: feeds every file named, truncations of it, and seeded bit
 * flips of it to LLVMFuzzerTestOneInput, so that CI replays the corpora with any compiler. Each file runs in a
 * child of its own: a crash costs one test, and the very bytes that crashed are written beside the others.
 * Deterministic: the same file gives the same variants. Writes TAP.
 * usage: replay_TARGET [-o FOLDER-FOR-CRASHES] FILE... */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MAX_FILE = 16 << 20,
    MAX_VARIANTS = 400,
    MIN_VARIANTS = 8,
    BYTES_PER_FILE = 16 << 20,
    TIMEOUT_S = 120
};

/* What the child is doing, in memory that outlives it. */
struct progress {
    uint64_t variant;
    size_t size;
    uint8_t bytes[MAX_FILE];
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* The target gets a heap block of exactly the right size, so that ASan sees one byte too many. */
static void feed(struct progress *p, size_t size)
{
    p->variant++;
    p->size = size;
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) _exit(3);
    memcpy(exact, p->bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static size_t variants_of(size_t size)
{
    size_t n = size ? BYTES_PER_FILE / size : MAX_VARIANTS;
    return n > MAX_VARIANTS ? MAX_VARIANTS : n < MIN_VARIANTS ? MIN_VARIANTS : n;
}

static void feed_truncations(struct progress *p, size_t size)
{
    size_t n = variants_of(size);
    if (n > size) n = size;
    for (size_t i = 0; i < n; i++) feed(p, size * i / n);
}

/* One to eight flipped bits; half of the time a byte is set to an extreme as well. */
static void feed_flips(struct progress *p, const uint8_t *original, size_t size)
{
    static const uint8_t extremes[] = {0x00, 0x7f, 0x80, 0xff};
    uint64_t seed = size;
    for (size_t i = 0, n = size ? variants_of(size) : 0; i < n; i++) {
        memcpy(p->bytes, original, size);
        for (uint64_t flips = 1 + next_random(&seed) % 8; flips; flips--) {
            uint64_t r = next_random(&seed);
            p->bytes[(r >> 8) % size] ^= (uint8_t)(1U << (r & 7));
        }
        uint64_t r = next_random(&seed);
        if (r & 1) p->bytes[(r >> 8) % size] = extremes[r >> 1 & 3];
        feed(p, size);
    }
}

/* In the child. Returns 0, or 1 when the file cannot be read. */
static int replay_file(struct progress *p, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > MAX_FILE) {
        fprintf(stderr, "%s: %s\n", path, fd < 0 ? strerror(errno) : "larger than 16 MiB");
        return 1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *original = malloc(size ? size : 1);
    if (!original || read(fd, original, size) != (ssize_t)size) {
        fprintf(stderr, "%s: could not be read\n", path);
        return 1;
    }
    close(fd);
    memcpy(p->bytes, original, size);
    feed(p, size);
    feed_truncations(p, size);
    feed_flips(p, original, size);
    free(original);
    return 0;
}

static void save_crash(const struct progress *p, const char *folder, const char *path)
{
    char to[4096];
    const char *base = strrchr(path, '/');
    snprintf(to, sizeof to, "%s/crash-%s-%llu", folder, base ? base + 1 : path,
             (unsigned long long)p->variant);
    FILE *f = fopen(to, "wb");
    if (!f || fwrite(p->bytes, 1, p->size, f) != p->size) fprintf(stderr, "%s: %s\n", to, strerror(errno));
    if (f) fclose(f);
    printf("# the bytes are in %s\n", to);
}

/* Returns 1 if the file passed. */
static int run_one(struct progress *p, const char *folder, const char *path)
{
    p->variant = 0;
    p->size = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) return 0;
    if (child == 0) {
        alarm(TIMEOUT_S);
        exit(replay_file(p, path)); /* exit, not _exit: the leak check runs there */
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 1;
    printf("# %s: variant %llu: %s %d\n", path, (unsigned long long)p->variant,
           WIFSIGNALED(status) ? "killed by signal" : "exit status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (p->variant) save_crash(p, folder, path);
    return 0;
}

int main(int argc, char **argv)
{
    const char *folder = ".";
    int first = 1, failed = 0;
    if (argc > 2 && strcmp(argv[1], "-o") == 0) {
        folder = argv[2];
        first = 3;
    }
    struct progress *p =
        mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("replay");
        return 2;
    }
    printf("1..%d\n", argc - first);
    for (int i = first; i < argc; i++) {
        int ok = run_one(p, folder, argv[i]);
        failed += !ok;
        printf("%s %d - %s (%llu variants)\n", ok ? "ok" : "not ok", i - first + 1, argv[i],
               (unsigned long long)p->variant);
    }
    return failed ? 1 : 0;
}
