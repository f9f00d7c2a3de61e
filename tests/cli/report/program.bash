# Sourced by the tests of report and export: `program` builds ./app, a small traced program whose tree is known.
#   main > step x 100 > load; main > mark epoch, counter tokens; a thread: worker > step x 50 > load, fib(5)
# ./app kill: ends by SIGKILL in the middle. TARE_WEIGH=off keeps the counts exact.
program() {
    cat >app.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <tare/tare.h>
static volatile unsigned long sum;
static void spin(unsigned n) { while (n--) sum += n; }
static void load(void) { TARE_SCOPE("load"); spin(2000); tare_count("tokens", 3); }
static void step(void) { TARE_SCOPE("step"); load(); spin(3000); }
static int fib(int n) { TARE_SCOPE("fib"); spin(500); return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void *work(void *p)
{
    TARE_SCOPE("worker");
    for (int i = 0; i < 50; i++) step();
    fib(5);
    return p;
}
int main(int argc, char **argv)
{
    TARE_SCOPE("main \"quoted\";\n");
    pthread_t t;
    pthread_create(&t, NULL, work, NULL);
    tare_mark("epoch", "number %d", 1);
    for (int i = 0; i < 100; i++) step();
    pthread_join(t, NULL);
    if (argc > 1 && !strcmp(argv[1], "kill")) kill(getpid(), SIGKILL);
    return 0;
}
C
    local lib
    lib=$(dirname "$(realpath "$(command -v tare)")")/libtare.a
    local -a cc=("${CC:-gcc}" -O1 -g "-I$TARE_SRC/include" app.c "$lib" -pthread -o app)
    "${cc[@]}" 2>cc.log || "${cc[@]}" -fsanitize=address,undefined 2>cc.log || { cat cc.log; exit 99; }
}
record() { # arguments of the program
    TARE_WEIGH=off TARE_TRACE=app.tare ASAN_OPTIONS=detect_leaks=0 ./app "$@"
}
