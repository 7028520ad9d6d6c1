# Everything is built from source with the Go toolchain; `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# RACE= runs the tests without the race detector. It needs a C compiler, without which
# Go leaves out cgo.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# What `git describe` says, or nothing outside a git checkout. Go's own stamping
# is off because it fails where git distrusts the checkout's owner.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
BUILDFLAGS := -trimpath -buildvcs=false
LDFLAGS := -X github.com/windlass-dev/windlass/internal/buildinfo.Version=$(VERSION)

# Tools are built once for each state of the module that pins them and for each
# Go release, because a linter refuses code for a Go newer than its own.
toolcache = $(CURDIR)/.cache/tools/$(shell cat hack/$(1)/go.mod hack/$(1)/go.sum | cksum | cut -d ' ' -f 1)-$(shell go env GOVERSION)
TOOLS = $(call toolcache,tools)
GOLANGCI = $(call toolcache,golangci)/golangci-lint
GOVULNCHECK = $(call toolcache,govulncheck)/govulncheck
BENCHSTAT = $(call toolcache,benchstat)/benchstat
COSIGN = $(call toolcache,cosign)/cosign
GHZ = $(call toolcache,ghz)/ghz

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/windlass, bin/kubectl-windlass, bin/podagent and bin/benchpeer
	CGO_ENABLED=0 go build $(BUILDFLAGS) -ldflags '$(LDFLAGS)' -o bin/windlass ./cmd/windlass
	CGO_ENABLED=0 go build $(BUILDFLAGS) -ldflags '$(LDFLAGS)' -o bin/kubectl-windlass ./cmd/kubectl-windlass
	CGO_ENABLED=0 go build $(BUILDFLAGS) -tags grpcnotrace -ldflags '-s -w $(LDFLAGS)' -o bin/podagent ./cmd/podagent
	CGO_ENABLED=0 go build $(BUILDFLAGS) -ldflags '-s -w' -o bin/benchpeer ./cmd/benchpeer

.PHONY: examples
examples: ## Build the functions in examples/
	hack/examples.sh

.PHONY: run
run: build examples ## Run Windlass and every example function on this machine
	bin/windlass up -f examples/

# A folder with a trace of Azure Functions; without one, demo makes a trace.
TRACE ?= $(wildcard ../shared/data/azure2019_100fn_8h)

.PHONY: demo
demo: build examples ## Replay two minutes of a trace and print what became of the calls (TRACE=)
	bin/windlass demo $(if $(CI),--check) $(if $(TRACE),--trace '$(TRACE)')

# The address of health and metrics of windlass up.
OPS ?= 127.0.0.1:8081

.PHONY: watch
watch: ## Watch a windlass up with Prometheus, its rules and alerts, until Ctrl-C (OPS=)
	hack/watch.sh '$(OPS)'

.PHONY: pictures
pictures: build examples ## Draw the pictures of windlass top and the status page again; takes two minutes
	hack/pictures.sh

##@ Check

# In CI a test that fails is tried once more, unless many do or there was a data race,
# and the summary names it. At the end of both is which tests were skipped, and why. The
# end-to-end tests take six minutes with the race detector, and twice as long on a busy machine.
# There go vet is left to verify, since the linter includes it.
# $(call gotest,FLAGS,PACKAGES)
gotest = $(if $(RACE),,echo 'The race detector is left out.' &&) $(if $(CI), \
  $(TOOLS)/gotestsum --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-abort-on-data-race --packages '$(2)' -- $(RACE) -vet=off -shuffle=on -timeout 20m $(1), \
  go test -json $(RACE) -shuffle=on -timeout 20m $(1) $(2) | go run ./internal/testreport)

# $(call tagged,TAG) are the packages with tests that need more than Go, those of test first, which take longest.
# $(call only,TAG) picks these tests, since make test runs the others; among the specs of TestE2E a label does. It is the
# last flag: gotestsum takes -run out of its list of flags to repeat a test.
with = grep -rl --include='*_test.go' '^//go:build $(1)$$' cmd internal pkg test
tagged = $(shell $(with) | sed 's,^,./,; s,/[^/]*$$,,' | sort -ru)
only = -run "^(TestE2E|$$($(with) | xargs grep -hoE '^func (Test|Fuzz|Example)\w*' | cut -d ' ' -f 2 | paste -sd '|'))$$"

