package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/test/terminal"
)

// command builds the command. try runs it for the tenant.
func (t *tenant) command(ctx context.Context) (program string, try func(args ...string) (string, error)) {
	GinkgoHelper()
	program = filepath.Join(GinkgoT().TempDir(), "windlass")
	_, err := capture(exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, checkout+"/cmd/windlass"))
	Expect(err).NotTo(HaveOccurred())
	return program, func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, program, append(args, "--kubeconfig", shared.Kubeconfig, "--namespace", t.namespace)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+GinkgoT().TempDir())
		return capture(cmd)
	}
}

var _ = Describe("The command windlass", func() {
	It("deploys, lists, describes, calls, explains, watches, shows the logs of and deletes functions of a cluster", func(ctx SpecContext) {
		t := newTenant(ctx)
		program, try := t.command(ctx)
		windlass := func(args ...string) string {
			GinkgoHelper()
			out, err := try(args...)
			Expect(err).NotTo(HaveOccurred())
			return out
		}
		manifest := filepath.Join(GinkgoT().TempDir(), "hello.yaml")
		text := strings.Join([]string{
			"apiVersion: windlass.dev/v1alpha1", "kind: Function", "metadata:", "  name: hello", "spec:", "  template:",
			"    image: " + image("test-functions"), "    args: [httpd]", "    env:", "    - name: GREETING", "      value: ahoy", "",
		}, "\n")
		Expect(os.WriteFile(manifest, []byte(text), 0o600)).To(Succeed())

		windlass("deploy", "--filename", manifest, "--wait=2m")
		Expect(t.ready("hello")()).To(Equal("True "+v1alpha1.ReasonStarted), "A2: it has started")
		By("A2: a deploy that does not start fails, and the next one is not blamed for it")
		broken := filepath.Join(GinkgoT().TempDir(), "broken.yaml")
		Expect(os.WriteFile(broken, []byte(strings.Replace(text, "[httpd]", "[no-such-program]", 1)), 0o600)).To(Succeed())
		out, err := try("deploy", "--filename", broken, "--wait=2m")
		Expect(err).To(HaveOccurred())
		Expect(out + err.Error()).To(ContainSubstring("does not start"))
		windlass("deploy", "--filename", manifest, "--wait=2m")
		Expect(t.ready("hello")()).To(Equal("True " + v1alpha1.ReasonStarted))
		Expect(windlass("list")).To(MatchRegexp(`hello\s`))
		Expect(windlass("invoke", "hello")).To(ContainSubstring("ahoy"))
		Expect(windlass("describe", "hello")).To(SatisfyAll(ContainSubstring("hello"), ContainSubstring(image("test-functions")), ContainSubstring("Ready")))
		Expect(windlass("explain", "hello")).To(MatchRegexp(`\+1 instance \(ProveRevision\): .*→ node `), "the instance of the proof")
		Expect(windlass("explain", "hello", "--output", "json")).To(SatisfyAll(ContainSubstring(`"served": true`), ContainSubstring(`"reason": "ProveRevision"`)))
		Expect(windlass("top", "--once")).To(MatchRegexp(`(?m)^hello\s.*(ProveRevision|NoDemand|Enough)`))
		By("watching it on a terminal")
		watching := exec.Command(program, "top", "--kubeconfig", shared.Kubeconfig, "--namespace", t.namespace)
		watching.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+GinkgoT().TempDir(), "TERM=xterm-256color")
		screen, err := terminal.Start(watching)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(screen.Close)
		Eventually(screen.Text, soon).Should(And(ContainSubstring("windlass top"), ContainSubstring("hello")))
		calls := t.startLoad("hello", "/", 2)
		Eventually(screen.After(""), soon).Should(MatchRegexp(`hello +(ready +)?\d.* [1-9][0-9.]* .*ms`), "its calls in a second")
		Eventually(screen.After("\r"), soon).Should(And(ContainSubstring(t.namespace+"/hello"), ContainSubstring("Last decisions")))
		Expect(screen.Type("q")).To(Succeed())
		Eventually(screen.Ended(), soon).Should(Receive(BeNil()))
		Expect(calls.stop().Failed).To(BeZero())

		_, err = try("explain", "helo")
		// Other tenants' functions may be meant as well, but come after.
		Expect(err).To(MatchError(MatchRegexp("did you mean (" + t.namespace + "/)?hello")))
		// What has a log, a kubelet tells late.
		Eventually(func() (string, error) { return try("logs", "hello") }, soon).Should(ContainSubstring("listening on :8080"))
		windlass("delete", "hello")
		Eventually(func() any { return t.get("hello") }, later).Should(BeNil())
		_, err = try("invoke", "hello")
		Expect(err).To(MatchError(ContainSubstring("hello")))
	})
})
