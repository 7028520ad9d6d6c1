package e2e

import (
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// ceaseless calls a function without pause until it is stopped. The function answers the
// id of its process.
type ceaseless struct {
	client *http.Client
	url    string
	calls  atomic.Int64
	stop   func()

	mu sync.Mutex
	// pids are the processes that answered, by the revision that the answer names.
	pids   map[string]map[string]bool
	failed []string
}

func callCeaselessly(url string, callers int) *ceaseless {
	l := &ceaseless{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}, pids: map[string]map[string]bool{}}
	done := make(chan struct{})
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					l.call()
				}
			}
		})
	}
	l.stop = sync.OnceFunc(func() { close(done); running.Wait(); l.client.CloseIdleConnections() })
	DeferCleanup(l.stop)
	return l
}

func (l *ceaseless) call() (revision, pid string) {
	defer l.calls.Add(1)
	response, err := l.client.Get(l.url)
	if err != nil {
		l.note("", "", err.Error())
		return "", ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	failure := ""
	if err != nil || response.StatusCode != http.StatusOK {
		failure = response.Status + ": " + string(body)
	}
	revision, pid = response.Header.Get(invoke.HeaderRevision), string(body)
	l.note(revision, pid, failure)
	return revision, pid
}

func (l *ceaseless) note(revision, pid, failure string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failure != "" {
		l.failed = append(l.failed, failure)
		return
	}
	if l.pids[revision] == nil {
		l.pids[revision] = map[string]bool{}
	}
	l.pids[revision][pid] = true
}

// answered are the processes that have answered for a revision.
func (l *ceaseless) answered(revision string) map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.pids[revision])
}

var _ = Describe("A change that is broken", func() {
	It("fails no call, and is mended, and undone with the instances that there were", func() {
		c := up(probeManifest())
		probe := filepath.Join(binaries, "probe")
		deploy := func(variables ...string) (string, int) {
			GinkgoHelper()
			args := []string{"deploy", "--name", "f", "--wait"}
			for _, v := range variables {
				args = append(args, "--env", v)
			}
			_, errs, code := c.run(append(args, "--", probe)...)
			return errs, code
		}
		errs, code := deploy("VERSION=1")
		Expect(code).To(BeZero(), errs)
		Expect(errs).To(ContainSubstring("f-00001 has started; all calls go to f-00001"))
		under := callCeaselessly(c.gateway()+"/function/f/pid", 4)
		moves := func() {
			GinkgoHelper()
			before := under.calls.Load()
			Eventually(under.calls.Load, "10s").Should(BeNumerically(">", before+20))
		}
		moves()

		By("deploying what does not start")
		errs, code = deploy("VERSION=2", "PROBE_START=exit")
		Expect(code).To(Equal(3), errs)
		Expect(errs).To(SatisfyAll(ContainSubstring("function default/f does not start"),
			ContainSubstring("cannot find my configuration"), ContainSubstring("all calls go to f-00001")))
		moves()
		out, _, _ := c.run("rollout", "history", "f")
		Expect(out).To(MatchRegexp(`f-00001 +True +100%(?s:.*)\* +f-00002 +False +0%.*cannot find my configuration`))

		By("mending it")
		errs, code = deploy("VERSION=2")
		Expect(code).To(BeZero(), errs)
		Expect(errs).To(ContainSubstring("f-00003 has started; all calls go to f-00003"))
		revision, _ := under.call()
		Expect(revision).To(Equal("f-00003"))
		moves()

		By("undoing that while the former instances are there")
		former := under.answered("f-00001")
		out, errs, code = c.run("rollout", "undo", "f")
		Expect(code).To(BeZero(), errs)
		Expect(out).To(ContainSubstring("function default/f is f-00001 again"))
		revision, pid := under.call()
		Expect(revision).To(Equal("f-00001"))
		Expect(former).To(HaveKey(pid), "an instance was started for the call")
		out, errs, code = c.run("rollout", "status", "f")
		Expect(code).To(BeZero(), errs)
		Expect(out).To(Equal("f-00001 has started; all calls go to f-00001\n"))
		moves()

		under.stop()
		Expect(under.failed).To(BeEmpty(), "of %d calls", under.calls.Load())
		Expect(under.answered("f-00002")).To(BeEmpty())
	})
})
