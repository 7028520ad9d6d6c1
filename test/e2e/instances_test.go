package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/local"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// roomy lets a small machine hold many instances that only wait.
func roomy(c *local.Config) {
	c.Capacity = placement.Amount{MilliCPU: 1000_000, Memory: 1 << 40}
}

// expectOneAtATime fails the spec if an instance ran two calls at a time.
func expectOneAtATime(runs map[string][]run) {
	GinkgoHelper()
	byInstance := map[string][]run{}
	for _, executions := range runs {
		for _, r := range executions {
			byInstance[r.cid] = append(byInstance[r.cid], r)
		}
	}
	for cid, ran := range byInstance {
		slices.SortFunc(ran, func(a, b run) int { return cmp.Compare(a.begin, b.begin) })
		for i := 1; i < len(ran); i++ {
			Expect(ran[i-1].end).To(BeNumerically(">", 0), "%s was given a call while another ran", cid)
			Expect(ran[i].begin).To(BeNumerically(">=", ran[i-1].end), "%s ran two calls at a time", cid)
		}
	}
}

var _ = Describe("Instances", func() {
	It("answer 200 parallel calls once each, one at a time, flock to the first, and starve", func() {
		w := start(roomy)
		most := int32(50)
		fn := w.probe("work", func(s *v1alpha1.FunctionSpec) {
			s.Scaling = v1alpha1.Scaling{MaxInstances: &most, ScaleDown: v1alpha1.ScaleDown{IdleTimeout: seconds(5), LastInstanceIdleTimeout: seconds(9)}}
		})
		const calls = 200
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				defer GinkgoRecover()
				a := w.get(fmt.Sprintf("/function/work/work?ms=50&call=%d", i))
				Expect(a.StatusCode).To(Equal(200), a.body)
			})
		}
		wg.Wait()
		runs := w.runs()
		Expect(runs).To(HaveLen(calls))
		for call, executions := range runs {
			Expect(executions).To(HaveLen(1), "call %s", call)
		}
		expectOneAtATime(runs)

		By("flocking to the best-ranked instance")
		var alive []string
		Eventually(func(g Gomega) { // none that starts or stops: on a busy machine either takes long
			alive = instancesAlive()
			g.Expect(w.load(fn).Creating).To(BeZero())
			g.Expect(alive).To(HaveLen(int(w.Status(fn).Instances.Ready)))
		}, "30s", "20ms").Should(Succeed())
		var took []string
		for i := range 20 {
			// An answer can be here before its instance has asked again.
			Eventually(func() int { return w.load(fn).Busy }, "5s", "1ms").Should(BeZero())
			took = append(took, w.get(fmt.Sprintf("/function/work/work?ms=1&call=flock%d", i)).body)
		}
		Expect(slices.Compact(took)).To(Equal([]string{slices.Min(alive)}))

		By("starving all but the last, and the last at last")
		Eventually(func() int32 { return w.Status(fn).Instances.Ready }, "20s", "20ms").Should(BeEquivalentTo(1))
		Consistently(func() int32 { return w.Status(fn).Instances.Ready }, "1s").Should(BeEquivalentTo(1))
		Expect(w.get("/function/work/work?ms=1&call=last").StatusCode).To(Equal(200))
		Eventually(func() int32 { return w.Status(fn).Instances.Ready }, "10s").Should(BeZero())
		Eventually(func() []string { return processesOf(binaries) }, "5s").Should(BeEmpty())
	})

	It("run as many calls at a time as the function allows", func() {
		w := start()
		one := int32(1)
		w.probe("wide", func(s *v1alpha1.FunctionSpec) { s.Template.Concurrency = 10; s.Scaling.MaxInstances = &one })
		Expect(w.get("/function/wide/work?ms=1&call=first").StatusCode).To(Equal(200))
		begun := time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				defer GinkgoRecover()
				Expect(w.get(fmt.Sprintf("/function/wide/work?ms=500&call=%d", i)).StatusCode).To(Equal(200))
			})
		}
		wg.Wait()
		runs := w.runs()
		for i := range 10 {
			for j := range 10 {
				a, b := runs[fmt.Sprint(i)][0], runs[fmt.Sprint(j)][0]
				Expect(a.begin).To(BeNumerically("<", b.end), "calls %d and %d overlap; all took %v", i, j, time.Since(begun))
			}
		}
	})

	It("are kept at the function's minimum without any call", func() {
		w := start()
		fn := w.probe("ready", func(s *v1alpha1.FunctionSpec) {
			s.Scaling = v1alpha1.Scaling{MinInstances: 2, ScaleDown: v1alpha1.ScaleDown{IdleTimeout: seconds(0.4), LastInstanceIdleTimeout: seconds(0.2)}}
		})
		Eventually(func() int32 { return w.Status(fn).Instances.Ready }, "10s").Should(BeEquivalentTo(2))
		Consistently(func() int32 { return w.Status(fn).Instances.Ready }, "1s").Should(BeEquivalentTo(2))
	})

	It("are replaced when the function changes, without a failed call", func() {
		w := start()
		fn := w.probe("changing", func(s *v1alpha1.FunctionSpec) {
			// So long those of the former revision wait for a return to it.
			s.Scaling.ScaleDown.IdleTimeout, s.Scaling.ScaleDown.LastInstanceIdleTimeout = seconds(1), seconds(1)
		})
		Expect(w.get("/function/changing/work?ms=1&call=0").StatusCode).To(Equal(200))
		old := w.get("/function/changing/pid").body
		var stop atomic.Bool
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				defer GinkgoRecover()
				for !stop.Load() {
					a := w.get("/function/changing/work?ms=5&call=x")
					Expect(a.StatusCode).To(Equal(200), a.body)
				}
			})
		}
		changed := fn.DeepCopy()
		changed.Spec.Template.Env = append(changed.Spec.Template.Env, v1alpha1.EnvVar{Name: "COLOUR", Value: "green"})
		w.apply(changed)
		Eventually(func() string { return w.get("/function/changing/pid").body }, "10s").ShouldNot(Equal(old))
		stop.Store(true)
		wg.Wait()
		Eventually(func() []int { return pids("probe") }, "10s").ShouldNot(ContainElement(BeNumerically("==", atoi(old))))
	})

	It("go when their function is deleted", func() {
		w := start()
		fn := w.probe("gone")
		Expect(w.get("/function/gone/work?ms=1&call=1").StatusCode).To(Equal(200))
		Expect(w.Store().Delete(fn.Key())).To(Succeed())
		Eventually(func() []string { return processesOf(binaries) }, "10s").Should(BeEmpty())
		Expect(w.get("/function/gone/work").StatusCode).To(Equal(404))
	})

	DescribeTable("are replaced when a process of theirs is killed under load, and only the calls claimed there fail",
		func(program string) {
			w := start(roomy)
			// Listing 1 stops when no more calls wait than there are instances, so
			// that they are fewer than the clients and always busy.
			fn := w.apply(decidedBy("FPCSch", w.probe("work")))
			load := startLoad(w, 6)
			enough := func() int32 { return w.Status(fn).Instances.Ready }
			Eventually(enough, "20s").Should(BeNumerically(">=", 3))
			Eventually(func() int { return w.load(fn).Creating }, "20s").Should(BeZero())
			for range 3 {
				answered, launched, before := load.Ended(), w.Totals(fn).Launched, len(load.failed())
				Expect(syscall.Kill(w.busiest(program), syscall.SIGKILL)).To(Succeed())
				Eventually(load.Ended, "10s").Should(BeNumerically(">", answered+20))
				if len(load.failed()) > before { // it was not just between two calls
					Eventually(func() int { return w.Totals(fn).Launched }, "10s").Should(BeNumerically(">", launched))
				}
			}
			load.Stop()
			failed := load.failed()
			Expect(failed).NotTo(BeEmpty(), "no call was hit")
			runs := w.runs()
			Expect(len(failed)).To(BeNumerically("<=", 3), "one call ran on each killed instance: %v", failed)
			for call, a := range failed {
				Expect(a.StatusCode).To(Equal(http.StatusBadGateway), a.body)
				Expect(a.executed()).To(Equal("maybe"))
				Expect(len(runs[call])).To(BeNumerically("<=", 1))
			}
			for call, executions := range runs {
				Expect(executions).To(HaveLen(1), "call %s ran more than once", call)
			}
			expectOneAtATimeExcept(runs, failed)
			Expect(len(runs) + len(failed)).To(BeNumerically(">=", load.Ended()))
		},
		Entry("the agent", "podagent"),
		Entry("the function", "probe"),
	)

	It("let the last call finish when Windlass stops", func() {
		w := start()
		w.probe("slow")
		Expect(w.get("/function/slow/work?ms=1&call=warm").StatusCode).To(Equal(200))
		last := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			last <- w.get("/function/slow/work?ms=700&call=last")
		}()
		Eventually(func() int { return len(w.runs()["last"]) }, "5s").Should(Equal(1))
		w.stop()
		Expect((<-last).StatusCode).To(Equal(200))
		Expect(processesOf(binaries)).To(BeEmpty())
		_, err := w.client.Get(w.GatewayURL())
		Expect(err).To(HaveOccurred())
		_, err = w.client.Get(w.OpsURL())
		Expect(err).To(HaveOccurred())
	})
})

