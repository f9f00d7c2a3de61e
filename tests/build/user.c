/* SPDX-License-Identifier: MIT
 * user.c - the smallest complete user of tare.h in plain C, also compiled as strict C99. Prints its answer. */
#include <tare/tare.h>

#include <stdio.h>
#include <string.h>

static int step(int n)
{
    TARE_SCOPE("step");
    tare_count("tokens", n);
    if (n == 2) return n; /* leaves the scope early */
    {
        TARE_SCOPE("inner");
        tare_mark("n", "%d", n);
    }
    return n;
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 4; i++) sum += step(i);
    tare_error err = TARE_ERROR_INIT;
    int good = sum == 6 && tare_stop(&err) == TARE_OK && strcmp(tare_version(), TARE_VERSION) == 0;
    printf("%s %s\n", good ? "fine" : "wrong", tare_status_text(TARE_NOMEM));
    return good ? 0 : 1;
}
