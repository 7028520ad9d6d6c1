package e2e

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/local"
)

func misbehaving(how string) func(*v1alpha1.FunctionSpec) {
	return func(s *v1alpha1.FunctionSpec) {
		s.Template.Env = append(s.Template.Env, v1alpha1.EnvVar{Name: "PROBE_START", Value: how})
		s.Template.StartupTimeout = seconds(1)
	}
}

var _ = Describe("A function that", func() {
	DescribeTable("cannot start is refused with its reason and its last log lines",
		func(change func(*v1alpha1.FunctionSpec), reasons ...string) {
			w := start()
			fn := w.probe("broken", change)
			for range 2 { // the second is refused at once
				a := w.get("/function/broken/work")
				Expect(a.StatusCode).To(Equal(http.StatusServiceUnavailable))
				Expect(a.executed()).To(Equal("no"))
				Expect(a.Header.Get("Retry-After")).NotTo(BeEmpty())
				for _, reason := range reasons {
					Expect(a.body).To(ContainSubstring(reason))
				}
			}
			condition := w.Status(fn).Conditions[0]
			Expect(condition.Status).To(Equal(metav1.ConditionFalse))
			Expect(condition.Message).To(ContainSubstring(reasons[0]))
		},
		Entry("because it never listens", misbehaving("never-listen"), "listen", "thinking about it"),
		Entry("because it exits at once", misbehaving("exit"), "status 3", "cannot find my configuration"),
		Entry("because its program is missing", func(s *v1alpha1.FunctionSpec) { s.Template.Command = []string{"no-such-program"} }, "no-such-program"),
	)

	It("recovers from a bad start is called again", func() {
		w := start()
		fn := w.probe("mended", misbehaving("exit"))
		Expect(w.get("/function/mended/work").StatusCode).To(Equal(503))
		mended := fn.DeepCopy()
		mended.Spec.Template.Env = mended.Spec.Template.Env[:1]
		w.apply(mended)
		Eventually(func() int { return w.get("/function/mended/work?call=1").StatusCode }, "5s").Should(Equal(200))
	})

	It("answers with garbage is answered for with 502", func() {
		w := start()
		w.probe("garbage", misbehaving("garbage"))
		a := w.get("/function/garbage/")
		Expect(a.StatusCode).To(Equal(http.StatusBadGateway))
		Expect(a.executed()).To(Equal("maybe"))
		Expect(a.body).To(ContainSubstring("BadAnswer"))
	})

	It("exits during a call fails that call only", func() {
		w := start()
		w.probe("fragile")
		a := w.get("/function/fragile/exit")
		Expect(a.StatusCode).To(Equal(http.StatusBadGateway))
		Expect(a.executed()).To(Equal("maybe"))
		Expect(w.get("/function/fragile/work?call=1").StatusCode).To(Equal(200))
	})
})

var _ = Describe("A3: a function that ends in the middle of a call", func() {
	DescribeTable("fails it with how it ended, and is started again for the next",
		func(program, end, how string, change func(*v1alpha1.FunctionSpec)) {
			needs(program)
			// An agent that waited for the call would be killed after the stop grace, and the
			// call would be an InstanceLost, which says nothing of the function.
			w := start()
			fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ends"}}
			change(&fn.Spec)
			w.apply(fn)
			a := w.do("POST", "/function/ends", bodyOf(`{"end": "`+end+`"}`))
			Expect(a.StatusCode).To(Equal(http.StatusBadGateway), a.body)
			Expect(a.executed()).To(Equal("maybe"))
			Expect(a.body).To(And(ContainSubstring("FunctionLost"), ContainSubstring(how)))
			logs, err := filepath.Glob(filepath.Join(filepath.Dir(w.runLog), "logs", "default", "ends", "*.log"))
			Expect(err).NotTo(HaveOccurred())
			var text string
			for _, log := range logs {
				one, err := os.ReadFile(log)
				Expect(err).NotTo(HaveOccurred())
				text += string(one)
			}
			Expect(text).To(And(ContainSubstring("its last words\n"), ContainSubstring("windlass: the function "+how)))
			Expect(w.do("POST", "/function/ends", bodyOf(`{}`)).StatusCode).To(Equal(200))
		},
		Entry("by its exit, in Python", "python3", "exit", "exited with status 3", ofPython),
		Entry("by a signal, in Python", "python3", "signal", "was killed by signal", ofPython),
		Entry("by its exit, in Node.js", "node", "exit", "exited with status 3", func(s *v1alpha1.FunctionSpec) {
			s.Template.RuntimeRef.Name, s.Template.Handler, s.Template.Code = v1alpha1.RuntimeNodeJS22, "app.handler", &v1alpha1.Code{Inline: `
exports.handler = async (event) => {
  console.log("its last words");
  if (event.end) process.exit(3);
};
`}
		}),
		Entry("as a server", "python3", "exit", "exited with status 3", func(s *v1alpha1.FunctionSpec) {
			s.Template.Command = []string{"python3", "-u", "-c", `
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print("its last words")
        if b"end" in self.rfile.read(int(self.headers["Content-Length"])):
            os._exit(3)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
`}
		}),
	)
})

