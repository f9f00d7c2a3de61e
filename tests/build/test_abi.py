# SPDX-License-Identifier: MIT
"""tools/check-abi fed with planted breaks: what is gone or moved is found, what is new is fine."""

import pytest
from test_tools import ROOT, load

abi = load("check-abi")
with open(ROOT + "/tests/golden/c-abi.txt", encoding="utf-8") as file:
    PROMISED = file.read().splitlines()


def changed(old, new):
    """The list of promises, as if the tree said `new` where it says `old`."""
    assert old in PROMISED
    return sorted(new if fact == old else fact for fact in PROMISED if fact != old or new)


def test_the_list_is_whole():
    """What a program can use is on it: each name of the header that begins a public declaration."""
    text = abi.text_of(ROOT)
    said = "\n".join(PROMISED)
    assert len([f for f in PROMISED if f.startswith("function ")]) == text.count("TARE_API ") - text.count("extern TARE_API ") - 1  # its #define
    for name in ("tare_node_", "tare_path_", "tare_frame_", "tare_thread_", "tare_error", "tare_options", "tare_site", "tare_scope"):
        assert f"struct {name} size" in said
    assert "field tare_node_.batch_next" in said and "field tare_node_.total" in said


@pytest.mark.parametrize("old, new", [
    ("symbol tare_begin", None),
    ("symbol tare_recording of 4", "symbol tare_recording of 8"),
    ("function tare_status tare_stop(tare_error *err)", "function tare_status tare_stop(void)"),
    ("macro tare_count(literal, n)", "macro tare_count(literal)"),
    ("constant TARE_BUSY -7", "constant TARE_BUSY -8"),
    ("field tare_site.kind at 20 of 4", "field tare_site.kind at 24 of 4"),
    ("struct tare_error size 512 align 4", "struct tare_error size 520 align 4"),
    ("struct tare_options size 48 align 8", "struct tare_options size 40 align 8"),
    ("field tare_options.mode at 16 of 4", None),
    ("field tare_thread_.run at 0 of 4", "field tare_thread_.run at 4 of 4"),
    ("constant TARE_DEPTH_ 1000", "constant TARE_DEPTH_ 2000"),
])  # fmt: skip
def test_breaks_are_found(old, new):
    broken, _ = abi.compare(PROMISED, changed(old, new))
    assert len(broken) == 1 and old in broken[0] and (new or "gone") in broken[0]


def test_what_is_new_is_fine():
    more = sorted(PROMISED + ["symbol tare_more", "function void tare_more(void)", "constant TARE_LATE -8"])
    assert abi.compare(PROMISED, more) == ([], ["constant TARE_LATE -8", "function void tare_more(void)", "symbol tare_more"])
    grown = changed("struct tare_options size 48 align 8", "struct tare_options size 56 align 8") + ["field tare_options.more at 48 of 8"]
    assert abi.compare(PROMISED, grown) == ([], ["field tare_options.more at 48 of 8"])


def test_layout_has_a_number():
    """What inline.h lays out changes with its number, and only with it."""
    moved = changed("field tare_thread_.run at 0 of 4", "field tare_thread_.run at 4 of 4") + ["field tare_thread_.more at 8 of 4"]
    broken, _ = abi.compare(PROMISED, moved)
    assert len(broken) == 2 and "TARE_LAYOUT_" in broken[1]
    moved[moved.index("constant TARE_LAYOUT_ 1")] = "constant TARE_LAYOUT_ 2"
    assert abi.compare(PROMISED, moved) == ([], ["constant TARE_LAYOUT_ 2"])


def test_parts_of_a_header():
    text = "typedef struct tare_x {\n    int a, b[3];\n    const char *c;\n} tare_x;\nenum tare_e { TARE_A = 1, TARE_B = 2 };\n" \
           "TARE_API int tare_f(int a,\n                    char *b) __attribute__((format(printf, 2, 3)));\n"
    assert abi.structs_of(text) == [("struct tare_x", "tare_x", ["a", "b", "c"])]
    assert abi.constants_of(text) == ["TARE_A", "TARE_B"]
    assert abi.functions_of(text) == ["function int tare_f(int a, char *b)"]
