# Targets for people and for CI; `make` alone lists them. What takes more than a line or two lies in tools/.

BIN      := bin/spillway
REVISION := $(shell rev=$$(git rev-parse --short=12 HEAD 2>/dev/null) && { git diff --quiet HEAD || rev=$$rev+dirty; echo $$rev; })
LDFLAGS  := -X spillway/internal/cli.ldRevision=$(REVISION)
# make build VERSION=1.2.3 sets the release; without it the one in the source counts.
ifdef VERSION
LDFLAGS  += -X spillway/internal/cli.version=$(VERSION)
endif

.DEFAULT_GOAL := help
.PHONY: help build setup bench bench-self bench-memory test cover lint vuln fmt fmt-check tidy-check smoke drills drills-random drills-nightly clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/spillway
	go build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/spillway

setup: build ## make what the servers run in, once; a second call finds it there
	@tools/setup.sh

bench: setup ## run the profiles steady and outage on real servers and print both summaries
	@tools/bench.sh

bench-self: setup ## measure spillway itself against its targets; writes docs/performance.md (PAIRS=10 ONLY=name,name BENCH_MEMORY=1)
	@tools/bench-self.sh $(if $(PAIRS),-pairs $(PAIRS)) $(if $(ONLY),-only $(ONLY)) $(if $(BENCH_MEMORY),-memory)

bench-memory: setup ## measure the memory of a run of ten million messages, into the same page
	@tools/bench-self.sh -only memory

test: setup ## run every test, with the race detector, on real servers
	@tools/test.sh

cover: ## statement coverage of the pure packages, at least 90 % each
	@tools/cover.sh

lint: ## golangci-lint, pinned
	@tools/lint.sh

vuln: ## govulncheck, pinned: known vulnerabilities that the code reaches
	@tools/vuln.sh

fmt: ## format the code
	gofmt -w cmd internal loadgen profiles tools workers

fmt-check: ## fail when a file is not formatted
	@unformatted=$$(gofmt -l cmd internal loadgen profiles tools workers); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi

tidy-check: ## fail when go.mod or go.sum is not tidy
	go mod tidy -diff

smoke: setup ## a short run of steady on servers of its own, its verdict checked
	@tools/smoke.sh

drills: setup ## every drill on real servers, with its table
	bin/spillway drill --all

drills-random: setup ## five random drills (N=5 SEED=1), each with an account of every message
	bin/spillway drill --random $(or $(N),5) --seed $(or $(SEED),1) --quiet --again 2

drills-nightly: setup ## a hundred random drills with fixed seeds: 45 minutes
	bin/spillway drill --random 100 --seed 1 --quiet --again 1 --junit results/drills-nightly.xml

clean: ## remove what was built; results and the stack root stay
	rm -rf bin