# Packages in which nothing runs beside anything else, which internal/archtest checks for the cores of pkg: the race
# detector finds nothing there, and takes five times as long.
single = ./internal/archtest ./internal/doccheck/... ./internal/sim/... ./test/chart \
  ./pkg/autoscaler/... ./pkg/gateway/core ./pkg/nodeagent/callorder ./pkg/nodeagent/colocate ./pkg/podagent/core \
  ./pkg/queue/... ./pkg/rollout ./pkg/scheduler/core
others = $(slowest) $(filter-out $(slowest) $(shell go list $(single)),$(shell go list ./...))

# Packages whose tests take minutes come first, so that the others run beside them.
slowest = $(shell go list ./test/e2e ./test/attacks ./pkg/scheduler ./pkg/gateway)

.PHONY: test
test: $(if $(CI),tools) ## Run all tests that need Go only; RACE= leaves the race detector out
	$(call gotest,,$(others))
	@$(MAKE) --no-print-directory test-single RACE=

.PHONY: test-single
test-single: $(if $(CI),tools)
	$(call gotest,,$(single))

# make verify-chart runs those of the chart.
.PHONY: test-apiserver
test-apiserver: cluster-binaries $(if $(CI),tools) ## Run the tests that need an API server
	$(call gotest,-tags apiserver $(call only,apiserver),$(filter-out ./test/chart,$(call tagged,apiserver)))

.PHONY: test-clients
test-clients: examples cluster-binaries $(GHZ) $(if $(CI),tools) ## Run the tests that need npm, pip, a browser, or other people's clients and proxies, the latter as root
	PATH="$(dir $(GHZ)):$$PATH"; $(call gotest,-tags clients $(call only,clients),$(call tagged,clients))

# How long connections stay open while all but their gateway restarts, again and again.
DURATION ?= 30m

.PHONY: clients
clients: cluster-binaries $(GHZ) ## Call functions with curl, nghttp, h2load, ghz, Node.js, nginx and Envoy, keep connections through restarts, and print figures, as root (DURATION=)
	PATH="$(dir $(GHZ)):$$PATH" go test -tags clients -count=1 -v -timeout 0 ./test/clients -duration $(DURATION)

.PHONY: test-release
test-release: ## Run the tests of what makes images and releases, which have modules of their own
	(cd images/build && go test -json ./...) | go run ./internal/testreport
	(cd hack/release && go test -json ./...) | go run ./internal/testreport

# First the test of the cluster itself, which takes half a minute. In CI a spec that fails is tried once more, and the
# summary says so.
.PHONY: e2e
e2e: ## Run the suite on a real cluster: one of its own (as root), which is tested too, or KUBECONFIG's (QUICK=)
	[ -n "$${KUBECONFIG:-}" ] || { test/cluster/binaries.sh && go test -tags e2e -timeout 10m -v -count=1 ./test/cluster; }
	WINDLASS_E2E_QUICK='$(QUICK)' go test -tags e2e -timeout 45m -v -count=1 ./test/e2e/cluster $(if $(CI),-ginkgo.no-color -ginkgo.flake-attempts=2)

# The first seed and how many; a violation says how to replay it.
SEED ?= 1
SEEDS ?= 10000

.PHONY: sim
sim: ## Simulate faults in virtual time, print what became of the calls, and see that every mutant of the product is noticed (SEED=, SEEDS=)
	go run ./test/simulate -seed $(SEED) -seeds $(SEEDS)
	go run ./test/simulate/mutants -seed $(SEED)

# The folder with recorded traces; without it what replays them is left out.
DATA ?= ../shared/data

.PHONY: experiments
experiments: ## Run every experiment of windlass sim at its quick size, and check its goals (DATA=)
	hack/experiments.sh '$(DATA)'

