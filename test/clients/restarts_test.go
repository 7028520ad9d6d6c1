//go:build clients

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// Load at the first gateway while all else restarts.
const (
	talking, silent = 2, 2
	// surplus is how many instances more there are for a moment.
	surplus = 4
	// unaryRate and streamRate are calls in a second, all short enough to end before a pod must.
	unaryRate, streamRate = 30, 4
	// fewestCalls is how many there are at least in one round.
	fewestCalls = 40
	// roundEvery is how often everything restarts when there is a lot of time.
	roundEvery = 90 * time.Second
)

// TestConnectionsOutliveRestarts keeps WebSockets open and calls by gRPC at the first gateway
// while idle instances leave and everything but that gateway is restarted, again and again.
func TestConnectionsOutliveRestarts(t *testing.T) {
	needs(t, "node")
	needs(t, "ghz")
	module := filepath.Join(installed(t, ws), "node_modules", "ws")
	// What is under way when the time is over is brought to an end.
	end := time.Now().Add(*duration)
	sockets := openSockets(t, module)
	unary := startGHZ(t, unaryRate, "UnaryCall", "--data", `{"payload":{"body":"aGVsbG8="}}`)
	streams := startGHZ(t, streamRate, "FullDuplexCall", "--stream-interval=100ms", "--data",
		`[{"response_parameters":[{"size":10},{"size":70000}]},{"response_parameters":[{"size":10}]},{"response_parameters":[{"size":1000}]}]`)
	var done restarted
	for done.schedulers == 0 || time.Now().Before(end) {
		next := time.Now().Add(roundEvery)
		if err := done.round(t.Context()); err != nil {
			t.Error(err)
			break
		}
		sleep.For(t.Context(), min(time.Until(next), time.Until(end)))
	}
	sockets.judge(t)
	unary.judge(t)
	streams.judge(t)
	figure("restarts{schedulers}=%d restarts{controllers}=%d restarts{etcd}=%d restarts{api}=%d restarts{other_gateways}=%d replaced{instances}=%d left{idle_instances}=%d",
		done.schedulers, done.controllers, done.etcd, done.api, done.gateways, done.replaced, done.left)
}

// restarted counts what was restarted.
type restarted struct {
	schedulers, controllers, etcd, api, gateways, replaced, left int
}

// stepWithin bounds each step of a round, which waits for it.
const stepWithin = 2 * time.Minute

// round lets instances come and leave, restarts one after the other all but the first gateway,
// replaces the instances of the function that is called by gRPC, and lets instances come and
// leave again.
func (r *restarted) round(ctx context.Context) error {
	if err := r.scaleDown(ctx); err != nil {
		return err
	}
	for _, group := range []struct {
		members []*lab.Member
		count   *int
	}{
		{windlass.Schedulers, &r.schedulers}, {[]*lab.Member{windlass.Controller}, &r.controllers}, {windlass.Gateways[1:], &r.gateways},
		{windlass.Etcd.Members, &r.etcd}, {[]*lab.Member{windlass.API}, &r.api},
	} {
		for _, m := range group.members {
			if err := restart(ctx, m); err != nil {
				return fmt.Errorf("restarting %s: %w", m.Name, err)
			}
			*group.count++
		}
	}
	if err := r.replace(ctx); err != nil {
		return err
	}
	return r.scaleDown(ctx)
}

// restart is that of a rolling update. An API server and a member of etcd that are asked to end wait
// for those who watch, the one for a minute, the other for 7 s, and so they are killed.
func restart(ctx context.Context, m *lab.Member) error {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	if m == windlass.API || slices.Contains(windlass.Etcd.Members, m) {
		m.Kill()
		return m.Revive(ctx)
	}
	return m.Restart(ctx)
}

// scaleDown has surplus calls at a time, and waits until the instances that they needed have left.
func (r *restarted) scaleDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	var most atomic.Int32
	errs := make(chan error, surplus)
	for range surplus {
		go func() {
			_, err := ask(ctx, url(talks)+"/see?ms=1000")
			most.Store(max(most.Load(), int32(len(windlass.Kubelet.PodsOf(talks)))))
			errs <- err
		}()
	}
	for range surplus {
		if err := <-errs; err != nil {
			return fmt.Errorf("a call beside the WebSockets: %w", err)
		}
	}
	if most.Load() <= talking+silent {
		return fmt.Errorf("there were only %d instances, so that none can leave", most.Load())
	}
	err := sleep.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		return len(windlass.Kubelet.PodsOf(talks)) <= talking+silent, nil
	})
	if err != nil {
		return fmt.Errorf("%d instances have not left: %w", len(windlass.Kubelet.PodsOf(talks))-talking-silent, err)
	}
	r.left += int(most.Load()) - len(windlass.Kubelet.PodsOf(talks))
	return nil
}

