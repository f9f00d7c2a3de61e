/* SPDX-License-Identifier: MIT
 * term.c - see term.h. */
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/str.h"
#include "report/text.h"

void term_detect(struct term *out, int fd, const struct term_env *env)
{
    *out = (struct term){.width = 80};
    out->tty = fd >= 0 && isatty(fd);
    out->utf8 = env->locale && (strcasestr(env->locale, "utf-8") || strcasestr(env->locale, "utf8"));
    bool dumb = !env->term || !*env->term || strcmp(env->term, "dumb") == 0;
    bool refused = env->no_color && *env->no_color;
    bool forced = env->force_color && *env->force_color && strcmp(env->force_color, "0") != 0;
    out->color = !refused && (forced || (out->tty && !dumb));
    struct winsize size;
    if (out->tty && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) out->width = size.ws_col;
    long columns = env->columns ? strtol(env->columns, NULL, 10) : 0;
    if (out->tty && columns >= 20 && columns <= 1000) out->width = (unsigned)columns;
}

static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",  "\033[31m",
                                    "\033[32m", "\033[33m", "\033[34m", "\033[36m"};

const char *term_style(const struct term *t, enum term_style style)
{
    return t->color ? codes[style] : "";
}

/* The length of a style of ours that stands at `s`; 0: none does, or this terminal has none. */
static size_t style_length(const struct term *t, const char *s, size_t n)
{
    for (size_t i = 0; t->color && i < sizeof codes / sizeof *codes; i++) {
        size_t len = strlen(codes[i]);
        if (n >= len && memcmp(s, codes[i], len) == 0) return len;
    }
    return 0;
}

/* Whatever could steer a terminal is written in a visible form; only our own styles pass, and only where colours are
 * on. Harmless bytes are copied in whole stretches. */
void term_show(struct buf *out, const struct term *t, const char *s, size_t n)
{
    size_t good = 0; /* s[good..i) is to be added as it is */
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp = (unsigned char)s[i];
        len = 1;
        if ((cp >= 0x20 && cp < 0x7F) || cp == '\n' || cp == '\t') continue;
        len = cp == 0x1B ? style_length(t, s + i, n - i) : 0;
        if (len) continue;
        len = str_decode(s + i, n - i, &cp);
        if (len && !str_is_control(cp)) continue;
        buf_add(out, s + good, i - good);
        if (len == 0) len = 1;
        text_plain(out, s + i, len);
        good = i + len;
    }
    buf_add(out, s + good, n - good);
}

/* The end of an escape sequence that starts at `s`: ESC [ parameters letter. */
static const char *skip_escape(const char *s)
{
    if (s[1] != '[') return s + 1;
    s += 2;
    s += strspn(s, "0123456789;");
    return *s ? s + 1 : s;
}

unsigned term_columns(const char *s)
{
    unsigned n = 0;
    while (*s) {
        if (*s == '\033') {
            s = skip_escape(s);
            continue;
        }
        n += ((unsigned char)*s & 0xc0) != 0x80;
        s++;
    }
    return n;
}

/* A terminal obeys the controls above 127 as well, and text that changes its direction reads as what it is not. */
void term_clean(struct buf *out, const char *s)
{
    for (size_t left = strlen(s), n; left; s += n, left -= n) {
        uint32_t cp = 0;
        n = str_decode(s, left, &cp);
        bool plain = n > 0 && !str_is_control(cp);
        if (plain)
            buf_add(out, s, n);
        else
            buf_add_char(out, '?');
        if (n == 0) n = 1;
    }
}

void term_cell(struct buf *out, const struct term *t, enum term_style style, const char *s, unsigned columns)
{
    unsigned used = term_columns(s);
    if (style != TERM_PLAIN) buf_add_str(out, term_style(t, style));
    term_clean(out, s);
    if (style != TERM_PLAIN) buf_add_str(out, term_style(t, TERM_PLAIN));
    if (used < columns) buf_printf(out, "%*s", (int)(columns - used), "");
}
