/* SPDX-License-Identifier: MIT
 * upload.c - what files of runs and their pieces are called, on all backends. */
#include "store/upload.h"

#include <openssl/sha.h>
#include <string.h>

#include "store/store.h"

static void write_hex(const unsigned char hash[STORE_HASH_SIZE], char out[STORE_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < STORE_HASH_SIZE; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    out[2 * STORE_HASH_SIZE] = 0;
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void store_hash(const void *data, size_t n, char out[STORE_HEX_SIZE])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256(n ? data : (const void *)"", n, hash);
    write_hex(hash, out);
}

bool store_hash_ok(const char *text)
{
    return strlen(text) == STORE_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") == STORE_HEX_SIZE - 1;
}

/* At most 32 KB of hashes: no need to go piece by piece. */
void store_upload_id(const char (*hashes)[STORE_HEX_SIZE], size_t n, char out[STORE_HEX_SIZE])
{
    static _Thread_local unsigned char all[STORE_PIECES_MAX * STORE_HASH_SIZE];
    size_t used = 0;
    for (size_t i = 0; i < n && i < STORE_PIECES_MAX; i++)
        for (size_t k = 0; k < STORE_HASH_SIZE; k++)
            all[used++] = (unsigned char)(digit(hashes[i][2 * k]) << 4 | digit(hashes[i][2 * k + 1]));
    store_hash(all, used, out);
}

bool store_file_name_ok(const char *name)
{
    return store_name_ok(name) && !strchr(name, '/') && name[0] != '.';
}
