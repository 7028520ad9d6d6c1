package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/windlass-dev/windlass/internal/bench"
)

var _ = Describe("windlass bench", func() {
	BeforeEach(func() {
		if runtime.GOOS != "linux" {
			Skip("it needs Linux")
		}
		DeferCleanup(func() {
			Eventually(func() []string { return processesOf(binaries) }, "30s").Should(BeEmpty(), "processes left behind")
		})
	})

	It("measures a proxy, a Windlass, and one of separate processes with TLS", func() {
		measured := exec.Command(filepath.Join(binaries, "windlass"), "bench", "rates", "--rate", "100", "--rounds", "1", "--span", "200ms", "--json")
		measured.Stderr = GinkgoWriter
		out, err := measured.Output()
		Expect(err).NotTo(HaveOccurred(), string(out))
		report, err := bench.ReadJSON(strings.NewReader(string(out)))
		Expect(err).NotTo(HaveOccurred())
		parts := map[bench.Path][]bench.Part{
			bench.Proxy:    {bench.PartProxy, bench.PartFunction},
			bench.Local:    {bench.PartLocal, bench.PartAgents, bench.PartFunction},
			bench.Separate: {bench.PartGateway, bench.PartScheduler, bench.PartAgents, bench.PartFunction},
		}
		Expect(report.Results).To(HaveLen(len(parts)))
		for _, result := range report.Results {
			Expect(result.Calls).To(BeNumerically(">", 5))
			Expect(result.Failed).To(BeZero())
			Expect(result.Latency.P50.Median).To(BeNumerically(">", 0))
			Expect(*result.Mallocs).To(BeNumerically(">", 10))
			Expect(result.CPU).To(HaveLen(len(parts[result.Path])))
			for _, part := range parts[result.Path] {
				Expect(result.CPU[part].Median).To(BeNumerically(">", 0), "%s of %s", part, result.Path)
			}
		}
		Expect(report.Provenance.Command).To(Equal("windlass bench rates --rounds 1 --span 200ms --rate 100"))
	})

	It("ends all that it has started when it is interrupted", func() {
		cmd := exec.Command(filepath.Join(binaries, "windlass"), "bench", "warm")
		running, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() []string { return processesOf(filepath.Join(binaries, "podagent")) }, "60s").ShouldNot(BeEmpty())
		running.Signal(os.Interrupt)
		Eventually(running, "60s").Should(gexec.Exit(3))
		Expect(processesOf(binaries)).To(BeEmpty())
	})
})
