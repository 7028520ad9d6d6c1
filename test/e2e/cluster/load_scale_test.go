package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/sleep"
)

var _ = Describe("Scaling under load", Serial, func() {
	// Instances go a second or two after their last call.
	brief := func(s *v1alpha1.FunctionSpec) {
		s.Template.Resources.Requests = amount("10m", "16Mi")
		s.Scaling = v1alpha1.Scaling{ScaleDown: v1alpha1.ScaleDown{IdleTimeout: duration(2), LastInstanceIdleTimeout: duration(600)}}
	}
	sleeping := func(t *tenant, name string, ms, clients int) stream {
		url := fmt.Sprintf("%s/function/%s.%s/sleep?ms=%d", world.gateway, name, t.namespace, ms)
		return stream{name: fmt.Sprintf("%s-by-%d", name, clients), method: "GET", url: url, takes: time.Duration(ms) * time.Millisecond, clients: clients}
	}

	It("by kubectl scale, from 15 to 10 to 15 again and again, fails no call", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("loop", brief))
		calls := startTraffic(context.Background(), mostCalls, sleeping(t, "loop", 300, 6))
		DeferCleanup(func() { calls.stop() })
		counts, span := t.count("loop"), time.Duration(repeats(60, 30))*time.Second
		for began, n := time.Now(), 15; n == 15 || time.Since(began) < span; n = 25 - n {
			t.kubectl("scale", "function/loop", fmt.Sprintf("--replicas=%d", n))
			Eventually(func() int { return len(t.living("loop")) }, "60s", "200ms").Should(Equal(n), t.explain("loop"))
		}
		r := calls.stop()
		say("15 -> 10 -> 15 by kubectl scale: %sinstances by second: %s", r, counts())
		Expect(r.failed()).To(BeEmpty(), r.String())
		Expect(r.exhausted).To(BeFalse())
	})

	It("by its calls, from 15 to 3 to 15, fails no call", func(ctx SpecContext) {
		t := newTenant(ctx)
		wave := httpd("wave", brief, func(s *v1alpha1.FunctionSpec) { s.Scaling.MaxInstances = new(int32(15)) })
		wave.Annotations = map[string]string{wellknown.AnnotationAlgorithm: "FPCSch"}
		t.warm(wave)
		steady := startTraffic(context.Background(), mostCalls, sleeping(t, "wave", 3000, 3))
		DeferCleanup(func() { steady.stop() })
		counts := t.count("wave")
		for range 2 {
			// Listing 1 asks for more only while more calls wait than there are
			// instances: 15 instances need more than twice as many clients.
			more := startTraffic(context.Background(), mostCalls, sleeping(t, "wave", 3000, 33))
			DeferCleanup(func() { more.stop() })
			Eventually(func() int { return len(t.living("wave")) }, "60s", "200ms").Should(Equal(15), t.explain("wave"))
			sleep.For(ctx, 10*time.Second)
			r := more.stop()
			Expect(r.failed()).To(BeEmpty(), r.String())
			Eventually(func() int { return len(t.living("wave")) }, "60s", "200ms").Should(BeNumerically("<=", 4), t.explain("wave"))
		}
		r := steady.stop()
		say("15 -> 3 -> 15 by calls: %sinstances by second: %s", r, counts())
		Expect(r.failed()).To(BeEmpty(), r.String())
	})
})

// count counts a function's living instances every second until what it returns
// is called, which tells them.
func (t *tenant) count(name string) func() string {
	ctx, cancel := context.WithCancel(t.ctx)
	DeferCleanup(cancel)
	told := make(chan string)
	go func() {
		defer GinkgoRecover()
		var series []string
		for ctx.Err() == nil {
			series = append(series, fmt.Sprint(len(t.living(name))))
			sleep.For(ctx, time.Second)
		}
		told <- strings.Join(series, " ")
	}()
	return func() string { cancel(); return <-told }
}
