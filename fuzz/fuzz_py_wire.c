/* SPDX-License-Identifier: MIT
 * fuzz_py_wire.c - any bytes as a reply, a greeting and a piece of an answer of the Python process: read in full
 * or refused with a reason. */
#include <stdint.h>
#include <stdlib.h>

#include "subject/py_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t numbers[PY_TIMES_MAX];
    struct py_reply r;
    struct py_hello h;
    struct process_state state;
    tare_error err = TARE_ERROR_INIT;
    if (size > PY_PACKET_MAX) return 0;
    tare_status s = py_reply_read(data, size, &r, numbers, &err);
    if (s == TARE_OK && r.n >= PY_STATE_WORDS) py_state_read(numbers, &state);
    if (s > 0 || err.status != s) abort();
    err = (tare_error)TARE_ERROR_INIT;
    s = py_hello_read(data, size, &h, &err);
    if (s > 0 || err.status != s) abort();
    const char *text = NULL;
    err = (tare_error)TARE_ERROR_INIT;
    s = py_piece_read(data, size, &r, &text, &err);
    if (s > 0 || err.status != s) abort();
    if (s == TARE_OK && text + r.n != (const char *)data + size) abort();
    return 0;
}
