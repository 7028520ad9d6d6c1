package cluster_test

import (
	"os/exec"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A cold start", Serial, func() {
	It("has phases that add up", func(ctx SpecContext) {
		ownMachines() // its processes are looked for on this one
		cmd := exec.CommandContext(ctx, "go", "run", "./test/coldstart", "--kubeconfig", shared.Kubeconfig,
			"--gateway", world.gateway, "--image", image("test-functions"), "--runs", "3")
		cmd.Dir = checkout
		out, err := capture(cmd)
		Expect(err).NotTo(HaveOccurred())
		say("cold starts:\n%s", out)
		figures := map[string]string{}
		for line := range strings.Lines(out) {
			name, value, found := strings.Cut(strings.TrimSpace(line), "=")
			Expect(found).To(BeTrue(), "%q is no name=value", line)
			figures[name] = value
		}
		Expect(figures).To(HaveKeyWithValue("runs", "3"))
		Expect(figures).To(HaveKeyWithValue("unknown", ""), "all phases are observed")
		Expect(figures).To(HaveKeyWithValue("implausible", "0"))
		milliseconds := func(name string) float64 {
			GinkgoHelper()
			value, err := strconv.ParseFloat(figures[name], 64)
			Expect(err).NotTo(HaveOccurred(), "%s=%s", name, figures[name])
			return value
		}
		Expect(milliseconds("phases_minus_total_ms")).To(BeZero())
		for _, phase := range []string{"decide", "api_create", "sandbox", "containers", "ready", "claim", "execution", "return", "agent_hello"} {
			Expect(milliseconds(phase+"_median_ms")).To(BeNumerically("<=", milliseconds("total_p90_ms")), phase)
			Expect(milliseconds(phase+"_p90_ms")).To(BeNumerically(">=", milliseconds(phase+"_median_ms")), phase)
		}
		Expect(strings.Fields(kubectl(ctx, "get", "namespaces", "-o", "name"))).NotTo(ContainElement(HavePrefix("namespace/coldstart-")))
	})
})
