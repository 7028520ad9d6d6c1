package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// ran marks an answer as the function's.
func ran(w http.ResponseWriter) {
	w.Header().Set(invocation.HeaderExecuted, string(invocation.ExecutedYes))
}

func echo(w http.ResponseWriter, r *http.Request) {
	ran(w)
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s type=%q accept=%q host=%q body=%q", r.Method, r.RequestURI,
		r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Host, body)
}

func TestInvokeSendsWhatItWasGiven(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	th.put(t, "team/g", nil)
	th.answer(t, echo)
	host := strings.TrimPrefix(th.gatewayURL, "http://")
	dir := write(t, map[string]string{"json": `{"a": 1}`, "bytes": "\xff\x00", "empty": ""})
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"nothing":                     {"", []string{"f"}, `GET /function/f type="" accept="" host="HOST" body=""`},
		"a body of text":              {"", []string{"f", "hi"}, `POST /function/f type="text/plain; charset=utf-8" accept="" host="HOST" body="hi"`},
		"a body of JSON":              {"", []string{"team/g", "[1]"}, `POST /function/g.team type="application/json" accept="" host="HOST" body="[1]"`},
		"a file of JSON":              {"", []string{"f", "-f", filepath.Join(dir, "json")}, `POST /function/f type="application/json" accept="" host="HOST" body="{\"a\": 1}"`},
		"a file of bytes":             {"", []string{"f", "-f", filepath.Join(dir, "bytes")}, `POST /function/f type="application/octet-stream" accept="" host="HOST" body="\xff\x00"`},
		"an empty file":               {"", []string{"f", "-f", filepath.Join(dir, "empty")}, `POST /function/f type="text/plain; charset=utf-8" accept="" host="HOST" body=""`},
		"what is piped in":            {"piped", []string{"f"}, `POST /function/f type="text/plain; charset=utf-8" accept="" host="HOST" body="piped"`},
		"a body, the pipe untouched":  {"piped", []string{"f", "given"}, `POST /function/f type="text/plain; charset=utf-8" accept="" host="HOST" body="given"`},
		"a GET, the pipe untouched":   {"piped", []string{"f", "-X", "GET"}, `GET /function/f type="" accept="" host="HOST" body=""`},
		"a GET of what is piped in":   {"piped", []string{"f", "-X", "GET", "-f", "-"}, `GET /function/f type="text/plain; charset=utf-8" accept="" host="HOST" body="piped"`},
		"a path and a query":          {"", []string{"f", "--path", "/a%2Fb/c?d=e%20f"}, `GET /function/f/a%2Fb/c?d=e%20f type="" accept="" host="HOST" body=""`},
		"another method":              {"", []string{"f", "-X", "PATCH", "x"}, `PATCH /function/f type="text/plain; charset=utf-8" accept="" host="HOST" body="x"`},
		"headers that were given":     {"", []string{"f", "-H", "Accept: a/b", "-H", "content-type:c/d", "-H", "Host: else.where", "x"}, `POST /function/f type="c/d" accept="a/b" host="else.where" body="x"`},
		"a namespace given by a flag": {"", []string{"g", "-n", "team"}, `GET /function/g.team type="" accept="" host="HOST" body=""`},
	} {
		t.Run(name, func(t *testing.T) {
			got := th.play(t, strings.NewReader(c.stdin), Programs{}, append([]string{"invoke"}, c.args...)...)
			got.expect(t, exitOK, "out")
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "HOST", host), got.out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvokeTellsErrorsApart(t *testing.T) {
	problem := func(status int, executed invocation.Executed, reason, detail string) http.HandlerFunc {
		if kind, known := problems.Of(reason); !known || kind.Status != status || kind.Executed() != executed {
			t.Fatalf("no gateway answers %d, %s, executed %s", status, reason, executed)
		}
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(invocation.HeaderExecuted, string(executed))
			if status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "7")
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"detail": %q, "reason": %q}`, detail, reason)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   int
		out    string
		err    []string
	}{
		"the function answers an error": {
			func(w http.ResponseWriter, _ *http.Request) {
				ran(w)
				w.WriteHeader(418)
				fmt.Fprint(w, "short and stout")
			},
			exitFunction, "short and stout", []string{"function default/f ran and answered 418 I'm a teapot;", "windlass logs f"},
		},
		"the function reports an error": {
			func(w http.ResponseWriter, _ *http.Request) {
				ran(w)
				w.Header().Set(invocation.HeaderFunctionError, "Unhandled")
				fmt.Fprint(w, `{"errorMessage": "oops"}`)
			},
			exitFunction, `{"errorMessage": "oops"}`, []string{"200 OK, error Unhandled", "windlass logs f"},
		},
		"a redirect is an answer": {
			func(w http.ResponseWriter, r *http.Request) {
				ran(w)
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
			},
			exitOK, "", nil,
		},
		"too many calls wait": {
			problem(429, invocation.ExecutedNo, "QueueFull", "100 calls wait already"),
			exitPlatform, "", []string{"QueueFull: 100 calls wait already", "it did not run", "try again in 7 s"},
		},
		"instances cannot start": {
			problem(503, invocation.ExecutedNo, "CannotStart", "exit code 1"),
			exitPlatform, "", []string{"CannotStart: exit code 1", "it did not run; see why: windlass describe f and windlass logs f"},
		},
		"the function was deleted meanwhile": {
			problem(404, invocation.ExecutedNo, problems.FunctionDeleted, "it was deleted"),
			exitPlatform, "", []string{"it was deleted", "windlass list --all-namespaces"},
		},
		"the instance was lost": {
			problem(502, invocation.ExecutedMaybe, "InstanceLost", "it ended"),
			exitMaybe, "", []string{"InstanceLost: it ended", "it may have run; call it again only if running it twice does no harm"},
		},
		"the function's answer is cut off": {
			func(w http.ResponseWriter, _ *http.Request) {
				ran(w)
				w.Header().Set("Content-Length", "9")
				fmt.Fprint(w, "half")
			},
			exitMaybe, "half", []string{"was cut off", "it did run"},
		},
		"the connection breaks": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			exitMaybe, "", []string{"no answer from the gateway at http://127.0.0.1:", "it may have run"},
		},
		"something else listens there": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
			exitMaybe, "", []string{"200 OK: <html>", "no answer of a Windlass gateway", "windlass describe f"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := open(t)
			th.put(t, "default/f", nil)
			th.answer(t, c.answer)
			got := th.run(t, "invoke", "f")
			got.expect(t, c.code, "err", c.err...)
			if c.out != "" && got.out != c.out {
				t.Errorf("stdout %q, want %q", got.out, c.out)
			}
			if c.code >= exitPlatform && c.out == "" && got.out != "" {
				t.Errorf("stdout has %q, which is not the function's", got.out)
			}
		})
	}
}

func TestEachNotFoundHasAStepOfItsOwn(t *testing.T) {
	i := &invoker{newApp(Streams{}, Programs{}).finder}
	key := invocation.FunctionKey{Namespace: "default", Name: "f"}
	unknown := i.nextStep(key, "AReasonOfALaterRelease", "")
	for _, kind := range problems.All() {
		if step := i.nextStep(key, kind.Reason, ""); kind.Status == http.StatusNotFound && step == unknown {
			t.Errorf("after %s the next step is only %q", kind.Reason, step)
		}
	}
}

func TestInvokeNeverCallsTwice(t *testing.T) {
	var calls atomic.Int32
	th := open(t)
	th.put(t, "default/f", nil)
	th.answer(t, func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		panic(http.ErrAbortHandler)
	})
	th.run(t, "invoke", "f").expect(t, exitMaybe, "err", "may have run")
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls were made", n)
	}
}

func TestInvokeGivesUpAfterItsTimeout(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	th.answer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	th.run(t, "invoke", "f", "--timeout", "20ms").expect(t, exitMaybe, "err", "did not answer within 20ms", "may have run", "--timeout")
}

// A parent of the command, such as a CI runner, may keep a pipe open.
func TestInvokeDoesNotWaitForItsInputBeyondItsTimeout(t *testing.T) {
	for _, args := range [][]string{{"f"}, {"f", "-f", "-"}} {
		synctest.Test(t, func(t *testing.T) {
			reader, writer := io.Pipe()
			defer writer.Close()
			quiet(t).play(t, reader, Programs{}, append([]string{"invoke", "--timeout", "20s"}, args...)...).expect(t, exitPlatform, "err",
				"the function was not called: the standard input was not closed within 20s; if there is no body, write -X GET or </dev/null")
		})
	}
}

func TestInvokeVerboseShowsHeadersBesideTheBody(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	th.answer(t, func(w http.ResponseWriter, _ *http.Request) {
		ran(w)
		w.Header().Set(invocation.HeaderTiming, "queue;dur=1.000, start, function;dur=2.000")
		w.Header().Set("X-Other", "x")
		fmt.Fprint(w, "body")
	})
	got := th.run(t, "invoke", "f", "-v")
	got.expect(t, exitOK, "err", "HTTP/1.1 200 OK\n", "Server-Timing: queue;dur=1.000, start, function;dur=2.000\nWindlass-Executed: yes\n")
	if got.out != "body" || strings.Contains(got.err, "X-Other") {
		t.Errorf("got %+v", got)
	}
}

func TestAGatewayThatIsNotThere(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	th.gatewayURL = "http://127.0.0.1:1"
	th.run(t, "invoke", "f").expect(t, exitPlatform, "err", "no answer from the gateway at http://127.0.0.1:1", "did not run", "windlass up")
}

func TestPipedKnowsWhatHoldsData(t *testing.T) {
	dir := write(t, map[string]string{"file": "x"})
	file, err := os.Open(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	for name, c := range map[string]struct {
		in   io.Reader
		want bool
	}{
		"nothing": {nil, false}, "a file": {file, true}, "a pipe": {reader, true}, "the null device": {null, false}, "any reader": {strings.NewReader(""), true},
	} {
		if got := piped(c.in); got != c.want {
			t.Errorf("piped(%s) = %t", name, got)
		}
	}
}

func TestAWindlassThatWasStoppedKeepsNobodyWaiting(t *testing.T) {
	th := quiet(t)
	listener, err := localapi.Listen(th.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	silent := "the Windlass with the data folder " + th.dir + " does not answer"
	th.run(t, "invoke", "f", "--timeout", "20ms").expect(t, exitPlatform, "err", "function default/f was not called: "+silent, "continue it with fg")
	th.run(t, "check", "--timeout", "20ms").expect(t, exitPlatform, "err", silent)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a := newApp(Streams{}, Programs{})
	a.dataDir = th.dir
	findings := (&doctor{a.finder}).examineMachine(ctx)
	if last := findings[len(findings)-1]; last.health != healthFail || !strings.Contains(last.text, silent) {
		t.Errorf("doctor finds %+v", last)
	}
}

func TestATimeoutOfNothingIsRefused(t *testing.T) {
	for _, timeout := range []string{"0s", "-1s"} {
		quiet(t).run(t, "invoke", "f", "--timeout="+timeout).expect(t, exitUsage, "err", "--timeout="+timeout+" must be more than 0; leave it out for no limit")
	}
}
