# SPDX-License-Identifier: MIT
# tare's one Makefile. `make help` lists the targets; sources are found by wildcard, nothing is listed twice.
#   make                             build/tare, build/libtare.so, build/libtare.a
#   make FLAVOR=asan                 the same under build/asan (also: tsan, debug, cov, fuzz)
#   make CC=clang-14 O=build/clang   another compiler, in a folder of its own
#   make V=1                         show the commands

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

FLAVOR  ?= release
CLANG   ?= clang-14
CC      ?= gcc
ifeq ($(origin CC),default)
CC      := $(if $(filter fuzz,$(FLAVOR)),$(CLANG),gcc)
endif
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
PKG_CONFIG   ?= pkg-config
CLANG_TIDY   ?= clang-tidy-14
TIDY_NODES   ?= 50000
TIDY         := build/tidy$(TIDY_NODES:50000=)
FUZZ_SECONDS ?= 60
CUDA ?= /usr/local/cuda
VERSION := $(shell sed -n 's/^\#define TARE_VERSION "\(.*\)"/\1/p' include/tare/tare.h)
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
ABI     := 0
Q       := $(if $(V),,@)
say      = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))

# ---- flavours ------------------------------------------------------------------------------------
O := $(if $(filter release,$(FLAVOR)),build,build/$(FLAVOR))
FLAGS_release := -O2 -g
FLAGS_debug   := -O0 -g3
# -g1: names and lines, all that a sanitizer's report tells.
FLAGS_asan    := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_tsan    := -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer
FLAGS_cov     := -O0 -g --coverage
FLAGS_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# Without optimisation, or with code that sanitizers put in, gcc guesses wrong here; the release build warns of all.
ifeq ($(findstring clang,$(CC))$(filter release,$(FLAVOR)),)
WARN_LESS := -Wno-format-truncation -Wno-int-in-bool-context -Wno-maybe-uninitialized
endif
# A cross compiler brings its own ld and objcopy: CC=aarch64-linux-gnu-gcc O=build/aarch64 lib
CROSS := $(if $(filter %-gcc,$(CC)),$(CC:%gcc=%))
ifndef FLAGS_$(FLAVOR)
$(error FLAVOR=$(FLAVOR): choose release, debug, asan, tsan, cov or fuzz)
endif

WERROR ?= -Werror
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual \
        -Wwrite-strings -Wformat=2 -Wundef -Wvla $(WERROR) $(WARN_LESS)
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Isrc -I.
ALL_CFLAGS = -std=gnu11 $(WARN) $(FLAGS_$(FLAVOR)) -fPIC -fvisibility=hidden -pthread $(CFLAGS)
ALL_LDFLAGS = $(FLAGS_$(FLAVOR)) -pthread $(LDFLAGS)
# A library must name all it needs, except what a sanitizer's runtime brings with the program.
comma := ,
NO_UNDEFINED := $(if $(filter release debug,$(FLAVOR)),-Wl$(comma)-z$(comma)defs)

