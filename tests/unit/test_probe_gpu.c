/* SPDX-License-Identifier: MIT
 * test_probe_gpu.c - the GPU probe on a library of known answers (tests/fake_nvml), an up-to-date one and an old
 * one. */
#include "probe_fixture.h"

#include <dlfcn.h>
#include <libgen.h>
#include <poll.h>
#include <time.h>

#include "../fake_nvml/fake_nvml.h"
#include "probe/gpu_card.h"
#include "probe/host.h"
#include "run/run.h"

static struct fake_nvml *fake;
static void *library;

/* The library that the build put beside this program, under the made-up root. */
static void install(struct made_root *r, const char *name)
{
    char exe[400] = "", from[600], to[200];
    assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    snprintf(from, sizeof from, "%s/%s", dirname(exe), name);
    root_file(r, "/usr/lib/x", "");
    snprintf(to, sizeof to, "%s/usr/lib/libnvidia-ml.so.1", r->path);
    assert_int_equal(symlink(from, to), 0);
    library = dlopen(to, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    fake = dlsym(library, "fake_nvml");
    assert_non_null(fake);
}

static void put_stat(struct made_root *r, int pid, int parent)
{
    char path[64], text[300];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (x) S %d 1 1 0 -1 0 1 0 0 0 1 0 1 0 20 0 1 0 9 1000 5 1 1 1 0 0 0 0 0 0 0 0 0 0 17 0\n", pid,
             parent);
    root_file(r, path, text);
}

static int set_up_new(void **state)
{
    root_set_up(state);
    install(*state, "libnvidia-ml.so.1");
    *fake = (struct fake_nvml){.cards = FAKE_CARDS, .energy_mj = 5000, .throttle = 4};
    return 0;
}

static int set_up_old(void **state)
{
    root_set_up(state);
    install(*state, "libnvidia-ml-old.so.1");
    return 0;
}

/* All that was started is shut down, all samples are freed. */
static int tear_down(void **state)
{
    root_close(*state);
    assert_int_equal(fake->started, 0);
    assert_int_equal(fake->gpm_samples, 0);
    dlclose(library);
    return root_tear_down(state);
}

static void a_card_with_everything(void **state)
{
    struct made_root *r = *state;
    root_open(r, "gpu", 0, false);
    assert_value(r, GPU_UTIL, "gpu0", 0.75);
    assert_value(r, GPU_MEM_UTIL, "gpu0", 0.4);
    assert_value(r, GPU_MEM_USED, "gpu0", 2000); /* without what the driver keeps */
    assert_value(r, GPU_MEM_TOTAL, "gpu0", 80000);
    assert_value(r, GPU_POWER, "gpu0", 300); /* of now, not of the last second */
    assert_value(r, GPU_POWER_LIMIT, "gpu0", 700);
    assert_value(r, GPU_ENERGY, "gpu0", 5);
    assert_value(r, GPU_TEMP, "gpu0", 41);
    assert_value(r, GPU_TEMP_MEM, "gpu0", 55);
    assert_value(r, GPU_CLOCK_SM, "gpu0", 1.98e9);
    assert_value(r, GPU_CLOCK_MEM, "gpu0", 3.201e9);
    assert_value(r, GPU_THROTTLE, "gpu0", 4);
    assert_value(r, GPU_ECC, "gpu0", 2);
    assert_value(r, GPU_CLOCK_MAX, "gpu0", 1.98e9);
    assert_value(r, GPU_PCIE_LINK, "gpu0", 0.25); /* a generation below, half the lanes */
    assert_unknown(r, GPU_PCIE_LINK, "gpu1");
    assert_unknown(r, GPU_OTHERS, "gpu0");
    assert_non_null(strstr(r->probes.told.data, "gpu0 is GPU-0\n"));
    assert_unknown(r, GPU_MEM_PROCESS, "gpu0"); /* nobody's is asked for */
}