.PHONY: results
results: ## Run them at full size, and draw docs/results again; takes half an hour (DATA=)
	@[ -d '$(DATA)' ] || { echo 'There are no recorded traces in $(DATA), and make results would remove the pictures of them: "make results DATA=FOLDER"' >&2; exit 1; }
	@mkdir -p bin
	go run ./cmd/windlass sim all --data '$(DATA)' --json >bin/results.json
	rm -f docs/results/*.svg
	go run ./cmd/windlass-plot -dir docs/results -formats svg,txt,md bin/results.json

.PHONY: attacks
attacks: cluster-binaries ## Attack gateway, scheduler, agent, local mode and what the API server admits; print how many attacks came to nothing, and the memory
	hack/attacks.sh

# How long each target runs, and which: patterns of packages or targets.
FUZZTIME ?= 60s
FUZZ ?=

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME
	hack/fuzz.sh $(FUZZTIME) $(FUZZ)

.PHONY: cover
cover: ## Print how much of the pure packages their tests run; fails if one has less than 90 %
	hack/cover.sh 90

.PHONY: bench
bench: build ## Measure the core, a tick, the agent and what a call costs on this machine
	go test -run '^$$' -bench . -benchmem ./pkg/queue ./pkg/autoscaler ./pkg/scheduler
	go test -run '^$$' -bench OffersOfAThousandFunctions -cpu 1 ./pkg/scheduler/core
	hack/bench-agent.sh
	bin/windlass bench warm scale limits

# Short, because it compares medians, and with enough calls in each measurement.
BENCHFLAGS ?= --rounds 3 --span 500ms

.PHONY: bench-check
bench-check: build ## Fail if what a call costs beside a proxy is worse than the ratios stored in hack/bench-ratios.json (BENCHFLAGS=)
	bin/windlass bench warm scale $(BENCHFLAGS) --check hack/bench-ratios.json

.PHONY: bench-ratios
bench-ratios: build ## Store those ratios and docs/results/performance.txt again, with the machine and the commit that they are from (BENCHFLAGS=)
	bin/windlass bench warm scale $(BENCHFLAGS) --store hack/bench-ratios.json >bin/performance.txt
	mv bin/performance.txt docs/results/performance.txt

# A commit to compare with; by default the stored baseline.
BASE ?=
COMPARE_ROUNDS ?= 6

.PHONY: bench-compare
bench-compare: $(BENCHSTAT) ## Compare the pure packages by benchstat with a commit, both in turn, or with the stored baseline (BASE=, COMPARE_ROUNDS=)
	hack/bench-compare.sh '$(BENCHSTAT)' '$(COMPARE_ROUNDS)' '$(or $(BASE),stored)'

.PHONY: bench-baseline
bench-baseline: $(BENCHSTAT) ## Store what the pure packages take on this machine, in hack/bench-baseline.txt
	hack/bench-compare.sh '$(BENCHSTAT)' '$(COMPARE_ROUNDS)' store

# How often each is measured.
ROUNDS ?= 60

.PHONY: observability-cost
observability-cost: ## Measure what metrics and traces cost in CPU time per call (ROUNDS=)
	go run ./test/cost -rounds $(ROUNDS)

.PHONY: carriers
carriers: ## Measure what carries a call between gateway and agent: frames, and HTTP/1.1 backwards (RECORD=)
	go run ./test/carriers $(if $(RECORD),| tee '$(RECORD)')

.PHONY: coldstart
coldstart: ## Measure the phases of cold starts on the cluster of KUBECONFIG
	go run ./test/coldstart

# scaleout, burst, warmpool or warm.
BENCH ?= scaleout

.PHONY: scaleout
scaleout: ## Measure throughput by nodes, bursts, warm pools or warm calls on the cluster of KUBECONFIG (BENCH=)
	go run ./test/scaleout -bench $(BENCH)

.PHONY: scale
scale: ## Measure decisions and API writes with 1,000 nodes of kwok, and the writes of 1,000 busy functions
	WITH_KWOK=1 test/cluster/binaries.sh
	go run ./test/scale
	go run ./test/scale -busy 1000

# Flags of test/density, such as -agents 2000 or -lent-only.
DENSITY ?=

.PHONY: density
density: ## Measure the memory of 10,000 idle functions and 5,000 idle instances in a gateway and a scheduler; takes ten minutes
	go run ./test/density $(DENSITY)

.PHONY: density-results
density-results: ## Store what make density prints in docs/results/density.txt, with the command, the commit and the machine (DENSITY=)
	@mkdir -p bin
	{ echo 'go run ./test/density $(DENSITY)'; \
	  echo "Windlass $(VERSION), $$(go env GOVERSION), $$(date -u +%FT%TZ)"; \
	  echo "$$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $$(nproc) processors, Linux $$(uname -r), load average $$(cut -d' ' -f1 /proc/loadavg)"; \
	  go run ./test/density $(DENSITY); } >bin/density.txt
	mv bin/density.txt docs/results/density.txt

# two, azure, zuk or all.
nodesched: BENCH = azure two

.PHONY: nodesched
nodesched: ## Measure what the order of calls on a busy node does to them, with real processes, as root; takes minutes (BENCH=azure, two, zuk, all, colocate, memcached)
	for trace in $(if $(filter all,$(BENCH)),azure two zuk,$(BENCH)); do go run ./test/nodesched -trace $$trace || exit 1; done

# Which rows, such as F2,F21-F24.
ROWS ?=
# Labs that share the rows at the same time; each takes a core or two.
LABS ?= 1
# A file that keeps what became of each row, such as docs/results/faults-7.json.
RECORD ?=

.PHONY: faults
faults: cluster-binaries ## Break a Windlass of real programs under load, as root (ROWS=, SEED=, LABS=, RECORD=)
	go run ./test/faults -rows '$(ROWS)' -seed $(SEED) -labs $(LABS) -record '$(RECORD)'

# What runs another runtime's image than those that Windlass brings along, and the folder of its handlers.
COMMAND ?=
CODE ?=

.PHONY: contract
contract: ## Check what runs code against the contract of runtimes (COMMAND= and CODE= for an image of your own)
	go test -count=1 -v ./test/contract -command '$(COMMAND)' -code '$(abspath $(CODE))'

.PHONY: skew
skew: cluster-binaries ## Update an older release to this one and back under load, with the agents of each, as root
	test/skew/run.sh -seed $(SEED)

.PHONY: traffic
traffic: cluster-binaries ## Part the calls of a function among its revisions, again and back, and print how exactly and how soon, as root
	go run ./test/faults -traffic -seed $(SEED)

.PHONY: faults-page
faults-page: ## Make docs/results/faults.md and the tables of docs/reliability.md from the kept rounds
	go run ./test/faults -page docs

# A factor on how often and how long figures are measured.
SCALE ?= 1

.PHONY: figures
figures: cluster-binaries ## Draw docs/results again, and measure what faults and attacks cost, as root; takes hours (SEED=, SCALE=)
	$(MAKE) sim SEEDS=100000
	$(MAKE) results
	WINDLASS_GUESSES=1000000 $(MAKE) attacks
	go test -count=1 -v -run 'Goodput|Retry' ./pkg/queue | grep -E '='
	go test -count=1 -v -run BurstOfOneNamespace ./pkg/scheduler | grep -E '='
	go run ./test/faults -figures all -seed $(SEED) -scale $(SCALE)

# Alerts that are brought about, such as TickLag,NoCapacity; by default all.
ALERTS ?=

.PHONY: monitoring
monitoring: build examples cluster-binaries ## Ask all that dashboards ask, and bring all alerts about, with a real Prometheus, as root (ALERTS=)
	go run ./test/monitoring -alerts '$(ALERTS)' $(if $(TRACE),-trace '$(TRACE)')

.PHONY: verify
verify: verify-format verify-lint verify-api verify-generated verify-wire verify-modules verify-layers house verify-docs verify-dashboards verify-rules ## Run every check that is not a test

.PHONY: verify-format
verify-format: tools-golangci ## Check the format of Go code
	@$(GOLANGCI) fmt --diff || { echo 'Go code is not formatted as usual: run "make format".' >&2; exit 1; }

.PHONY: verify-lint
verify-lint: tools-golangci ## Check Go code with the linters of .golangci.yml
	$(GOLANGCI) run

.PHONY: verify-api
verify-api: ## Check the types of the API with kube-api-linter and the rules of hack/apilint
	cd hack/apilint && go test . && go run . rules.yaml ../.. ./api/v1alpha1

.PHONY: verify-generated
verify-generated: tools ## Check that generated code and generated docs follow their sources
	PATH="$(TOOLS):$$PATH" hack/verify-generated.sh

.PHONY: verify-wire
verify-wire: tools ## Check that the wire has not changed since it was frozen, but for what was added
	@PATH="$(TOOLS):$$PATH" hack/verify-wire.sh

# All modules with code of ours. The others only pin tools.
MODULES = . images/build hack/apilint hack/dashboards hack/release

.PHONY: verify-modules
verify-modules: ## Check that go.mod and go.sum are tidy
	@(for module in $(MODULES); do (cd "$$module" && go mod tidy -diff) || exit 1; done) || { echo 'go.mod or go.sum is not tidy: run "go mod tidy".' >&2; exit 1; }

.PHONY: verify-chart
verify-chart: cluster-binaries ## Check the chart: lint, schema, and its manifests for Kubernetes 1.29 to 1.34
	go test -tags apiserver,conform -count=1 -timeout 30m ./test/chart

.PHONY: verify-rules
verify-rules: ## Check the recording rules and alerts with promtool
	@programs=$$(test/monitoring/prometheus.sh) && \
	  "$$programs/promtool" check rules charts/windlass/rules/*.yaml && \
	  "$$programs/promtool" test rules test/monitoring/alerts/*.yaml

.PHONY: verify-dashboards
verify-dashboards: ## Check the Grafana dashboards: up to date, Grafana's types, panels and queries
	hack/verify-dashboards.sh

.PHONY: verify-layers
verify-layers: ## Check which package imports which
	go test ./internal/archtest

.PHONY: house
house: ## Measure the shape of the code: boxes, methods, guards, names, words, files to open; fails beyond its bounds
	@go run ./internal/house

.PHONY: words
words: ## Print every public text on one page: metrics, commands, alerts, dashboards, conditions, problems, chart values, API fields
	@go run ./internal/publictexts/words

# file:///FOLDER is a copy of the database.
GOVULNDB ?= https://vuln.go.dev

# Not a part of verify, because its answer changes without a change of the code.
.PHONY: vulnerabilities
vulnerabilities: $(GOVULNCHECK) ## Compare modules and the Go release with the Go vulnerability database (GOVULNDB=)
	@for module in $(MODULES); do \
	  (cd "$$module" && $(GOVULNCHECK) -db '$(GOVULNDB)' ./...) || { found=$$?; failed="$${failed:-}$$module "; [ $$found = 3 ] || break; }; \
	done; \
	[ -z "$${failed:-}" ] || { echo "Modules that failed: $$failed" >&2; [ $$found = 3 ] || \
	  echo 'Not all was checked. Without a network, give GOVULNDB=file:///FOLDER, a copy of the database: https://go.dev/doc/security/vuln/database.' >&2; exit 1; }

.PHONY: verify-docs
verify-docs: ## Check links, make targets and the heads of design pages in the documentation
	go test ./internal/doccheck

##@ Cluster

NODES ?= 3
TAG ?= dev

.PHONY: cluster-binaries
cluster-binaries: ## Build Kubernetes, etcd and helm for test clusters, if they are not cached
	test/cluster/binaries.sh

.PHONY: cluster-up
cluster-up: cluster-binaries bin/cluster ## Start a cluster of NODES nodes on this machine, as root
	bin/cluster up --nodes $(NODES)

.PHONY: cluster-down
cluster-down: bin/cluster ## Stop it and remove all that is left of it
	bin/cluster down

.PHONY: cluster-load
cluster-load: images bin/cluster ## Build the images and load them into its nodes
	bin/cluster load bin/images/*.tar

.PHONY: images
images: ## Build the images as archives in bin/images, without Docker
	cd images/build && go run . -out ../../bin/images -tag $(TAG) -any-version windlass podagent $(patsubst images/%/Dockerfile,%,$(wildcard images/runtime-*/Dockerfile)) test-functions etcd

