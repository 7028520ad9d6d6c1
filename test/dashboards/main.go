// Command dashboards runs a local Windlass under load and a real Prometheus, and then a
// command that may ask that Prometheus what it saw. It makes the pictures of
// docs/dashboards.md: see hack/dashboards/pictures.sh.
//
// The command finds in its environment PROMETHEUS, a URL, and BEGAN and ENDED, seconds of
// Unix time between which the load was. So that some minutes show what takes hours, times
// within recording rules are divided by -factor.
//
//	go run ./test/dashboards -agent bin/podagent -- COMMAND [ARGUMENT...]
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
	"github.com/windlass-dev/windlass/test/monitoring/rulefile"
)

const (
	// every is how often Prometheus scrapes and evaluates. Metrics are collected once a second
	// at most: scrapes as often as that would see two seconds, or none, by turns.
	every = 2 * time.Second
	// A rate over a shorter window may find one scrape only.
	shortest = 4 * every
)

// options are what the command line says.
type options struct {
	agent, programs string
	during          time.Duration
	factor          float64
	command         []string
}

func main() {
	// Prometheus ends with the thread that started it, so that must be one that stays.
	runtime.LockOSThread()
	var o options
	flag.DurationVar(&o.during, "for", 4*time.Minute, "`time` of the load")
	flag.StringVar(&o.agent, "agent", "bin/podagent", "`path` of the agent")
	flag.StringVar(&o.programs, "prometheus", "", "`folder` of prometheus, as test/monitoring/prometheus.sh prints it")
	flag.Float64Var(&o.factor, "factor", 20, "`number` that times of recording rules are divided by")
	flag.Parse()
	o.command = flag.Args()
	if o.programs == "" || len(o.command) == 0 || o.factor < 1 {
		fmt.Fprintln(os.Stderr, "usage: dashboards -prometheus FOLDER [-for TIME] [-factor 1 or more] -- COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func (o options) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "windlass-dashboards-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rules, err := o.rules(dir)
	if err != nil {
		return err
	}
	var server *prometheus.Server
	defer func() {
		if server != nil {
			server.Stop()
		}
	}()
	began := time.Now()
	err = load(ctx, filepath.Join(dir, "windlass"), o.agent, o.during, func(opsURL string) (err error) {
		server, err = o.start(ctx, dir, rules, opsURL)
		return err
	})
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "PROMETHEUS="+server.URL(),
		fmt.Sprintf("BEGAN=%d", began.Unix()), fmt.Sprintf("ENDED=%d", time.Now().Unix()))
	return command.Run()
}

// rules writes the recording rules with shorter times.
func (o options) rules(dir string) ([]string, error) {
	text, err := os.ReadFile("charts/windlass/rules/recording.yaml")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "recording.yaml")
	return []string{path}, os.WriteFile(path, []byte(rulefile.Shorten(string(text), o.factor, shortest)), 0o600)
}

func (o options) start(ctx context.Context, dir string, rules []string, opsURL string) (*prometheus.Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	return prometheus.Start(ctx, prometheus.Config{
		Program: filepath.Join(o.programs, "prometheus"), Dir: dir, Listen: listen, Job: "windlass", Rules: rules, Every: every,
		Targets: []prometheus.Target{{
			Addr: strings.TrimPrefix(opsURL, "http://"), Labels: map[string]string{"instance": "local", "component": "local"},
		}},
	})
}