// replace deletes the instances of the function that is called by gRPC, each when the one before
// has a successor.
func (r *restarted) replace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	pods := windlass.Kubelet.PodsOf(rolled)
	for _, pod := range pods {
		if err := windlass.Kubelet.Delete(ctx, pod); err != nil {
			return err
		}
		err := sleep.Until(ctx, 100*time.Millisecond, func() (bool, error) {
			now := windlass.Kubelet.PodsOf(rolled)
			return !slices.Contains(now, pod) && len(now) >= rolledInstances, nil
		})
		if err != nil {
			return fmt.Errorf("instance %s has no successor: %w", pod.CID, err)
		}
		r.replaced++
	}
	return nil
}

// sockets are WebSockets that the ws of Node.js holds open.
type sockets struct {
	input  io.WriteCloser
	output *bufio.Scanner
	began  time.Time
	// opened is what the client said when all were open.
	opened socketReport
}

type socketReport struct {
	Opened, Sent, Received, Wrong, Pings, Pongs, ClosedEarly int
	Errors, Instances                                        []string
}

// openSockets returns when all are open.
func openSockets(t *testing.T, module string) *sockets {
	t.Helper()
	url := "ws://" + gatewayAddr() + path(talks) + "/ws"
	cmd := exec.Command("node", "test/clients/testdata/ws.cjs", module, url, fmt.Sprint(talking), fmt.Sprint(silent))
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &sockets{input: input, output: bufio.NewScanner(output), began: time.Now()}
	s.opened = s.report(t)
	if s.opened.Opened != talking+silent || len(s.opened.Errors) > 0 {
		t.Fatalf("the WebSockets do not open: %+v", s.opened)
	}
	return s
}

// report reads what the client says next.
func (s *sockets) report(t *testing.T) (r socketReport) {
	t.Helper()
	if !s.output.Scan() {
		t.Fatalf("the client of the WebSockets has ended: %v", s.output.Err())
	}
	if err := json.Unmarshal(s.output.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// judge ends the conversations: nothing may be lost, changed or closed.
func (s *sockets) judge(t *testing.T) {
	t.Helper()
	open := time.Since(s.began)
	_ = s.input.Close()
	r := s.report(t)
	figure("websockets{ws}=%d open_for=%v sent=%d received=%d wrong=%d pings=%d pongs=%d closed_early=%d",
		r.Opened, open.Round(time.Second), r.Sent, r.Received, r.Wrong, r.Pings, r.Pongs, r.ClosedEarly)
	if r.Opened != talking+silent || r.Received != r.Sent || r.Wrong > 0 || r.Pongs != r.Pings || r.ClosedEarly > 0 || len(r.Errors) > 0 {
		t.Errorf("WebSockets: %+v", r)
	}
}

// ghz is a running ghz.
type ghz struct {
	method         string
	stop           func()
	ended          <-chan struct{}
	out, complaint bytes.Buffer
	err            error
}

// startGHZ calls a method of the rolled function at a rate, in calls per second, until it is stopped.
func startGHZ(t *testing.T, rate int, method string, arguments ...string) *ghz {
	t.Helper()
	ended := make(chan struct{})
	cmd := exec.Command("ghz", append([]string{
		"--insecure", "--authority=" + host(rolled), "--call=grpc.testing.TestService." + method, "--format=json",
		"--concurrency=4", "--connections=2", fmt.Sprintf("--rps=%d", rate), "--timeout=30s",
		// Enough for hours. An interrupt ends it sooner, and calls under way are waited for.
		"--duration=24h", "--duration-stop=wait",
	}, append(arguments, gatewayAddr())...)...)
	g := &ghz{method: method, ended: ended, stop: sync.OnceFunc(func() { _ = cmd.Process.Signal(os.Interrupt) })}
	cmd.Stdout, cmd.Stderr = &g.out, &g.complaint
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		g.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		g.stop()
		<-ended
	})
	return g
}

// judge ends ghz: no call may have failed.
func (g *ghz) judge(t *testing.T) {
	t.Helper()
	g.stop()
	<-g.ended
	var report struct {
		Count                  int
		StatusCodeDistribution map[string]int
		ErrorDistribution      map[string]int
		Average, Slowest       time.Duration
	}
	if err := errors.Join(g.err, json.Unmarshal(g.out.Bytes(), &report)); err != nil {
		t.Fatalf("ghz of %s: %v: %s", g.method, err, g.complaint.String())
	}
	failed := report.Count - report.StatusCodeDistribution["OK"]
	figure("ghz{%s} calls=%d failed=%d average=%v slowest=%v", g.method, report.Count, failed,
		report.Average.Round(time.Millisecond), report.Slowest.Round(time.Millisecond))
	if failed > 0 || report.Count < fewestCalls {
		t.Errorf("ghz of %s: %d calls, %v, %v", g.method, report.Count, report.StatusCodeDistribution, report.ErrorDistribution)
	}
}