// instancesAlive are the CIDs of the probes that run.
func instancesAlive() (cids []string) {
	for _, pid := range pids("probe") {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			if cid, ok := strings.CutPrefix(variable, "WINDLASS_INSTANCE="); ok {
				cids = append(cids, cid)
			}
		}
	}
	return cids
}

// busiest is the process of an instance that runs a call: of the one whose call
// began last. Between two calls there may be none, so it waits for one.
func (w *windlass) busiest(program string) int {
	GinkgoHelper()
	var process int
	Eventually(func() error {
		cid, running := w.latestRunning()
		if !running {
			return errors.New("no call runs")
		}
		for _, pid := range pids(program) {
			environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if strings.Contains(string(environ), "WINDLASS_INSTANCE="+cid+"\x00") {
				process = pid
				return nil
			}
		}
		return fmt.Errorf("no %s of the instance %s", program, cid)
	}, "10s", "5ms").Should(Succeed())
	return process
}

// latestRunning is the instance whose unfinished call began last, if one runs.
func (w *windlass) latestRunning() (cid string, running bool) {
	var begin int64
	for _, executions := range w.runs() {
		for _, r := range executions {
			if r.end == 0 && r.begin > begin {
				cid, begin, running = r.cid, r.begin, true
			}
		}
	}
	return cid, running
}

