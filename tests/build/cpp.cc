/* SPDX-License-Identifier: MIT
 * cpp.cc - a C++ program that uses every macro of tare.h and defines functions with the names of tare's insides:
 * it must compile without warnings, link with both libraries, and unwind through scopes. Prints its answer. */
#include <tare/tare.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

/* Names that tare uses inside: a library that leaks them would clash or be called instead of these. */
int ring_push(int x)
{
    return x + 1;
}
int mem_new(int x)
{
    return x + 2;
}
int error_set(int x)
{
    return x + 4;
}
int clock_detect(int x)
{
    return x + 8;
}

namespace
{

struct layer {
    std::string name;
    int forward(int depth) const
    {
        TARE_SCOPE("forward");
        tare_count("calls", 1);
        if (depth == 0) throw std::runtime_error(name);
        return forward(depth - 1);
    }
};

int unwind()
{
    TARE_SCOPE("unwind");
    try {
        layer{"bottom"}.forward(3);
    } catch (const std::runtime_error &e) {
        tare_mark("caught", "%s", e.what());
        return std::strcmp(e.what(), "bottom") == 0;
    }
    return 0;
}

} // namespace

int main()
{
    tare_error err = TARE_ERROR_INIT;
    tare_options options = TARE_OPTIONS_INIT;
    options.path = "/nonexistent/folder/x.tare";
    int refused = std::getenv("TARE_TRACE") || tare_start(&options, &err) != TARE_OK;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "dynamic", __FILE__, __LINE__);
    if (site) {
        tare_scope scope;
        tare_begin(&scope, site);
        tare_end(&scope);
    }
    int sum = ring_push(0) + mem_new(0) + error_set(0) + clock_detect(0);
    bool good = unwind() && refused && sum == 15 && std::strcmp(tare_version(), TARE_VERSION) == 0;
    std::printf("%s %s\n", good ? "fine" : "wrong", tare_status_text(TARE_NOMEM));
    return good ? 0 : 1;
}
