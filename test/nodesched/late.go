package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The trace late has three nodes. Calls of the function hog keep the first one busy, in waves; calls of
// the function spread, which has an instance on each node, come at random. Between the waves all
// instances lend their pulls. All calls need as long, so that no order puts some of them first.
const (
	lateNodes = 3
	lateCPU   = 20 * time.Millisecond
	lateHogs  = 6
	lateLoad  = 0.6             // of the nodes without hogs
	lateWave  = 3 * time.Second // from one wave of hogs to the next
	lateLull  = time.Second     // what of it is without hogs
	// notesVariable names the folder of what instances write down, in the folder of the programs.
	notesVariable = "NODESCHED_NOTES"
	notesFolder   = "notes"
	runsFile      = "runs"
)

// nodeTrace is a trace for several nodes, and the policies that it compares by default.
type nodeTrace struct {
	measure  func(out io.Writer, self, temp string, p plan) error
	policies string
}

var nodeTraces = map[string]nodeTrace{
	"late":  {measureLate, "serpt,fifo"},
	"fewer": {measureFewer, "fair-choice,serpt"},
}

// startOnNodes measures a trace for several nodes.
func (p plan) startOnNodes(out io.Writer, t nodeTrace, chosen string, busy bool) error {
	if chosen == "" {
		chosen = t.policies
	}
	for name := range strings.SplitSeq(chosen, ",") {
		policy, err := policyByName(name)
		if err != nil {
			return err
		}
		if policy.order == "" {
			return fmt.Errorf("the policy %s has no node agent", name)
		}
		p.policies = append(p.policies, policy)
	}
	if err := checkMachine(busy); err != nil {
		return err
	}
	return withPrograms(func(self, temp string) error { return t.measure(out, self, temp, p) })
}

// bindings are what is compared: agents that say which calls wait, and those that do not.
var bindings = []string{"on", "off"}

// buildUnsaid builds an agent that tells nobody of a call that waits for a core: then no call leaves
// the node to which it came. It is the agent of this release in all else.
func buildUnsaid(dir, to string) error {
	overlay, err := unsaid(dir)
	if err != nil {
		return err
	}
	if built, err := exec.Command("go", "build", "-overlay", overlay, "-o", to, "github.com/windlass-dev/windlass/cmd/podagent").CombinedOutput(); err != nil {
		return fmt.Errorf("building the agent that says nothing: %w: %s", err, built)
	}
	return nil
}

