package cluster_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// runLog is where instances write down the calls that they begin to run. It
// listens on every address of this machine, so that pods reach it.
type runLog struct {
	server *http.Server
	port   int

	mu  sync.Mutex
	ran map[string]int
}

// openRunLog starts a run log, which must be closed.
func openRunLog() (*runLog, error) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	l := &runLog{port: listener.Addr().(*net.TCPAddr).Port, ran: map[string]int{}}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = l.server.Serve(listener) }() // until it is closed
	return l, nil
}

func (l *runLog) close() { _ = l.server.Close() }

// ServeHTTP notes the call that the path names.
func (l *runLog) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[strings.TrimPrefix(r.URL.Path, "/")]++
}

// check compares what clients have seen with what has run: calls that ran more
// often than they were sent, answered ones that did not run, and those that ran
// although it was denied, a line for each.
func (l *runLog) check(calls []tripped) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wrong []string
	for _, c := range calls {
		ran := l.ran[c.name]
		switch {
		// A client's library may send a GET again whose connection breaks.
		case ran > max(1, c.sent):
			wrong = append(wrong, fmt.Sprintf("%s was sent %d times and ran %d times", c.name, c.sent, ran))
		case c.kind == "" && ran == 0:
			wrong = append(wrong, fmt.Sprintf("%s was answered and did not run", c.name))
		case strings.Contains(c.kind, `executed "no"`) && ran > 0:
			wrong = append(wrong, fmt.Sprintf("%s ran, and its client was told that it did not", c.name))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// Functions that write each call into a run log before they run it, and take a
// while. CALL in the request names it, MS says how long it takes.
const (
	// loggingPython answers HTTP, with the call in the query.
	loggingPython = `import os, time, http.client
from urllib.parse import parse_qs

host = os.environ["LEDGER"]

def application(environ, start_response):
    query = parse_qs(environ["QUERY_STRING"])
    size = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(size)
    note = http.client.HTTPConnection(host, timeout=5)
    note.request("POST", "/" + query["call"][0])
    note.getresponse().read()
    note.close()
    time.sleep(int(query["ms"][0]) / 1000)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d bytes\n" % len(body)]
`
	// loggingNode is a handler whose event names the call.
	loggingNode = `const http = require("http");
const note = (call) => new Promise((done, failed) => {
  const request = http.request("http://" + process.env.LEDGER + "/" + call, { method: "POST", agent: false, timeout: 5000 }, (answer) => {
    answer.resume();
    answer.on("end", done);
  });
  request.on("error", failed);
  request.end();
});
exports.handler = async (event) => {
  await note(event.call);
  await new Promise((done) => setTimeout(done, event.ms));
  return { call: event.call };
};
`
)
