/* SPDX-License-Identifier: MIT
 * ulid.c - see ulid.h. The one piece of state is the last id, behind a mutex. */
#include "core/ulid.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/clock.h"

#define MS_MAX ((UINT64_C(1) << 48) - 1)

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* The 128 bits as bytes, first the time. */
static void to_bytes(const struct ulid *id, uint8_t bytes[16])
{
    for (int i = 0; i < 6; i++) bytes[i] = (uint8_t)(id->unix_ms >> (40 - 8 * i));
    memcpy(bytes + 6, id->random, sizeof id->random);
}

void ulid_format(const struct ulid *id, char out[ULID_SIZE])
{
    uint8_t bytes[16];
    to_bytes(id, bytes);
    unsigned held = 0, n_held = 2; /* 26 * 5 = 130 bits: two zeros lead */
    for (int i = 0, at = 0; i < 16; i++) {
        held = held << 8 | bytes[i];
        n_held += 8;
        while (n_held >= 5) {
            n_held -= 5;
            out[at++] = digits[held >> n_held & 31];
        }
    }
    out[ULID_LEN] = 0;
}

static int digit_value(char c)
{
    if (c >= 'a' && c <= 'z') c = (char)(c - 'a' + 'A');
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* 26 digits of 5 bits are 130 bits, an id has 128: the first digit brings 3 bits only and may be at most
 * 7. */
tare_status ulid_parse(const char *text, struct ulid *out, tare_error *err)
{
    size_t len = strnlen(text, ULID_LEN + 1);
    if (len != ULID_LEN)
        return error_set(err, TARE_INVALID, "an id has %d characters, this has %s", ULID_LEN,
                         len > ULID_LEN ? "more" : "fewer");
    uint8_t bytes[16];
    unsigned held = 0, n_held = 0;
    for (int i = 0, at = 0; i < ULID_LEN; i++) {
        int value = digit_value(text[i]);
        if (value < 0 || (i == 0 && value > 7))
            return error_set(err, TARE_INVALID, "'%.26s' is not an id: character %d", text, i + 1);
        held = held << 5 | (unsigned)value;
        n_held += i == 0 ? 3 : 5;
        if (n_held >= 8) {
            n_held -= 8;
            bytes[at++] = (uint8_t)(held >> n_held);
        }
    }
    out->unix_ms = 0;
    for (int i = 0; i < 6; i++) out->unix_ms = out->unix_ms << 8 | bytes[i];
    memcpy(out->random, bytes + 6, sizeof out->random);
    return TARE_OK;
}

bool ulid_is_valid(const char *text)
{
    struct ulid id;
    return ulid_parse(text, &id, NULL) == TARE_OK;
}

static bool add_one(uint8_t number[10]) /* false: it wrapped to zero */
{
    for (int i = 9; i >= 0; i--) {
        if (++number[i]) return true;
    }
    return false;
}

void ulid_advance(struct ulid *last, uint64_t unix_ms, const uint8_t fresh[10])
{
    if (unix_ms > MS_MAX) unix_ms = MS_MAX;
    if (unix_ms <= last->unix_ms) {
        if (add_one(last->random)) return;
        unix_ms = last->unix_ms + 1; /* 2^80 ids in a millisecond, or the last one near the end: borrow */
    }
    last->unix_ms = unix_ms & MS_MAX;
    memcpy(last->random, fresh, sizeof last->random);
}

static tare_status random_bytes(void *out, size_t n, tare_error *err)
{
    uint8_t *at = out;
    while (n) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return error_errno(err, "random bytes for an id");
        at += got;
        n -= (size_t)got;
    }
    return TARE_OK;
}

/* Ids of one process rise even within a millisecond and when the clock is set back: files and runs sort by
 * them. The random bytes are read before the lock, as the kernel may let one wait for them. */
tare_status ulid_new(char out[ULID_SIZE], tare_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct ulid last;
    static pid_t owner;
    uint8_t fresh[10];
    tare_status s = random_bytes(fresh, sizeof fresh, err);
    if (s < 0) return s;
    pthread_mutex_lock(&lock);
    if (owner != getpid()) { /* first use, or a forked child: what the parent counted up is not ours */
        last = (struct ulid){0};
        owner = getpid();
    }
    ulid_advance(&last, clock_unix_ns() / 1000000, fresh);
    struct ulid mine = last;
    pthread_mutex_unlock(&lock);
    ulid_format(&mine, out);
    return TARE_OK;
}
