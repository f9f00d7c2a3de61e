/* SPDX-License-Identifier: MIT
 * fake_nvml.h - what a test can set in the library that stands in for NVIDIA's: find it with dlsym("fake_nvml"). */
#ifndef TESTS_FAKE_NVML_H
#define TESTS_FAKE_NVML_H

enum { FAKE_CARDS = 2, FAKE_PROCESSES = 4 };

struct fake_nvml {
    int init_code;        /* what starting gives */
    unsigned cards;       /* 0 to FAKE_CARDS; card 0 has everything, card 1 is an old one */
    unsigned mig;         /* card 0 is split into so many slices, with a gap after the first */
    unsigned n_processes; /* on card 0 */
    unsigned pid[FAKE_PROCESSES];
    unsigned long long used[FAKE_PROCESSES];
    unsigned long long energy_mj, pcie_tx, pcie_rx;
    unsigned long long throttle;
    int started;         /* starts less shutdowns */
    int gpm_samples;     /* allocated and not freed */
    unsigned slow_calls; /* of the ECC counter */
    int hold; /* starting waits until it is 0, and for the file FAKE_NVML_WAITS_FOR, then FAKE_NVML_MS */
};

#endif
