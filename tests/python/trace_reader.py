# SPDX-License-Identifier: MIT
"""A second reader of .tare files: docs/trace-format.md as Python, so that the page is proved and not only believed. Where
the page leaves a question open, fix the page. Plain and slow; nothing here may import or call tare."""

import glob
import os
import struct

MAGIC = b"\x89TARE\r\n\x1a"
PROCESS, SITES, THREAD, EVENTS, TREE, CLOCK, END, SERIES, SAMPLE, SAMPLE_MARK, PAUSES = range(1, 12)
SCOPE, COUNTER, MARK = range(3)
LIMIT = 1 << 20
LIVE_REGION = 8192


class Damaged(Exception):
    """A payload that breaks its own rules."""


# ---- CRC-32C ----

def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


CRC = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


# ---- bytes ----

class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def more(self):
        return self.at < len(self.data)

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Damaged("ends early")
        self.at += n
        return self.data[self.at - n:self.at]

    def uint(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                if value >> 64:
                    raise Damaged("a varint beyond 64 bits")
                return value
        raise Damaged("a varint without end")

    def int(self):
        value = self.uint()
        return value >> 1 ^ -(value & 1)

    def uints(self, n):
        return [self.uint() for _ in range(n)]

    def text(self):
        return bytes(self.take(self.uint())).decode("utf-8", "replace")

    def little(self, n):
        return int.from_bytes(self.take(n), "little")


# ---- what a trace holds ----

INFO = struct.Struct("<QQIIQQQIIII4I4I4I")
INFO_NAMES = ("uid parent_uid pid parent_pid start_time begun_raw_ns begun_unix_ns mode clock tsc site_base "
              "inside_p10 inside_p50 inside_p90 _ outside_p10 outside_p50 outside_p90 _ "
              "skipped_p10 skipped_p50 skipped_p90 _").split()
assert INFO.size == 112


class Process:
    def __init__(self, uid):
        self.uid, self.info, self.command = uid, None, ""
        self.sites = {}    # number -> (kind, name, file, line)
        self.threads = {}  # index -> dict
        self.trees = {}    # slot -> list of nodes
        self.chunks = {}   # thread index -> {seq: EventsChunk}
        self.pauses = {}   # (thread index, seq) -> {event: (number, waited)}
        self.pairs = []
        self.end = None
        self.series = {}   # number -> (metric, label)
        self.samples = []  # (raw ns, {series number: value})
        self.marks = []    # (raw ns, kind, text)


class EventsChunk:
    def __init__(self, depth, events):
        self.depth, self.events = depth, events  # events: (kind, flag, ticks, site number, value or text)


def bucket_range(code):
    octave, sub = divmod(code - 1, 16)
    if octave == 0:
        return sub, sub + 1
    low = (16 + sub) << (octave - 1)
    return low, low + (1 << (octave - 1))


def packed_event(c, place_site):
    """One token -> (kind, flag, difference, site, operand)."""
    token = c.take(1)[0]
    if not token & 0x80:
        size, place = (token >> 5) + 1, token & 31
        delta = c.little(size) if size < 4 else c.uint()
        return "begin", "", delta, place_site(c.uint() if place == 31 else place), None
    if not token & 0x40:
        return "end", "", c.little(token >> 4 & 3) << 4 | token & 15, 0, None
    op, delta = token & 63, c.uint()
    if op == 0:
        return "end", "", delta, 0, None
    if op == 1:
        return "begin", "weighed", delta, place_site(c.uint()), None
    if op == 2:
        return "count", "", delta, place_site(c.uint()), c.int()
    if op == 3:
        return "mark", "", delta, place_site(c.uint()), c.text()
    if op == 4:
        return "end", "abandoned", delta, 0, None
    raise Damaged("token %#x" % token)


def tree_node(c, number):
    node = dict(zip(("parent", "site", "kind", "count"), c.uints(4)))
    node.update(number=number, total=c.int(), min=c.int(), max=c.int())
    node.update(zip(("off_count", "off_total", "off_scopes", "abandoned", "batch_size"), c.uints(5)))
    node["batches"] = c.uints(c.uint())
    node["histogram"], last = {}, 0
    while code := c.uint():
        if code <= last or code > 48 * 16:
            raise Damaged("bucket %d" % code)
        node["histogram"][bucket_range(code)] = c.uint()
        last = code
    node["pairs"] = [c.uints(3) for _ in range(c.uint())]
    if len(node["batches"]) > 32 or len(node["pairs"]) > 512 or (number and node["parent"] >= number):
        raise Damaged("node %d" % number)
    return node


class Trace:
    """trace.processes by uid; damaged_bytes, unknown_chunks."""

    def __init__(self, path):
        self.processes = {}
        self.damaged_bytes = self.damaged_chunks = self.unknown_chunks = 0
        with open(path, "rb") as f:
            self.archive(f.read())
        for live in sorted(glob.glob(glob.escape(path) + ".live-*")):
            with open(live, "rb") as f:
                LiveFile(self, f.read())
        self.time0 = min(p.info["begun_raw_ns"] for p in self.processes.values() if p.info)

    def process(self, uid):
        return self.processes.setdefault(uid, Process(uid))

    # -- the archive --

    def archive(self, data):
        if data[:8] != MAGIC:
            raise ValueError("not a trace")
        major, self.minor, header_bytes, self.features = struct.unpack_from("<HHIQ", data, 8)
        if major != 1 or self.features & ~1:
            raise ValueError("version %d, features %#x" % (major, self.features))
        self.run_id = data[24:56].split(b"\0")[0].decode()
        at = header_bytes
        while at < len(data):
            size = self.chunk(data, at)
            if size:
                at += size
                continue
            start = at
            while at < len(data) and not self.intact(data, at):
                found = data.find(b"TCHK", at + 1)
                at = found if found >= 0 else len(data)
            self.damaged_bytes += at - start

    @staticmethod
    def intact(data, at):
        """(type, codec, stored, plain, process), or None."""
        if len(data) - at < 32:
            return None
        magic, kind, codec, _, stored, plain, process, crc, _ = struct.unpack_from("<IHBBIIQII", data, at)
        if magic != 0x4B484354 or stored > LIMIT or plain > LIMIT or stored > len(data) - at - 32:
            return None
        if codec == 0 and stored != plain:
            return None
        body = data[at + 32:at + 32 + stored]
        if crc32c(data[at:at + 24] + bytes(4) + data[at + 28:at + 32] + body) != crc:
            return None
        return kind, codec, stored, plain, process, body

    def chunk(self, data, at):
        found = self.intact(data, at)
        if not found:
            return 0
        kind, codec, stored, plain, process, body = found
        if codec == 1:
            import zstandard
            body = zstandard.ZstdDecompressor().decompress(body, max_output_size=plain)
            assert len(body) == plain
        handler = {PROCESS: self.on_process, SITES: self.on_sites, THREAD: self.on_thread, EVENTS: self.on_events,
                   TREE: self.on_tree, CLOCK: self.on_clock, END: self.on_end, SERIES: self.on_series,
                   SAMPLE: self.on_sample, SAMPLE_MARK: self.on_mark,
                   PAUSES: self.on_pauses}.get(kind)
        if not handler:
            self.unknown_chunks += 1
            return 32 + stored
        try:
            handler(self.process(process), Cursor(body))
        except Damaged:
            self.damaged_chunks += 1
        return 32 + stored

    # -- payloads --

    @staticmethod
    def on_process(p, c):
        info = dict(zip(INFO_NAMES, INFO.unpack(c.take(112))))
        command = c.text()
        if info["uid"] != p.uid:
            raise Damaged("a process under another's name")
        p.info, p.command = info, command

    @staticmethod
    def on_sites(p, c):
        while c.more():
            number, line, kind = c.uints(3)
            name = c.text()
            p.sites[number] = (kind, name, c.text(), line)

    @staticmethod
    def on_thread(p, c):
        index, slot, tid, threads, lost, abandoned, foreign = c.uints(7)
        t = p.threads.setdefault(index, {"threads": 0, "lost": 0, "abandoned": 0, "foreign": 0})
        t.update(slot=slot, tid=tid, name=c.text())
        if threads:
            t.update(threads=threads, lost=lost, abandoned=abandoned, foreign=foreign)

    @staticmethod
    def on_events(p, c):
        thread, seq, shift, depth, depth_after, n_events, now, span, n_sites = c.uints(9)
        sites, last = c.uints(n_sites), now + span

        def place_site(place):
            if place >= len(sites):
                raise Damaged("place %d" % place)
            return sites[place]

        events, depth_now = [], depth
        for _ in range(n_events):
            kind, flag, delta, site, operand = packed_event(c, place_site)
            now += delta
            events.append((kind, flag, now << shift, site, operand))
            depth_now += {"begin": 1, "end": -1 if depth_now else 0}.get(kind, 0)
        if now != last or depth_now != depth_after or shift > 16 or c.more():
            raise Damaged("events that do not add up")
        p.chunks.setdefault(thread, {})[seq] = EventsChunk(depth, events)

    @staticmethod
    def on_pauses(p, c):
        thread, seq = c.uints(2)
        event, told = 0, p.pauses.setdefault((thread, seq), {})
        while c.more():
            event += c.uint()
            number = c.uint()
            told[event] = (number >> 1, bool(number & 1))

    @staticmethod
    def on_tree(p, c):
        slot, number = c.uints(2)
        if number == 0:
            p.trees[slot] = []
        if number != len(p.trees.get(slot, [])):
            raise Damaged("nothing to hang node %d on" % number)
        while c.more():
            p.trees[slot].append(tree_node(c, number))
            number += 1

    @staticmethod
    def on_clock(p, c):
        p.pairs += [struct.unpack("<QQQII", c.take(32))[:3] for _ in range(c.uint())]

    @staticmethod
    def on_end(p, c):
        p.end = dict(zip(("closed", "lost_scopes", "lost_events", "damaged"), c.uints(4)))

    @staticmethod
    def on_series(p, c):
        while c.more():
            number = c.uint()
            metric = c.text()
            p.series[number] = (metric, c.text())

    @staticmethod
    def on_sample(p, c):
        at, values, number = c.uint(), {}, 0
        while c.more():
            number += c.uint()
            v = c.uint()
            if v & 3 == 3:
                values[number] = struct.unpack("<d", c.take(8))[0]
            else:
                n = v >> 2
                values[number] = (n >> 1 ^ -(n & 1)) / (1, 100, 1000000)[v & 3]
            number += 1
        if p.samples and at <= p.samples[-1][0]:
            raise Damaged("time that goes back")
        p.samples.append((at, values))

    @staticmethod
    def on_mark(p, c):
        at, kind = c.uints(2)
        p.marks.append((at, kind, c.text()))

    # -- names and time --

    def site(self, p, number):
        """(kind, name, file, line)"""
        while number not in p.sites:
            if number >= p.info["site_base"] or p.info["parent_uid"] not in self.processes:
                return None
            p = self.processes[p.info["parent_uid"]]
        return p.sites[number]

    @staticmethod
    def clean_pairs(p):
        kept = []
        for pair in sorted(p.pairs):
            if not kept or (pair[0] > kept[-1][0] and pair[1] > kept[-1][1]):
                kept.append(pair)
        return kept

    def tick_ns(self, p):
        if not p.info["tsc"]:
            return 1.0
        for q in [p] + [q for q in self.processes.values() if q.info and q.info["tsc"]]:
            pairs = self.clean_pairs(q)
            if len(pairs) > 1 and pairs[-1][1] - pairs[0][1] >= 100000:
                tick = (pairs[-1][1] - pairs[0][1]) / (pairs[-1][0] - pairs[0][0])
                if 0.01 < tick < 1000:
                    return tick
        raise ValueError("no clock")

    def time_ns(self, p, ticks):
        if not p.info["tsc"]:
            return max(0, ticks - self.time0)
        pairs = self.clean_pairs(p)
        i = max([k for k, pair in enumerate(pairs) if pair[0] <= ticks], default=0)
        slope = self.tick_ns(p)
        if i + 1 < len(pairs):
            slope = (pairs[i + 1][1] - pairs[i][1]) / (pairs[i + 1][0] - pairs[i][0])
        return max(0, pairs[i][1] - self.time0 + (ticks - pairs[i][0]) * slope)

    # -- answers --

    def events(self, p, thread):
        """Nested: (kind, flag, ticks, path of names, operand); ends of the reader's own making have flag "made up". Of
        what waits the flag is "pause N", "resume N" or, where the waiting is part of it, "resume N waited"."""
        stack, out, now = [], [], 0

        def end(flag, ticks):
            path = tuple(stack)
            if stack and stack.pop() is not None:
                out.append(("end", flag, ticks, path, None))

        chunks = p.chunks.get(thread, {})
        for seq in sorted(chunks):
            while len(stack) > chunks[seq].depth:
                end("made up", now)
            stack += [None] * (chunks[seq].depth - len(stack))
            told = p.pauses.get((thread, seq), {})
            for event, (kind, flag, now, number, operand) in enumerate(chunks[seq].events):
                if event in told:
                    flag = ("pause %d" if kind == "end" else "resume %d") % told[event][0] + " waited" * told[event][1]
                if kind == "end":
                    end(flag, now)
                    continue
                site = self.site(p, number)
                path = tuple(stack) + (site[1] if site else None,)
                if kind == "begin":
                    stack.append(path[-1])
                if site:
                    out.append((kind, flag, now, path, operand))
        while stack:
            end("made up", now)
        return out

    def paths(self, p, slot):
        """The tree of a slot: {path of names: node}."""
        names, out = [()], {}
        for node in p.trees[slot][1:]:
            path = names[node["parent"]] + (self.site(p, node["site"])[1],)
            names.append(path)
            out[path] = node
        return out


# ---- live files: read as the chunks they would have become ----

NODE = struct.Struct("<QQQQQIIIIIIQQQQIIQQQ48I32Q")
assert NODE.size == 576


class LiveFile:
    def __init__(self, trace, data):
        if data[:8] != b"TARELIV1" or struct.unpack_from("<H", data, 8)[0] != 1:
            return
        run_id = data[16:48].split(b"\0")[0].decode()
        info = dict(zip(INFO_NAMES, INFO.unpack_from(data, 48)))
        p = trace.process(info["uid"])
        if run_id != trace.run_id or p.end:
            return
        self.data, self.p, self.damaged = data, p, 0
        p.info = info
        p.command = data[2240:4288].split(b"\0")[0].decode("utf-8", "replace")
        used, lost_scopes, lost_events, _, n_pairs = struct.unpack_from("<QQQII", data, 160)
        self.extents(min(used, len(data)))
        p.pairs += [struct.unpack_from("<QQQ", data, 192 + 32 * i) for i in range(min(n_pairs, 64))]
        p.end = {"closed": 0, "lost_scopes": lost_scopes, "lost_events": lost_events, "damaged": self.damaged}

    def extents(self, used):
        at = LIVE_REGION
        while at + 64 <= used:
            magic, kind, _, size, thread, _, seq, spare0, spare1 = struct.unpack_from("<IHHQIIQQQ", self.data, at)
            if magic != 0x54584554 or size < 64 or size % 64 or size > used - at:
                self.damaged += 1
                return
            if kind == 1:
                self.sites(at, size)
            elif kind == 2 and spare1:
                self.slot(at + 64, thread)
            elif kind == 3 and seq:
                events = self.events(at + 64, (size - 64) // 16)
                self.p.pauses[(thread, seq)] = told = {}
                for i, e in reversed(list(enumerate(events))):  # a resume is taken out, and told of the event after it
                    if e[0] == "resume":
                        told = {k - (k > i): v for k, v in told.items()}
                        told[i] = (e[3], e[1] == "waited")
                        del events[i]
                    elif e[1] == "paused":
                        told[i] = (e[3], False)
                        events[i] = ("end", "", e[2], 0, None)
                self.p.pauses[(thread, seq)] = told
                if events:
                    self.p.chunks.setdefault(thread, {})[seq] = EventsChunk(spare0, events)
            at += size

    def sites(self, at, size):
        entry, end = at + 64, at + size
        while entry + 20 <= end:
            size, number, line, kind, name_bytes, file_bytes = struct.unpack_from("<IIIHHH", self.data, entry)
            if not size:
                return
            if size % 8 or size < 20 + name_bytes + file_bytes or size > end - entry:
                self.damaged += 1
                return
            name = self.data[entry + 18:entry + 18 + name_bytes].decode("utf-8", "replace")
            file = self.data[entry + 18 + name_bytes:entry + 18 + name_bytes + file_bytes].decode("utf-8", "replace")
            self.p.sites[number] = (kind, name, file, line)
            entry += size

    def events(self, at, slots):
        words = struct.unpack_from("<%dQ" % (2 * slots), self.data, at)
        out, i = [], 0
        while i < slots:
            ticks, what = words[2 * i], words[2 * i + 1]
            kind, flags, extra, n, site = what & 255, what >> 8 & 255, what >> 16 & 255, what >> 24 & 255, what >> 32
            fits = {1: 0, 2: 0, 3: 1, 4: (n + 7) // 8, 5: 0}.get(kind)
            if fits is None or extra != fits or i + extra >= slots:
                i += 1
                continue
            more = [words[2 * k + 1] for k in range(i + 1, i + 1 + extra)]
            operand = None
            if kind == 3:
                operand = more[0] - (1 << 64) if more[0] >> 63 else more[0]
            if kind == 4:
                operand = b"".join(w.to_bytes(8, "little") for w in more)[:n].decode("utf-8", "replace")
            flag = {(1, 1): "weighed", (2, 2): "abandoned", (2, 4): "paused", (5, 8): "waited"}.get((kind, flags), "")
            if ticks:
                out.append((("begin", "end", "count", "mark", "resume")[kind - 1], flag, ticks, site, operand))
            i += 1 + extra
        return sorted(out, key=lambda e: e[2])

    def slot(self, at, slot):
        root, threads, tid, index, lost, abandoned, foreign = struct.unpack_from("<IIIIQQQ", self.data, at)
        if not root:
            return
        given = struct.unpack_from("<I", self.data, at + 56)[0] * 64
        name = self.data[given:given + 64 * bool(given)].split(b"\0")[0] or self.data[at + 40:at + 56].split(b"\0")[0]
        name = name.decode("utf-8", "replace")
        self.p.threads.setdefault(index, {}).update(slot=slot, tid=tid, name=name, threads=threads, lost=lost,
                                                    abandoned=abandoned, foreign=foreign)
        self.p.trees[slot] = nodes = []
        todo, budget = [(root, 0)], len(self.data) // 576 + 1
        while todo:
            ref, parent = todo.pop()
            if ref * 64 < LIVE_REGION or ref * 64 + 576 > len(self.data) or len(nodes) >= budget:
                self.damaged += 1
                return
            node, child, sibling = self.node(ref * 64, parent, len(nodes))
            nodes.append(node)
            if sibling and node["number"]:
                todo.append((sibling, parent))
            if child:
                todo.append((child, node["number"]))

    def node(self, at, parent, number):
        v = NODE.unpack_from(self.data, at)
        node = dict(zip(("count", "total", "min", "max", "batch_next", "flags", "site"), v))
        child, sibling, node["kind"] = v[8], v[9], v[10]
        node.update(zip(("off_count", "off_total", "off_scopes", "abandoned"), v[11:15]))
        pairs, n_batches, node["batch_size"] = v[15:18]
        octaves, batches = v[20:68], v[68:100]
        node.update(parent=parent, number=number, batches=list(batches[:min(n_batches, 32)]), histogram={}, pairs=[])
        for key in ("total", "min", "max"):
            if node["kind"] == COUNTER and node[key] >> 63:
                node[key] -= 1 << 64
            if key != "total" and not node["count"]:
                node[key] = 0
        for octave, ref in enumerate(octaves):
            if not ref or ref * 64 + 128 > len(self.data):
                continue
            for sub, n in enumerate(struct.unpack_from("<16Q", self.data, ref * 64)):
                if n:
                    node["histogram"][bucket_range(1 + 16 * octave + sub)] = n
        if pairs and pairs * 64 + 8 + 512 * 12 <= len(self.data):
            seen = struct.unpack_from("<I", self.data, pairs * 64)[0]
            node["pairs"] = [list(struct.unpack_from("<III", self.data, pairs * 64 + 8 + 12 * i))
                             for i in range(min(seen, 512))]
        return node, child, sibling
