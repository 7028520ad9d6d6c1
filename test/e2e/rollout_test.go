package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// reply is what became of a call.
type reply struct {
	// began is what the load's mark was when the call was made.
	began          int64
	revision, body string
	failure        string
}

// ceaseless calls a function over and over until it is stopped.
type ceaseless struct {
	client *http.Client
	url    string
	pause  time.Duration
	calls  atomic.Int64
	// mark is noted with every call that begins.
	mark atomic.Int64
	stop func()

	mu      sync.Mutex
	replies []reply
}

// callCeaselessly has some callers call a function, each of which rests for pause after
// each call.
func callCeaselessly(url string, callers int, pause time.Duration) *ceaseless {
	l := &ceaseless{url: url, pause: pause, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}}
	done := make(chan struct{})
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(l.pause):
					l.call()
				}
			}
		})
	}
	l.stop = sync.OnceFunc(func() { close(done); running.Wait(); l.client.CloseIdleConnections() })
	DeferCleanup(l.stop)
	return l
}

func (l *ceaseless) call() reply {
	r := reply{began: l.mark.Load()}
	response, err := l.client.Get(l.url)
	if err == nil {
		var body []byte
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		r.revision, r.body = response.Header.Get(invocation.HeaderRevision), string(body)
		if response.StatusCode != http.StatusOK {
			r.failure = response.Status + ": " + r.body
		}
	}
	if err != nil {
		r.failure = err.Error()
	}
	l.mu.Lock()
	l.replies = append(l.replies, r)
	l.mu.Unlock()
	l.calls.Add(1)
	return r
}

// those are the calls of a kind.
func (l *ceaseless) those(are func(reply) bool) (found []reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.replies {
		if are(r) {
			found = append(found, r)
		}
	}
	return found
}

func (l *ceaseless) failed() []reply {
	return l.those(func(r reply) bool { return r.failure != "" })
}

// answered are the bodies of a revision's answers.
func (l *ceaseless) answered(revision string) map[string]bool {
	bodies := make(map[string]bool)
	for _, r := range l.those(func(r reply) bool { return r.failure == "" && r.revision == revision }) {
		bodies[r.body] = true
	}
	return bodies
}

// moves waits for some more calls.
func (l *ceaseless) moves() {
	GinkgoHelper()
	before := l.calls.Load()
	Eventually(l.calls.Load, "10s").Should(BeNumerically(">", before+20))
}

// edits is how often code is edited: in local mode, one takes a second at most.
const edits = 50

var _ = Describe("Code that is edited again and again", func() {
	It("answers only as it is now once deploy --wait has ended, and fails no call", func() {
		needs("python3")
		c := up(probeManifest())
		code := filepath.Join(filepath.Dir(c.dataDir), "code")
		Expect(os.Mkdir(code, 0o700)).To(Succeed())
		deploy := func(version int) {
			GinkgoHelper()
			text := fmt.Sprintf("def handler(event, context):\n    return %d\n", version)
			Expect(os.WriteFile(filepath.Join(code, "app.py"), []byte(text), 0o600)).To(Succeed())
			_, errs, exit := c.run("deploy", "--wait", "--name", "edited", "--code", code, "--runtime", "python3.13", "--handler", "app.handler")
			Expect(exit).To(BeZero(), errs)
		}
		deploy(0)
		under := callCeaselessly(c.gateway()+"/function/edited", 3, 10*time.Millisecond)
		under.moves()
		began := time.Now()
		for version := 1; version <= edits; version++ {
			deploy(version)
			under.mark.Store(int64(version))
		}
		took := time.Since(began)
		under.moves()
		under.stop()
		old := under.those(func(r reply) bool {
			version, err := strconv.ParseInt(r.body, 10, 64)
			return err == nil && version < r.began
		})
		fmt.Fprintf(GinkgoWriter, "edits=%d calls=%d failed=%d old=%d seconds=%.1f\n", edits, under.calls.Load(), len(under.failed()), len(old), took.Seconds())
		Expect(under.failed()).To(BeEmpty())
		Expect(old).To(BeEmpty(), "calls that began after an edit, and were answered by what was before it")
		Expect(under.answered(fmt.Sprintf("edited-%05d", edits+1))).To(Equal(map[string]bool{strconv.Itoa(edits): true}))
	})
})

