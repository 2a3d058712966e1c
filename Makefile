# memconn. The README's two commands are `make demo` and `make test`.

GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT    ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
LDFLAGS   := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
LINT      := $(GO) tool -modfile=tools/go.mod golangci-lint

TPC_PYTHON := build/tpc/venv/bin/python
TPC_SMALL  := build/tpc/small/ready
TPC_LARGE  := build/tpc/large/ready

# How long each fuzz target runs in `make fuzz`.
FUZZTIME ?= 30s

.PHONY: build demo test test-long fuzz test-clients test-tpc tpc-data check lint bench clean

build: ## the server and client, bin/memconn
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/memconn ./cmd/memconn

demo: build ## the tour on real flights data; exits 0 only if every step checked out
	bin/memconn demo

test: tpc-data ## every test, with the race detector
	$(GO) vet ./...
	$(GO) test -race -timeout 20m $$($(GO) list ./... | grep -v /integration)
	$(GO) test -race -timeout 20m -count=1 ./integration # runs binaries that Go's test cache does not know

test-long: tpc-data ## the same with many rounds of the random, fault and crash tests, and ten minutes of mixed load; docs/testing.md
	TEST_LONG=1 RAPID_CHECKS=500 $(GO) test -race -timeout 60m -count=1 ./...

fuzz: ## every fuzz target in turn, for FUZZTIME each
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		grep -ho '^func Fuzz[A-Za-z0-9]*' $$dir/*_test.go | cut -d' ' -f2 | while read -r target; do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$dir || exit 1; \
		done || exit 1; \
	done

test-clients: .venv/ready ## ADBC and pyarrow, from PyPI, against the real server
	TEST_PYTHON=$(CURDIR)/.venv/bin/python $(GO) test -race -timeout 10m -tags clients -run TestPythonClients ./integration

.venv/ready: integration/python/requirements.txt
	python3 -m venv .venv
	.venv/bin/pip install --quiet --requirement integration/python/requirements.txt
	touch .venv/ready

tpc-data: $(TPC_SMALL) ## TPC-H and TPC-DS at scale 0.01, with their queries; the generators come from PyPI

test-tpc: $(TPC_LARGE) ## TPC-H at scale 1 and TPC-DS at 0.1 beside DuckDB, with times
	TEST_TPC_DATA=$(CURDIR)/build/tpc/large $(GO) test -count=1 -timeout 30m -v -run 'TestTPC$$' ./integration

$(TPC_SMALL): build/tpc/venv/ready integration/python/tpc.py
	$(TPC_PYTHON) integration/python/tpc.py $(@D) 0.01 0.01
	touch $@

$(TPC_LARGE): build/tpc/venv/ready integration/python/tpc.py
	$(TPC_PYTHON) integration/python/tpc.py $(@D) 1 0.1
	touch $@

build/tpc/venv/ready: integration/python/tpc-requirements.txt
	python3 -m venv build/tpc/venv
	build/tpc/venv/bin/pip install --quiet --requirement integration/python/tpc-requirements.txt
	touch $@

lint: ## golangci-lint at the version that tools/go.mod pins
	$(LINT) run

check: ## what a change must pass: format, tidy modules, lint, tests
	test -z "$$(gofmt -l .)"
	$(GO) mod tidy -diff
	$(MAKE) lint test

bench: build ## the performance scenarios beside DuckDB; exits 1 when a must is missed
	bin/memconn bench

clean:
	rm -rf bin build