// load is a number of clients that call a function in closed loops.
type load struct{ *loadgen.Load[attempt] }

// attempt is a call that has ended.
type attempt struct {
	call   string
	answer answer
}

func startLoad(w *windlass, clients int) load {
	l := load{loadgen.Start(context.Background(), loadgen.Config[attempt]{
		Clients: clients,
		Next: func(turn loadgen.Turn) func(context.Context) attempt {
			call := fmt.Sprintf("%d-%d", turn.Client, turn.N)
			return func(ctx context.Context) attempt {
				request, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.GatewayURL()+"/function/work/work?ms=150&call="+call, nil)
				a, err := w.send(request)
				if err != nil {
					a = answer{&http.Response{}, err.Error()}
				}
				return attempt{call, a}
			}
		},
	})}
	DeferCleanup(func() { l.Stop() })
	return l
}

// failed is what was not answered with 200, by call.
func (l load) failed() map[string]answer {
	failed := map[string]answer{}
	for _, a := range l.Records() {
		if a.answer.StatusCode != 200 {
			failed[a.call] = a.answer
		}
	}
	return failed
}

// expectOneAtATimeExcept is expectOneAtATime without the calls that failed,
// whose end nobody recorded.
func expectOneAtATimeExcept(runs map[string][]run, failed map[string]answer) {
	GinkgoHelper()
	rest := map[string][]run{}
	for call, executions := range runs {
		if _, f := failed[call]; !f {
			rest[call] = executions
		}
	}
	expectOneAtATime(rest)
}

func atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}