static void rates_and_activity_need_two_readings(void **state)
{
    struct made_root *r = *state;
    root_open(r, "gpu", 0, false);
    assert_unknown(r, GPU_SM_ACTIVE, "gpu0");
    fake->pcie_tx = 1000000;
    fake->pcie_rx = 3000000;
    fake->energy_mj = 8000;
    nanosleep(&(struct timespec){0, 150000000}, NULL);
    r->probes.thorough = true;
    root_sample(r);
    double tx = VALUE(r, GPU_PCIE_TX, "gpu0"), rx = VALUE(r, GPU_PCIE_RX, "gpu0");
    assert_true(tx > 0 && tx <= 1000000 / 0.15 && fabs(rx / tx - 3) < 1e-6);
    assert_value(r, GPU_ENERGY, "gpu0", 8);
    assert_value(r, GPU_SM_ACTIVE, "gpu0", 0.2);
    assert_value(r, GPU_SM_OCCUPANCY, "gpu0", 0.3);
    assert_value(r, GPU_TENSOR, "gpu0", 0.5);
    assert_value(r, GPU_NVLINK_RX, "gpu0", 600 * 0x1p20);
    assert_value(r, GPU_NVLINK_TX, "gpu0", 610 * 0x1p20);
    assert_unknown(r, GPU_DRAM, "gpu0"); /* this card cannot tell */
    fake->pcie_tx = 5;                   /* wrapped */
    root_sample(r);
    assert_unknown(r, GPU_PCIE_TX, "gpu0");
    assert_unknown(r, GPU_SM_ACTIVE, "gpu0"); /* too soon to ask again, even now: not read is not known */
    unsigned calls = fake->slow_calls;
    r->probes.thorough = false;
    root_sample(r);
    assert_int_equal(fake->slow_calls, calls);
}

static void an_old_card_says_what_it_lacks(void **state)
{
    struct made_root *r = *state;
    root_open(r, "gpu", 0, false);
    assert_value(r, GPU_UTIL, "gpu1", 0.75);
    assert_value(r, GPU_POWER, "gpu1", 250.001); /* by the older call */
    assert_unknown(r, GPU_ENERGY, "gpu1");
    assert_unknown(r, GPU_ECC, "gpu1");
    assert_unknown(r, GPU_TENSOR, "gpu1");
    assert_blind(r, "gpu: gpu1 gpu.energy: Not Supported");
    assert_blind(r, "gpu: gpu1 gpu.tensor.active: Not Supported");
    assert_null(strstr(r->probes.blind.data, "gpu0 gpu.energy"));
}

static void an_old_library_will_do(void **state)
{
    struct made_root *r = *state;
    root_open(r, "gpu", 50, false);
    assert_value(r, GPU_UTIL, "gpu0", 0.75);
    assert_value(r, GPU_MEM_USED, "gpu0", 3000);
    assert_value(r, GPU_POWER, "gpu0", 250);
    assert_value(r, GPU_THROTTLE, "gpu0", 4);
    assert_unknown(r, GPU_ENERGY, "gpu0");
    assert_unknown(r, GPU_MEM_PROCESS, "gpu0");
    assert_blind(r, "gpu.energy");
}

static void memory_of_the_program_alone(void **state)
{
    struct made_root *r = *state;
    put_stat(r, 50, 1);
    put_stat(r, 60, 50);
    put_stat(r, 61, 60);
    put_stat(r, 70, 1);
    fake->n_processes = 3;
    memcpy(fake->pid, (unsigned[FAKE_PROCESSES]){50, 61, 70}, sizeof fake->pid);
    memcpy(fake->used, (unsigned long long[FAKE_PROCESSES]){100, 20, 4000}, sizeof fake->used);
    root_open(r, "gpu", 50, false);
    assert_value(r, GPU_MEM_PROCESS, "gpu0", 120);
    assert_value(r, GPU_MEM_PROCESS, "gpu1", 0);
    assert_value(r, GPU_OTHERS, "gpu0", 1);
    assert_value(r, GPU_OTHERS, "gpu1", 0);
    r->probes.thorough = true;  /* not only when it is its turn */
    fake->used[1] = UINT64_MAX; /* not available */
    root_sample(r);
    assert_unknown(r, GPU_MEM_PROCESS, "gpu0");
    fake->n_processes = 1;
    fake->pid[0] = 99999; /* a number of another namespace */
    root_sample(r);
    assert_value(r, GPU_MEM_PROCESS, "gpu0", 100);
    assert_value(r, GPU_OTHERS, "gpu0", 0);
    fake->n_processes = 2; /* which of the two? */
    fake->pid[1] = 99998;
    fake->used[1] = 1;
    root_sample(r);
    assert_value(r, GPU_MEM_PROCESS, "gpu0", 0);
    assert_unknown(r, GPU_OTHERS, "gpu0");
}

