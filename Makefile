# make test    install into .venv and run everything that checks Bridge
# make test-all    as `make test`, and what that leaves to other days; TURN=... is one of those
# make newest    install with the newest torch into .venv-newest (6 GB); make newest-torch installs that torch alone
# make test-newest    as `make newest`, and run the tests of kernel counts, translation, code and caches, of
#              parameters and of other tests some; all of them with PYTEST_ARGS="--thin 1"
# make test-vllm    install a vLLM for CPUs into .venv-vllm (4 GB), and run the tests with it
# make demo    install into .venv and run the demonstration, without the tools of `make test`
# make wheel   a wheel and an sdist into dist/, for machines without a compiler
# make test-wheel    install that wheel into an empty environment without a compiler, and use it;
#              make it again from the sdist
# make torture    as `make test` has some of them, all programs of others; takes
#              hours, and goes on where it was stopped: outcomes are in torture/
# make lint    ruff, clang-format, mypy and import-linter alone
# make coverage    the Python tests, and which lines and branches of the
#              package they run; the report is in coverage/
# make build   a developer's incremental build into build/; names its Python
#              with PYTHON=..., whose environment has the five xtc wheels
# make docs    as `make build`, then docs/passes.md, docs/dialect.md, docs/api.md and docs/reasons.md
#              anew; that Python also needs torch and Triton
# make venv    install into .venv
# make clean   remove the environments, build/ and dist/

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NEWEST := .venv-newest
VLLM := .venv-vllm

# Tests run side by side; Inductor's own pool of compile processes in each of
# them would only fight them for the cores.
export TORCHINDUCTOR_COMPILE_THREADS ?= 1
# Each of the processes that tests start would compile torch's Python anew, 15 s of one core.
unexport PYTHONDONTWRITEBYTECODE
# OpenMP's threads spin while they wait, and so would those of every test.
TEST_ENV := OMP_NUM_THREADS=1
# A process that has no more tests takes those of another: some take half a minute.
PARALLEL := -n auto --dist worksteal
# Parameters, and tests that are slow, are run in turn, from day to day. What make prints says which turn it was;
# `make test TURN=...` runs the same ones again.
TURN ?= $(shell git log -1 --format=%cs 2>/dev/null | git hash-object --stdin | cut -c1-7)

# The wheel that `make demo` and `make test` install.
WHEEL := build/wheel/.built

# What the installed package is made from; a change reinstalls.
SOURCES := $(shell find bridge lowering passes examples/plugin -type f \
             -not -path '*/__pycache__/*' 2>/dev/null) \
           pyproject.toml CMakeLists.txt

CPP := $(shell find passes examples -name '*.cpp' -o -name '*.h')
PY := .ci bridge lowering passes test benchmarks docs examples

# Generators of programs, see test/python/validation/torture/generator.py.
TORTURE ?= op_db models pytorch_tests corpus

# In a test a None fails by itself, and stand-ins have no more than what the test asks of them.
MYPY_TESTS := --no-strict-optional --allow-untyped-defs \
              $(addprefix --disable-error-code=,arg-type attr-defined call-arg func-returns-value index list-item)

# What a new torch may change, and of the rest of the tests little: kernel counts, translation, code and caches.
NEWEST_TESTS := unit/inductor unit/affine/translate unit/lift unit/triton \
                $(addprefix unit/scheduling/,test_cache_key.py test_commit.py test_fuse.py test_hook.py) \
                end_to_end/test_patterns.py end_to_end/test_demo.py end_to_end/test_first_screens.py \
                end_to_end/test_docs.py::test_torch_versions_are_those_of_pyproject

# What works on torch's graphs and on what it has scheduled, and numbers: one in four functions, in turn.
NEWEST_FEW := unit/graph_passes unit/horizontal unit/offline end_to_end/test_semantics.py \
              $(filter-out $(NEWEST_TESTS),$(patsubst test/python/%,%,$(wildcard test/python/unit/scheduling/test_*.py)))

.PHONY: venv build docs test newest newest-torch test-newest test-vllm test-all torture coverage demo wheel test-wheel lint clean

# Requirements of pyproject.toml, by name, into .venv. Of thousands of modules few are imported: those are compiled then.
REQUIRE = $(BIN)/python .ci/requirements.py $(1) > $@.txt && \
          $(BIN)/python -m pip install --no-compile --progress-bar off -r $@.txt
# Once, and not by each of the processes that run tests at the same time.
COMPILE_TORCH = -c 'import torch._inductor.compile_fx, torch._inductor.codegen.cuda_combined_scheduling'
# CMake and Ninja, where the machine has none that will do.
MISSING = $(BIN)/python -c 'import scikit_build_core.build as b; print(*b.get_requires_for_build_wheel())'
# One copy of LLVM and MLIR, 1.7 GB, builds Bridge and runs it; pip would make another for each build.
PIP_WHEEL = PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip wheel --no-build-isolation --no-deps

# While the compiler works, pip downloads and unpacks.
venv: $(VENV)/.build
	$(MAKE) -j2 $(VENV)/.dev $(WHEEL)
	$(MAKE) $(VENV)/.installed

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Bridge needs Python 3.10 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.build: $(BIN)/python pyproject.toml .ci/requirements.py
	$(call REQUIRE,build)
	missing=$$($(MISSING)) && { test -z "$$missing" || $(BIN)/python -m pip install $$missing; }
	touch $@

$(VENV)/.demo: $(VENV)/.build
	$(call REQUIRE,run demo)
	touch $@

$(VENV)/.dev: $(VENV)/.build
	$(call REQUIRE,run dev)
	touch $@

