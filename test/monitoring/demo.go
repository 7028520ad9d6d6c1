package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/demo"
	"github.com/windlass-dev/windlass/test/lab"
	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
)

// Native histograms are watched by a Prometheus of their own, see
// prometheus.Config.
var nativeQueries = []string{
	"histogram_quantile(0.9, sum(rate(windlass_gateway_invocation_duration_seconds[" + interval + "])))",
	"histogram_quantile(0.9, sum(rate(windlass_function_execution_duration_seconds[" + interval + "])))",
}

// scrapeEvery is less than a local instance needs to start: an increase of starts shows the first one of a
// function only if a scrape has found the series before, at zero.
const scrapeEvery = every / 5

// demo runs the load of windlass demo, and asks all questions of it.
func (o options) demo(ctx context.Context, dir string) (ok bool, err error) {
	var classic, native *prometheus.Server
	defer func() {
		for _, server := range []*prometheus.Server{classic, native} {
			if server != nil {
				server.Stop()
			}
		}
	}()
	began := time.Now()
	watch := func(opsURL string) (err error) {
		if classic, err = o.watch(ctx, filepath.Join(dir, "demo"), opsURL, false); err == nil {
			native, err = o.watch(ctx, filepath.Join(dir, "demo-native"), opsURL, true)
		}
		return err
	}
	fmt.Fprintln(o.out, "demo: the load of windlass demo, some 40 s")
	var said strings.Builder
	err = demo.Run(ctx, demo.Config{
		TraceDir: o.trace, Minutes: 2, Speed: 3, Seed: 1, ExamplesDir: "examples",
		AgentPath: lab.Config{Dir: labDir(dir)}.Program("podagent"), Out: &said, Watch: watch,
	})
	// What the demo promises of calls is for make demo to say.
	if err != nil && !errors.Is(err, demo.ErrFailed) {
		return false, fmt.Errorf("%w\n%s", err, said.String())
	}
	asked, err := questions()
	if err != nil {
		return false, err
	}
	seen, err := readEvidence(dir)
	if err != nil {
		return false, err
	}
	s := span{server: classic, from: began, to: time.Now(), functions: []string{"fib", "hello", "go-5ms"}}
	faults := seen.gather(ctx, s, asked)
	broken, err := classic.Broken(ctx)
	if err != nil {
		return false, err
	}
	for rule, why := range broken {
		faults = append(faults, fmt.Sprintf("rule %s: %s", rule, why))
	}
	for _, query := range nativeQueries {
		if has, err := (span{server: native, from: began, to: time.Now()}).hasData(ctx, query); err != nil || !has {
			faults = append(faults, fmt.Sprintf("no native histogram, %v: %s", err, query))
		}
	}
	for _, fault := range faults {
		fmt.Fprintln(o.out, "     ", fault)
	}
	mayBeMissing, err := readQuiet(false)
	if err != nil {
		return false, err
	}
	shown := slices.DeleteFunc(slices.Clone(asked), question.ofRunbook)
	missing := seen.missing(o.out, shown, mayBeMissing)
	fmt.Fprint(o.out, "demo: ")
	seen.summary(o.out, shown)
	return len(faults)+missing == 0, seen.write(dir)
}

// watch starts a Prometheus that watches a local Windlass.
func (o options) watch(ctx context.Context, dir, opsURL string, native bool) (*prometheus.Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	program, err := prometheusIn(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	rules, err := shortRules(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return prometheus.Start(ctx, prometheus.Config{
		Program: program, Dir: dir, Listen: listen, Job: job, Rules: rules, Every: scrapeEvery, Native: native,
		Targets: []prometheus.Target{{
			Addr: strings.TrimPrefix(opsURL, "http://"), Labels: map[string]string{"namespace": "windlass", "pod": "local", "component": "local"},
		}},
	})
}

// freeAddr is an address of this machine at which nobody listens.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