/* Of the calling process, also where the driver numbers it otherwise or does not tell whose memory is whose. */
static void memory_of_this_very_process(void **state)
{
    const struct made_root *r = *state;
    struct nvml nvml = {0};
    struct gpu_own own;
    fake->n_processes = 2;
    put_stat(*state, 70, 1);
    put_stat(*state, getpid(), 1);
    memcpy(fake->pid, (unsigned[FAKE_PROCESSES]){70, (unsigned)getpid()}, sizeof fake->pid);
    memcpy(fake->used, (unsigned long long[FAKE_PROCESSES]){4000, 120}, sizeof fake->used);
    gpu_own_read(&nvml, &own, r->path);
    assert_int_equal(own.n, 1);
    assert_int_equal(own.card[0].bytes, 120);
    assert_string_equal(own.why, "");
    fake->used[1] = UINT64_MAX;
    gpu_own_read(&nvml, &own, r->path);
    assert_int_equal(own.n, 0);
    assert_string_equal(own.why, "gpu0: the driver does not tell how much memory is whose");
    fake->n_processes = 1; /* alone: all that the card has in use */
    fake->pid[0] = (unsigned)getpid();
    fake->used[0] = UINT64_MAX;
    gpu_own_read(&nvml, &own, r->path);
    assert_int_equal(own.n, 1);
    assert_int_equal(own.card[0].bytes, 2000);
    fake->n_processes = 2; /* which of the two? */
    memcpy(fake->pid, (unsigned[FAKE_PROCESSES]){99998, 99999}, sizeof fake->pid);
    memcpy(fake->used, (unsigned long long[FAKE_PROCESSES]){10, 20}, sizeof fake->used);
    gpu_own_read(&nvml, &own, r->path);
    assert_int_equal(own.n, 0);
    assert_non_null(strstr(own.why, "otherwise"));
    fake->n_processes = 0;
    gpu_own_read(&nvml, &own, r->path);
    assert_true(own.n == 0 && !own.why[0]);
    nvml_close(&nvml);
}

static void a_split_card(void **state)
{
    struct made_root *r = *state;
    fake->mig = 2;
    root_open(r, "gpu", 0, false);
    assert_unknown(r, GPU_UTIL, "gpu0");
    assert_value(r, GPU_POWER, "gpu0", 300);
    assert_value(r, GPU_MEM_TOTAL, "gpu0/mig0", 20000);
    assert_value(r, GPU_MEM_USED, "gpu0/mig2", 2000);
    assert_unknown(r, GPU_MEM_USED, "gpu0/mig1");
    assert_unknown(r, GPU_POWER, "gpu0/mig0");
    assert_blind(r, "gpu0 gpu.utilization: Not Supported");
}

static void no_driver_and_no_card(void **state)
{
    struct made_root *r = *state;
    fake->init_code = 9;
    assert_int_equal(root_try(r, "gpu", 0, false), TARE_UNSUPPORTED);
    assert_non_null(strstr(r->err.text, "Driver Not Loaded"));
    fake->init_code = 0;
    fake->cards = 0;
    assert_int_equal(root_try(r, "gpu", 0, false), TARE_UNSUPPORTED);
    assert_non_null(strstr(r->err.text, "no GPU"));
}

/* What every document says of the machine. */
static void cards_of_a_host(void **state)
{
    const struct made_root *r = *state;
    struct run run;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    assert_int_equal(host_read(&run, r->path, NULL), TARE_OK);
    assert_int_equal(run.host.gpus.n, 2);
    const struct run_host_gpu *g = run.host.gpus.at[0];
    assert_int_equal(g->index.v, 0);
    assert_string_equal(g->name, "Made-up card 0");
    assert_string_equal(g->uuid, "GPU-0");
    assert_string_equal(g->driver, "580.1");
    assert_int_equal(g->memory_bytes.v, 80000);
    assert_null(run.host.gpus.at[1]->uuid);
    assert_null(run_reason(&run.host.unknown, "gpus"));
    run_release(&run);
}

static void a_host_whose_driver_is_not_loaded(void **state)
{
    const struct made_root *r = *state;
    struct run run;
    fake->init_code = 9;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    assert_int_equal(host_read(&run, r->path, NULL), TARE_OK);
    assert_int_equal(run.host.gpus.n, 0);
    assert_non_null(strstr(run_reason(&run.host.unknown, "gpus"), "Driver Not Loaded"));
    run_release(&run);
}

/* ---- NVML takes long to start, and a program does not wait ---- */

static void open_beside_a_program(struct made_root *r)
{
    struct probe_place at = {.root = r->path, .program = 50};
    put_stat(r, 50, 1);
    if (probes_open(&r->probes, NULL, 0, &at, &r->err) != TARE_OK) fail_msg("%s", r->err.text);
    r->opened = true;
    assert_true(probe_gpu_is_starting());
    root_sample(r);
    assert_unknown(r, GPU_UTIL, "gpu0");
}

static void let_go(void)
{
    __atomic_store_n(&fake->hold, 0, __ATOMIC_SEQ_CST);
    while (probe_gpu_is_starting()) usleep(1000);
}

static void await_news(struct made_root *r)
{
    struct pollfd news = {probes_news(&r->probes), POLLIN, 0};
    assert_true(news.fd >= 0);
    assert_int_equal(poll(&news, 1, 0), 0);
    let_go();
    assert_int_equal(poll(&news, 1, 20000), 1);
    root_sample(r);
    assert_int_equal(probes_news(&r->probes), -1);
}

