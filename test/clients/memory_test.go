//go:build clients

package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	// large is a body that nobody on its way may hold, in bytes.
	large = 100 << 20
	// mostGrowth is how much more memory a gateway and an agent may have meanwhile, in KiB.
	mostGrowth = 4 << 10
)

// transfer is one way to send a large body through curl.
type transfer struct {
	name, path string
	arguments  []string
	// sum reads what curl prints, to the sum of the body that arrived.
	sum func(io.Reader) (string, error)
}

// transfers of a file go to and come from a function or a client that keeps up, and one that
// does not.
func transfers(file string) []transfer {
	up := []string{"--data-binary", "@" + file}
	down := fmt.Sprint("/bytes?n=", large)
	both := []string{"--request", "POST", "--upload-file", file}
	return []transfer{
		{"up", "/see", up, sumSeen},
		{"up_slow_function", "/see?pause=1", up, sumSeen},
		{"down", down, nil, sumPrinted},
		{"down_slow_client", down, []string{"--limit-rate", "50M"}, sumPrinted},
		{"both", "/duplex", both, sumPrinted},
		{"both_slow_client", "/duplex", append([]string{"--limit-rate", "50M"}, both...), sumPrinted},
		{"both_h2", "/duplex", append([]string{"--http2-prior-knowledge"}, both...), sumPrinted},
		{"down_slow_client_h2", down, []string{"--http2-prior-knowledge", "--limit-rate", "50M"}, sumPrinted},
	}
}

func TestLargeBodiesTakeNoMemory(t *testing.T) {
	body, want := file(t, large), sumOf(t, large)
	processes := map[string]int{
		"gateway": windlass.Gateways[0].Process().PID, "agent": only(t, peer).Agent().PID,
	}
	for _, way := range transfers(body) {
		t.Run(way.name, func(t *testing.T) {
			growth := watchMemory(processes)
			began := time.Now()
			if got, err := way.run(t); err != nil || got != want {
				t.Errorf("the body arrived with the sum %q, not %q: %v", got, want, err)
			}
			took := time.Since(began)
			for process, grown := range growth() {
				figure("memory{%s,%s} grown_kib=%d mib=%d took=%v", process, way.name, grown, large>>20, took.Round(time.Millisecond))
				if grown >= mostGrowth {
					t.Errorf("the %s grew by %d KiB", process, grown)
				}
			}
		})
	}
}

// run sends the body, and returns its sum as it arrived.
func (way transfer) run(t *testing.T) (sum string, err error) {
	arguments := append([]string{"--silent", "--show-error", "--max-time", "60", url(peer) + way.path}, way.arguments...)
	cmd := exec.CommandContext(t.Context(), "curl", arguments...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	sum, err = way.sum(out)
	return sum, errors.Join(err, cmd.Wait())
}

// sumSeen is the sum that the function says it saw.
func sumSeen(r io.Reader) (string, error) {
	text, err := io.ReadAll(r)
	_, rest, _ := strings.Cut(string(text), `"Sum":"`)
	sum, _, _ := strings.Cut(rest, `"`)
	return sum, err
}

func sumPrinted(r io.Reader) (string, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// sampleEvery is how often the memory of processes is looked at.
const sampleEvery = 5 * time.Millisecond

// watchMemory samples the anonymous memory of processes until growth is called, which says by
// how many KiB each had more than at the beginning. Pages of programs and of files do not count.
func watchMemory(pids map[string]int) (growth func() map[string]int) {
	before, grown := make(map[string]int), make(map[string]int)
	for name, pid := range pids {
		before[name] = anonymousKiB(pid)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for running := true; running; {
			select {
			case <-stop:
				running = false
			case <-time.After(sampleEvery):
			}
			for name, pid := range pids {
				grown[name] = max(grown[name], anonymousKiB(pid)-before[name])
			}
		}
	}()
	return func() map[string]int {
		close(stop)
		<-stopped
		return grown
	}
}

// anonymousKiB is how much memory of its own a process has; 0 if it has ended.
func anonymousKiB(pid int) (kib int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}