func ofPython(s *v1alpha1.FunctionSpec) {
	s.Template.RuntimeRef.Name, s.Template.Handler, s.Template.Code = v1alpha1.RuntimePython313, "app.handler", &v1alpha1.Code{Inline: `
import os, signal
def handler(event, context):
    print("its last words", flush=True)
    if event.get("end") == "exit":
        os._exit(3)
    if event.get("end") == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
`}
}

var _ = Describe("A Lambda runtime", func() {
	lambda := func(w *windlass, runtime v1alpha1.RuntimeName, handler, code string) *v1alpha1.Function {
		fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "handler"}}
		fn.Spec.Template.RuntimeRef.Name, fn.Spec.Template.Handler, fn.Spec.Template.Code = runtime, handler, &v1alpha1.Code{Inline: code}
		return w.apply(fn)
	}
	python := `
import time
def handler(event, context):
    if event.get("fail"):
        raise ValueError("no " + event["fail"])
    time.sleep(event.get("sleep", 0))
    return {"hello": event["name"], "id": context.aws_request_id}
`
	node := `
exports.handler = async (event, context) => {
  if (event.fail) throw new TypeError("no " + event.fail);
  if (event.sleep) await new Promise(r => setTimeout(r, event.sleep * 1000));
  return { hello: event.name, id: context.awsRequestId };
};
`
	DescribeTable("runs a handler, tells its errors, and ends when a call takes too long",
		func(runtime v1alpha1.RuntimeName, program, code, errorType string) {
			needs(program)
			w := start()
			fn := lambda(w, runtime, "app.handler", code)
			a := w.do("POST", "/function/handler", bodyOf(`{"name":"Ada ☕"}`))
			Expect(a.StatusCode).To(Equal(200), a.body)
			Expect(a.body).To(MatchJSON(`{"hello":"Ada ☕","id":"` + a.Header.Get("Windlass-Invocation-Id") + `"}`))
			Expect(a.Header.Get("Content-Type")).To(Equal("application/json"))

			a = w.do("POST", "/function/handler", bodyOf(`{"fail":"bananas"}`))
			Expect(a.StatusCode).To(Equal(500))
			Expect(a.executed()).To(Equal("yes"))
			Expect(a.Header.Get("Windlass-Function-Error")).NotTo(BeEmpty())
			Expect(a.body).To(And(ContainSubstring(errorType), ContainSubstring("no bananas")))

			changed := fn.DeepCopy()
			changed.Spec.Template.Timeout = seconds(1)
			w.change(changed)
			a = w.do("POST", "/function/handler", bodyOf(`{"name":"slow","sleep":30}`))
			Expect(a.StatusCode).To(Equal(504), a.body)
			Expect(a.executed()).To(Equal("maybe"))
			a = w.do("POST", "/function/handler", bodyOf(`{"name":"again"}`))
			Expect(a.StatusCode).To(Equal(200), a.body)
		},
		Entry("in Python", v1alpha1.RuntimePython313, "python3", python, "ValueError"),
		Entry("in Node.js", v1alpha1.RuntimeNodeJS22, "node", node, "TypeError"),
	)

	It("that cannot load its handler is refused with the reason", func() {
		needs("python3")
		w := start()
		lambda(w, v1alpha1.RuntimePython313, "app.handler", "import no_such_module\n")
		a := w.do("POST", "/function/handler", bodyOf(`{}`))
		Expect(a.StatusCode).To(Equal(503), a.body)
		Expect(a.executed()).To(Equal("no"))
		Expect(a.body).To(ContainSubstring("no_such_module"))
	})
})