// unsaid writes an overlay into a folder, which makes that agent of the product's source.
func unsaid(dir string) (overlay string, err error) {
	root, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	source := filepath.Join(filepath.Dir(strings.TrimSpace(string(root))), "pkg/podagent/core/node.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	silent, err := withoutWaits(string(text))
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "node.go"), filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(os.WriteFile(changed, []byte(silent), 0o644),
		os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace":{%q:%q}}`, source, changed), 0o644))
}

// withoutWaits is the source of the agent's waits for cores without what it says of them, and without the time at which
// that is due: an agent that is due wakes up at once, again and again.
func withoutWaits(source string) (string, error) {
	const says = "func (c *Core) reportLongWait(now time.Time) {\n"
	if strings.Count(source, says) != 1 {
		return "", errors.New("the agent does not report in reportLongWait that a call waits")
	}
	return strings.Replace(source, says, says+"\tif c != nil {\n\t\tc.node.wait.reportAt = time.Time{}\n\t\treturn\n\t}\n", 1), nil
}

// measureLate compares how long calls wait with and without late binding, in turn.
func measureLate(out io.Writer, self, temp string, p plan) error {
	said := filepath.Join(temp, "podagent")
	agents := map[string]string{"on": said + "-on", "off": said + "-off"}
	if err := errors.Join(os.Rename(said, agents["on"]), buildUnsaid(temp, agents["off"])); err != nil {
		return err
	}
	for _, policy := range p.policies {
		waits := map[string][]float64{}
		var sum counted
		for i := range p.seeds {
			seed := p.first + uint64(i)
			for _, binding := range bindings {
				_ = os.Remove(said)
				if err := os.Symlink(agents[binding], said); err != nil {
					return err
				}
				r, err := runLate(self, temp, policy, seed, p.length)
				if err != nil {
					return fmt.Errorf("late binding %s: %w", binding, err)
				}
				waits[binding] = append(waits[binding], r.waits...)
				sum.add(r.counted)
				fmt.Fprintf(out, "late_order=%s binding=%s seed=%d calls=%d mean_wait_ms=%.1f p50_wait_ms=%.1f p99_wait_ms=%.1f given_up=%d twice=%d lost=%d\n",
					policy.name, binding, seed, len(r.waits), 1e3*mean(r.waits), 1e3*percentile(r.waits, 50), 1e3*percentile(r.waits, 99), r.givenUp, r.twice, r.lost)
			}
		}
		on, off := percentile(waits["on"], 99), percentile(waits["off"], 99)
		fmt.Fprintf(out, "late_order=%s p99_wait_ms_on=%.1f p99_wait_ms_off=%.1f p99_ratio=%.3f mean_wait_ms_on=%.1f mean_wait_ms_off=%.1f given_up=%d twice=%d lost=%d\n",
			policy.name, 1e3*on, 1e3*off, on/off, 1e3*mean(waits["on"]), 1e3*mean(waits["off"]), sum.givenUp, sum.twice, sum.lost)
		if sum.twice+sum.lost > 0 {
			return fmt.Errorf("%d calls ran twice, and %d were lost", sum.twice, sum.lost)
		}
	}
	return nil
}

// counted is what happened to calls beside their waits.
type counted struct{ givenUp, twice, lost int }

func (c *counted) add(o counted) {
	c.givenUp += o.givenUp
	c.twice += o.twice
	c.lost += o.lost
}

// lateRun is one run: the waits of calls, in seconds, which are their turnarounds without their
// executions.
type lateRun struct {
	counted
	waits []float64
}

// runLate starts nodes and a Windlass, and makes calls while one node has too many.
func runLate(self, temp string, p policy, seed uint64, length time.Duration) (r lateRun, err error) {
	hogs := trace{instances: map[string]int{"hog": lateHogs, "spread": lateNodes}}
	s, end, err := placeOnNodes(self, temp, lateNodes, p, hogs)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, end()) }()
	stop := make(chan struct{})
	var hogging sync.WaitGroup
	var failed sync.Map
	began := time.Now()
	for range lateHogs {
		hogging.Go(func() { s.hog(began, stop, &failed) })
	}
	t := spread(seed, length)
	results := s.replay(t)
	close(stop)
	hogging.Wait()
	text, err := s.metrics()
	if err != nil {
		return r, err
	}
	r.givenUp = int(sumOf(text, "windlass_gateway_calls_given_up_total", ""))
	for _, c := range results {
		if c.err != nil {
			r.lost++
			fmt.Fprintln(os.Stderr, "nodesched: a call was lost:", c.err)
			continue
		}
		r.waits = append(r.waits, (c.turnaround - c.exec).Seconds())
	}
	failed.Range(func(why, _ any) bool {
		r.lost++
		fmt.Fprintln(os.Stderr, "nodesched: a call of the busy node was lost:", why)
		return true
	})
	r.twice, err = twice(filepath.Join(temp, notesFolder, runsFile))
	return r, err
}

// hog makes one call after the other while a wave is on, and notes why calls failed.
func (s *server) hog(began time.Time, stop <-chan struct{}, failed *sync.Map) {
	client := http.Client{Transport: s.http, Timeout: time.Minute}
	for {
		pause := lateLull - time.Since(began)%lateWave
		select {
		case <-stop:
			return
		case <-time.After(max(0, pause)):
		}
		if r := s.make(&client, call{function: "hog", cpu: lateCPU}); r.err != nil {
			failed.Store(r.err.Error(), true)
		}
	}
}

