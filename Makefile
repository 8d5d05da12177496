# make demo   four hospitals on this machine, three studies end to end; output in build/demo
# make full-brain   the same on 70,000 voxels; output in build/full-brain
# make test   linter, type checker, layer contract, tests that take little time
# make ci     the other tests: searches, intervals of many draws, long runs end to end
# make docs   the documentation as a site, with its gallery; build/site/index.html
# make release   wheel, source, bill of materials and sums in dist; RELEASE_KEY=FILE signs the sums
# Both build their own environment in .venv from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Many processes start: each would compile all that it imports again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo full-brain test ci lint quick types tests long bench docs lock release sums clean
demo: $(READY)
	$(BIN)/consortium demo --out build/demo

full-brain: $(READY)
	$(BIN)/consortium demo --full-brain --out build/full-brain

# What takes a second comes first; types are checked beside the tests.
test: quick
	$(MAKE) --no-print-directory -j 2 types tests

lint: quick types

quick: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

# Scratch files of the tests lie in memory where that is possible: most of them wait for a disk.
# Three workers on two cores: a third of the time goes by in waiting for servers to start.
PYTEST = OMP_NUM_THREADS=1 TMPDIR=$$(test -w /dev/shm && echo /dev/shm || echo /tmp) \
	$(BIN)/python -m pytest -n 3
tests: $(READY)
	$(PYTEST) -m "not slow and not long"

# tests/slow_tests.txt has their names; `python -m tests.slow_tests` chooses them by their times.
ci: $(READY)
	$(PYTEST) -m "slow and not long"

# Fault matrix, soak, fuzzing, kills, the tutorial as it is typed, and a first study on slow disks:
# three quarters of an hour, of which the last part needs root.
long: $(READY)
	$(BIN)/python -m tests.long.faults
	$(BIN)/python -m tests.long.soak 2000 7
	$(BIN)/python -m tests.long.fuzz 2
	$(BIN)/python -m tests.long.kill 4
	$(BIN)/python -m pytest tests/long
	$(BIN)/python -m pytest -m long
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n 3 -m "hypothesis and not long"

bench: $(READY)
	$(BIN)/python -m benchmarks

# Every warning is an error: a dead link, a page that nothing leads to, an example that fails.
docs: $(READY)
	rm -rf build/site build/doctrees docs/gallery
	PATH="$$PWD/$(BIN):$$PATH" OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/site
	@echo "Open build/site/index.html"

# What the wheel needs at the versions that were tested, and the same as a CycloneDX document.
release: $(READY)
	rm -rf dist
	$(BIN)/python deploy/release.py dist
	cp deploy/requirements.lock dist/requirements.txt
	cp deploy/requirements-all.lock dist/requirements-all.txt
	$(BIN)/uv tool run --from cyclonedx-bom==7.5.0 cyclonedx-py requirements dist/requirements-all.txt --pyproject pyproject.toml --output-reproducible --output-format JSON --output-file dist/sbom.cdx.json
	$(MAKE) --no-print-directory sums

# The key is one of SSH's; its public half stands in deploy/allowed_signers.
DIST := dist
sums:
	cd $(DIST) && rm -f SHA256SUMS SHA256SUMS.sig && LC_ALL=C && sha256sum -- * > SHA256SUMS
	$(if $(RELEASE_KEY),ssh-keygen -q -Y sign -f $(RELEASE_KEY) -n cape-consortium $(DIST)/SHA256SUMS)

$(READY): requirements.lock pyproject.toml relay/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cape-consortium needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv==0.13.8
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable . --editable ./relay
	touch $@

# A site installs the first of the two short lists; the second is for the coordinator, and for sites
# with a bucket, an SFTP server, EEG or a Prefect of their own.
FOR_DEPLOY := --constraint requirements.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet
lock:
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra bench --extra docs --extra prefect --extra inbox --extra s3 --extra sftp --extra dask --extra ray --extra fast --extra eeg --universal --python-version 3.11 --generate-hashes --no-header --quiet -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra fast $(FOR_DEPLOY) -o deploy/requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra prefect --extra inbox --extra s3 --extra sftp --extra fast --extra eeg $(FOR_DEPLOY) -o deploy/requirements-all.lock
	echo 'setuptools>=77' | $(BIN)/uv pip compile - $(FOR_DEPLOY) -o deploy/build.lock

clean:
	rm -rf .venv build docs/gallery
