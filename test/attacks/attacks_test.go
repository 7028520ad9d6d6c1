package attacks

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if rolePlayed() {
		return
	}
	flag.Parse()
	// Most attacks wait: for a limit of some seconds, or for the other side.
	_ = flag.Set("test.parallel", "16")
	goleak.VerifyTestMain(m)
}

// attack is one row of the table.
type attack struct {
	// id is the number in the table of docs/security.md.
	id   string
	name string
	// counted is the metric that must tell of it, see world.counter. Where it
	// is empty, an attack comes to nothing before anything could be counted,
	// or is no refusal: then run checks what became of it.
	counted string
	run     func(w *platform)
}

// Metrics that tell of attacks.
const (
	atTheEdge  = "windlass_gateway_invocations_refused_total"
	noHTTP     = "windlass_http_requests_refused_total"
	onTheWire  = "windlass_wire_streams_refused_total"
	wrongToken = "windlass_gateway_claims_refused_total{reason=WrongToken}"
	notWaiting = "windlass_gateway_claims_refused_total{reason=NotWaiting}"
	answered   = "windlass_gateway_invocations_total"
)

// TestAttacks runs every attack of the table.
func TestAttacks(t *testing.T) {
	all := slices.Concat(identityAttacks, claimAttacks, lyingAttacks, roleAttacks, smuggling, names, hostAttacks, sizes, protocols, frames, patient, injections, secretAttacks)
	buildAgent(t)
	refused := run(t, "all", all, (*testing.T).Parallel)
	n := len(all)
	for _, alone := range []struct {
		finding string
		attacks []attack
	}{
		{"S2", strangerAttacks}, {"S3", scrapeAttacks}, {"S5", agentAttacks}, {"S6 and S7", ofOtherUsers(t)}, {"S8", pageAttacks}, {"S13", urlAttacks},
	} {
		refused += run(t, alone.finding+", alone", alone.attacks, func(*testing.T) {})
		n += len(alone.attacks)
	}
	fmt.Fprintf(os.Stdout, "attacks_refused=%d/%d\n", refused, n)
}

// ofOtherUsers are the attacks that need another user.
func ofOtherUsers(t *testing.T) []attack {
	if os.Getuid() != 0 {
		t.Run("S6 and S7", func(t *testing.T) { t.Skip("S6 and S7 are left out: only root can be another user") })
		return nil
	}
	return slices.Concat(hogAttacks, userAttacks)
}

// run runs attacks, and returns how many came to nothing.
func run(t *testing.T, name string, all []attack, how func(*testing.T)) int32 {
	var refused atomic.Int32
	t.Run(name, func(t *testing.T) {
		for _, a := range all {
			t.Run(a.id+" "+a.name, func(t *testing.T) {
				how(t)
				goruntime.GC()
				heap := followHeap()
				defer func() { withinMemory(t, a, heap.end()) }()
				w := newPlatform(t)
				w.row = a.id + " " + a.name
				w.honestCall()
				before, series := w.counter(a.counted), w.series()
				a.run(w)
				if a.counted != "" {
					w.until(a.counted+" tells of it", func() bool { return w.counter(a.counted) > before })
				}
				w.unharmed(series)
				if !t.Failed() {
					refused.Add(1)
				}
			})
		}
	})
	return refused.Load()
}

// unharmed checks what must hold after every attack. A call whose path begins with
// /attack must not have run.
func (w *platform) unharmed(series int) {
	w.Helper()
	w.honestCall()
	w.mu.Lock()
	for _, granted := range w.executed {
		if strings.HasPrefix(granted.RequestURI, "/attack") {
			w.Errorf("the attack has run: %s %s", granted.Method, granted.RequestURI)
		}
	}
	w.mu.Unlock()
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, marker) || len(line) > 16<<10 || !json.Valid([]byte(line)) || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\x1b\x00") {
			w.Errorf("the log has a line of %d bytes that repeats the attack, or is none: %.500q", len(line), line)
		}
	}
	// A refusal may make a series for its method and reason, an answer one for its
	// code, and a function that is called for the first time some thirty. All that an
	// attack invents would make hundreds.
	if now := w.series() - w.added; now > series+60 {
		w.Errorf("there are %d series, and were %d", now, series)
	}
}
