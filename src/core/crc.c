/* SPDX-License-Identifier: MIT
 * crc.c - see crc.h. The tables are constants made by the preprocessor, so there is nothing to initialise;
 * the only state is whether this CPU has the instruction, kept in a relaxed atomic that every thread
 * would set alike. Never allocates, locks or calls anything but memcpy. */
#include "core/crc.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>
#endif

/* A CRC is linear: the entry of n is the XOR of the entries of n's bits. So eight numbers make a table of
 * 256, and 64 numbers the eight tables of slicing-by-8. slices[k][1 << b] is a byte with only bit b set,
 * followed by k zero bytes. */
#define BIT(n, b, v) ((n)&1 << (b) ? (v) : 0)
#define ENTRY(n, a, b, c, d, e, f, g, h)                                                       \
    (BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^ BIT(n, 5, f) ^ \
     BIT(n, 6, g) ^ BIT(n, 7, h))
#define ENTRY4(n, ...) \
    ENTRY(n, __VA_ARGS__), ENTRY(n + 1, __VA_ARGS__), ENTRY(n + 2, __VA_ARGS__), ENTRY(n + 3, __VA_ARGS__)
#define ENTRY16(n, ...)                                                             \
    ENTRY4(n, __VA_ARGS__), ENTRY4(n + 4, __VA_ARGS__), ENTRY4(n + 8, __VA_ARGS__), \
        ENTRY4(n + 12, __VA_ARGS__)
#define ENTRY64(n, ...)                                                                  \
    ENTRY16(n, __VA_ARGS__), ENTRY16(n + 16, __VA_ARGS__), ENTRY16(n + 32, __VA_ARGS__), \
        ENTRY16(n + 48, __VA_ARGS__)
#define SLICE(...) \
    ENTRY64(0, __VA_ARGS__), ENTRY64(64, __VA_ARGS__), ENTRY64(128, __VA_ARGS__), ENTRY64(192, __VA_ARGS__)

static const uint32_t slices[8][256] = {
    {SLICE(0xF26B8303U, 0xE13B70F7U, 0xC79A971FU, 0x8AD958CFU, 0x105EC76FU, 0x20BD8EDEU, 0x417B1DBCU,
           0x82F63B78U)},
    {SLICE(0x13A29877U, 0x274530EEU, 0x4E8A61DCU, 0x9D14C3B8U, 0x3FC5F181U, 0x7F8BE302U, 0xFF17C604U,
           0xFBC3FAF9U)},
    {SLICE(0xA541927EU, 0x4F6F520DU, 0x9EDEA41AU, 0x38513EC5U, 0x70A27D8AU, 0xE144FB14U, 0xC76580D9U,
           0x8B277743U)},
    {SLICE(0xDD45AAB8U, 0xBF672381U, 0x7B2231F3U, 0xF64463E6U, 0xE964B13DU, 0xD725148BU, 0xABA65FE7U,
           0x52A0C93FU)},
    {SLICE(0x38116FACU, 0x7022DF58U, 0xE045BEB0U, 0xC5670B91U, 0x8F2261D3U, 0x1BA8B557U, 0x37516AAEU,
           0x6EA2D55CU)},
    {SLICE(0xEF306B19U, 0xDB8CA0C3U, 0xB2F53777U, 0x6006181FU, 0xC00C303EU, 0x85F4168DU, 0x0E045BEBU,
           0x1C08B7D6U)},
    {SLICE(0x68032CC8U, 0xD0065990U, 0xA5E0C5D1U, 0x4E2DFD53U, 0x9C5BFAA6U, 0x3D5B83BDU, 0x7AB7077AU,
           0xF56E0EF4U)},
    {SLICE(0x493C7D27U, 0x9278FA4EU, 0x211D826DU, 0x423B04DAU, 0x847609B4U, 0x0D006599U, 0x1A00CB32U,
           0x34019664U)},
};

static uint32_t load_le32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t crc32c_portable(uint32_t seed, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t crc = ~seed;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low = load_le32(p) ^ crc, high = load_le32(p + 4);
        crc = slices[7][low & 255] ^ slices[6][low >> 8 & 255] ^ slices[5][low >> 16 & 255] ^
              slices[4][low >> 24] ^ slices[3][high & 255] ^ slices[2][high >> 8 & 255] ^
              slices[1][high >> 16 & 255] ^ slices[0][high >> 24];
    }
    for (; n; n--, p++) crc = crc >> 8 ^ slices[0][(crc ^ *p) & 255];
    return ~crc;
}

#if defined(__x86_64__)

/* clang takes the instruction for a feature of its own, which gcc before 11 does not know. */
#ifdef __clang__
#define TARGET "sse4.2,crc32"
#else
#define TARGET "sse4.2"
#endif

__attribute__((target(TARGET))) static uint32_t crc32c_sse42(uint32_t seed, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t crc = (uint32_t)~seed;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    uint32_t rest = (uint32_t)crc;
    for (; n; n--, p++) rest = __builtin_ia32_crc32qi(rest, *p);
    return ~rest;
}

static int cpu_has_sse42(void)
{
    static atomic_int known; /* 0: not asked yet, 1: no, 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (!answer) {
        unsigned a, b, c, d;
        answer = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

uint32_t crc32c(uint32_t seed, const void *data, size_t n)
{
    return cpu_has_sse42() ? crc32c_sse42(seed, data, n) : crc32c_portable(seed, data, n);
}

#else

uint32_t crc32c(uint32_t seed, const void *data, size_t n)
{
    return crc32c_portable(seed, data, n);
}

#endif
