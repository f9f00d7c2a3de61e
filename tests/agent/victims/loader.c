/* SPDX-License-Identifier: MIT
 * loader.c - victim: loads libraries in turn, calls them, unloads them. Usage: loader ROUNDS LIBRARY... or, as a
 * program that knows tare only by dlopen: loader lib LIBTARE. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tare/tare.h>

static int use_library(const char *path)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) return puts(dlerror()), 1;
    tare_site *(*site_new)(int, const char *, const char *, unsigned) = (void *)dlsym(h, "tare_site_new");
    void (*begin)(tare_scope *, tare_site *) = (void *)dlsym(h, "tare_begin");
    void (*end)(tare_scope *) = (void *)dlsym(h, "tare_end");
    uint32_t *on = dlsym(h, "tare_recording");
    if (!site_new || !begin || !end || !on) return puts("a symbol is missing"), 1;
    tare_site *site = site_new(TARE_SITE_SCOPE, "by dlopen", "loader.c", 7);
    for (int i = 0; i < 1000; i++) {
        tare_scope s = {{0}};
        if (*on) begin(&s, site);
        if (s.private_[0]) end(&s);
    }
    puts("used");
    return dlclose(h);
}

static int round_of(const char *path)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) return puts(dlerror()), 1;
    int (*run)(int) = (int (*)(int))(void *)dlsym(h, "plugin_run");
    int bad = !run || run(10) != 10;
    return dlclose(h) || bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    if (argc > 2 && strcmp(argv[1], "lib") == 0) return use_library(argv[2]);
    for (int i = 0; argc > 2 && i < atoi(argv[1]); i++) bad += round_of(argv[2 + i % (argc - 2)]);
    printf("%d bad\n", bad);
    return bad;
}
