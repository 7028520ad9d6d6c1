package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/local"
)

var _ = Describe("A call", func() {
	It("reaches the function as it was sent, and so does the answer", func() {
		w := start()
		w.probe("echo")
		a := w.do("PATCH", "/function/echo/echo/a%2Fb//c?x=1&y=%20&status=418", strings.NewReader("hello"),
			"Content-Type", "text/x-test", "X-Custom", "yes", "Connection", "X-Hop", "X-Hop", "secret",
			"Windlass-Invocation-Id", "forged")
		Expect(a.StatusCode).To(Equal(http.StatusNotFound), "the probe serves /echo only: %s", a.body)

		a = w.do("PATCH", "/function/echo/echo?x=1&y=%20&status=418", strings.NewReader("hello"),
			"Content-Type", "text/x-test", "X-Custom", "yes", "Windlass-Invocation-Id", "forged")
		Expect(a.StatusCode).To(Equal(http.StatusTeapot))
		Expect(a.body).To(Equal("hello"))
		Expect(a.executed()).To(Equal("yes"))
		Expect(a.Header.Get("Echo-Method")).To(Equal("PATCH"))
		Expect(a.Header.Get("Echo-Uri")).To(Equal("/echo?x=1&y=%20&status=418"))
		Expect(a.Header.Get("Echo-Content-Type")).To(Equal("text/x-test"))
		Expect(a.Header.Get("Echo-X-Custom")).To(Equal("yes"))
		Expect(a.Header.Get("Echo-X-Forwarded-For")).To(Equal("127.0.0.1"))
		id := a.Header.Get("Windlass-Invocation-Id")
		Expect(id).To(HaveLen(32))
		Expect(a.Header.Get("Echo-Windlass-Invocation-Id")).To(Equal(id))
		Expect(a.Header.Get("Server-Timing")).To(MatchRegexp(`^queue;dur=[\d.]+, (start, )?function;dur=[\d.]+$`))
	})

	It("finds functions of other namespaces by their longer path", func() {
		w := start()
		fn := w.probe("echo").DeepCopy()
		fn.UID, fn.Namespace = "", "team"
		w.apply(fn)
		Expect(w.get("/function/echo.team/echo").StatusCode).To(Equal(200))
		Expect(w.get("/function/echo.default/echo").StatusCode).To(Equal(200))
		Expect(w.get("/function/echo/echo").StatusCode).To(Equal(200))
		a := w.get("/function/nobody.team")
		Expect(a.StatusCode).To(Equal(404))
		Expect(a.executed()).To(Equal("no"))
		Expect(a.Header.Get("Content-Type")).To(Equal("application/problem+json"))
		Expect(a.body).To(ContainSubstring("windlass list"))
	})

	It("streams large bodies both ways, over HTTP/1.1 and h2c", func() {
		w := start()
		w.probe("echo")
		large := make([]byte, 5<<20)
		_, _ = rand.Read(large)
		h2c := new(http.Protocols)
		h2c.SetUnencryptedHTTP2(true)
		for _, transport := range []*http.Transport{{}, {Protocols: h2c}} {
			w.client = &http.Client{Transport: transport}
			DeferCleanup(transport.CloseIdleConnections)
			a := w.do("POST", "/function/echo/echo", bytes.NewReader(large))
			Expect(a.StatusCode).To(Equal(200))
			Expect(a.body == string(large)).To(BeTrue(), "the body came back as it was sent")
		}
		Expect(w.client.Transport.(*http.Transport).Protocols.UnencryptedHTTP2()).To(BeTrue())
	})

	It("lets client and function talk in turns", func() {
		w := start()
		w.probe("talk")
		reader, writer := io.Pipe()
		request, err := http.NewRequest("POST", w.GatewayURL()+"/function/talk/stream", reader)
		Expect(err).NotTo(HaveOccurred())
		response, err := w.client.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		lines := bufio.NewReader(response.Body)
		for i := range 5 {
			said := fmt.Sprintf("line %d\n", i)
			_, err := io.WriteString(writer, said)
			Expect(err).NotTo(HaveOccurred())
			heard, err := lines.ReadString('\n')
			Expect(err).NotTo(HaveOccurred())
			Expect(heard).To(Equal(said))
		}
		Expect(writer.Close()).To(Succeed())
		_, err = lines.ReadString('\n')
		Expect(err).To(Equal(io.EOF))
	})

	It("is refused when its body is over the limit", func() {
		w := start(func(c *local.Config) { c.Gateway.MaxBody = 1000 })
		w.probe("echo")
		a := w.do("POST", "/function/echo/echo", strings.NewReader(strings.Repeat("x", 1001)))
		Expect(a.StatusCode).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(a.executed()).To(Equal("no"))
		Expect(a.body).To(ContainSubstring("1000 bytes"))

		a = w.do("POST", "/function/echo/work", io.MultiReader(strings.NewReader(strings.Repeat("x", 2000))))
		Expect(a.StatusCode).To(Equal(http.StatusBadGateway), "a body of unknown length")
		Expect(a.executed()).To(Equal("maybe"))
	})

	It("never runs when its client leaves while it is queued", func() {
		w := start()
		one := int32(1)
		fn := w.probe("slow", func(s *v1alpha1.FunctionSpec) { s.Scaling.MaxInstances = &one })
		first := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			first <- w.get("/function/slow/work?ms=600&call=first")
		}()
		Eventually(func() int { return len(w.runs()["first"]) }, "5s").Should(Equal(1))
		ctx, leave := context.WithCancel(context.Background())
		request, _ := http.NewRequestWithContext(ctx, "GET", w.GatewayURL()+"/function/slow/work?ms=1&call=second", nil)
		gone := make(chan error, 1)
		go func() { _, err := w.send(request); gone <- err }()
		Eventually(func() int { return w.load(fn).Waiting }, "5s").Should(BeEquivalentTo(1))
		leave()
		Expect(<-gone).To(HaveOccurred())
		Eventually(func() int { return w.load(fn).Waiting }, "5s").Should(BeZero())
		Expect((<-first).StatusCode).To(Equal(200))
		Expect(w.get("/function/slow/work?ms=1&call=third").StatusCode).To(Equal(200))
		Expect(w.runs()).NotTo(HaveKey("second"))
	})

	It("runs to its end when its client leaves while it runs, and the instance goes on", func() {
		w := start()
		one := int32(1)
		w.probe("slow", func(s *v1alpha1.FunctionSpec) { s.Scaling.MaxInstances = &one })
		ctx, leave := context.WithCancel(context.Background())
		request, _ := http.NewRequestWithContext(ctx, "GET", w.GatewayURL()+"/function/slow/work?ms=300&call=first", nil)
		gone := make(chan error, 1)
		go func() { _, err := w.send(request); gone <- err }()
		Eventually(func() int { return len(w.runs()["first"]) }, "5s").Should(Equal(1))
		leave()
		Expect(<-gone).To(HaveOccurred())
		Expect(w.get("/function/slow/work?ms=1&call=second").StatusCode).To(Equal(200))
		first, second := w.runs()["first"][0], w.runs()["second"][0]
		Expect(first.end).NotTo(BeZero())
		Expect(second.cid).To(Equal(first.cid))
		Expect(second.begin).To(BeNumerically(">=", first.end))
	})

	It("is refused with 429 when the queue is full", func() {
		w := start(func(c *local.Config) { c.Scheduler.MaxQueued = 1 })
		one := int32(1)
		fn := w.probe("slow", func(s *v1alpha1.FunctionSpec) { s.Scaling.MaxInstances = &one })
		answers := make(chan answer, 2)
		call := func(n int) {
			defer GinkgoRecover()
			answers <- w.get(fmt.Sprintf("/function/slow/work?ms=500&call=%d", n))
		}
		go call(1)
		Eventually(func() int { return len(w.runs()["1"]) }, "5s").Should(Equal(1))
		go call(2)
		Eventually(func() int { return w.load(fn).Waiting }, "5s").Should(BeEquivalentTo(1))
		a := w.get("/function/slow/work?ms=1&call=3")
		Expect(a.StatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(a.executed()).To(Equal("no"))
		Expect(a.Header.Get("Retry-After")).NotTo(BeEmpty())
		Expect([]int{(<-answers).StatusCode, (<-answers).StatusCode}).To(Equal([]int{200, 200}))
		Expect(w.runs()).NotTo(HaveKey("3"))
	})

	It("is answered with 504 when the function takes too long, and the instance is replaced", func() {
		w := start()
		w.probe("slow", func(s *v1alpha1.FunctionSpec) { s.Template.Timeout = seconds(0.3) })
		a := w.get("/function/slow/work?ms=60000&call=long")
		Expect(a.StatusCode).To(Equal(http.StatusGatewayTimeout))
		Expect(a.executed()).To(Equal("maybe"))
		Expect(a.body).To(ContainSubstring("300ms"))
		a = w.get("/function/slow/work?ms=1&call=short")
		Expect(a.StatusCode).To(Equal(200))
		Expect(a.body).NotTo(Equal(w.runs()["long"][0].cid))
	})

	It("is answered with 503 no when no instance takes it in time", func() {
		w := start(func(c *local.Config) { c.Gateway.MaxQueueTime = 3 * time.Second })
		one := int32(1)
		w.probe("slow", func(s *v1alpha1.FunctionSpec) { s.Scaling.MaxInstances = &one })
		go func() {
			defer GinkgoRecover()
			Expect(w.get("/function/slow/work?ms=5000&call=first").StatusCode).To(Equal(200))
		}()
		Eventually(func() int { return len(w.runs()["first"]) }, "5s").Should(Equal(1))
		a := w.get("/function/slow/work?ms=1&call=second")
		Expect(a.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(a.Header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(a.executed()).To(Equal("no"))
		Eventually(func() int64 { return w.runs()["first"][0].end }, "10s").ShouldNot(BeZero())
		Expect(w.runs()).NotTo(HaveKey("second"))
	})
})
