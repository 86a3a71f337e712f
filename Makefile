# aoid: everything is built from here; `make help` lists the targets.
#
# Sources are found by wildcard, so a new file needs no change. A variant is the same build in another directory:
#   make BUILD=build/clang CC=clang WERROR=-Werror everything

ifeq ($(origin CC),default)
CC := gcc
endif
BUILD   ?= build
CFLAGS  ?= -O2 -g
LDFLAGS ?=
WERROR  ?=
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
DOCDIR     ?= $(DATADIR)/doc/aoid
MANDIR     ?= $(DATADIR)/man
OBJCOPY    ?= objcopy
UNITDIR    ?= $(LIBDIR)/systemd/system
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla
# -ffp-contract=off: visibility is decided by sums rounded to 32 bits, on every machine alike
BASE_CFLAGS = -std=c11 -D_GNU_SOURCE -ffp-contract=off -Isrc $(WARNINGS) $(WERROR) $(CFLAGS)

ASAN_BUILD  := build/asan
ASAN_CFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DAOI_DEBUG
ASAN_LDFLAGS := -fsanitize=address,undefined

pkg = $(shell pkg-config $(1) $(2) 2>/dev/null || echo $(3))
PKG_CFLAGS := $(call pkg,--cflags,libuv libwebsockets libprotobuf-c inih liblzma libssl)
LIB_UV     := $(call pkg,--libs,libuv,-luv)
LIB_WS     := $(call pkg,--libs,libwebsockets,-lwebsockets)
LIB_PB     := $(call pkg,--libs,libprotobuf-c,-lprotobuf-c)
LIB_INI    := $(call pkg,--libs,inih,-linih)
LIB_SSL    := $(call pkg,--libs,libssl libcrypto,-lssl -lcrypto)
LIB_LZMA   := $(call pkg,--libs,liblzma,-llzma)
LIB_CLIENT := $(LIB_PB) $(LIB_LZMA) $(LIB_SSL)
LIB_SERVER := $(LIB_UV) $(LIB_WS) $(LIB_INI) $(LIB_CLIENT)
LIB_CMOCKA := $(call pkg,--libs,cmocka,-lcmocka)

