package prometheus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// Target is what is scraped.
type Target struct {
	// Addr is host:port of metrics at /metrics.
	Addr string
	// Labels are added to its series, unless they have labels of that name.
	Labels map[string]string
}

// Config says how to run the server.
type Config struct {
	// Program is the path of prometheus.
	Program string
	// Dir is an empty folder that it writes to.
	Dir string
	// Listen is the address that it serves, host:port.
	Listen string
	// Job is the label job of all Targets.
	Job     string
	Targets []Target
	// Rules are absolute paths of rule files.
	Rules []string
	// Every is how often targets are scraped and rules evaluated, at least 1 ms.
	Every time.Duration
	// Native has it store native histograms. A Prometheus before 2.45 then drops
	// the classic buckets of those that have both.
	Native bool
}

func (c Config) features() []string {
	if c.Native {
		return []string{"exemplar-storage", "native-histograms"}
	}
	return []string{"exemplar-storage"}
}

// Server is a Prometheus that runs.
type Server struct {
	url   string
	cmd   *exec.Cmd
	ended chan struct{}
	log   string
}

// readyWithin bounds how long the server may take to serve.
const readyWithin = 30 * time.Second

// Start starts a server, and returns when it has scraped every target once.
func Start(ctx context.Context, c Config) (*Server, error) {
	config := filepath.Join(c.Dir, "prometheus.yml")
	text, err := yaml.Marshal(c.file())
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + c.Listen, ended: make(chan struct{}), log: filepath.Join(c.Dir, "prometheus.log")}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd = exec.Command(c.Program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(c.Dir, "data"),
		"--web.listen-address="+c.Listen, "--enable-feature="+strings.Join(c.features(), ","), "--log.level=warn")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The kernel ends the server with the thread that started it.
		runtime.LockOSThread()
		defer close(s.ended)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := s.ready(ctx, len(c.Targets)); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// file is the server's configuration.
func (c Config) file() map[string]any {
	var statics []map[string]any
	for _, t := range c.Targets {
		statics = append(statics, map[string]any{"targets": []string{t.Addr}, "labels": t.Labels})
	}
	every := fmt.Sprintf("%dms", c.Every.Milliseconds())
	return map[string]any{
		"global":     map[string]any{"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
		"rule_files": c.Rules,
		"scrape_configs": []map[string]any{{
			"job_name": c.Job, "static_configs": statics,
		}},
	}
}

// ready returns when so many targets have been scraped.
func (s *Server) ready(ctx context.Context, targets int) error {
	for {
		up, err := s.Query(ctx, "up == 1")
		if err == nil && len(up) == targets {
			return nil
		}
		select {
		case <-s.ended:
			said, _ := os.ReadFile(s.log)
			return fmt.Errorf("prometheus has ended: %s", strings.TrimSpace(string(said)))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("prometheus has scraped %d of %d targets within %v", len(up), targets, readyWithin), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// URL is where the server is.
func (s *Server) URL() string { return s.url }

// stopWithin is how long the server may take to end before it is killed.
const stopWithin = 10 * time.Second

// Stop ends the server.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopWithin):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}
