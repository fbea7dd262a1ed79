# Every target is safe to repeat. What they need to know about this machine is in .ci/env.sh.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
ENV := source .ci/env.sh &&

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

##@ Start
help:  ## List all targets
	@echo "Tidebench: compare autoscalers of stream processing. Begin with make demo."
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} \
	    /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Create .venv with pinned packages; first name what the machine lacks
	@bash .ci/setup.sh
	@$(if $(filter setup,$(MAKECMDGOALS)),echo 'To have tidebench on the path: export PATH="$(CURDIR)/.venv/bin:$$PATH"')

demo:  ## Run one experiment through Airflow and print its tables
	@bash .ci/setup.sh demo
	@$(ENV) python .ci/demo.py

##@ Papers
reproduce: setup  ## Repeat the evaluation of PeerJ CS 141 and compare it with the published figures
	@$(ENV) python -m include.cli reproduce --root "$$TIDEBENCH_DATA_ROOT"

tournament: setup  ## Run every controller on every workload, publish the table, draw the figure
	@$(ENV) for part in tournament hard_world; do \
	    python -m include.cli run "include/experiment/specs/$$part.yaml" --root "$$TIDEBENCH_DATA_ROOT" && \
	    python -m include.cli report "$$TIDEBENCH_DATA_ROOT/$$part" || exit; done
	@$(ENV) python -m include.cli figure "$$TIDEBENCH_DATA_ROOT/tournament" "$$TIDEBENCH_DATA_ROOT/hard_world" \
	    --out docs/images/tournament.svg

##@ Tests
test: test-fast test-spark test-airflow  ## Run the tests; installs nothing on the system and needs no root

test-fast: setup  ## Run the tests that need neither Spark nor Airflow
	@$(ENV) pytest -q -n auto -m "not long and not spark and not airflow and not scheduler and not live and not openstack and not recorded and not flink"

test-spark: setup  ## Run the tests of tables, gates and reports
	@$(ENV) pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "spark and not long and not live"

test-airflow: setup  ## Run the tests of the DAGs and their tasks
	@$(ENV) pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "airflow and not long and not live and not openstack"

test-long: setup  ## Run the long tests: end to end, and processes killed in the middle
	@$(ENV) pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "long and not scheduler and not live and not openstack and not flink and not nightly"

test-scheduler: setup  ## Run the tests of every DAG under a real scheduler, and of the UI in a browser (long)
	@$(ENV) pytest -q -m scheduler

test-recorded: setup  ## Run the tests on the recordings and traces in TIDEBENCH_TEST_DATA
	@$(ENV) pytest -q -m recorded

test-live: setup  ## Run the tests on real hosts, containers and services (root, Debian; else skipped)
	@$(ENV) infra/live/live.sh test "live and not nightly" tests

test-nightly: setup  ## Run the tests that take minutes each and that .ci/run leaves out
	@$(ENV) pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "nightly and not live"
	@$(ENV) infra/live/live.sh test "nightly and live" tests

##@ Real containers
live-services:  ## Start broker, Redis and registry of a live testbed (root, Debian)
	@infra/live/services.sh packages
	@infra/live/services.sh up

live-images: setup live-services  ## Build the operators' images and push them to the local registry
	@infra/live/images.sh up

live: setup live-images  ## Measure threshold and tide on real containers, threshold also by DAG (root, Debian)
	@$(ENV) infra/live/live.sh run

live-faults: setup live-images  ## Make every part fail in turn under ITEMS=100000, and count lost items (root, Debian)
	@$(ENV) python -m tests.live.fault_run $(or $(ITEMS),100000) $(or $(RATE),250)

live-calibrate: setup live-images  ## Record service and start-up times on real containers; compare the simulator
	@$(ENV) python -m include.studies.live --root "$$TIDEBENCH_DATA_ROOT" \
	    --out "$$TIDEBENCH_DATA_ROOT/manufacturing_live.yaml"
	@$(ENV) python -m include.cli paper live --root "$$TIDEBENCH_DATA_ROOT"

live-down:  ## Release everything that live runs hold; stop hosts and services
	@$(ENV) infra/live/live.sh down

##@ Apache Flink
flink: setup  ## Install Apache Flink 2.2.1 below var/.flink (313 MB once) and compile its job (javac 17)
	@$(ENV) python -m infra.flink.install

live-flink: flink  ## Measure threshold and tide on a real Flink, ten minutes, and print the tables
	@$(ENV) infra/flink/live.sh run

test-flink: flink  ## Run the tests on a real Flink
	@$(ENV) pytest -q -m "flink and not long" tests/flink

test-flink-gate: setup  ## Run only the one in which a host is killed, under four minutes (javac 17; else skipped)
	@$(ENV) infra/flink/live.sh test

