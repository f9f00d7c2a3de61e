/* SPDX-License-Identifier: MIT
 * gpu_name.c - kernels have the names of C++ templates, hundreds of letters long: here they are shortened
 * to what people say, and put into groups by a table. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analyze/gpu/gpu_name.h"

/* Where the parameters or template arguments of the outermost name begin; "(anonymous namespace)" is neither. */
static size_t head_length(const char *s)
{
    static const char anonymous[] = "(anonymous namespace)";
    for (size_t n = 0;;) {
        n += strcspn(s + n, "<(");
        if (strncmp(s + n, anonymous, sizeof anonymous - 1) != 0) return n;
        n += sizeof anonymous - 1;
    }
}

/* The functor that tells element-wise kernels apart: "at::native::CUDAFunctor_add<float>" in the arguments. */
static size_t find_functor(const char *s, const char **at)
{
    static const char *const marks[] = {"Functor", "functor", "Ops<", "Op<", "_kernel_cuda", "kernel_impl"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *mark = strstr(s, marks[i]);
        if (!mark) continue;
        const char *from = mark, *to = mark;
        while (from > s && (from[-1] == '_' || (from[-1] >= '0' && from[-1] <= '9') ||
                            ((from[-1] | 32) >= 'a' && (from[-1] | 32) <= 'z')))
            from--;
        while (*to == '_' || (*to >= '0' && *to <= '9') || ((*to | 32) >= 'a' && (*to | 32) <= 'z')) to++;
        *at = from;
        return (size_t)(to - from);
    }
    return 0;
}

const char *gpu_name_short(struct arena *a, const char *full)
{
    const char *s = strncmp(full, "void ", 5) == 0 ? full + 5 : full, *functor = NULL;
    size_t n = head_length(s), from = n;
    while (from && strncmp(s + from - 1, ":", 1) != 0) from--; /* without its namespaces */
    if (n - from >= 6 && strncmp(s + from, "Kernel", 6) == 0 &&
        s[n] == '<') { /* cutlass: the argument is the kernel */
        from = n + 1;
        n = from + head_length(s + from);
        while (n > from && (s[n - 1] == '>' || s[n - 1] == ' ')) n--;
    }
    size_t f = s[n] == '<' ? find_functor(s + n, &functor) : 0;
    const char *name =
        arena_printf(a, "%.*s%s%.*s", (int)(n - from), s + from, f ? " " : "", (int)f, f ? functor : "");
    return name && name[0] ? name : full;
}

/* The first that fits counts: what is rarer stands before what is common. */
static const struct {
    const char *part, *group;
} groups[] = {
    {"nccl", GPU_GROUP_COMMUNICATION},
    {"nvshmem", GPU_GROUP_COMMUNICATION},
    {"rccl", GPU_GROUP_COMMUNICATION},
    {"distribution", "random"},
    {"flash", "attention"},
    {"fmha", "attention"},
    {"attention", "attention"},
    {"mha_", "attention"},
    {"softmax", "softmax"},
    {"conv", "convolution"},
    {"winograd", "convolution"},
    {"implicit_gemm", "convolution"},
    {"gemm", "matmul"},
    {"nvjet", "matmul"},
    {"xmma", "matmul"},
    {"cutlass", "matmul"},
    {"gemv", "matmul"},
    {"splitk", "matmul"},
    {"dot_kernel", "matmul"},
    {"norm", "normalisation"},
    {"multi_tensor", "optimizer"},
    {"foreach", "optimizer"},
    {"adam", "optimizer"},
    {"reduce", "reduction"},
    {"argmax", "reduction"},
    {"argmin", "reduction"},
    {"cumsum", "reduction"},
    {"scan", "reduction"},
    {"rand", "random"},
    {"philox", "random"},
    {"dropout", "random"},
    {"sort", "sort"},
    {"topk", "sort"},
    {"embedding", "indexing"},
    {"gather", "indexing"},
    {"scatter", "indexing"},
    {"index", "indexing"},
    {"copy", "copy"},
    {"transpose", "copy"},
    {"catarray", "copy"},
    {"fill", "elementwise"},
    {"elementwise", "elementwise"},
    {"functor", "elementwise"},
    {"triton_poi", "elementwise"},
    {"triton_red", "reduction"},
    {"triton_per", "reduction"},
};

/* The text is gone through once, with the parts in hand that begin with the letter: names of 4 KB times a table of 46
 * made minutes of 60,000 names. */
size_t gpu_name_first(const char *text, const void *rows, size_t size, size_t n)
{
    uint64_t starts[256] = {0};
    size_t best = n < 64 ? n : 64;
    for (size_t i = 0; i < best; i++) {
        const char *part = *(const char *const *)((const char *)rows + i * size);
        starts[(unsigned char)*part] |= UINT64_C(1) << i;
    }
    for (; *text && best; text++) {
        unsigned char c = (unsigned char)*text;
        uint64_t may = starts[c >= 'A' && c <= 'Z' ? c | 32 : c];
        for (; may; may &= may - 1) {
            size_t i = (size_t)__builtin_ctzll(may);
            if (i >= best) break;
            const char *part = *(const char *const *)((const char *)rows + i * size);
            if ((text[1] | 32) != (part[1] | 32)) continue; /* most end here, without a call */
            if (strncasecmp(text, part, strlen(part)) == 0) best = i;
        }
    }
    return best;
}

const char *gpu_name_group(const char *full)
{
    size_t n = sizeof groups / sizeof *groups, at = gpu_name_first(full, groups, sizeof *groups, n);
    return at < n ? groups[at].group : "other";
}
