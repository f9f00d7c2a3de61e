# SPDX-License-Identifier: MIT
# tare's one Makefile. `make help` lists the targets; sources are found by wildcard, nothing is listed twice.
#   make                 build/tare, build/libtare.so, build/libtare.a
#   make FLAVOR=asan     the same under build/asan (also: tsan, debug, cov)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

CC      ?= gcc
ifeq ($(origin CC),default)
CC      := gcc
endif
FLAVOR  ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
PKG_CONFIG ?= pkg-config
VERSION := $(shell sed -n 's/^\#define TARE_VERSION "\(.*\)"/\1/p' include/tare/tare.h)
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null)

# ---- flavours ------------------------------------------------------------------------------------
O := $(if $(filter release,$(FLAVOR)),build,build/$(FLAVOR))
FLAGS_release := -O2 -g
FLAGS_debug   := -O0 -g3
FLAGS_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
FLAGS_cov     := -O0 -g --coverage
ifndef FLAGS_$(FLAVOR)
$(error FLAVOR=$(FLAVOR): choose release, debug, asan, tsan or cov)
endif

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual \
        -Wwrite-strings -Wformat=2 -Wundef -Wvla -Werror
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Isrc -DTARE_COMMIT='"$(COMMIT)"'
ALL_CFLAGS = -std=gnu11 $(WARN) $(FLAGS_$(FLAVOR)) -fPIC -fvisibility=hidden -pthread $(CFLAGS)
ALL_LDFLAGS = $(FLAGS_$(FLAVOR)) -pthread $(LDFLAGS)

# ---- what is built of what -----------------------------------------------------------------------
# The library: core and the recording half of trace, libc alone.
LIB_CORE  := error mem clock crc
LIB_TRACE := session live thread scope site weigh pack drain archive process env
LIB_SRC   := $(LIB_CORE:%=src/core/%.c) $(LIB_TRACE:%=src/trace/%.c)
CLI_SRC   := $(wildcard src/*/*.c)
TEST_SRC  := $(wildcard tests/unit/test_*.c)

LIB_OBJ   := $(LIB_SRC:%.c=$(O)/obj/%.o)
CLI_OBJ   := $(CLI_SRC:%.c=$(O)/obj/%.o)
INNER_OBJ := $(filter-out $(O)/obj/src/cli/main.o,$(CLI_OBJ))
TESTS     := $(TEST_SRC:tests/unit/%.c=$(O)/tests/%)

PKGS      := jansson libzstd
PKG_FLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS  := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)

.PHONY: all lib cli
all: lib cli
lib: $(O)/libtare.so $(O)/libtare.a
cli: $(O)/tare

$(O)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(PKG_FLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(O)/tare: $(CLI_OBJ)
	$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -ldl -o $@

$(O)/libtare.so: $(LIB_OBJ)
	$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libtare.so.0 -Wl,-z,defs -Wl,-z,nodelete $^ -o $@

# One partially linked object whose hidden symbols are local: only tare_* can collide with a user's names.
$(O)/libtare.a: $(LIB_OBJ)
	ld -r $^ -o $(O)/obj/libtare.o
	objcopy --localize-hidden $(O)/obj/libtare.o
	rm -f $@ && ar rcs $@ $(O)/obj/libtare.o

$(O)/tests/%: $(O)/obj/tests/unit/%.o $(INNER_OBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lcmocka -lm -ldl -o $@

-include $(CLI_OBJ:.o=.d) $(TEST_SRC:%.c=$(O)/obj/%.d)
