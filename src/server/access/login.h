/* SPDX-License-Identifier: MIT
 * login.h - people at a browser: who logged in, and until when. A session is 32 random bytes in a cookie; only its
 * SHA-256 is kept, in memory, so a restart ends all of them and nothing is written for each click. Times come from the
 * caller. docs/server.md says why. */
#ifndef SERVER_LOGIN_H
#define SERVER_LOGIN_H

#include "server/access/token.h"

enum { LOGINS_MAX = 256, LOGIN_TEXT_SIZE = TOKEN_SECRET_LEN + 1 };

struct login_times {
    uint64_t idle_ns;    /* without a request it ends */
    uint64_t longest_ns; /* it ends, whatever comes */
    uint64_t link_ns;    /* a login link that nobody used is none */
};
#define LOGIN_TIMES                                                                         \
    {                                                                                         \
        UINT64_C(1800) * 1000000000, UINT64_C(43200) * 1000000000, UINT64_C(600) * 1000000000 \
    }

struct login {
    struct grant grant;
    bool by_token; /* it ends with its token; else it came from the login link */
    uint64_t began_ns, used_ns;
};

struct logins;
tare_status logins_open(struct logins **out, const struct login_times *times, tare_error *err);
void logins_close(struct logins *s); /* NULL is fine */
uint64_t login_clock(void);          /* goes on while the machine sleeps, and never steps */

/* The secret of the one login link; one made before is none any more. */
tare_status logins_link(struct logins *s, uint64_t now_ns, char once[LOGIN_TEXT_SIZE], tare_error *err);
/* True for the link's secret, once. */
bool logins_redeem(struct logins *s, const char *once, uint64_t now_ns);

/* `cookie` is the only copy there will be. Where LOGINS_MAX are open the one that waited longest ends. */
tare_status logins_begin(struct logins *s, const struct login *as, char cookie[LOGIN_TEXT_SIZE],
                         tare_error *err);
/* False: there is none, or its time is over. True: it was used now. Any thread. */
bool logins_check(struct logins *s, const char *cookie, uint64_t now_ns, struct login *out);
bool logins_end(struct logins *s, const char *cookie); /* false: there was none */

/* The value of `name` in a Cookie header, where it has the form of a session's. */
bool login_cookie(const char *header, const char *name, char out[LOGIN_TEXT_SIZE]);

#endif
