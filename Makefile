# make            builds; make help lists the rest
export PREFIX ?= /usr/local
export DESTDIR ?=
export CARGO ?= cargo
export JOBS ?= $(shell nproc)
# where everything looks for what was built
export CARGO_TARGET_DIR := $(CURDIR)/target
unexport CARGO_BUILD_TARGET

.PHONY: build dist dist-check aarch64 help demo check check-all coverage mpi4py-suite torture hang-check field-check tune-check truth-check fuzz bench whatif-bench large-bench sanitize prefix install uninstall clean

build:
	@tests/setup.sh build
	@tests/build.sh

help:
	@echo "make build                  the libraries into build/lib, the command into target/release"
	@echo "make demo                   a halo exchange that should overlap and does not, with its report"
	@echo "make check                  every test, of what repeats under every MPI a share; the last lines name what failed and give the total"
	@echo "make check-all              the same without leaving anything out"
	@echo "make coverage               docs/coverage.md: what is recorded of each function of the MPI standard"
	@echo "make mpi4py-suite           mpi4py's own tests with and without lapscope under every MPI, half an hour"
	@echo "make torture MINUTES=10     programs that interruptions could break, with tests injected as often as can be, over and over"
	@echo "make hang-check             what lapscope hang says of every program that hangs, and of such that are only slow, with the recorder and without; stacks beside gdb; fifteen minutes"
	@echo "make field-check            what lapscope says first of programs that people asked about, and what the cures bring, two minutes"
	@echo "make truth-check            what could have been overlapped, measured, below the most that lapscope reports, 280 kernels, forty minutes"
	@echo "make tune-check             what lapscope tune finds among settings of MPIs, beside the best by hand, and trials of a setting against itself; an hour"
	@echo "make fuzz SECONDS=600       damaged and hostile run directories for every command that reads; LAPSCOPE_FUZZ_SEED repeats"
	@echo "make bench                  what lapscope costs on this machine"
	@echo "make whatif-bench           what lapscope whatif replays and predicts, beside measurements, twenty minutes"
	@echo "make large-bench            what runs of up to 100 million requests and 10,000 ranks take, ten minutes, 4 GB of disk"
	@echo "make sanitize               the C unit tests under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer"
	@echo "make install PREFIX=/usr/local"
	@echo "make uninstall PREFIX=/usr/local    what install has put there, and nothing else"
	@echo "make dist                   a tarball for every x86_64 Linux with glibc 2.17 or newer, ten minutes, 4 GB of disk"
	@echo "make dist-check             what make dist has made, tried as its users would: other distributions, packages, containers; half an hour or more"
	@echo "make aarch64                builds for aarch64 on a machine of another kind and tries it in an emulator; an hour, 8 GB of disk"
	@echo "make clean"
	@echo "As root on Debian or Ubuntu each installs what it needs and does not find; else it says what to install."

demo:
	@tests/setup.sh demo
	@examples/halo/demo.sh

check:
	@tests/setup.sh check
	@tests/mpis.sh compiler
	@tests/check.sh

check-all: export LAPSCOPE_TEST_ALL=1
check-all: check

coverage:
	@tests/setup.sh check
	@tests/mpis.sh
	@build/mpi/standard/bin/python tests/coverage.py

mpi4py-suite:
	@tests/mpis.sh
	@$(MAKE) --no-print-directory build
	$(CARGO) test -p lapscope-tests --test launched -- --ignored --nocapture mpi4py::own_tests_in_full

MINUTES ?= 10
torture:
	@tests/setup.sh check
	@tests/mpis.sh
	@$(MAKE) --no-print-directory build
	LAPSCOPE_TEST_MINUTES=$(MINUTES) $(CARGO) test -p lapscope-tests --test launched -- --ignored --nocapture inject::torture::over_and_over

hang-check:
	@tests/setup.sh check
	@$(MAKE) --no-print-directory build
	LAPSCOPE_TEST_ALL=1 $(CARGO) test -p lapscope-tests --test launched -- --nocapture hang:: stacks::

field-check:
	@tests/setup.sh check
	@$(MAKE) --no-print-directory build
	LAPSCOPE_TEST_ALL=1 $(CARGO) test -p lapscope-tests --test launched -- --nocapture field::

tune-check:
	@tests/setup.sh check
	@tests/mpis.sh
	@$(MAKE) --no-print-directory build
	tests/bench/settings.py

truth-check:
	@tests/setup.sh check
	@$(MAKE) --no-print-directory build
	LAPSCOPE_TEST_ALL=1 $(CARGO) test -p lapscope-tests --test launched -- --nocapture truth::

fuzz:
	LAPSCOPE_FUZZ_SECONDS=$(or $(SECONDS),600) $(CARGO) test -p lapscope --test command -- --ignored --nocapture fuzz::over_and_over

bench: build
	@tests/bench/run.sh

whatif-bench: build
	@tests/bench/whatif.py

large-bench: build
	@cargo build --quiet --release -p lapscope --bins --examples
	@tests/bench/large.py

sanitize:
	@tests/setup.sh build
	for kind in address,undefined thread; do \
	    cmake -S interposer/test -B build/sanitize-$${kind%%,*} -DLAPSCOPE_SANITIZE=$$kind && \
	    cmake --build build/sanitize-$${kind%%,*} -j $(JOBS) && \
	    ctest --test-dir build/sanitize-$${kind%%,*} --output-on-failure || exit 1; \
	done

# ld.so splits LD_PRELOAD at blanks and colons, and nothing keeps it from that
prefix:
	@case "$$PREFIX" in *[[:space:]:]*) \
	    echo "PREFIX=$$PREFIX: LD_PRELOAD cannot hold a path with blanks or colons; name another PREFIX" >&2; exit 1;; \
	esac

install: prefix build
	@interposer/install.sh install

uninstall:
	@interposer/install.sh uninstall

dist:
	@tests/setup.sh build
	@packaging/dist.sh

dist-check:
	@packaging/tests/run.sh

aarch64:
	@tests/aarch64.sh

clean:
	rm -rf build
	$(CARGO) clean
