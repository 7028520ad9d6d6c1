package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/test/terminal"
)

const leaveScreen = "\x1b[?1049l"

// onTerminal runs a verb on a terminal of its own.
func (c *command) onTerminal(environ []string, args ...string) *terminal.Terminal {
	GinkgoHelper()
	cmd := exec.Command(filepath.Join(binaries, "windlass"), append([]string{"--data-dir", c.dataDir}, args...)...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color"), environ...)
	t, err := terminal.Start(cmd)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.Close)
	return t
}

// twoProbes are the functions hello and another.
func twoProbes() string {
	const one = "apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: %s}\nspec:\n  template: {command: [%s]}\n---\n"
	probe := filepath.Join(binaries, "probe")
	return fmt.Sprintf(one, "hello", probe) + fmt.Sprintf(one, "another", probe)
}

var _ = Describe("windlass top", func() {
	call := func(c *command, times int) {
		GinkgoHelper()
		for range times {
			response, err := http.Get(c.gateway() + "/function/hello/echo")
			Expect(err).NotTo(HaveOccurred())
			_ = response.Body.Close()
			Expect(response.StatusCode).To(Equal(http.StatusOK))
		}
	}

	It("shows a Windlass at work, heeds keys, and leaves the terminal as it was", func() {
		c := up(twoProbes())
		call(c, 1)
		t := c.onTerminal(nil, "top", "--interval", "200ms")
		Eventually(t.Text, "10s").Should(And(ContainSubstring("windlass top"), ContainSubstring("▾QUEUE"), ContainSubstring("hello"), ContainSubstring("another")))
		Expect(t.Modes()).NotTo(Equal(t.Fresh()), "keys are read one by one")
		By("sorting by name")
		Eventually(t.After("n"), "10s").Should(MatchRegexp(`FUNCTION▾(?s:.*)another(?s:.*)hello`))
		By("sorting by calls")
		byCalls := t.After("r")
		Eventually(func() (string, error) {
			call(c, 5) // without any, their rate is soon 0
			return byCalls()
		}, "10s").Should(MatchRegexp(`▾CALLS/S(?s:.*)hello .*ms(?s:.*)another`))
		By("looking at one function")
		Eventually(t.After("\r"), "10s").Should(And(ContainSubstring("default/hello"), ContainSubstring("Last decisions"),
			MatchRegexp(`Last decisions(?s:.*)\((FirstInstance|ArrivalRate|Enough|NoDemand)\): \w`))) // the last ones, on a busy machine not the first
		By("quitting")
		Expect(t.Type("q")).To(Succeed())
		Eventually(t.Ended(), "10s").Should(Receive(BeNil()))
		Expect(t.Modes()).To(Equal(t.Fresh()))
		shown := t.Shown()
		Expect(shown).To(ContainSubstring("\x1b[?1049h"), "it has a screen of its own")
		_, after, left := strings.Cut(shown, leaveScreen)
		Expect(left).To(BeTrue(), "it leaves its screen")
		Expect(ansi.Strip(after)).To(MatchRegexp(`^\s*$`), "and leaves nothing behind")
		Expect(strings.LastIndex(shown, "\x1b[?25h")).To(BeNumerically(">", strings.LastIndex(shown, "\x1b[?25l")), "the cursor is seen again")
	})

	DescribeTable("has colours where they are wanted", func(environ []string, colours bool) {
		c := up(twoProbes())
		t := c.onTerminal(environ, "top")
		Eventually(t.Text, "10s").Should(ContainSubstring("another"))
		Expect(t.Type("q")).To(Succeed())
		Eventually(t.Ended(), "10s").Should(Receive(BeNil()))
		coloured := regexp.MustCompile(`\x1b\[([0-9;]*;)?(3[0-7]|38;|9[0-7])[0-9;]*m`).MatchString(t.Shown())
		Expect(coloured).To(Equal(colours))
	},
		Entry("on a terminal", nil, true),
		Entry("not with NO_COLOR", []string{"NO_COLOR=1"}, false),
	)

	It("prints a table where there is no terminal", func() {
		c := up(twoProbes())
		call(c, 3)
		stdout, stderr, code := c.run("top", "--interval", "200ms", "--sort", "name")
		Expect(code).To(Equal(0), stderr)
		Expect(stdout).To(MatchRegexp(`(?s)^FUNCTION +STATUS +QUEUE .*\nanother +ready .*\nhello +ready .*(Enough|NoDemand|FirstInstance|ArrivalRate|ProveRevision)`))
		Expect(stdout).NotTo(ContainSubstring("\x1b"))
	})
})

var _ = Describe("the status page", func() {
	It("is served where windlass up says", func() {
		c := up(twoProbes())
		found := regexp.MustCompile(`status\s+(http://\S+)`).FindStringSubmatch(c.output.String())
		Expect(found).To(HaveLen(2), c.output.String())
		for path, want := range map[string]string{"": "<title>Windlass</title>", "status.json": `"name":"another"`} {
			response, err := http.Get(found[1] + path)
			Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(response.Body)
			Expect(err).NotTo(HaveOccurred())
			_ = response.Body.Close()
			Expect(string(body)).To(ContainSubstring(want))
		}
		request, err := http.NewRequest(http.MethodGet, found[1], nil)
		Expect(err).NotTo(HaveOccurred())
		request.Host = "windlass.evil.example"
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		_ = response.Body.Close()
		Expect(response.StatusCode).To(Equal(http.StatusForbidden))
	})
})