// spread is calls that come at random.
func spread(seed uint64, length time.Duration) trace {
	rng := rand.New(rand.NewPCG(seed, 17))
	rate := lateLoad * (lateNodes - 1) * speed / lateCPU.Seconds()
	t := trace{}
	for at := rng.ExpFloat64() / rate; at < length.Seconds(); at += rng.ExpFloat64() / rate {
		t.calls = append(t.calls, call{at: seconds(at), function: "spread", class: "spread", cpu: lateCPU})
	}
	return t
}

// placeOnNodes starts nodes, and a Windlass whose instances are on them.
func placeOnNodes(self, temp string, n int, p policy, t trace) (*server, func() error, error) {
	notes := filepath.Join(temp, notesFolder)
	if err := errors.Join(os.MkdirAll(notes, 0o755), noteFirstNodes(notes, t.instances, n)); err != nil {
		return nil, nil, err
	}
	on, err := startNodes(self, temp, n, p)
	if err != nil {
		return nil, nil, err
	}
	s, err := startServer(self, temp, onNodes, t)
	if err != nil {
		return nil, nil, errors.Join(err, on.stop())
	}
	return s, func() error {
		return errors.Join(s.stop(), on.stop(), os.RemoveAll(notes), os.RemoveAll(filepath.Join(temp, "data")))
	}, nil
}

// twice is how many calls have run more than once, by what functions wrote down.
func twice(path string) (n int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	ran := map[string]int{}
	for id := range strings.FieldsSeq(string(text)) {
		if ran[id]++; ran[id] == 2 {
			n++
		}
	}
	if len(ran) == 0 {
		return 0, errors.New("no function has written down what it ran")
	}
	return n, nil
}

// noteRun writes down which call runs, if the function was told where.
func noteRun(r *http.Request) error {
	notes := os.Getenv(notesVariable)
	if notes == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(notes, runsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, r.Header.Get("Windlass-Invocation-Id"))
	return errors.Join(err, f.Close())
}

// measureFewer compares n nodes that order calls with one more that do not, in turn: the trace azure,
// with a load of all cores of the larger number.
func measureFewer(out io.Writer, self, temp string, p plan) error {
	const few = 3
	type setup struct {
		nodes  int
		policy policy
	}
	setups := []setup{{few + 1, policy{name: "off"}}}
	for _, policy := range p.policies {
		setups = append(setups, setup{few, policy})
	}
	all := make([][]float64, len(setups))
	for i := range p.seeds {
		seed := p.first + uint64(i)
		t, err := newTrace("azure", seed, p.load*(few+1)*speed, p.length)
		if err != nil {
			return err
		}
		for j, setup := range setups {
			s, end, err := placeOnNodes(self, temp, setup.nodes, setup.policy, t)
			if err != nil {
				return err
			}
			o := outcome{results: s.replay(t)}
			failed, first := o.failed()
			if err := errors.Join(end(), first); err != nil {
				return fmt.Errorf("%d calls failed: %w", failed, err)
			}
			took := o.turnarounds("")
			all[j] = append(all[j], took...)
			fmt.Fprintf(out, "nodes=%d order=%s load=%.2f seed=%d calls=%d mean_response_ms=%.1f p99_response_ms=%.1f\n",
				setup.nodes, setup.policy.name, p.load, seed, len(took), 1e3*mean(took), 1e3*percentile(took, 99))
		}
	}
	for j, setup := range setups[1:] {
		fmt.Fprintf(out, "fewer_order=%s load=%.2f mean_ratio_to_four_without=%.3f p99_ratio=%.3f\n",
			setup.policy.name, p.load, mean(all[j+1])/mean(all[0]), percentile(all[j+1], 99)/percentile(all[0], 99))
	}
	return nil
}