var _ = Describe("A change that is broken", func() {
	It("fails no call, and is mended, and undone with the instances that there were", func() {
		c := up(probeManifest())
		manifest := filepath.Join(GinkgoT().TempDir(), "f.yaml")
		deploy := func(variables ...string) (string, int) {
			GinkgoHelper()
			text := strings.Replace(probeManifest(), "{name: probe}", "{name: f}", 1) + "    env:\n"
			for _, v := range variables {
				name, value, _ := strings.Cut(v, "=")
				text += fmt.Sprintf("    - {name: %s, value: %q}\n", name, value)
			}
			text += "  rollout: {progressDeadline: 2s}\n"
			Expect(os.WriteFile(manifest, []byte(text), 0o600)).To(Succeed())
			_, errs, code := c.run("deploy", "-f", manifest, "--wait")
			return errs, code
		}
		conditions := func() map[string]string {
			GinkgoHelper()
			out, errs, code := c.run("describe", "f", "-o", "yaml")
			Expect(code).To(BeZero(), errs)
			var f v1alpha1.Function
			Expect(yaml.Unmarshal([]byte(out), &f)).To(Succeed(), out)
			found := make(map[string]string)
			for _, c := range f.Status.Conditions {
				found[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
			}
			return found
		}
		errs, code := deploy("VERSION=1")
		Expect(code).To(BeZero(), errs)
		Expect(errs).To(ContainSubstring("f-00001 has started; all calls go to f-00001"))
		under := callCeaselessly(c.gateway()+"/function/f/pid", 4, 0)
		under.moves()

		By("deploying what does not start")
		errs, code = deploy("VERSION=2", "PROBE_START=exit")
		Expect(code).To(Equal(3), errs)
		Expect(errs).To(SatisfyAll(ContainSubstring("function default/f does not start"),
			ContainSubstring("cannot find my configuration"), ContainSubstring("all calls go to f-00001")))
		under.moves()
		Eventually(conditions, "20s", "200ms").Should(SatisfyAll(
			HaveKeyWithValue("Ready", HavePrefix("True Started")),
			HaveKeyWithValue("RevisionReady", SatisfyAll(HavePrefix("False StartFailed"), ContainSubstring("cannot find my configuration"))),
			HaveKeyWithValue("Stalled", SatisfyAll(HavePrefix("True StartFailed"), ContainSubstring("cannot find my configuration")))))
		out, _, _ := c.run("rollout", "history", "f")
		Expect(out).To(MatchRegexp(`f-00001 +True +100%(?s:.*)\* +f-00002 +False +0%.*cannot find my configuration`))

		By("mending it")
		errs, code = deploy("VERSION=2")
		Expect(code).To(BeZero(), errs)
		Expect(errs).To(ContainSubstring("f-00003 has started; all calls go to f-00003"))
		Expect(under.call().revision).To(Equal("f-00003"))
		under.moves()

		Expect(conditions()).To(SatisfyAll(HaveKeyWithValue("RevisionReady", HavePrefix("True ")), Not(HaveKey("Stalled"))))

		By("undoing that while the former instances are there")
		former := under.answered("f-00001")
		out, errs, code = c.run("rollout", "undo", "f")
		Expect(code).To(BeZero(), errs)
		Expect(out).To(ContainSubstring("function default/f is f-00001 again"))
		back := under.call()
		Expect(back.revision).To(Equal("f-00001"))
		Expect(former).To(HaveKey(back.body), "an instance was started for the call")
		out, errs, code = c.run("rollout", "status", "f")
		Expect(code).To(BeZero(), errs)
		Expect(out).To(Equal("f-00001 has started; all calls go to f-00001\n"))
		under.moves()

		under.stop()
		Expect(under.failed()).To(BeEmpty(), "of %d calls", under.calls.Load())
		Expect(under.answered("f-00002")).To(BeEmpty())
	})
})
