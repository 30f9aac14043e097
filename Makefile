# Two commands do everything on a fresh machine: `make demo` and `make test`.
.DEFAULT_GOAL := help
PYTHON ?= python3

.PHONY: help demo nexmark test test-long chaos test-oldest style check bench-spark bench-simulation bench-amos bench-decisions bench-loop bench-language bench-page docs clean

help:  ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

.venv/ready: requirements.lock requirements-java.lock pyproject.toml setup/environment.sh
	@PYTHON=$(PYTHON) bash setup/environment.sh

demo: .venv/ready  ## run the forest-fire example for about a minute under two policies
	@.venv/bin/headgate run examples/forest.yaml --policy rr,cqc --seconds 20

nexmark: .venv/ready  ## run Nexmark's queries over generated streams and check every result against Spark
	@.venv/bin/python examples/nexmark/run.py

# About half of the time. The other tests and mypy run beside them.
HALF := tests/journeys tests/spark/jvm tests/experiments

test: .venv/ready style  ## style, types and all tests, in two processes
	@log=$$(mktemp); .venv/bin/python -m pytest -q -rs $(HALF) > $$log 2>&1 & half=$$!; \
	  .venv/bin/mypy; types=$$?; .venv/bin/python -m pytest -q -rs $(addprefix --ignore=,$(HALF)); rest=$$?; \
	  wait $$half; half=$$?; cat $$log; rm -f $$log; exit $$((types + rest + half))

# The tests with properties, of which `make test` draws few examples.
PROPERTIES := $(addprefix tests/,language metrics model policies runtime scheduler simulation \
  spark/event_time spark/log workloads)

SEED ?= 1
test-long: .venv/ready  ## the long forms of the differential, property and kill tests (SEED=7: other queries)
	@HEADGATE_SEED=$(SEED) .venv/bin/python -m pytest -q -m "long" --hypothesis-profile=long
	@.venv/bin/python -m pytest -q --hypothesis-profile=long $(PROPERTIES)

chaos: .venv/ready  ## faults of every kind against real runs, at most 75 minutes (SEED=7: other ones; goes on where it was)
	@PYTHONPATH=.:tests:tests/journeys .venv/bin/python -m chaos --seed $(SEED) --results bench/results/chaos.json; \
	  failed=$$?; .venv/bin/python bench/tables.py; exit $$failed

test-oldest: .venv/ready  ## the oldest allowed dependencies, installed into .venv-oldest, and a smoke test of them
	@rm -rf .venv-oldest && .venv/bin/python -m venv .venv-oldest
	@.venv/bin/python setup/oldest.py > .venv-oldest/oldest.txt
	@.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	  --no-binary pyspark -r .venv-oldest/oldest.txt  # pyspark has no wheel
	@.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@if [ -d .venv/java ]; then ln -s ../.venv/java .venv-oldest/java; fi
	@folder=$$(mktemp -d) && .venv-oldest/bin/python setup/smoke.py $$folder; failed=$$?; rm -rf $$folder; exit $$failed

style: .venv/ready
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .

check: style  ## style, types and the walls between the rooms
	@.venv/bin/mypy
	@.venv/bin/python -m pytest -q tests/test_rooms.py tests/test_files.py

bench-spark: .venv/ready  ## the Spark engine against native Structured Streaming and the machine's limits
	@.venv/bin/python bench/spark.py --results bench/results/spark.json; missed=$$?; \
	  .venv/bin/python bench/tables.py; exit $$missed

bench-simulation: .venv/ready  ## how fast the simulation is, also against SimPy and with 100 000 boxes
	@.venv/bin/python bench/simulation.py --results bench/results/simulation.json

bench-decisions: .venv/ready  ## what a decision of the live scheduler costs among 100 to 100 000 queries, without Spark
	@.venv/bin/python bench/decisions.py --results bench/results/decisions.json

bench-loop: .venv/ready  ## QoS, staleness, tardiness and shedding on Spark, policies against each other at the same arrivals
	@.venv/bin/python bench/loop.py --results bench/results/loop.json; missed=$$?; \
	  .venv/bin/python bench/tables.py; exit $$missed

bench-amos: .venv/ready  ## amos under every learner against the best single policy, in simulation
	@.venv/bin/python bench/amos.py --results bench/results/amos.json

bench-language: .venv/ready  ## windows and joins against native Structured Streaming, with and without sharing
	@.venv/bin/python bench/language.py --results bench/results/language.json; missed=$$?; \
	  .venv/bin/python bench/tables.py; exit $$missed

bench-page: .venv/ready  ## what pages that watch cost: response times and CPU with two clients and without, and drawing
	@.venv/bin/python bench/page.py --results bench/results/page.json

docs: .venv/ready  ## write docs/reference.md, and what commands in README and docs print, from the program
	@.venv/bin/python docs/write_reference.py
	@.venv/bin/python docs/write_papers.py
	@.venv/bin/python docs/write_examples.py

clean:  ## remove everything that was installed or produced
	rm -rf .venv .venv-oldest state .mypy_cache .ruff_cache .pytest_cache .hypothesis
