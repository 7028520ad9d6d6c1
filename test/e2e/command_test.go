package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// command is the windlass command with a data folder of its own.
type command struct {
	dataDir string
	up      *exec.Cmd
	output  *lines
	ended   chan error
}

// lines gathers what a process prints.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// up runs windlass up on free ports with a manifest.
func up(manifest string, flags ...string) *command {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "windlass-e2e-") // short enough for a socket
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	file := filepath.Join(dir, "functions.yaml")
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	c := &command{dataDir: filepath.Join(dir, "data"), output: &lines{}, ended: make(chan error, 1)}
	c.up = exec.Command(filepath.Join(binaries, "windlass"), append([]string{"up", "--data-dir", c.dataDir,
		"--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "-f", file}, flags...)...)
	c.up.Stdout, c.up.Stderr = c.output, c.output
	Expect(c.up.Start()).To(Succeed())
	go func() { c.ended <- c.up.Wait() }()
	DeferCleanup(func() {
		_ = c.up.Process.Kill()
		Eventually(func() []string { return processesOf(binaries) }, "10s").Should(BeEmpty(), "processes left behind")
	})
	Eventually(c.output, "20s").Should(WithTransform((*lines).String, ContainSubstring("Stop with Ctrl-C")))
	return c
}

// gateway is the URL that windlass up has printed.
func (c *command) gateway() string {
	GinkgoHelper()
	found := regexp.MustCompile(`gateway\s+(http://\S+)`).FindStringSubmatch(c.output.String())
	Expect(found).To(HaveLen(2), c.output.String())
	return found[1]
}

// run runs another verb and returns what it printed and its exit code.
func (c *command) run(args ...string) (stdout, stderr string, code int) {
	GinkgoHelper()
	cmd := exec.Command(filepath.Join(binaries, "windlass"), append([]string{"--data-dir", c.dataDir}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		Expect(cmd.ProcessState).NotTo(BeNil(), "%v", err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func probeManifest() string {
	return fmt.Sprintf(`apiVersion: windlass.dev/v1alpha1
kind: Function
metadata: {name: probe}
spec:
  template:
    command: [%s/probe]
`, binaries)
}

var _ = Describe("The windlass command", func() {
	It("runs a newcomer's first minutes", func() {
		c := up(probeManifest())
		out, errs, code := c.run("rollout", "status", "probe")
		Expect(code).To(BeZero(), errs)
		Expect(out).To(HaveSuffix("probe-00001 has started; all calls go to probe-00001\n"))
		out, _, code = c.run("list")
		Expect(code).To(BeZero())
		Expect(out).To(MatchRegexp(`(?m)^probe\s+True\s`))

		out, errs, code = c.run("invoke", "probe", "hello", "--path", "/echo")
		Expect(code).To(BeZero(), errs)
		Expect(out).To(HavePrefix("hello"))

		_, errs, code = c.run("invoke", "probe", "--path", "/echo?status=500")
		Expect(code).To(Equal(1))
		Expect(errs).To(ContainSubstring("500"))

		_, errs, code = c.run("invoke", "nobody")
		Expect(code).To(Equal(3))
		Expect(errs).To(ContainSubstring(" list --all-namespaces"))

		out, errs, code = c.run("deploy", "--name", "second", "--", filepath.Join(binaries, "probe"))
		Expect(code).To(BeZero(), errs)
		Expect(out).To(ContainSubstring("function default/second created"))

		_, errs, code = c.run("deploy", "--name", "third")
		Expect(code).To(Equal(2))
		Expect(errs).To(ContainSubstring("command"))

		out, _, code = c.run("describe", "probe")
		Expect(code).To(BeZero())
		Expect(out).To(ContainSubstring("Mean duration"))

		_, _, code = c.run("delete", "second")
		Expect(code).To(BeZero())
		out, _, _ = c.run("list", "-o", "name")
		Expect(strings.TrimSpace(out)).To(HaveSuffix("probe"))
	})

	It("deploys, and with --wait says whether it starts: A2", func() {
		c := up(probeManifest())
		deploy := func(how string) (string, int) {
			GinkgoHelper()
			_, errs, code := c.run("deploy", "--name", "f", "--env", "PROBE_START="+how, "--wait", "--", filepath.Join(binaries, "probe"))
			return errs, code
		}
		errs, code := deploy("exit")
		Expect(code).To(Equal(3), errs)
		Expect(errs).To(SatisfyAll(ContainSubstring("function default/f does not start"), ContainSubstring("cannot find my configuration")))

		errs, code = deploy("")
		Expect(code).To(BeZero(), errs)
		out, _, _ := c.run("describe", "f")
		Expect(out).To(MatchRegexp(`Ready: True, Started`))
		Expect(out).To(MatchRegexp(`Instances\s+1:`))

		// The error of the one before is not taken for that of the next.
		errs, code = deploy("exit")
		Expect(code).To(Equal(3), errs)
		errs, code = deploy("")
		Expect(code).To(BeZero(), errs)
	})

	It("gives a function what stands for a Secret here", func() {
		c := up(probeManifest())
		dir := GinkgoT().TempDir()
		manifest, secret := filepath.Join(dir, "f.yaml"), filepath.Join(dir, "start.env")
		text := strings.Replace(probeManifest(), "{name: probe}", "{name: f}", 1) + "    envFrom: [{secretRef: {name: start}}]\n"
		Expect(os.WriteFile(manifest, []byte(text), 0o600)).To(Succeed())
		_, errs, code := c.run("deploy", "-f", manifest, "--wait")
		Expect(code).To(Equal(2), errs) // nothing was deployed
		Expect(errs).To(ContainSubstring("there is no secret start in the namespace default: give it with "))

		// The probe reads it: this one does not let it start.
		Expect(os.WriteFile(secret, []byte("PROBE_START=exit\n"), 0o600)).To(Succeed())
		_, errs, code = c.run("deploy", "-f", manifest, "--wait", "--secret", "start="+secret)
		Expect(code).To(Equal(3), errs)
		Expect(errs).To(ContainSubstring("cannot find my configuration"))
		Expect(os.WriteFile(secret, []byte("PROBE_START=\n"), 0o600)).To(Succeed())
		_, errs, code = c.run("deploy", "-f", manifest, "--wait", "--secret", "start="+secret)
		Expect(code).To(BeZero(), errs)
	})

	It("tells of one call, and logs it if that is wanted", func() {
		c := up(probeManifest(), "--log-calls", "All")
		called := func(say string) string {
			GinkgoHelper()
			resp, err := http.Get(c.gateway() + "/function/probe/echo?say=" + say)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			return resp.Header.Get("Windlass-Invocation-Id")
		}
		first, second := called("the-first"), called("the-second")
		for id, say := range map[string]string{first: "the-first", second: "the-second"} {
			out, errs, code := c.run("logs", "--invocation", id)
			Expect(code).To(BeZero(), errs)
			Expect(out).To(MatchRegexp(`(?m)^answer\s+200, executed: yes`))
			Expect(out).To(MatchRegexp(`(?m)^execute\s+\S+ ms$`))
			Expect(out).To(HaveSuffix(" | " + say + "\n"))
			Expect(strings.Count(out, " | ")).To(Equal(1))
			Eventually(c.output, "5s").Should(WithTransform((*lines).String, MatchRegexp(`probe .* · call 200 in .*`+id)))
		}
		_, errs, code := c.run("logs", "--invocation", strings.Repeat("0", 32))
		Expect(code).To(Equal(3))
		Expect(errs).To(ContainSubstring("remembers the last few thousand"))
	})

	It("lets in who has a key, if keys are required", func() {
		c := up(probeManifest(), "--auth")
		shown := regexp.MustCompile(`key\s+(wl_\S+)`).FindStringSubmatch(c.output.String())
		Expect(shown).To(HaveLen(2), c.output.String())
		call := func(function, key string) (int, http.Header) {
			GinkgoHelper()
			r, err := http.NewRequest(http.MethodPost, c.gateway()+"/function/"+function, strings.NewReader("hi"))
			Expect(err).NotTo(HaveOccurred())
			if key != "" {
				r.Header.Set("Windlass-Key", key)
			}
			resp, err := http.DefaultClient.Do(r)
			Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			return resp.StatusCode, resp.Header
		}
		for _, function := range []string{"probe/echo", "nobody"} {
			code, header := call(function, "")
			Expect(code).To(Equal(http.StatusUnauthorized))
			Expect(header.Get("Windlass-Executed")).To(Equal("no"))
		}
		code, header := call("probe/echo", shown[1])
		Expect(code).To(Equal(http.StatusOK))
		Expect(header.Get("Echo-Windlass-Caller")).To(HavePrefix("key:"))
		Expect(header.Get("Echo-Windlass-Key")).To(BeEmpty())
		_, errs, exit := c.run("invoke", "probe", "hello", "--path", "/echo")
		Expect(exit).To(BeZero(), errs)

		// Keys that are made later count too, until they are revoked.
		made, errs, exit := c.run("keys", "create", "default/probe")
		Expect(exit).To(BeZero(), errs)
		status := func() int { code, _ := call("probe/echo", strings.TrimSpace(made)); return code }
		Eventually(status, "10s", "200ms").Should(Equal(http.StatusOK))
		code, _ = call("nobody", strings.TrimSpace(made))
		Expect(code).To(Equal(http.StatusForbidden))
		_, errs, exit = c.run("keys", "revoke", strings.Split(made, "_")[1])
		Expect(exit).To(BeZero(), errs)
		Eventually(status, "10s", "200ms").Should(Equal(http.StatusUnauthorized))
		Expect(c.output.String()).NotTo(ContainSubstring(strings.TrimSpace(made)))
	})

	It("leaves no process when it is interrupted", func() {
		c := up(probeManifest())
		response, err := http.Get(c.gateway() + "/function/probe/work")
		Expect(err).NotTo(HaveOccurred())
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		Expect(pids("probe")).To(HaveLen(1))
		Expect(c.up.Process.Signal(os.Interrupt)).To(Succeed())
		Eventually(c.ended, "20s").Should(Receive(BeNil()))
		Expect(processesOf(binaries)).To(BeEmpty())
		_, errs, code := c.run("list")
		Expect(code).To(Equal(3))
		Expect(errs).To(ContainSubstring(" up, or name its folder"))
	})

	It("leaves no process when it is killed, and starts again", func() {
		c := up(probeManifest())
		response, err := http.Get(c.gateway() + "/function/probe/work")
		Expect(err).NotTo(HaveOccurred())
		_ = response.Body.Close()
		Expect(c.up.Process.Signal(syscall.SIGKILL)).To(Succeed())
		Eventually(c.ended, "10s").Should(Receive())
		Eventually(func() []string { return processesOf(binaries) }, "10s").Should(BeEmpty())
	})

	It("tells a second one that the data folder is in use", func() {
		c := up(probeManifest())
		_, errs, code := c.run("up", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
		Expect(code).To(Equal(3))
		Expect(errs).To(And(ContainSubstring("another Windlass"), ContainSubstring("--data-dir")))
	})

	It("tells what is wrong with a manifest, all at once", func() {
		c := up(probeManifest())
		file := filepath.Join(filepath.Dir(c.dataDir), "wrong.yaml")
		Expect(os.WriteFile(file, []byte(`apiVersion: windlass.dev/v1alpha1
kind: Function
metadata: {name: wrong}
spec:
  template:
    comand: [./server]
    timeout: 10 minutes
    concurrency: many
`), 0o600)).To(Succeed())
		_, errs, code := c.run("deploy", "-f", file)
		Expect(code).To(Equal(2))
		for _, want := range []string{"spec.template.comand", "spec.template.timeout", "10m", "spec.template.concurrency"} {
			Expect(errs).To(ContainSubstring(want))
		}
	})
})
