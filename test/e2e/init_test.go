package e2e

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A function that windlass init made", func() {
	for kind, program := range map[string]string{"python3.13": "python3", "nodejs22.x": "node", "command": "go"} {
		It("answers: "+kind, func() {
			if _, err := exec.LookPath(program); err != nil {
				Skip(program + " is not installed: " + err.Error())
			}
			c := up(probeManifest())
			dir, err := os.MkdirTemp("", "windlass-init-")
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(os.RemoveAll, dir)
			folder := filepath.Join(dir, "greeter")
			_, errs, code := c.run("init", "--runtime", kind, folder)
			Expect(code).To(BeZero(), errs)
			if kind == "command" {
				build := exec.Command("go", "build", "-C", folder, "-o", "server", ".")
				build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
				out, err := build.CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), string(out))
			}
			_, errs, code = c.run("deploy", "-f", filepath.Join(folder, "function.yaml"))
			Expect(code).To(BeZero(), errs)
			out, errs, code := c.run("invoke", "greeter", "-f", filepath.Join(folder, "event.json"))
			Expect(code).To(BeZero(), errs)
			Expect(out).To(MatchJSON(`{"greeting": "Hello, Ada!"}`))
			Eventually(func() string {
				out, _, _ := c.run("logs", "greeter", "--timestamps")
				return out
			}, "10s").Should(MatchRegexp(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S+ \| .*greeting Ada$`))
			Eventually(c.output, "10s").Should(WithTransform((*lines).String, MatchRegexp(`greeter +\S+ +│ .*greeting Ada\n`)))
		})
	}
})