.PHONY: bin/cluster
bin/cluster:
	go build $(BUILDFLAGS) -o $@ ./test/cluster/cmd/cluster

##@ Change

.PHONY: format
format: tools-golangci ## Format Go code
	$(GOLANGCI) fmt

.PHONY: generate
generate: tools dashboards ## Generate code from protobufs and API types, docs/metrics.md, docs/problems.md and dashboards
	PATH="$(TOOLS):$$PATH" hack/generate.sh .

.PHONY: freeze-wire
freeze-wire: tools ## Make the wire as it is now what later changes are compared with, for a release
	PATH="$(TOOLS):$$PATH" hack/verify-wire.sh freeze

# The folder of test/wire/testdata that is made. None that is there is changed.
RELEASE ?= v1alpha1-1

.PHONY: record-wire
record-wire: ## Record what schedulers, gateways and agents say to each other, for a release (RELEASE=)
	go test -tags record -count=1 ./test/wire -run TestRecord -record '$(RELEASE)'

# A private key that signs, and a registry where images and chart are pushed; docs/releasing.md.
KEY ?=
REGISTRY ?=

.PHONY: release
release: ## Make the files of a release in bin/release, without a network (VERSION=v0.1.0, KEY=, REGISTRY=)
	@[ '$(origin VERSION)' != file ] || { echo 'VERSION is missing: "make release VERSION=v0.1.0"' >&2; exit 1; }
	cd hack/release && go run . -version '$(VERSION)' -out ../../bin/release/'$(VERSION)' $(if $(KEY),-key '$(abspath $(KEY))') $(if $(REGISTRY),-registry '$(REGISTRY)')