var _ = Describe("Windlass", func() {
	opened := func(change func(*local.Config)) error {
		config := local.DefaultConfig()
		config.DataDir = GinkgoT().TempDir()
		config.AgentPath = filepath.Join(binaries, "podagent")
		config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
		change(&config)
		w, err := local.Open(config, slog.New(slog.DiscardHandler))
		if err == nil {
			w.Close()
		}
		return err
	}

	It("says that its port is taken and how to choose another", func() {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		defer taken.Close()
		err = opened(func(c *local.Config) { c.Listen = taken.Addr().String() })
		Expect(err).To(MatchError(And(ContainSubstring("--listen"), ContainSubstring("another program"))))
	})

	It("says that its data folder belongs to another Windlass", func() {
		var dir string
		start(func(c *local.Config) { dir = c.DataDir })
		err := opened(func(c *local.Config) { c.DataDir = dir })
		Expect(err).To(MatchError(And(ContainSubstring(dir), ContainSubstring("in use"))))
	})

	It("says that the agent is missing", func() {
		err := opened(func(c *local.Config) { c.AgentPath = "/nowhere/podagent" })
		Expect(err).To(MatchError(ContainSubstring("/nowhere/podagent")))
	})

	It("does not listen where others could reach it", func() {
		err := opened(func(c *local.Config) { c.Listen = "0.0.0.0:0" })
		Expect(err).To(MatchError(ContainSubstring("loopback")))
	})

	It("remembers its functions", func() {
		dir, err := os.MkdirTemp("", "windlass-e2e-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		first := start(func(c *local.Config) { c.DataDir = dir })
		first.probe("kept")
		first.stop()
		second := start(func(c *local.Config) { c.DataDir = dir })
		Expect(second.get("/function/kept/work?call=1").StatusCode).To(Equal(200))
	})

	It("S8: answers no web page of somebody else", func() {
		w := start()
		w.probe("called")
		for _, foreign := range [][]string{{"Origin", "https://attacker.example"}, {"Sec-Fetch-Site", "cross-site"}} {
			a := w.do("POST", "/function/called/work?call=1", bodyOf("hi"), foreign...)
			Expect(a.StatusCode).To(Equal(http.StatusForbidden))
			Expect(a.executed()).To(Equal("no"))
			Expect(a.body).To(ContainSubstring("OriginNotAllowed"))
		}
		Expect(w.runs()).To(BeEmpty())
		request, err := http.NewRequest(http.MethodGet, w.OpsURL()+"/metrics", nil)
		Expect(err).NotTo(HaveOccurred())
		request.Host = "attacker.example"
		a, err := w.send(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.StatusCode).To(Equal(http.StatusForbidden))
	})

	It("serves health and metrics on a listener of their own", func() {
		w := start()
		fn := w.probe("counted")
		w.get("/function/counted/work?call=1")
		metrics := func() string {
			response, err := http.Get(w.OpsURL() + "/metrics")
			Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		// A second long all who ask get the same.
		Eventually(metrics, "5s").Should(ContainSubstring(`windlass_gateway_invocations_total{code="200",executed="yes",function="counted",function_namespace="default",revision="00001"} 1`))
		Eventually(metrics, "5s").Should(ContainSubstring(`windlass_scheduler_instances{function="counted",function_namespace="default",revision="00001",state="idle"} 1`))
		for _, path := range []string{"/healthz", "/readyz"} {
			response, err := http.Get(w.OpsURL() + path)
			Expect(err).NotTo(HaveOccurred())
			response.Body.Close()
			Expect(response.StatusCode).To(Equal(200))
		}
		Expect(w.Store().Delete(fn.Key())).To(Succeed())
		Eventually(metrics, "5s").ShouldNot(ContainSubstring(`function="counted"`))
	})
})
