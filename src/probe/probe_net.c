/* SPDX-License-Identifier: MIT
 * probe_net.c - network interfaces of the program's namespace, or ours: bytes, packets, errors of each, and TCP
 * segments sent again. The series without a label sums all but the loop-back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe/probe.h"
#include "probe/procfs.h"

enum { TEXT_BYTES = 32 << 10 };

struct net_probe {
    struct probe base;
    int dev, snmp;
    struct probe_turn tcp;
    char text[TEXT_BYTES];
};

enum { RX_BYTES, RX_PACKETS, RX_ERRORS, RX_DROPS, TX_BYTES = 8, TX_PACKETS, TX_ERRORS, TX_DROPS, COLUMNS };

enum { VALUES = 5 };
static const enum metric_id metrics[VALUES] = {METRIC_NET_RX, METRIC_NET_TX, METRIC_NET_RX_PACKETS,
                                               METRIC_NET_TX_PACKETS, METRIC_NET_ERRORS};

/* "  eth0: 1 2 3 ..." */
static bool put_interface(struct probe_put *put, const char *line, size_t n, double sum[VALUES])
{
    uint64_t v[COLUMNS];
    char label[64];
    while (n && *line == ' ') line++, n--;
    const char *colon = memrchr(line, ':', n); /* a name may hold one */
    const char *at = colon ? colon + 1 : NULL;
    for (int i = 0; at && i < COLUMNS; i++) at = procfs_number(at, &v[i]);
    if (!at) return false;
    procfs_label(label, sizeof label, line, (size_t)(colon - line));
    double values[VALUES] = {(double)v[RX_BYTES], (double)v[TX_BYTES], (double)v[RX_PACKETS],
                             (double)v[TX_PACKETS],
                             (double)(v[RX_ERRORS] + v[RX_DROPS] + v[TX_ERRORS] + v[TX_DROPS])};
    for (int i = 0; i < VALUES; i++) {
        probe_put(put, metrics[i], label, values[i]);
        sum[i] += strcmp(label, "lo") == 0 ? 0 : values[i];
    }
    return true;
}

static void put_interfaces(struct net_probe *p, struct probe_put *put)
{
    double sum[VALUES] = {0};
    unsigned seen = 0;
    if (procfs_read(p->dev, p->text, sizeof p->text) <= 0) return;
    for (const char *line = p->text; *line;) {
        size_t n = strcspn(line, "\n");
        seen += put_interface(put, line, n, sum);
        line += n + (line[n] == '\n');
    }
    for (int i = 0; i < VALUES && seen; i++) probe_put(put, metrics[i], "", sum[i]);
}

/* "Tcp: RtoAlgorithm ... RetransSegs ...\nTcp: 1 ... 7 ...\n": the second line has the values of the first's names. */
static void put_retransmits(struct net_probe *p, struct probe_put *put)
{
    uint64_t v;
    if (p->snmp < 0 || procfs_read(p->snmp, p->text, sizeof p->text) <= 0) return;
    const char *name = strstr(p->text, "\nTcp: ");
    const char *value = name ? strstr(name + 1, "\nTcp: ") : NULL;
    if (!value) return;
    for (name += 5, value += 5; *name == ' ' && *value == ' ';) {
        name++, value++;
        size_t n = strcspn(name, " \n");
        if (n == strlen("RetransSegs") && strncmp(name, "RetransSegs", n) == 0) {
            if (procfs_number(value, &v)) probe_put(put, METRIC_NET_RETRANSMITS, "", (double)v);
            return;
        }
        name += n;
        value += strcspn(value, " \n");
    }
}

static void net_sample(struct probe *base, struct probe_put *put)
{
    struct net_probe *p = (struct net_probe *)base;
    put_interfaces(p, put);
    if (probe_turn(&p->tcp, base->thorough, put->to->at_ns)) put_retransmits(p, put);
}

static void net_close(struct probe *base)
{
    struct net_probe *p = (struct net_probe *)base;
    procfs_close(&p->dev);
    procfs_close(&p->snmp);
}

/* The open file stays with the namespace, also when the program ends. */
static int open_net(const struct probe_place *at, const char *name)
{
    int fd = at->program ? procfs_open(at->root, "/proc/%d/net/%s", (int)at->program, name) : -1;
    return fd >= 0 ? fd : procfs_open(at->root, "/proc/net/%s", name);
}

static tare_status net_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct net_probe *p = (struct net_probe *)base;
    p->snmp = open_net(at, "snmp");
    if (p->snmp < 0)
        buf_printf(&base->blind, "TCP segments sent again: /proc/net/snmp: %s\n", strerror(errno));
    p->dev = open_net(at, "dev");
    if (p->dev < 0) return error_set(err, TARE_UNSUPPORTED, "/proc/net/dev: %s", strerror(errno));
    return TARE_OK;
}

const struct probe_ops probe_net = {
    "net", "bytes, packets and errors of each network interface",
    sizeof(struct net_probe), net_open, net_sample, net_close};
