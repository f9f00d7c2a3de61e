/* SPDX-License-Identifier: MIT
 * unit.c - see unit.h. Whole nanoseconds are parsed in integers, digit by digit, so that nothing is rounded
 * twice. */
#include "core/unit.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static const char digits[] = "0123456789";

/* ---- units: a unit is `factor` base units, or the `per`-th part of one where that is not 0 ---- */

struct unit {
    const char *name;
    uint64_t factor, per;
};

static const struct unit time_units[] = {
    {"sec", UINT64_C(1000000000), 0},
    /* from here on: options */
    {"ns", 1, 0},
    {"us", UINT64_C(1000), 0},
    {"\xC2\xB5s", UINT64_C(1000), 0}, /* micro sign */
    {"\xCE\xBCs", UINT64_C(1000), 0}, /* Greek mu */
    {"ms", UINT64_C(1000000), 0},
    {"s", UINT64_C(1000000000), 0},
    {"min", UINT64_C(60000000000), 0},
    /* up to here: targets */
    {"m", UINT64_C(60000000000), 0},
    {"h", UINT64_C(3600000000000), 0},
    {"d", UINT64_C(86400000000000), 0},
};
static const struct unit byte_units[] = {
    {"", 1, 0},
    {"B", 1, 0},
    {"K", UINT64_C(1) << 10, 0},
    {"M", UINT64_C(1) << 20, 0},
    {"G", UINT64_C(1) << 30, 0},
    {"T", UINT64_C(1) << 40, 0},
    {"KiB", UINT64_C(1) << 10, 0},
    {"MiB", UINT64_C(1) << 20, 0},
    {"GiB", UINT64_C(1) << 30, 0},
    {"TiB", UINT64_C(1) << 40, 0},
    {"KB", UINT64_C(1000), 0},
    {"MB", UINT64_C(1000000), 0},
    {"GB", UINT64_C(1000000000), 0},
    {"TB", UINT64_C(1000000000000), 0},
};
static const struct unit rate_units[] = {
    {"", 1, 0}, {"/s", 1, 0}, {"/sec", 1, 0}, {"/min", 0, 60}, {"/h", 0, 3600}};
static const struct unit share_units[] = {{"", 1, 0}, {"%", 0, 100}};
static const struct unit watt_units[] = {{"", 1, 0}, {"W", 1, 0}};
static const struct unit celsius_units[] = {{"", 1, 0}, {"C", 1, 0}};
static const struct unit hertz_units[] = {
    {"", 1, 0}, {"Hz", 1, 0}, {"MHz", 1000000, 0}, {"GHz", 1000000000, 0}};

static const struct kind {
    const struct unit *units;
    size_t n;
    bool any_case;
    bool any_noun;   /* what is counted may stand before the slash */
    bool per_second; /* /s may stand behind the unit */
} kinds[] = {
    [UNIT_TIME] = {.units = time_units, .n = 8},
    [UNIT_BYTES] = {.units = byte_units, .n = COUNT_OF(byte_units), .any_case = true},
    [UNIT_MEMORY] = {.units = byte_units + 1, .n = COUNT_OF(byte_units) - 1, .any_case = true},
    [UNIT_BYTE_RATE] = {.units = byte_units, .n = COUNT_OF(byte_units), .any_case = true, .per_second = true},
    [UNIT_RATE] = {.units = rate_units, .n = COUNT_OF(rate_units), .any_noun = true},
    [UNIT_FREQUENCY] = {.units = rate_units, .n = 2},
    [UNIT_SHARE] = {.units = share_units, .n = COUNT_OF(share_units)},
    [UNIT_PERCENT] = {.units = share_units + 1, .n = 1},
    [UNIT_WATT] = {.units = watt_units, .n = COUNT_OF(watt_units)},
    [UNIT_CELSIUS] = {.units = celsius_units, .n = COUNT_OF(celsius_units)},
    [UNIT_HERTZ] = {.units = hertz_units, .n = COUNT_OF(hertz_units)},
};
static const struct kind option_times = {.units = time_units + 1, .n = COUNT_OF(time_units) - 1};

static const struct unit *find_unit(const struct kind *k, const char *name, size_t len)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct unit *u = &k->units[i];
        if (strlen(u->name) == len && (k->any_case ? strncasecmp : strncmp)(u->name, name, len) == 0)
            return u;
    }
    return NULL;
}

/* ---- real numbers ---- */

