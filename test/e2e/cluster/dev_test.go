package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

var _ = Describe("windlass dev", func() {
	It("deploys to the cluster whenever a file is saved, and shows what functions print", func(ctx SpecContext) {
		t := newTenant(ctx)
		program, _ := t.command(ctx)
		folder := filepath.Join(GinkgoT().TempDir(), "greeter")
		_, err := capture(exec.CommandContext(ctx, program, "init", folder))
		Expect(err).NotTo(HaveOccurred())

		cmd := exec.Command(program, "dev", "-f", folder, "--kubeconfig", shared.Kubeconfig, "--namespace", t.namespace)
		cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+GinkgoT().TempDir())
		console := gbytes.NewBuffer()
		cmd.Stdout, cmd.Stderr = console, console
		Expect(cmd.Start()).To(Succeed())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		DeferCleanup(func() {
			if cmd.ProcessState == nil {
				_ = cmd.Process.Kill()
			}
		})
		Eventually(console, soon).Should(gbytes.Say("greeter"))
		t.waitReady("greeter")
		Expect(t.post("greeter", "/", `{}`).body).To(MatchJSON(`{"greeting": "Hello, world!"}`))

		By("saving new code")
		save := func(code string) {
			GinkgoHelper()
			Expect(os.WriteFile(filepath.Join(folder, "handler.py"), []byte(code), 0o600)).To(Succeed())
		}
		save("def handle(event, context):\n    print('the new one', flush=True)\n    return 'new'\n")
		Eventually(func() string { return t.post("greeter", "/", `{}`).body }, soon, "200ms").Should(MatchJSON(`"new"`))
		Eventually(console, soon).Should(gbytes.Say("the new one"))

		By("leaving it")
		Expect(cmd.Process.Signal(os.Interrupt)).To(Succeed())
		Eventually(ended, soon).Should(Receive(BeNil()))
		Expect(t.post("greeter", "/", `{}`).body).To(MatchJSON(`"new"`), "the function stays")
	})
})