static bool has_probe(const struct made_root *r, const char *name)
{
    for (size_t i = 0; i < r->probes.items.n; i++)
        if (strcmp(r->probes.items.items[i]->ops->name, name) == 0) return true;
    return false;
}

static void a_slow_start_is_not_waited_for(void **state)
{
    struct made_root *r = *state;
    fake->hold = 1;
    open_beside_a_program(r);
    assert_string_equal(r->probes.told.data, "");
    await_news(r);
    assert_value(r, GPU_UTIL, "gpu0", 0.75);
    assert_value(r, GPU_ENERGY, "gpu0", 5); /* counters begin here */
    assert_non_null(strstr(r->probes.told.data, "gpu0 is GPU-0\n"));
    assert_blind(r, "gpu: gpu1 gpu.energy: Not Supported");
}

/* The program has ended: nothing was read, and the thread is left to itself. */
static void a_start_that_comes_too_late(void **state)
{
    struct made_root *r = *state;
    fake->hold = 1;
    open_beside_a_program(r);
    r->probes.thorough = true;
    root_sample(r);
    assert_blind(r, "gpu: not read: NVML was still starting when the program ended");
    root_close(r);
    assert_true(probe_gpu_is_starting());
    let_go();
}

static void a_start_that_fails_later(void **state)
{
    struct made_root *r = *state;
    fake->hold = 1;
    fake->init_code = 9;
    open_beside_a_program(r);
    assert_true(has_probe(r, "gpu"));
    await_news(r);
    assert_blind(r, "gpu: NVML does not start: Driver Not Loaded");
    assert_false(has_probe(r, "gpu"));
    fake->init_code = 0;
}

#define INFORMATION(model, uuid) "Model: \t\t " model "\nIRQ:   \t\t 16\nGPU UUID: \t " uuid "\nBus Type: \t PCIe\n"

/* What the kernel lists is there while NVML still starts; names are the same before and after, and so is the
 * fingerprint. Where it does not name the cards, NVML is waited for. */
static void cards_by_the_kernels_list(void **state)
{
    struct made_root *r = *state;
    struct run run;
    char mark[RUN_FINGERPRINT_SIZE] = "";
    root_file(r, "/proc/driver/nvidia/gpus/0000:5d:00.0/information", INFORMATION("Listed card", "GPU-0"));
    root_file(r, "/proc/driver/nvidia/gpus/0000:9a:00.0/information", INFORMATION("Another", "GPU-????????"));
    root_file(r, "/sys/module/nvidia/version", "580.1\n");
    fake->hold = 1;
    open_beside_a_program(r);
    for (int late = 0; late < 2; late++) {
        assert_int_equal(run_init(&run, "run", NULL), TARE_OK);
        assert_int_equal(host_read(&run, r->path, NULL), TARE_OK);
        assert_int_equal(run.host.gpus.n, 2);
        const struct run_host_gpu *g = run.host.gpus.at[0];
        assert_string_equal(g->name, "Listed card");
        assert_string_equal(g->uuid, "GPU-0");
        assert_string_equal(g->driver, "580.1");
        assert_int_equal(g->memory_bytes.known, late);
        assert_string_equal(run.host.gpus.at[1]->name, "Another");
        assert_null(run.host.gpus.at[1]->uuid);
        assert_int_equal(run_reason(&run.host.unknown, "gpus.memory_bytes") != NULL, !late);
        if (late) assert_string_equal(mark, run.host.fingerprint);
        snprintf(mark, sizeof mark, "%s", run.host.fingerprint);
        run_release(&run);
        let_go();
    }
    root_file(r, "/proc/driver/nvidia/gpus/0000:9a:00.0/information", INFORMATION("Unknown", "GPU-????????"));
    assert_int_equal(run_init(&run, "run", NULL), TARE_OK);
    assert_int_equal(host_read(&run, r->path, NULL), TARE_OK);
    assert_int_equal(run.host.gpus.n, 2);
    assert_string_equal(run.host.gpus.at[0]->name, "Made-up card 0");
    run_release(&run);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_new, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_card_with_everything),
        TEST(rates_and_activity_need_two_readings),
        TEST(an_old_card_says_what_it_lacks),
        TEST(memory_of_the_program_alone),
        TEST(memory_of_this_very_process),
        TEST(a_split_card),
        TEST(no_driver_and_no_card),
        TEST(cards_of_a_host),
        TEST(a_host_whose_driver_is_not_loaded),
        TEST(a_slow_start_is_not_waited_for),
        TEST(a_start_that_comes_too_late),
        TEST(a_start_that_fails_later),
        TEST(cards_by_the_kernels_list),
        cmocka_unit_test_setup_teardown(an_old_library_will_do, set_up_old, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