OBJ := $(BUILD)/obj
GEN := $(BUILD)/gen
objs = $(patsubst %.c,$(OBJ)/%.o,$(1))
layer = $(call objs,$(wildcard src/$(1)/*.c))

PROTOS := $(patsubst proto/%,%,$(shell find proto -name '*.proto' 2>/dev/null))
GEN_C  := $(PROTOS:%.proto=$(GEN)/%.pb-c.c)
GEN_H  := $(PROTOS:%.proto=$(GEN)/%.pb-c.h)
GEN_O  := $(PROTOS:%.proto=$(OBJ)/gen/%.pb-c.o)

BASE_O   := $(call layer,base)
CORE_O   := $(call layer,core)
WIRE_O   := $(call layer,wire) $(GEN_O)
SERVER_O := $(call layer,server)
CLIENT_O := $(call layer,client)
MAIN_O   := $(call objs,$(wildcard src/main.c))
CTL_O    := $(call objs,$(wildcard src/tools/aoictl*.c))
BENCH_O  := $(call objs,$(wildcard src/tools/aoibench*.c))
DEMO_O   := $(call objs,$(wildcard src/tools/demo*.c))
# what is in src/tools and belongs to no single tool is linked into each
TOOLS_O  := $(filter-out $(CTL_O) $(BENCH_O) $(DEMO_O),$(call layer,tools))
COREBENCH_O := $(call objs,$(wildcard tests/bench/*.c))

# tests/<layer>/test_x.c becomes build/test/<layer>/test_x; other files in tests/<layer> are linked into each of its tests
LAYERS := base core wire server e2e
tests = $(patsubst tests/%.c,$(BUILD)/test/%,$(wildcard tests/$(1)/test_*.c))
helpers = $(call objs,$(filter-out tests/$(1)/test_%.c,$(wildcard tests/$(1)/*.c)))
TESTS := $(foreach l,$(LAYERS),$(call tests,$(l)))
# tests/fuzz/fuzz_x.c becomes build/test/fuzz/x: a program that replays inputs or, linked without FUZZ_MAIN and with libFuzzer, one that looks for them
FUZZ_MAIN ?= $(call objs,tests/fuzz/replay.c)
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/test/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
TESTS += $(FUZZERS)
FUZZ_BUILD  := build/fuzz
FUZZ_CFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DAOI_DEBUG

LIBS := $(BUILD)/libcore.a $(BUILD)/libaoi.a
PROGRAMS := $(if $(MAIN_O),$(BUILD)/aoid) $(if $(CTL_O),$(BUILD)/aoictl) $(if $(BENCH_O),$(BUILD)/aoibench) \
	$(if $(COREBENCH_O),$(BUILD)/aoibench-core) $(if $(DEMO_O),$(BUILD)/aoidemo)

# the jobserver of an outer -j is used when there is one
SUBMAKE = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))
ASAN_MAKE = $(SUBMAKE) BUILD=$(ASAN_BUILD) CFLAGS='$(ASAN_CFLAGS)' LDFLAGS='$(ASAN_LDFLAGS)'

.PHONY: all demo test soak check fuzz bench install install-files clean help everything tests fuzzers FORCE
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:

all: $(LIBS) $(PROGRAMS)

demo: ## install what is missing, build, and run the daemon on real input
	@scripts/deps.sh demo
	@+$(SUBMAKE) $(BUILD)/aoid $(BUILD)/aoidemo
	$(BUILD)/aoidemo --aoid $(BUILD)/aoid --data tests/data

test: ## every test, under AddressSanitizer and UBSan; T='core/*' for some
	@scripts/deps.sh test
	@+$(ASAN_MAKE) everything
	@# for test_memory.py: a sanitizer takes more address space than a limit leaves
	@+$(SUBMAKE) $(BUILD)/aoid
	@scripts/run-tests $(ASAN_BUILD) '$(or $(T),*)'

soak: ## what `make test` does for a minute, for hours: 100,000 faults of the network (SOAK_FAULTS)
	@scripts/deps.sh test
	@+$(ASAN_MAKE) everything
	@AOI_FAULTS=$(or $(SOAK_FAULTS),100000) AOI_TEST_TIMEOUT_S=36000 scripts/run-tests $(ASAN_BUILD) e2e/test_faults

check: ## warnings, format, clang-tidy, layers, links, proto lint, documents
	@scripts/deps.sh check
	@MAKE='$(MAKE)' scripts/check

fuzz: ## look for inputs that break the wire, the core or the configuration, FUZZ_SECONDS (60) for each target
	@scripts/deps.sh check
	@+$(SUBMAKE) BUILD=$(FUZZ_BUILD) CC=clang CFLAGS='$(FUZZ_CFLAGS)' LDFLAGS='-fsanitize=fuzzer,address,undefined' FUZZ_MAIN= fuzzers
	@scripts/fuzz $(FUZZ_BUILD)

bench: ## everything measured beside its yardstick, as a table and into tests/bench/RESULTS.md
	@+$(SUBMAKE) all
	@scripts/bench $(BUILD)

everything: all tests
tests: $(TESTS)
fuzzers: $(FUZZERS)

install: all ## into PREFIX (/usr/local), below DESTDIR when that is set
	@+$(SUBMAKE) install-files

# what is built, as it is
install-files:
	install -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(UNITDIR)' \
		'$(DESTDIR)$(DATADIR)/aoid/proto' '$(DESTDIR)$(DOCDIR)' '$(DESTDIR)$(SYSCONFDIR)/aoid' '$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(MANDIR)/man8'
	install -m 755 $(filter-out %/aoidemo,$(PROGRAMS)) '$(DESTDIR)$(BINDIR)'
	install -m 644 src/client/libaoi.h '$(DESTDIR)$(INCLUDEDIR)'
	install -m 644 $(BUILD)/libaoi.a '$(DESTDIR)$(LIBDIR)'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' \
		-e 's|@INCLUDEDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(INCLUDEDIR))|' -e "s|@VERSION@|$$(sed -n 's/.*AOID_VERSION "\(.*\)"/\1/p' src/base/version.h)|" \
		conf/aoi.pc.in > '$(DESTDIR)$(LIBDIR)/pkgconfig/aoi.pc'
	for p in $(PROTOS); do install -D -m 644 "proto/$$p" "$(DESTDIR)$(DATADIR)/aoid/proto/$$p" || exit 1; done
	install -m 644 README.md LICENSE conf/alerts.yml '$(DESTDIR)$(DOCDIR)'
	scripts/man $(BUILD)/aoid 8 'area-of-interest daemon for game servers' > '$(DESTDIR)$(MANDIR)/man8/aoid.8'
	scripts/man $(BUILD)/aoictl 1 'ask and drive aoid from the shell' > '$(DESTDIR)$(MANDIR)/man1/aoictl.1'
	scripts/man $(BUILD)/aoibench 1 'load aoid, and measure it' > '$(DESTDIR)$(MANDIR)/man1/aoibench.1'
	scripts/man $(BUILD)/aoibench-core 1 'measure the core of aoid, without a network' > '$(DESTDIR)$(MANDIR)/man1/aoibench-core.1'
	sed -e 's|/usr/local/bin/|$(BINDIR)/|g' -e 's|/usr/local/etc/|$(SYSCONFDIR)/|g' conf/aoid.service > '$(DESTDIR)$(UNITDIR)/aoid.service'
	install -m 644 conf/aoid.socket '$(DESTDIR)$(UNITDIR)'
	@# a configuration that somebody has edited is never overwritten
	test -e '$(DESTDIR)$(SYSCONFDIR)/aoid/aoid.conf' || install -m 644 conf/aoid.conf '$(DESTDIR)$(SYSCONFDIR)/aoid/aoid.conf'

clean: ## remove everything that was built
	rm -rf build tests/e2e/__pycache__

help: ## this list
	@echo 'make           build the daemon, the tools and the libraries into $(BUILD)/'
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | while IFS='	' read -r t d; do printf 'make %-10s%s\n' "$$t" "$$d"; done

# Generated protobuf

$(GEN)/%.pb-c.c $(GEN)/%.pb-c.h: proto/%.proto
	@mkdir -p $(GEN)
	@command -v protoc-c >/dev/null || { echo 'make: protoc-c is missing; scripts/deps.sh demo installs what a build needs' >&2; exit 1; }
	protoc-c --proto_path=proto --c_out=$(GEN) $*.proto

# Objects; a change of compiler or flags rebuilds them

$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(BASE_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(BASE_CFLAGS)' > $@

COMPILE = @mkdir -p $(@D) && echo "CC $<" && $(CC) $(BASE_CFLAGS)

$(OBJ)/gen/%.o: $(GEN)/%.c $(BUILD)/flags
	$(COMPILE) -w -I$(GEN) -MMD -MP -c $< -o $@

# base, core and what tests them are compiled without sight of any other library
CORE_ONLY := $(foreach d,src/base src/core tests/base tests/core tests/bench,$(call objs,$(wildcard $(d)/*.c)))
$(CORE_ONLY): $(OBJ)/%.o: %.c $(BUILD)/flags
	$(COMPILE) -MMD -MP -c $< -o $@

$(OBJ)/%.o: %.c $(BUILD)/flags | $(GEN_H)
	$(COMPILE) -I$(GEN) $(PKG_CFLAGS) -MMD -MP -c $< -o $@

# Libraries and programs

ARCHIVE = @rm -f $@ && echo "AR $@" && ar rcs $@ $^
LINK = @mkdir -p $(@D) && echo "LD $@" && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^)

$(BUILD)/libcore.a: $(BASE_O) $(CORE_O)
	$(ARCHIVE)
# what the tools and the tests link: the client, and what it stands on
TIERS_O := $(call objs,src/core/tiers.c)
CLIENT_A := $(OBJ)/libclient.a
$(CLIENT_A): $(BASE_O) $(TIERS_O) $(WIRE_O) $(CLIENT_O)
	$(ARCHIVE)
# the same for everybody else: one object in which only libaoi_* can be seen, so that no name in it meets one of the program's
$(BUILD)/libaoi.a: $(BASE_O) $(TIERS_O) $(WIRE_O) $(CLIENT_O)
	@rm -f $@ && echo "AR $@"
	@$(CC) -r -nostdlib -o $(OBJ)/libaoi.o $^
	@$(OBJCOPY) --wildcard --keep-global-symbol='libaoi_[!_]*' $(OBJ)/libaoi.o
	@ar rcs $@ $(OBJ)/libaoi.o

$(BUILD)/aoid: $(MAIN_O) $(SERVER_O) $(WIRE_O) $(CORE_O) $(BASE_O)
	$(LINK) $(LIB_SERVER) -lm
$(BUILD)/aoictl: $(CTL_O) $(TOOLS_O) $(CLIENT_A)
	$(LINK) $(LIB_CLIENT) -lm
# `aoibench core` runs the sibling aoibench-core, which sees the core alone
$(BUILD)/aoibench: $(BENCH_O) $(TOOLS_O) $(CLIENT_A) | $(if $(COREBENCH_O),$(BUILD)/aoibench-core)
	$(LINK) $(LIB_CLIENT) -lm
$(BUILD)/aoibench-core: $(COREBENCH_O) $(BUILD)/libcore.a
	$(LINK) -lm
$(BUILD)/aoidemo: $(DEMO_O) $(TOOLS_O) $(CLIENT_A)
	$(LINK) $(LIB_CLIENT) -lm

# Tests

$(call tests,base): $(BUILD)/test/base/%: $(OBJ)/tests/base/%.o $(call helpers,base) $(BUILD)/libcore.a
	$(LINK) $(LIB_CMOCKA) -lm
$(call tests,core): $(BUILD)/test/core/%: $(OBJ)/tests/core/%.o $(call helpers,core) $(BUILD)/libcore.a
	$(LINK) $(LIB_CMOCKA) -lm
$(call tests,wire): $(BUILD)/test/wire/%: $(OBJ)/tests/wire/%.o $(call helpers,wire) $(WIRE_O) $(BUILD)/libcore.a
	$(LINK) $(LIB_CMOCKA) $(LIB_PB) -lm
$(call tests,server): $(BUILD)/test/server/%: $(OBJ)/tests/server/%.o $(call helpers,server) $(SERVER_O) $(WIRE_O) $(BUILD)/libcore.a
	$(LINK) $(LIB_CMOCKA) $(LIB_SERVER) -lm
$(call tests,e2e): $(BUILD)/test/e2e/%: $(OBJ)/tests/e2e/%.o $(call helpers,e2e) $(TOOLS_O) $(CLIENT_A)
	$(LINK) $(LIB_CMOCKA) $(LIB_CLIENT) -lm
$(FUZZERS): $(BUILD)/test/fuzz/%: $(OBJ)/tests/fuzz/fuzz_%.o $(FUZZ_MAIN) $(call helpers,core) $(SERVER_O) $(WIRE_O) $(BUILD)/libcore.a
	$(LINK) $(LIB_CMOCKA) $(LIB_SERVER) -lm

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
