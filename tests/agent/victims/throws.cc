/* SPDX-License-Identifier: MIT
 * throws.cc - victim: C++ exceptions through scopes, and scopes in destructors of static and thread-local objects. */
#include <cstdio>
#include <stdexcept>
#include <thread>

#include <tare/tare.h>

struct Late {
    ~Late()
    {
        TARE_SCOPE("destroyed");
    }
};
static Late late;
static thread_local Late here;

static int deep(int n)
{
    TARE_SCOPE("deep");
    if (n == 0) throw std::runtime_error("enough");
    return deep(n - 1) + 1;
}

static void run()
{
    (void)&here;
    int caught = 0;
    for (int i = 0; i < 200; i++) {
        TARE_SCOPE("outer");
        try {
            deep(9);
        } catch (const std::exception &) {
            TARE_SCOPE("caught");
            caught++;
        }
    }
    std::printf("%d\n", caught);
}

int main()
{
    run();
    std::thread(run).join();
    return 0;
}
