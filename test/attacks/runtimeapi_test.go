package attacks

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// agentAttacks are those of a function on the agent beside it.
var agentAttacks = []attack{
	{"F106", "S5: 1,000 connections with 2 MiB of a head that does not end", "", floods(1_000, "GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "+strings.Repeat("a", 2<<20))},
	{"F106", "S5: 1,000 connections that say nothing", "", floods(1_000, "")},
	{"F106", "S5: 1,000 causes of errors of 1 MiB in their heads", "", floods(1_000,
		"POST "+runtimeAPI+"/init/error HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\nLambda-Runtime-Function-XRay-Error-Cause: "+strings.Repeat("a", 1<<20)+"\r\n\r\n")},
	{"F106", "S5: 1,000 answers of 6 MiB to calls that do not exist", "", floods(1_000,
		"POST "+runtimeAPI+"/invocation/none/response HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 6291457\r\n\r\n"+strings.Repeat("a", 6<<20))},
}

// floods sends the beginning of a request on many connections, each for as long as the
// agent keeps it, beside a function that does its work.
func floods(conns int, text string) func(*platform) {
	return func(w *platform) {
		a := w.startAgent()
		a.works("/before")
		request := []byte(text)
		var all sync.WaitGroup
		for range conns {
			all.Go(func() {
				conn, err := net.Dial("tcp", a.api)
				if err != nil {
					return // there are too many by now
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience / 6))
				_, _ = conn.Write(request)
				_, _ = io.Copy(io.Discard, conn)
			})
		}
		all.Wait()
		a.bounded()
		a.works("/after")
	}
}

// works has a call answered by the function.
func (a *agentProcess) works(path string) {
	a.Helper()
	answer := a.callRuntime(path)
	a.answer(a.next())
	checkEcho(a.platform, answer, path)
}

// checkEcho checks an answer that is the event of the call.
func checkEcho(w *platform, answer <-chan response, path string) {
	w.Helper()
	if r := receive(w.T, answer, "an answer"); r.status != http.StatusOK || !strings.Contains(r.body, path) {
		w.Errorf("the call of %s was answered %d, %v: %s", path, r.status, r.err, r.body)
	}
}

// urlAttacks are requests that a caller makes a function send, since it fetches URLs for
// its callers.
var urlAttacks = []attack{
	{"F109", "S13: a name that leads to the loopback", "", fetches(func(r *http.Request) { r.Host = "attacker.example" })},
	{"F109", "S13: a page of somebody else in a function's browser", "", fetches(func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example") })},
	{"F109", "S13: an image of somebody else's page", "", fetches(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })},
	{"F109", "S13: a second client", "", fetches(func(*http.Request) {})},
	{"F109", "S13: a second client that makes up a name", "", fetches(func(r *http.Request) { r.Header.Set("Windlass-Client", "guessed") })},
}

// fetches has somebody else than the runtime ask for events and answer calls, while
// calls wait. Each caller must get the answer of the runtime.
func fetches(stranger func(*http.Request)) func(*platform) {
	return func(w *platform) {
		a := w.startAgent()
		a.works("/first")
		var answers []<-chan response
		for n := range atATime {
			answers = append(answers, w.callRuntime(fmt.Sprintf("/secret-%d", n)))
		}
		event := a.next()
		for path, method := range map[string]string{
			"/invocation/next": http.MethodGet, "/invocation/" + event.id + "/response": http.MethodPost,
			"/invocation/" + event.id + "/error": http.MethodPost, "/init/error": http.MethodPost,
		} {
			if got := a.asAStranger(method, runtimeAPI+path, "forged", stranger); got.status != http.StatusForbidden || strings.Contains(got.content, "secret") {
				w.Errorf("%s is answered with %d, %v: %s", path, got.status, got.err, got.content)
			}
		}
		if got := a.asAStranger(http.MethodGet, "/windlass/v1/assignment", "", stranger); got.status != http.StatusForbidden {
			w.Errorf("an assignment is answered with %d: %s", got.status, got.content)
		}
		a.answer(event)
		for range atATime - 1 {
			a.answer(a.next())
		}
		for n, answer := range answers {
			checkEcho(w, answer, fmt.Sprintf("/secret-%d", n))
		}
		a.bounded()
	}
}