test-flink-dag: flink  ## Measure by DAG on it, MINUTES=20 each with two controllers; a host is killed in each
	@$(ENV) TIDEBENCH_FLINK_MINUTES=$(or $(MINUTES),20) pytest -q -s -m "flink and long" tests/flink

##@ OpenStack
openstack-up: setup live-images  ## Start a real OpenStack control plane on this machine (root, Debian)
	@infra/openstack/openstack.sh up

openstack-down:  ## Release everything that runs hold in it, and stop it
	@$(ENV) infra/openstack/live.sh down

test-openstack: setup  ## Run the tests of leases, faults, kills and reaping against it (else skipped)
	@$(ENV) infra/live/live.sh test "openstack and not guests" tests/openstack

test-leases: setup  ## Run only the tests of leases and reaping
	@$(ENV) infra/live/live.sh test openstack tests/openstack/test_leases.py tests/openstack/test_reap.py

test-guests: setup  ## Run the tests with real guests as its servers (long; else skipped)
	@$(ENV) TIDEBENCH_HYPERVISOR=$${TIDEBENCH_HYPERVISOR:-qemu} infra/live/live.sh test guests tests/openstack
	@$(ENV) TIDEBENCH_HYPERVISOR=$${TIDEBENCH_HYPERVISOR:-qemu} \
	    infra/live/live.sh test "openstack and not guests" \
	    tests/openstack/test_faults.py tests/openstack/test_reap.py

live-guests: setup live-images  ## Measure by DAG on two real guests; one loses its power
	@TIDEBENCH_HYPERVISOR=$${TIDEBENCH_HYPERVISOR:-qemu} infra/openstack/openstack.sh up
	@$(ENV) infra/openstack/live.sh guests

live-openstack: openstack-up  ## Measure by DAG on its servers, and print the tables
	@$(ENV) infra/openstack/live.sh run

##@ Airflow
airflow: setup  ## Start Airflow on this machine and print the address of its UI; Ctrl-C stops it
	@$(ENV) exec python -m infra.airflow.local up

airflow-down:  ## Stop what make airflow started
	@$(ENV) python -m infra.airflow.local down

compose-secrets:  ## Write random passwords for docker-compose.yaml into .env
	@python3 infra/compose/passwords.py

compose-up: compose-secrets  ## Build and start docker-compose.yaml; wait until every service is healthy
	@chmod a+r infra/compose/results-database.sh
	@docker compose up --detach --build --wait --wait-timeout 600

compose-try:  ## Run an experiment in it through the REST API, and print its tables
	@python3 -m infra.airflow.first_experiment http://127.0.0.1:$${TIDEBENCH_PORT:-8080} .env
	@docker compose exec -T worker python3 -c 'from pathlib import Path; from include.results.reports.summary import summary; from include.studies import printed; print(summary(Path("/opt/tidebench/var/first"), printed))'

compose-leaks:  ## Search its logs, image, files and databases for its passwords
	@python3 infra/compose/leaks.py

compose-down:  ## Stop it and delete its data; docker compose down keeps them
	@docker compose down --volumes --remove-orphans

##@ Development
audit: setup  ## Check every pinned package against the published advisories (needs their server)
	@$(ENV) uv tool run --from pip-audit==2.10.1 pip-audit --strict --disable-pip --no-deps \
	    --progress-spinner off -r requirements.txt -r requirements-dev.txt

check: setup  ## Check format, lint, types, import contracts and that nothing pinned is missing; run no tests
	@$(ENV) uv pip check --quiet && ruff format --check . && ruff check . && mypy && lint-imports

format: setup  ## Format, and fix lint where a tool can
	@$(ENV) { failed=0; ruff check --fix . || failed=1; ruff format . && exit $$failed; }

bench: setup  ## Measure the simulator, how it and decisions grow, a matrix, and a page of ten thousand runs
	@$(ENV) python -m tests.bench --gate && python -m tests.bench.growth --gate && python -m tests.bench.wide --gate \
	    && python -m tests.bench.decisions --gate --repeats 3 && python -m tests.bench.matrix --gate \
	    && python -m tests.bench.page --gate

dictionary: setup  ## Write the list of tables in docs/metrics.md from the schemas
	@$(ENV) python -m include.results.tables.dictionary

lock: setup  ## Resolve requirements*.in again; keep pins where possible
	@$(ENV) for name in requirements requirements-dev; do \
	    uv pip compile --quiet --python-version 3.11 --custom-compile-command "make lock" \
	        --no-emit-index-url --no-emit-find-links $$name.in --output-file $$name.txt; \
	done

clean:  ## Remove caches and the environment; results under var/ stay
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -not -path './var/*' -prune -exec rm -rf {} +
