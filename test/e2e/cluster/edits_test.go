package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/loadgen"
)

// edits is how often code is edited: each takes an instance's start.
func edits() int {
	GinkgoHelper()
	text := os.Getenv("WINDLASS_E2E_EDITS")
	if text == "" {
		return repeats(15, 8)
	}
	n, err := strconv.Atoi(text)
	Expect(err).NotTo(HaveOccurred(), "WINDLASS_E2E_EDITS is a number, such as 50")
	return n
}

// versioned is a call of code that answers its version.
type versioned struct {
	// deployed is the version whose deploy --wait had ended when the call began.
	deployed int64
	attempt
}

// old tells whether anything else answered than code that was deployed when the call began,
// or later.
func (v versioned) old() bool {
	version, err := strconv.ParseInt(strings.TrimSpace(v.answer.body), 10, 64)
	return err != nil || version < v.deployed
}

var _ = Describe("Code that is edited under load", Serial, func() {
	It("answers only as it is now once deploy --wait has ended; what is broken fails no call", func(ctx SpecContext) {
		t := newTenant(ctx)
		_, try := t.command(ctx)
		dir := GinkgoT().TempDir()
		deploy := func(code string) (string, error) {
			GinkgoHelper()
			Expect(os.WriteFile(filepath.Join(dir, "main.py"), []byte(code), 0o600)).To(Succeed())
			return try("deploy", "--name", "edited", "--runtime", "python3.13", "--handler", "main.handle", "--code", dir, "--wait=2m")
		}
		answering := func(version int) string { return fmt.Sprintf("def handle(event, context):\n    return %d\n", version) }
		out, err := deploy(answering(0))
		Expect(err).NotTo(HaveOccurred(), out)
		t.waitRouted("edited")

		var deployed atomic.Int64
		calls := loadgen.Start(context.WithoutCancel(ctx), loadgen.Config[versioned]{
			Clients: 3,
			Next: func(loadgen.Turn) func(context.Context) versioned {
				return func(ctx context.Context) versioned {
					v := versioned{deployed: deployed.Load(), attempt: attempt{began: time.Now()}}
					v.answer, v.err = t.tryCall(ctx, "edited", "/")
					return v
				}
			},
			Rest: func(versioned) time.Duration { return 20 * time.Millisecond },
		})
		DeferCleanup(func() { calls.Stop() })
		expectUnbroken := func() string {
			GinkgoHelper()
			var failed, old []versioned
			for _, v := range calls.Records() {
				if v.failed() {
					failed = append(failed, v)
				} else if v.old() {
					old = append(old, v)
				}
			}
			Expect(len(calls.Records())).To(BeNumerically(">", 10*edits()))
			seen := fmt.Sprintf("calls=%d failed=%d old=%d", len(calls.Records()), len(failed), len(old))
			Expect(failed).To(BeEmpty(), seen+t.explain("edited")())
			Expect(old).To(BeEmpty(), "calls that began when a later version was deployed: "+seen)
			return seen
		}

		n, began := edits(), time.Now()
		for version := 1; version <= n; version++ {
			out, err := deploy(answering(version))
			Expect(err).NotTo(HaveOccurred(), out)
			deployed.Store(int64(version))
		}
		took := time.Since(began)
		say("edits=%d %s seconds=%.0f", n, expectUnbroken(), took.Seconds())

		By("deploying what ends as it starts")
		out, err = deploy("print('cannot find my configuration', flush=True)\nraise SystemExit(3)\n")
		var exit *exec.ExitError
		Expect(errors.As(err, &exit)).To(BeTrue(), out)
		Expect(exit.ExitCode()).To(Equal(3))
		Expect(err).To(MatchError(ContainSubstring("cannot find my configuration")))
		t.change("edited", func(s *v1alpha1.FunctionSpec) { s.Rollout.ProgressDeadline = duration(2) })
		for _, kind := range []string{v1alpha1.ConditionRevisionReady, v1alpha1.ConditionStalled} {
			Eventually(func() string { c := t.condition("edited", kind); return string(c.Status) + " " + c.Message }, soon).
				Should(ContainSubstring("cannot find my configuration"), t.explain("edited"))
		}
		Expect(t.condition("edited", v1alpha1.ConditionRevisionReady).Status).To(BeEquivalentTo("False"))
		Expect(t.condition("edited", v1alpha1.ConditionReady).Status).To(BeEquivalentTo("True"))

		By("mending it")
		out, err = deploy(answering(n + 1))
		Expect(err).NotTo(HaveOccurred(), out)
		deployed.Store(int64(n + 1))
		Expect(t.condition("edited", v1alpha1.ConditionStalled).Status).To(BeEmpty(), t.explain("edited"))
		seen := len(calls.Records())
		Eventually(func() int { return len(calls.Records()) }, soon).Should(BeNumerically(">", seen+20))
		calls.Stop()
		expectUnbroken()
	})
})
