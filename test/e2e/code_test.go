package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// serverInPython answers each request with its version, which it read as it began.
const serverInPython = `
import http.server, os
version = "VERSION"
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(version)))
        self.end_headers()
        self.wfile.write(version.encode())
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
`

var _ = Describe("A1: edited code", func() {
	DescribeTable("answers all calls once deploy --wait has ended",
		func(file, source string, flags ...string) {
			needs("python3")
			c := up(probeManifest())
			code := filepath.Join(filepath.Dir(c.dataDir), "code")
			Expect(os.Mkdir(code, 0o700)).To(Succeed())
			deploy := func(version string) {
				GinkgoHelper()
				text := strings.ReplaceAll(source, "VERSION", version)
				Expect(os.WriteFile(filepath.Join(code, file), []byte(text), 0o600)).To(Succeed())
				_, errs, exit := c.run(append([]string{"deploy", "--wait", "--name", "edited", "--code", code}, flags...)...)
				Expect(exit).To(BeZero(), errs)
			}
			for _, version := range []string{"first", "second", "third"} {
				deploy(version)
				for range 5 {
					out, errs, exit := c.run("invoke", "edited", "{}")
					Expect(exit).To(BeZero(), errs)
					Expect(out).To(ContainSubstring(version))
				}
			}
		},
		Entry("of the runtime python3.13", "app.py", "version = 'VERSION'\ndef handler(event, context):\n    return version\n",
			"--runtime", "python3.13", "--handler", "app.handler"),
		Entry("of a server", "server.py", serverInPython, "--", "python3", "server.py"),
	)
})
