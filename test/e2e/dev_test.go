package e2e

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("windlass dev", func() {
	It("answers with the new code after it was saved", func() {
		if _, err := exec.LookPath("python3"); err != nil {
			Skip("python3 is not installed: " + err.Error())
		}
		dir, err := os.MkdirTemp("", "windlass-dev-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		folder := filepath.Join(dir, "greeter")
		c := &command{dataDir: filepath.Join(dir, "data"), output: &lines{}, ended: make(chan error, 1)}
		_, errs, code := c.run("init", folder)
		Expect(code).To(BeZero(), errs)
		c.up = exec.Command(filepath.Join(binaries, "windlass"), "dev", "--data-dir", c.dataDir,
			"--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "-f", folder)
		c.up.Stdout, c.up.Stderr = c.output, c.output
		Expect(c.up.Start()).To(Succeed())
		go func() { c.ended <- c.up.Wait() }()
		DeferCleanup(func() {
			_ = c.up.Process.Kill()
			Eventually(func() []string { return processesOf(binaries) }, "10s").Should(BeEmpty(), "processes left behind")
		})
		Eventually(c.output, "20s").Should(WithTransform((*lines).String, ContainSubstring("Stop with Ctrl-C")))

		answer := func() string {
			out, _, _ := c.run("invoke", "greeter", "{}")
			return out
		}
		Expect(answer()).To(MatchJSON(`{"greeting": "Hello, world!"}`))
		Eventually(c.output, "10s").Should(WithTransform((*lines).String, MatchRegexp(`greeter +\S+ +· call 200 in `)))
		code2 := "def handle(event, context):\n    print('the new one')\n    return 'new'\n"
		Expect(os.WriteFile(filepath.Join(folder, "handler.py"), []byte(code2), 0o600)).To(Succeed())
		Eventually(answer, "20s").Should(MatchJSON(`"new"`))
		Eventually(c.output, "10s").Should(WithTransform((*lines).String, MatchRegexp(`greeter +\S+ +│ the new one`)))
	})
})