/* The point is a point also in a program that has chosen another locale, as a Python script may. Made once, kept. */
static locale_t plain_locale(void)
{
    static locale_t kept;
    locale_t now = __atomic_load_n(&kept, __ATOMIC_ACQUIRE), none = (locale_t)0;
    if (now) return now;
    locale_t made = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (__atomic_compare_exchange_n(&kept, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    freelocale(made);
    return none;
}

double unit_real(const char *text)
{
    return strtod_l(text, NULL, plain_locale());
}

const char *unit_date(const char *text, const char *form, int64_t *unix_s)
{
    struct tm t = {.tm_mday = 1};
    const char *rest = strptime(text, form, &t);
    if (!rest) return NULL;
    struct tm moved = t; /* as timegm() sets it right; a leap second is in no document */
    *unix_s = (int64_t)timegm(&moved);
    bool same = moved.tm_mday == t.tm_mday && moved.tm_mon == t.tm_mon && moved.tm_sec == t.tm_sec;
    return same ? rest : NULL;
}

/* strtod() alone takes too much: signs, spaces, "inf", hexadecimal. The extent is found first, and an "e"
 * without digits is left standing, since a unit may begin with it. */
const char *unit_number(const char **at, double *out)
{
    const char *from = *at;
    char copy[64];
    size_t whole = strspn(from, digits), n = whole;
    if (from[n] == '.') n += 1 + strspn(from + n + 1, digits);
    if (n == whole + 1) return whole ? "digits are missing after the point" : "a number was expected";
    if (n == 0) return "a number was expected";
    if (from[n] == 'e' || from[n] == 'E') {
        size_t sign = from[n + 1] == '-' || from[n + 1] == '+', e = strspn(from + n + 1 + sign, digits);
        if (e) n += 1 + sign + e;
    }
    if (n >= sizeof copy) return "the number has too many digits";
    memcpy(copy, from, n);
    copy[n] = 0;
    double v = unit_real(copy);
    if (!isfinite(v)) return "the number is too large";
    *out = v;
    *at += n;
    return NULL;
}

bool unit_apply(enum unit_kind kind, const char *unit, double *value)
{
    static const char noun[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const struct kind *k = &kinds[kind];
    if (k->any_noun && unit[strspn(unit, noun)] == '/') unit += strspn(unit, noun);
    size_t n = strlen(unit);
    if (k->per_second && n >= 2 && strcmp(unit + n - 2, "/s") == 0) n -= 2;
    const struct unit *u = find_unit(k, unit, n);
    if (!u) return false;
    if (u->per)
        *value /= (double)u->per;
    else
        *value *= (double)u->factor;
    return true;
}

bool unit_parse(enum unit_kind kind, const char *word, double *out)
{
    double v;
    if (unit_number(&word, &v) || !unit_apply(kind, word, &v) || !isfinite(v)) return false;
    *out = v;
    return true;
}

/* ---- whole nanoseconds ---- */

/* digits [. digits]: the whole part, and the fraction as part / scale. At most 18 digits of fraction. */
struct number {
    uint64_t whole, part, scale;
    const char *rest; /* what follows */
};

enum number_fault { NUMBER_GOOD, NUMBER_BAD, NUMBER_LARGE };

/* Read as integers and not as a double: times are whole nanoseconds, and 0.1 of a unit must be exact. 18
 * digits of fraction are what fits 64 bits with their scale. */
static enum number_fault read_number(const char *text, struct number *out)
{
    *out = (struct number){0, 0, 1, text};
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(out->whole, 10u, &out->whole)) return NUMBER_LARGE;
        if (__builtin_add_overflow(out->whole, (uint64_t)(*at - '0'), &out->whole)) return NUMBER_LARGE;
    }
    if (at == text) return NUMBER_BAD;
    if (*at == '.') {
        const char *point = at++;
        for (; *at >= '0' && *at <= '9'; at++) {
            if (at - point > 18) return NUMBER_BAD;
            out->part = out->part * 10 + (uint64_t)(*at - '0');
            out->scale *= 10;
        }
        if (at == point + 1) return NUMBER_BAD;
    }
    out->rest = at;
    return NUMBER_GOOD;
}

/* number * factor to the nearest whole, halves up. */
static unsigned __int128 scale_number(const struct number *number, uint64_t factor)
{
    unsigned __int128 whole = (unsigned __int128)number->whole * factor;
    unsigned __int128 parts = (unsigned __int128)number->part * factor;
    return whole + (parts + number->scale / 2) / number->scale;
}

/* Several numbers with units add up, as in 1m30s. */
static tare_status parse_times(const char *text, uint64_t *out, tare_error *err)
{
    static const char expected[] = "numbers with a unit (ns, us, ms, s, m, h, d), like 500us, 1.5s or 1m30s";
    uint64_t sum = 0;
    const char *at = text;
    do {
        struct number number;
        enum number_fault fault = read_number(at, &number);
        size_t len = strcspn(number.rest, "0123456789.");
        const struct unit *unit = fault ? NULL : find_unit(&option_times, number.rest, len);
        at = number.rest + len;
        if (fault != NUMBER_LARGE && !unit)
            return error_set(err, TARE_INVALID, "'%.60s' is not a time: expected %s", text, expected);
        if (fault == NUMBER_LARGE || scale_number(&number, unit->factor) > INT64_MAX - sum)
            return error_set(err, TARE_INVALID, "'%.60s' is too large for a time", text);
        sum += (uint64_t)scale_number(&number, unit->factor);
    } while (*at);
    *out = sum;
    return TARE_OK;
}

tare_status unit_parse_duration(const char *text, struct duration *out, tare_error *err)
{
    uint64_t ns = 0;
    bool zero = strcmp(text, "0") == 0, bare = text[0] && !text[strspn(text, "0123456789.")];
    if (bare && !zero)
        return error_set(err, TARE_INVALID, "'%.60s' has no unit; write %.60ss or %.60sms", text, text, text);
    tare_status s = zero ? TARE_OK : parse_times(text, &ns, err);
    if (s == TARE_OK) out->ns = (int64_t)ns;
    return s;
}