$(VENV)/.compiled: $(VENV)/.dev
	$(BIN)/python $(COMPILE_TORCH)
	touch $@

# CMake's folder stays, so that a change compiles what it concerns.
$(WHEEL): $(VENV)/.build $(SOURCES)
	rm -rf $(@D) && mkdir -p $(@D)
	SKBUILD_BUILD_DIR=build/pip $(PIP_WHEEL) -w $(@D) .
	touch $@

$(VENV)/.installed: $(WHEEL)
	$(BIN)/python -m pip install --force-reinstall --no-deps $(<D)/*.whl
	touch $@

# pytest from another folder: processes that tests start must find the installed
# package, not the sources beside them.
test: $(VENV)/.build
	$(MAKE) -j2 lint $(WHEEL) $(VENV)/.compiled
	$(MAKE) $(VENV)/.installed
	$(BIN)/lit -v test/lit
	cd $(VENV) && $(TEST_ENV) bin/pytest $(PARALLEL) --durations=10 --thin 10 --turn $(TURN) $(PYTEST_ARGS) ../test/python

test-all: PYTEST_ARGS = --all
test-all: test

# Needs nothing of .venv: `.ci/run` downloads it while the tests run.
$(NEWEST)/.torch: pyproject.toml .ci/requirements.py
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python .ci/requirements.py run newest > $@.txt
	$(NEWEST)/bin/python -m pip install --no-compile --progress-bar off -r $@.txt
	$(NEWEST)/bin/python $(COMPILE_TORCH)
	touch $@

$(NEWEST)/.installed: $(NEWEST)/.torch $(WHEEL)
	$(NEWEST)/bin/python -m pip install --force-reinstall --no-deps $(dir $(WHEEL))*.whl
	touch $@

newest: $(NEWEST)/.installed

newest-torch: $(NEWEST)/.torch

test-newest: newest
	cd $(NEWEST) && $(TEST_ENV) bin/pytest $(PARALLEL) --durations=10 --thin 16 --turn $(TURN) \
	  $(addprefix --few ../test/python/,$(NEWEST_FEW)) $(PYTEST_ARGS) \
	  $(addprefix ../test/python/,$(NEWEST_TESTS) $(NEWEST_FEW))

# vLLM asks for libraries of pictures and sound made for the same torch, which these tests do without: those of the
# index are made for a torch with CUDA, and do not load beside one without.
$(VLLM)/.installed: $(WHEEL)
	$(PYTHON) -m venv $(VLLM)
	$(BIN)/python .ci/requirements.py run vllm > $@.txt
	$(VLLM)/bin/python -m pip install --no-compile --progress-bar off -r $@.txt
	$(VLLM)/bin/python -m pip uninstall -y torchaudio torchcodec torchvision
	$(VLLM)/bin/python -m pip install --force-reinstall --no-deps $(<D)/*.whl
	touch $@

test-vllm: $(VLLM)/.installed
	cd $(VLLM) && $(TEST_ENV) bin/pytest --durations=10 $(PYTEST_ARGS) ../test/vllm

torture: venv
	cd $(VENV) && $(TEST_ENV) PYTHONPATH=../test/python/validation:../test/python/support \
	  bin/python -m torture $(TORTURE) --results ../torture

coverage: venv
	cd $(VENV) && $(TEST_ENV) bin/pytest -n auto --cov --cov-config=../pyproject.toml \
	  --cov-report=term --cov-report=html:../coverage ../test/python

lint: $(VENV)/.dev
	$(BIN)/ruff check $(PY)
	$(BIN)/ruff check --preview --select PLR1702 $(PY)
	$(BIN)/ruff format --check $(PY)
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	ln -sfn ../lowering bridge/lowering # a part of the package, as `make build` has it
	$(BIN)/mypy
	$(BIN)/mypy $(MYPY_TESTS) test/python
	$(BIN)/lint-imports

# From another folder, so that Python finds the installed package.
demo: $(VENV)/.build
	$(MAKE) -j2 $(VENV)/.demo $(WHEEL)
	$(MAKE) $(VENV)/.installed
	cd $(VENV) && bin/python -m bridge.offline.demo

# auditwheel says which machines the wheel is for, by the symbols of libstdc++ and glibc that it needs.
# LLVM and MLIR are not put in: they are wheels of their own, that Python's mlir loads.
wheel: $(WHEEL)
	$(BIN)/python .ci/requirements.py wheel > $(VENV)/.wheel.txt
	$(BIN)/python -m pip install -q -r $(VENV)/.wheel.txt
	rm -rf dist
	$(BIN)/python -m build --sdist --no-isolation --skip-dependency-check -o dist .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --exclude libMLIRPythonCAPI.so --exclude libLLVM.so \
	  -w dist $(dir $(WHEEL))*.whl

test-wheel: wheel
	rm -rf build/sdist
	$(PIP_WHEEL) -w build/sdist dist/*.tar.gz
	$(BIN)/python test/wheel.py dist build/sdist

build:
	cmake -S . -B build -G Ninja -DPython3_EXECUTABLE="$$(command -v $(PYTHON))"
	cmake --build build
	ln -sfn ../build/_native bridge/_native
	ln -sfn ../lowering bridge/lowering

docs: build
	cmake --build build --target bridge-doc
	PYTHONPATH=. $(PYTHON) docs/api.py
	PYTHONPATH=. $(PYTHON) docs/reasons.py
	PYTHONPATH=. $(PYTHON) docs/first_screens.py

clean:
	rm -rf $(VENV) $(NEWEST) $(VLLM) build dist coverage
	rm -f bridge/_native bridge/lowering # links, from `make build`