# Only archives and images for this machine, and Go's cache as it is. In make e2e, fewer repetitions.
QUICK ?=

.PHONY: release-check
release-check: cluster-binaries bin/cluster $(COSIGN) ## Make the release of the last commit twice, compare, verify, and install it on a cluster, as root (VERSION=, QUICK=)
	cd hack/release && COSIGN='$(COSIGN)' WINDLASS_RELEASE_QUICK='$(QUICK)' \
	  WINDLASS_RELEASE='$(if $(filter file,$(origin VERSION)),v$(shell sed -n 's/^version: //p' charts/windlass/Chart.yaml),$(VERSION))' \
	  go test -tags release -count=1 -timeout 60m -v -run '^TestRelease$$' .

.PHONY: dashboards
dashboards: ## Write the Grafana dashboards of the chart from hack/dashboards
	hack/dashboards.sh .

.PHONY: dashboard-pictures
dashboard-pictures: cluster-binaries ## Draw the pictures of docs/dashboards.md again, with headless Chromium, as root
	hack/dashboards/pictures.sh

.PHONY: clean
clean: ## Remove what was built, and the cached tools
	rm -rf bin .cache coverage.out

.PHONY: tools
tools: $(TOOLS)/.built

.PHONY: tools-golangci
tools-golangci: $(GOLANGCI)

.PHONY: cosign
cosign: $(COSIGN)

# The marker is made last, so that an interrupted build is built again.
$(TOOLS)/.built:
	@echo 'Building the code generators (once; hack/tools/go.mod pins them).'
	cd hack/tools && go build -buildvcs=false -o '$(@D)/' tool
	touch $@

$(GOLANGCI):
	@echo 'Building golangci-lint (once, some minutes; hack/golangci/go.mod pins it).'
	cd hack/golangci && go build -buildvcs=false -o '$@' github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(BENCHSTAT):
	cd hack/benchstat && go build -buildvcs=false -o '$@' golang.org/x/perf/cmd/benchstat

$(GHZ):
	cd hack/ghz && go build -buildvcs=false -o '$@' github.com/bojand/ghz/cmd/ghz

$(COSIGN):
	@echo 'Building cosign (once, some minutes; hack/cosign/go.mod pins it).'
	cd hack/cosign && CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o '$@' github.com/sigstore/cosign/v3/cmd/cosign

$(GOVULNCHECK):
	cd hack/govulncheck && go build -buildvcs=false -o '$@' golang.org/x/vuln/cmd/govulncheck