# ---- what is built of what -----------------------------------------------------------------------
# The library: core and the recording half of trace, libc alone.
LIB_CORE  := error mem clock crc
LIB_TRACE := session live thread scope site weigh pack fold drain archive archive_session process reserve pages env open_scopes
LIB_SRC   := $(LIB_CORE:%=src/core/%.c) $(LIB_TRACE:%=src/trace/%.c)
CLI_SRC   := $(wildcard src/*/*.c src/*/*/*.c)
TEST_SRC  := $(wildcard tests/unit/test_*.c)
# What needs more than libc to compile: everything else goes into the Python extension, as far as it is used there.
THIRD_SRC := $(shell grep -lE '^.include <(jansson|zstd|yaml|zlib|curl/|openssl/|sqlite3)' $(CLI_SRC)) $(wildcard src/store/*.c)
PURE_SRC  := $(filter-out $(THIRD_SRC) src/cli/% src/client/% src/http/% src/load/car% src/load/engine.c src/load/reply.c src/server/% src/subject/http_subject.c,$(CLI_SRC))
FUZZ_SRC  := $(wildcard fuzz/fuzz_*.c)

LIB_OBJ   := $(LIB_SRC:%.c=$(O)/obj/%.o)
# The library that is injected into CUDA programs: libc alone, and of core and trace what it uses.
GPU_OBJ   := $(patsubst %.c,$(O)/obj/%.o,$(wildcard gpu/*.c))
GPU_USES  := $(patsubst %,$(O)/obj/src/%.o,$(LIB_CORE:%=core/%) core/buf core/map core/arena trace/appender trace/gpu_pack \
             trace/archive trace/fold trace/pack trace/process)
# The library that is put in front of programs to see their allocations: libc alone, likewise.
AGENT_OBJ  := $(patsubst %.c,$(O)/obj/%.o,$(wildcard agent/*.c))
AGENT_USES := $(patsubst %,$(O)/obj/src/%.o,$(LIB_CORE:%=core/%) core/eh_frame trace/memory_pack trace/archive trace/fold trace/pack trace/process trace/reserve trace/pages)
# A hook finds its caller by its own frame.
$(AGENT_OBJ): CFLAGS += -fno-omit-frame-pointer -fno-optimize-sibling-calls -ftls-model=initial-exec
# llhttp, the HTTP parser: the system's, or the pinned source that `make deps` fetched; without it `tare serve` says so.
LLHTTP_DIR := third_party/llhttp
LLHTTP     := $(shell $(PKG_CONFIG) --exists 'libllhttp >= 9.2.1' 2>/dev/null && echo system || ls $(LLHTTP_DIR)/llhttp.h 2>/dev/null)
LLHTTP_OBJ := $(if $(filter $(LLHTTP_DIR)%,$(LLHTTP)),$(patsubst %,$(O)/obj/$(LLHTTP_DIR)/%.o,api http llhttp))
$(LLHTTP_OBJ): WARN := -w
CLI_OBJ   := $(CLI_SRC:%.c=$(O)/obj/%.o) $(LLHTTP_OBJ)
# All but main, for tests, benches and fuzzers; an archive, so that each links what it uses.
INNER     := $(O)/obj/inner.a
# What is only weakly referred to, no archive gives by itself: zstd for raw samples, where there is one.
$(O)/tests/% $(O)/fuzz/% $(O)/bench/% $(O)/helpers/%: private ALL_LDFLAGS += -Wl,-u,samples_squeeze
TESTS     := $(TEST_SRC:tests/unit/%.c=$(O)/tests/%)
FUZZERS   := $(FUZZ_SRC:fuzz/%.c=$(O)/fuzz/%)
REPLAYS   := $(FUZZ_SRC:fuzz/fuzz_%.c=$(O)/fuzz/replay_%)
SHARED    := libtare.so.$(VERSION)

# Unit tests that also run under ThreadSanitizer: what several threads touch.
TSAN_TESTS := test_loop test_ring test_extent test_hist test_mem test_ulid test_scope test_session test_threads test_load test_harness test_roof
# What they use of the tree: no more is compiled for them.
TSAN_USES  := core trace bench load run probe subject http tls server/net analyze/calls model/onnx model/profile
TESTED    := $(INNER)
ifeq ($(FLAVOR),tsan)
TESTED    := $(O)/obj/threads.a
endif
TSAN_BUILT := $(filter $(TSAN_TESTS:%=$(O)/tests/%),$(TESTS))

PKGS      := jansson libzstd yaml-0.1 zlib libcrypto sqlite3
# Only its header: loaded where an alert is posted, and nowhere else.
LOADED    := libcurl
# Only its header, where there is one: loaded by `tare serve --db`, which says so where it was built without.
LIBPQ     := $(shell $(PKG_CONFIG) --exists libpq 2>/dev/null && $(PKG_CONFIG) --cflags libpq)
LIBPQ     := $(LIBPQ:-I%=-isystem %)
# Only its headers, where there are some: loaded where names of native functions are looked up.
LIBDW     := $(shell $(PKG_CONFIG) --exists libdw 2>/dev/null && echo libdw)
# Only where there is one: https of `tare serve` and of `tare push`, which say so where they were built without.
LIBSSL    := $(shell $(PKG_CONFIG) --exists libssl 2>/dev/null && echo libssl)
PKG_FLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) $(LOADED) 2>/dev/null)
PKG_LIBS  := $(shell $(PKG_CONFIG) --libs $(PKGS) $(LIBSSL) $(filter libllhttp,$(LLHTTP:system=libllhttp)) 2>/dev/null)
MISSING   := $(shell for p in $(PKGS) $(LOADED); do $(PKG_CONFIG) --exists $$p 2>/dev/null || echo $$p; done)

.PHONY: all lib cli parts
all: parts lib cli ## build the command and the libraries (default)
lib: $(O)/libtare.so $(O)/libtare.a $(O)/libtare-gpu.so $(O)/libtare-agent.so ## build only the libraries, which need libc alone
cli: $(O)/tare ## build only the command

# One line per part that may be missing, so that nobody wonders later what a build can do.
parts:
	@printf 'tare %s, %s, %s, in %s\n' '$(VERSION)$(COMMIT:%= (%))' '$(CC)' '$(FLAVOR)' '$(O)'
	@with() { v=$$($(PKG_CONFIG) --modversion $$1 2>/dev/null) && printf '  with    %s %s: %s\n' $$1 $$v "$$2" || \
		printf '  without %s: no %s (make deps)\n' $$1 "$$2"; }; \
	tool() { command -v $$1 >/dev/null && printf '  with    %s: %s\n' $$1 "$$2" || \
		printf '  without %s: no %s (make deps)\n' $$1 "$$2"; }; \
	with jansson 'reading of run documents'; with libzstd 'compressed traces'; with yaml-0.1 'tare.yaml'; \
	with zlib 'compressed .npz inputs, .gz files of torch.profiler'; with libcrypto 'hashes of models'; with sqlite3 'the history'; \
	with libcurl 'web hooks'; \
	with cmocka 'unit tests'; \
	printf '  %s\n' '$(if $(LIBPQ),with    libpq: PostgreSQL for tare serve,without libpq: no PostgreSQL for tare serve (make deps))'; \
	printf '  %s\n' '$(if $(LIBDW),with    libdw: names of native functions,without libdw: no names of native functions (make deps))'; \
	printf '  %s\n' '$(if $(LIBSSL),with    libssl: https,without libssl: no https (make deps))'; \
	printf '  %s\n' '$(if $(LLHTTP),with    llhttp: tare serve,without llhttp: no tare serve (make deps))'; \
	tool $(CLANG) 'make fuzz'; tool $(CLANG_TIDY) 'make tidy'; tool npm 'report page (--html)'

.PHONY: need-packages
need-packages:
ifneq ($(MISSING),)
	@echo "$(MISSING): not found by $(PKG_CONFIG). Run \`make deps\`, which installs what tare needs." >&2; exit 1
endif

# Written anew only when its text changes, so that what depends on it is rebuilt exactly then.
FLAGS_TEXT = $(CC) $(CPPFLAGS) $(PKG_FLAGS) $(ALL_CFLAGS)
$(O)/obj/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(FLAGS_TEXT))' | cmp -s - $@ || echo '$(subst ','\'',$(FLAGS_TEXT))' >$@
$(O)/obj/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
# Where libtare-gpu.so will be, seen from the command: also after the whole tree was moved.
LIBDIR_FROM_BIN = $(shell realpath -m -s --relative-to=$(PREFIX)/bin $(LIBDIR))
$(O)/obj/libdir: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBDIR_FROM_BIN)' | cmp -s - $@ || echo '$(LIBDIR_FROM_BIN)' >$@
$(O)/obj/llhttp: FORCE
	@mkdir -p $(@D)
	@echo '$(LLHTTP)' | cmp -s - $@ || echo '$(LLHTTP)' >$@
.PHONY: FORCE
FORCE:

$(THIRD_SRC:%.c=$(O)/obj/%.o) $(O)/tare: | need-packages
$(O)/obj/%.o: %.c $(O)/obj/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(COMMIT_FLAG) $(PKG_FLAGS) $(ALL_CFLAGS) $(BANNED) -MMD -MP -c $< -o $@
# What our own sources may not call; the gate to malloc must, and tests may.
$(O)/obj/src/%.o $(O)/obj/gpu/%.o $(O)/obj/agent/%.o: BANNED = -include core/banned.h
$(O)/obj/agent/hooks.o: BANNED =
$(O)/obj/src/core/mem.o: BANNED =

$(O)/obj/libpq: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBPQ)' | cmp -s - $@ || echo '$(LIBPQ)' >$@
$(O)/obj/src/store/postgres_conn.o: $(O)/obj/libpq
$(O)/obj/src/store/postgres_conn.o $(TIDY)/src/store/postgres_conn.ok: CPPFLAGS += $(if $(LIBPQ),-DWITH_LIBPQ $(LIBPQ))

$(O)/obj/libssl: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBSSL)' | cmp -s - $@ || echo '$(LIBSSL)' >$@
$(O)/obj/src/tls/tls.o: $(O)/obj/libssl
$(O)/obj/src/tls/tls.o $(TIDY)/src/tls/tls.ok: CPPFLAGS += $(LIBSSL:libssl=-DWITH_TLS)

$(O)/obj/libdw: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBDW)' | cmp -s - $@ || echo '$(LIBDW)' >$@
$(O)/obj/src/symbol/symbol_read.o: $(O)/obj/libdw
$(O)/obj/src/symbol/symbol_read.o $(TIDY)/src/symbol/symbol_read.ok: CPPFLAGS += $(LIBDW:libdw=-DWITH_LIBDW)

$(O)/obj/src/http/http_parse.o: $(O)/obj/llhttp
$(O)/obj/src/http/http_parse.o $(TIDY)/src/http/http_parse.ok: CPPFLAGS += $(if $(LLHTTP),-DWITH_LLHTTP -isystem $(LLHTTP_DIR))

# Only the files that name the commit are compiled again when it changes.
COMMIT_OBJ := $(patsubst %.c,$(O)/obj/%.o,$(shell grep -l TARE_COMMIT $(CLI_SRC) /dev/null))
$(COMMIT_OBJ): $(O)/obj/commit
$(COMMIT_OBJ): COMMIT_FLAG = -DTARE_COMMIT='"$(COMMIT)"'
$(O)/obj/src/cli/cmd_version.o: COMMIT_FLAG += -DTARE_FLAGS='"$(strip $(subst ",,$(filter-out -ffile-prefix-map=% --sysroot=% -W% -w -L% -l%,$(ALL_CFLAGS) $(LDFLAGS))))"'
$(O)/obj/src/probe/gpu_record.o: $(O)/obj/libdir
$(O)/obj/src/probe/gpu_record.o: COMMIT_FLAG = -DTARE_LIBDIR='"$(LIBDIR_FROM_BIN)"'
# The words of `python -m tare` and their help: the table of the package is the one list.
$(O)/obj/python_words.inc: python/tare/__main__.py
	@mkdir -p $(@D)
	$(Q)sed -n 's/^    \("[a-z-]*"\): ("[^"]*", \("[^"]*"\)),$$/{\1, \2},/p' $< >$@
$(O)/obj/src/cli/cmd_python.o: $(O)/obj/python_words.inc
$(O)/obj/src/cli/cmd_python.o: COMMIT_FLAG = -DPYTHON_WORDS='"$(O)/obj/python_words.inc"'

# ---- the report page -----------------------------------------------------------------------------
# One HTML file out of web/, compressed into the binary. Without node, or where its packages cannot be installed, nothing
# is embedded, everything else is built, and --html says what is missing. A page that does not compile is an error.
NODE    := $(and $(shell command -v node),$(shell command -v npm))
WEB_SRC := web/build.mjs web/package-lock.json $(shell find web/src -type f 2>/dev/null)
web/node_modules/.stamp: web/package-lock.json
	$(call say,NPM,web/node_modules)
	$(Q)rm -f $@
	$(Q)cd web && npm ci --silent --no-audit --no-fund >/dev/null && cksum <package-lock.json >node_modules/.stamp || \
		echo '  without the report page: npm could not install the packages of web/package-lock.json' >&2
$(O)/page.html: $(WEB_SRC) web/node_modules/.stamp
	$(call say,PAGE,$@)
	@mkdir -p $(@D)
	$(Q)if [ -f web/node_modules/.stamp ]; then node web/build.mjs page $@; else rm -f $@; : >$@; fi
# What the binary holds, in one folder: the viewer, and the page of the server with its script and style sheet.
PAGES := $(O)/obj/pages
$(PAGES)/page.html.gz: $(if $(NODE),$(O)/page.html)
	@mkdir -p $(@D)
	$(Q)if [ -s '$<' ]; then gzip -9nc '$<' >$@; else : >$@; fi
$(PAGES)/app.html.gz: $(if $(NODE),$(WEB_SRC) web/node_modules/.stamp)
	@mkdir -p $(@D)
	$(Q)if [ -n '$(NODE)' ] && [ -f web/node_modules/.stamp ]; then node web/build.mjs app $(@D); \
		else for f in html js css; do : >$(@D)/app.$$f.gz; done; fi
$(O)/obj/src/report/page_embed.o: $(PAGES)/page.html.gz $(PAGES)/app.html.gz
$(O)/obj/src/report/page_embed.o: CPPFLAGS += -DPAGE_FILES='"$(PAGES)"'
.PHONY: page
page: $(PAGES)/page.html.gz $(PAGES)/app.html.gz ## build only the report page, build/page.html, and the server's pages

$(O)/obj/threads.a: $(patsubst %.c,$(O)/obj/%.o,$(wildcard $(TSAN_USES:%=src/%/*.c))) $(LLHTTP_OBJ)
$(INNER): $(filter-out $(O)/obj/src/cli/main.o,$(CLI_OBJ)) $(GPU_OBJ)
$(INNER) $(O)/obj/threads.a:
	$(Q)rm -f $@ && ar rcsT $@ $^

$(O)/tare: $(CLI_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -ldl -o $@

$(O)/$(SHARED): $(LIB_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libtare.so.$(ABI) $(NO_UNDEFINED) -Wl,-z,nodelete $^ -o $@

$(O)/libtare.so: $(O)/$(SHARED)
	$(Q)ln -sf $(SHARED) $(O)/libtare.so.$(ABI)
	$(Q)ln -sf libtare.so.$(ABI) $@

# Only what drivers call in by is visible.
$(O)/libtare-gpu.so: $(GPU_OBJ) $(GPU_USES) gpu/exports.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libtare-gpu.so -Wl,--version-script=gpu/exports.map $(NO_UNDEFINED) \
		-Wl,-z,nodelete $(filter %.o,$^) -ldl -o $@

# What programs call in place of libc's, and nothing else.
$(O)/libtare-agent.so: $(AGENT_OBJ) $(AGENT_USES) agent/exports.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libtare-agent.so -Wl,--version-script=agent/exports.map $(NO_UNDEFINED) \
		-Wl,-z,nodelete $(filter %.o,$^) -ldl -o $@

# One partially linked object whose hidden symbols are local: only tare_* can collide with a user's names.
$(O)/libtare.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)$(CROSS)ld -r $^ -o $(O)/obj/libtare.o
	$(Q)$(CROSS)objcopy --localize-hidden $(O)/obj/libtare.o
	$(Q)rm -f $@ && ar rcs $@ $(O)/obj/libtare.o

# ---- the Python package --------------------------------------------------------------------------
# build/python/<tag>/tare is the package as it will be installed: our .py files as links, the extension, libtare, the command
# with the libraries it needs. `PYTHONPATH=build/python/<tag>` is enough to use it; setup.py packs it.
PYTHON  ?= python3
PY_ASK  := import sys, sysconfig as s; print(sys.implementation.cache_tag, s.get_config_var("EXT_SUFFIX"), s.get_path("include"))
PY_SAID := $(if $(filter python python-%,$(MAKECMDGOALS)),$(shell $(PYTHON) -c '$(PY_ASK)'))
PY_TAG  := $(word 1,$(PY_SAID))
PY_TREE := $(O)/python/$(PY_TAG)/tare
PY_RPATH = -Wl,-rpath,'$$ORIGIN/_lib'
PY_SRC  := $(wildcard python/_tare/*.c)
PY_OBJ  := $(PY_SRC:%.c=$(O)/obj/$(PY_TAG)/%.o)
PY_EXT  := $(PY_TREE)/_tare$(word 2,$(PY_SAID))

.PHONY: python
python: $(PY_EXT) $(if $(MISSING),,$(PY_TREE)/_bin/tare) $(if $(NODE),$(PY_TREE)/page.html) ## build the Python package for PYTHON (default: python3)
	$(Q)ln -sf $(abspath $(wildcard python/tare/*.py python/tare/*.pyi) python/tare/py.typed) $(PY_TREE) && find $(PY_TREE) -name '*.py*' -xtype l -delete
	$(if $(MISSING),@echo 'python: without the command tare: no $(MISSING) (make deps)' >&2)

# CPython's API takes names of arguments as plain char *.
$(O)/obj/$(PY_TAG)/%.o: %.c $(O)/obj/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) -isystem $(word 3,$(PY_SAID)) $(ALL_CFLAGS) -Wno-write-strings $(PY_FLAGS) -include core/banned.h -MMD -MP -c $< -o $@

# Without the parts that record: they are libtare's, of which a process has one. (Not every linker would take them from there first.)
PY_SHARED := $(patsubst %,src/trace/%.c,env scope session site thread)
$(O)/obj/pure.a: $(patsubst %.c,$(O)/obj/%.o,$(filter-out $(PY_SHARED),$(PURE_SRC)))
	$(Q)rm -f $@ && ar rcs $@ $^

# libtare stays shared: scopes of Python and of C libraries in one process go to one trace.
$(PY_EXT): $(PY_OBJ) $(O)/obj/pure.a $(O)/libtare.so $(O)/libtare-gpu.so $(O)/libtare-agent.so
	@mkdir -p $(PY_TREE)/_lib
	$(call say,LINK,$@)
	$(Q)cp --remove-destination $(O)/$(SHARED) $(PY_TREE)/_lib/libtare.so.$(ABI)
	$(Q)cp --remove-destination $(O)/libtare-gpu.so $(PY_TREE)/_lib/libtare-gpu.so
	$(Q)cp --remove-destination $(O)/libtare-agent.so $(PY_TREE)/_lib/libtare-agent.so
	$(Q)$(CC) $(ALL_LDFLAGS) -shared $(PY_OBJ) -L$(O) -ltare $(O)/obj/pure.a -lm -ldl -Wl,-z,now \
		-Wl,--version-script=python/exports.map $(PY_RPATH) -o $@.new
	$(Q)mv -f $@.new $@

$(PY_TREE)/page.html: $(O)/page.html
	@mkdir -p $(@D)
	$(Q)cp $< $@

# The command finds the libraries that travel with it, whatever the machine has.
$(PY_TREE)/_bin/tare: $(CLI_OBJ)
	@mkdir -p $(@D) $(PY_TREE)/_lib
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(filter release,$(FLAVOR)),-s) $^ $(PKG_LIBS) -lm -ldl -Wl,-rpath,'$$ORIGIN/../_lib' -o $@.new
	$(Q)mv -f $@.new $@ && tools/carry-libs $@ $(PY_TREE)/_lib

# ---- tests ---------------------------------------------------------------------------------------
.PHONY: deps test test-all soak bless tests tsan-tests replays
deps: ## install what building and testing needs (idempotent; root or sudo)
	@tools/deps

test: ## everything CI runs; S="unit cli" only these suites
	@tools/deps --quiet
	@tools/run-tests $(if $(ONCE),--once) $(if $(SLOWEST),--slowest) $(S)

test-all: ## the same and the slow ones: fuzzing, valgrind, clang
	@tools/deps --quiet all
	@tools/run-tests --all $(if $(ONCE),--once) $(if $(SLOWEST),--slowest) $(S)

soak: all ## hours: hundreds of kills, 100 rounds of tsan, 20 minutes of fuzzing a parser (SOAK_KILLS, SOAK_ROUNDS, SOAK_SECONDS, SOAK_BATCHES)
	@SOAK_KILLS='$(SOAK_KILLS)' SOAK_ROUNDS='$(SOAK_ROUNDS)' SOAK_SECONDS='$(SOAK_SECONDS)' SOAK_BATCHES='$(SOAK_BATCHES)' tools/soak

bless: cli ## rewrite the expected output of the golden tests T=report/text (default: all)
	@tools/run-cli-tests --bless $(T)

# A runtime of known behaviour, loaded by tests in place of ONNX Runtime; and programs that Python tests drive.
FAKE_ORT := $(O)/tests/libonnxruntime.so.1.99.0
$(FAKE_ORT): tests/fake_ort/fake_ort.c tests/fake_ort/fake_model.c tests/fake_ort/fake_ort.h
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=gnu11 $(WARN) -D_GNU_SOURCE -O1 -g -fPIC -fvisibility=hidden -shared -pthread $(filter %.c,$^) -o $@

# The same for NVIDIA's library, an up-to-date one and an old one.
FAKE_NVML := $(O)/tests/libnvidia-ml.so.1 $(O)/tests/libnvidia-ml-old.so.1
$(O)/tests/libnvidia-ml-old.so.1: FAKE_OLD = -DFAKE_OLD
$(FAKE_NVML): tests/fake_nvml/fake_nvml.c tests/fake_nvml/fake_nvml.h
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=gnu11 $(WARN) -D_GNU_SOURCE $(FAKE_OLD) -O1 -g -fPIC -fvisibility=hidden -shared $< -o $@
$(O)/tests/test_probe_gpu: | $(FAKE_NVML)

# Only this test looks at the vendor's header, where there is one: no other part of the build needs it.
$(O)/obj/tests/unit/test_cupti.o: CPPFLAGS += $(if $(wildcard $(CUDA)/include/cupti.h),-isystem $(CUDA)/include)

# A libcupti, and a program that loads what is injected as the driver would.
FAKE_CUPTI := $(O)/tests/libfake-cupti.so $(O)/tests/libfake-cupti-old.so $(O)/tests/cuda-program
$(O)/tests/libfake-cupti-old.so: FAKE_OLD = -DFAKE_OLD
$(O)/tests/libfake-cupti.so $(O)/tests/libfake-cupti-old.so: tests/fake_cupti/fake_cupti.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=gnu11 $(WARN) -D_GNU_SOURCE $(FAKE_OLD) $(FLAGS_$(FLAVOR)) -pthread -fPIC -fvisibility=hidden -shared $< -o $@
$(O)/tests/cuda-program: tests/fake_cupti/program.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=gnu11 $(WARN) -D_GNU_SOURCE $(FLAGS_$(FLAVOR)) -pthread $< -ldl -o $@

# A server of known behaviour, to which tests of the load client hold their numbers.
REF_SERVER := $(O)/tests/ref-server
$(REF_SERVER): $(wildcard tests/http/*.c) tests/http/ref_server.h
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=gnu11 $(WARN) -D_GNU_SOURCE $(FLAGS_$(FLAVOR)) $(filter %.c,$^) -lm -o $@

$(O)/helpers/%: $(O)/obj/tests/python/%.o $(INNER)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -ldl -o $@

tests: $(TESTS) $(FAKE_ORT) $(FAKE_NVML) $(FAKE_CUPTI) $(REF_SERVER)
tsan-tests: $(TSAN_BUILT)
replays: $(REPLAYS)
.PHONY: list-tests list-tsan-tests list-replays list-libraries
list-libraries: ; @echo $(PKG_LIBS) -lm -ldl
list-tests: ; @printf '%s\n' $(TESTS)
list-tsan-tests: ; @printf '%s\n' $(TSAN_BUILT)
list-replays: ; @printf '%s\n' $(REPLAYS)

$(O)/tests/%: $(O)/obj/tests/unit/%.o $(TESTED)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lcmocka -lm -ldl -o $@

$(O)/fuzz/replay_%: $(O)/obj/fuzz/fuzz_%.o $(O)/obj/fuzz/replay.o $(INNER)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -ldl -o $@

$(O)/fuzz/fuzz_%: $(O)/obj/fuzz/fuzz_%.o $(INNER)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer $^ $(PKG_LIBS) -lm -ldl -o $@

# ---- fuzzing: what it finds is kept under build/fuzz/found, what is worth keeping goes to fuzz/corpus -------
.PHONY: fuzz fuzzers
fuzz: ## fuzz each parser for FUZZ_SECONDS (clang-14)
	@$(MAKE) --no-print-directory FLAVOR=fuzz CC=$(CLANG) fuzzers
	@tools/fuzz $(FUZZ_SECONDS) $(T)
fuzzers: $(FUZZERS)

# ---- checks --------------------------------------------------------------------------------------
# One stamp per file under build/tidy: only what changed, or includes what changed, is looked at again.
# TIDY_NODES: how far the analyzer follows one function. A quarter of its own limit reaches all blocks of code but one in 350, in a
# third of the time (20 files, by its own statistics); `make test-all` lets it go all the way.
TIDY_STAMPS := $(CLI_SRC:%.c=$(TIDY)/%.ok)
.PHONY: tidy format check-format
tidy: $(TIDY_STAMPS) ## clang-tidy over src/, incremental
$(TIDY)/src/core/error.ok: TIDY_KNOWS =
TIDY_KNOWS = -include tools/tidy.h
$(TIDY)/%.ok: %.c .clang-tidy tools/tidy.h
	@mkdir -p $(@D)
	$(call say,TIDY,$<)
	@$(CC) $(CPPFLAGS) -DTARE_COMMIT='""' $(PKG_FLAGS) -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	$(Q)$(CLANG_TIDY) --quiet $(TIDY_NODES:%=--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=%) $< -- $(CPPFLAGS) -DTARE_COMMIT='""' $(PKG_FLAGS) -std=gnu11 \
		$(filter-out $(WERROR),$(WARN)) $(TIDY_KNOWS) -pthread 2>$@.err || { cat $@.err >&2; exit 1; }
	@rm -f $@.err && touch $@

format: ## format all C files
	@tools/format
check-format:
	@tools/format --check

# ---- demo, bench ---------------------------------------------------------------------------------
DEMO_JOBS ?= $(shell nproc 2>/dev/null || echo 2)
.PHONY: demo bench pictures
generate: ## rewrite what is made from the lists of fields: schemas, types of the page, tables of docs/run-document.md
	$(Q)tools/generate-documents

demo: ## from nothing to a first report: installs what that needs, builds, weighs a model, traces a program
	@tools/demo --announce $(O)
	@tools/deps --quiet demo
	@$(MAKE) --no-print-directory -j$(DEMO_JOBS) all
	@tools/demo $(O)

.PHONY: docs
docs: ## the documentation as a static site, build/docs/index.html: plain pages with a search, no network
	@python3 tools/site/build.py $(O)/docs

pictures: ## the pictures of README, anew, of what `make demo` measured (node, chromium)
	@$(O)/tare report $(O)/demo/transformer.tare --html $(O)/demo/transformer.html
	@node tools/pictures.mjs $(O)/demo/report.html $(O)/demo/transformer.html docs/pictures

bench: all benches ## our own cost against the alternatives, as ratios; T="scope_cost weigh" only these
	@bench/run $(O) $(T)

# Each bench is one program over all of src but main; scope_cost also exists over the shared library.
BENCH_SRC := $(wildcard bench/*.c)
BENCHES   := $(BENCH_SRC:bench/%.c=$(O)/bench/%) $(O)/bench/scope_cost_shared
.PHONY: benches
benches: $(BENCHES) $(REF_SERVER)
$(O)/obj/bench/%.o: CPPFLAGS += -DVIA='"static"'
$(O)/bench/%: $(O)/obj/bench/%.o $(INNER)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -ldl -o $@
$(O)/bench/scope_cost_shared: bench/scope_cost.c bench/batch.h $(O)/libtare.so $(O)/obj/src/core/clock.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) -DVIA='"shared"' $(ALL_CFLAGS) $< $(O)/obj/src/core/clock.o -L$(O) -ltare -Wl,-rpath,$(abspath $(O)) -lm -o $@

# ---- install -------------------------------------------------------------------------------------
BINS := $(DESTDIR)$(PREFIX)/bin
LIBS := $(DESTDIR)$(LIBDIR)
INCS := $(DESTDIR)$(PREFIX)/include/tare
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/system
MANS  := $(DESTDIR)$(PREFIX)/share/man/man1
CMAKE := $(LIBS)/cmake/tare
COMPLETIONS := bash:bash-completion/completions/tare zsh:zsh/site-functions/_tare fish:fish/vendor_completions.d/tare.fish
MAN_PAGES := tare.1 $(patsubst docs/cli/%.md,%.1,$(wildcard docs/cli/tare-*.md))
FILL  := sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@ABI@|$(ABI)|' \
         -e 's|@ROOT_FROM_CMAKE@|$(shell realpath -m -s --relative-to=$(LIBDIR)/cmake/tare $(PREFIX))|'
.PHONY: man install uninstall clean help
man: $(O)/man/tare.1 ## make the man pages, build/man, of docs/cli
$(O)/man/tare.1: tools/man include/tare/tare.h $(wildcard docs/cli/tare-*.md)
	$(call say,MAN,$(@D))
	$(Q)rm -rf $(@D) && tools/man '$(VERSION)' $(@D)

install: all man ## install under PREFIX (default /usr/local), staged in DESTDIR
	install -d $(BINS) $(LIBS)/pkgconfig $(INCS) $(UNITS) $(MANS) $(CMAKE)
	install -m 755 $(O)/tare $(BINS)/tare
	install -m 644 $(O)/libtare.a $(LIBS)/libtare.a
	install -m 755 $(O)/$(SHARED) $(LIBS)/$(SHARED)
	install -m 755 $(O)/libtare-gpu.so $(LIBS)/libtare-gpu.so
	install -m 755 $(O)/libtare-agent.so $(LIBS)/libtare-agent.so
	ln -sf $(SHARED) $(LIBS)/libtare.so.$(ABI)
	ln -sf libtare.so.$(ABI) $(LIBS)/libtare.so
	install -m 644 include/tare/tare.h include/tare/inline.h $(INCS)
	$(FILL) tare.pc.in >$(LIBS)/pkgconfig/tare.pc
	$(FILL) packaging/cmake/tare-config.cmake.in >$(CMAKE)/tare-config.cmake
	$(FILL) packaging/cmake/tare-config-version.cmake.in >$(CMAKE)/tare-config-version.cmake
	$(FILL) packaging/tare-serve.service.in >$(UNITS)/tare-serve.service
	install -m 644 packaging/tare-serve.socket $(UNITS)
	install -m 644 $(MAN_PAGES:%=$(O)/man/%) $(MANS)
	for c in $(COMPLETIONS); do to=$(DESTDIR)$(PREFIX)/share/$${c#*:}; install -d "$${to%/*}" && \
		$(O)/tare completion "$${c%%:*}" >"$$to" && chmod 644 "$$to" || exit 1; done
	chmod 644 $(LIBS)/pkgconfig/tare.pc $(UNITS)/tare-serve.service $(CMAKE)/*.cmake
	$(if $(DESTDIR),,-ldconfig 2>/dev/null || true)

.PHONY: dist deb
dist: ## portable wheels, the source package and Debian packages, into dist/; the same commit gives the same bytes
	@packaging/dist
	@if command -v dpkg-shlibdeps >/dev/null; then packaging/deb/build; else echo 'dist: no Debian packages: no dpkg-dev here' >&2; fi

deb: ## only the Debian packages, for this Debian and its python3
	@packaging/deb/build

uninstall: ## remove what install put there
	rm -f $(BINS)/tare $(LIBS)/libtare.a $(LIBS)/$(SHARED) $(LIBS)/libtare-gpu.so $(LIBS)/libtare-agent.so $(LIBS)/libtare.so.$(ABI) $(LIBS)/libtare.so
	rm -f $(LIBS)/pkgconfig/tare.pc $(INCS)/tare.h $(INCS)/inline.h $(UNITS)/tare-serve.service $(UNITS)/tare-serve.socket
	rm -f $(CMAKE)/tare-config.cmake $(CMAKE)/tare-config-version.cmake $(MAN_PAGES:%=$(MANS)/%)
	rm -f $(foreach c,$(COMPLETIONS),$(DESTDIR)$(PREFIX)/share/$(lastword $(subst :, ,$(c))))
	-rmdir $(INCS) $(CMAKE) 2>/dev/null || true

clean: ## remove build/
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

-include $(PY_OBJ:.o=.d) $(BENCH_SRC:%.c=$(O)/obj/%.d) $(patsubst %.c,$(O)/obj/%.d,$(wildcard tests/python/*.c))
-include $(GPU_OBJ:.o=.d) $(AGENT_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_SRC:%.c=$(O)/obj/%.d) $(FUZZ_SRC:%.c=$(O)/obj/%.d) $(O)/obj/fuzz/replay.d
-include $(TIDY_STAMPS:.ok=.d)
