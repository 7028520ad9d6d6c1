package runtimes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// eachLanguage runs a test once for each runtime.
func eachLanguage(t *testing.T, test func(t *testing.T, runtime v1alpha1.RuntimeName)) {
	for _, lang := range languages {
		runtime := lang.name
		t.Run(string(runtime), func(t *testing.T) { test(t, runtime) })
	}
}

func startLambda(t *testing.T, api *fakeAPI, runtime v1alpha1.RuntimeName, handler string, env ...string) *shim {
	t.Helper()
	return startShim(t, runtime, v1alpha1.ProtocolLambdaRuntime, handler, lambdaSources[runtime], append(api.env(), env...)...)
}

func TestCallsAreAnsweredOneAfterTheOther(t *testing.T) {
	const js = "application/json"
	calls := []struct {
		name, event             string
		kind, result, errorType string
		only                    v1alpha1.RuntimeName
	}{
		{"an object", `{"a":[1,null]}`, "response", `{"event":{"a":[1,null]}}`, "", ""},
		{"unicode", `{"a":"héllo ☂ 🌊"}`, "response", `{"event":{"a":"héllo ☂ 🌊"}}`, "", ""},
		{"an empty body", ``, "response", `{"event":{}}`, "", ""},
		{"JSON that is none", `{"a":`, "error", "not valid JSON", "Runtime.UnmarshalError", ""},
		{"an exception", `{"do":"throw"}`, "error", "no ☂ today", "Refused", ""},
		{"a thrown string", `{"do":"throw string"}`, "error", "a string", "string", v1alpha1.RuntimeNodeJS22},
		{"an exception that cannot be printed", `{"do":"throw odd"}`, "error", "app.Odd object", "Odd", v1alpha1.RuntimePython313},
		{"an error with a number as its name", `{"do":"throw odd"}`, "error", "odd", "404", v1alpha1.RuntimeNodeJS22},
		{"a thrown object that has no text", `{"do":"throw bare"}`, "error", "[object Object]", "object", v1alpha1.RuntimeNodeJS22},
		{"an error of several", `{"do":"throw several"}`, "error", "not at ::1; nor at 127.0.0.1", "AggregateError", v1alpha1.RuntimeNodeJS22},
		{"an error that is its own cause", `{"do":"throw circle"}`, "error", "round", "Refused", v1alpha1.RuntimeNodeJS22},
		{"a result that is not JSON", `{"do":"unserialisable"}`, "error", "cannot be written as JSON", "Runtime.MarshalError", ""},
		{"a number that is not JSON", `{"do":"nan"}`, "error", "cannot be written as JSON", "Runtime.MarshalError", ""},
		{"a result of bytes", `{"do":"bytes"}`, "response", "\x00\xff", "", ""},
		{"a result of nothing", `{"do":"nothing"}`, "response", `null`, "", ""},
	}
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startLambda(t, api, runtime, "app.handler")
		for i, c := range calls {
			if c.only != "" && c.only != runtime {
				continue
			}
			got := api.call(t, event{id: fmt.Sprintf("call-%d", i), body: c.event})
			switch {
			case got.kind != c.kind || got.errorType != c.errorType:
				t.Errorf("%s: got %+v, want a %s of type %q", c.name, got, c.kind, c.errorType)
			case c.kind == "error":
				checkReport(t, got, c.result)
				s.expectError(c.result)
			case strings.HasPrefix(got.contentType, js) && compact(t, got.body) != c.result,
				!strings.HasPrefix(got.contentType, js) && got.body != c.result:
				t.Errorf("%s: got %q as %s, want %q", c.name, got.body, got.contentType, c.result)
			}
		}
		if n := api.connections.Load(); n != 1 {
			t.Errorf("%d connections were made, want 1", n)
		}
	})
}

// compact removes the space that Python puts between JSON's tokens.
func compact(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatalf("%q is not JSON: %v", text, err)
	}
	return out.String()
}

// checkReport checks the shape of an error report.
func checkReport(t *testing.T, got posted, message string) {
	t.Helper()
	var report struct {
		ErrorMessage, ErrorType string
		StackTrace              *[]string
	}
	if err := json.Unmarshal([]byte(got.body), &report); err != nil {
		t.Fatalf("the report %q: %v", got.body, err)
	}
	if !strings.Contains(report.ErrorMessage, message) || report.ErrorType != got.errorType || report.StackTrace == nil {
		t.Errorf("the report is %s, want message %q, type %q and a stack trace", got.body, message, got.errorType)
	}
	if got.errorType == "Refused" && !strings.Contains(strings.Join(*report.StackTrace, ""), "app.") {
		t.Errorf("the stack trace %q does not name the handler's file", *report.StackTrace)
	}
}

func TestAReportAndTheLogSayWhatCausedAnError(t *testing.T) {
	api := newFakeAPI(t)
	s := startLambda(t, api, v1alpha1.RuntimeNodeJS22, "app.handler")
	got := api.call(t, event{id: "1", body: `{"do":"throw caused"}`})
	checkReport(t, got, "fetch failed")
	for _, want := range []string{"[cause]: AggregateError", "not at ::1; nor at 127.0.0.1"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the report %s does not say %q", got.body, want)
		}
		s.expectError(want)
	}
}

func TestLongHeadersOfAnEventEndNoShim(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		startLambda(t, api, runtime, "app.handler")
		got := api.call(t, event{id: "1", body: "1", trace: strings.Repeat("x", 40<<10)})
		if got.kind != "response" {
			t.Errorf("got %+v, want a response", got)
		}
	})
}

func TestTheContextDescribesTheCall(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		startLambda(t, api, runtime, "app.handler")
		got := api.call(t, event{id: "0f3c", body: `{"do":"context"}`})
		want := `["0f3c","greeter","$LATEST","128","arn:aws:lambda:local:0:function:default-greeter",null,true]`
		if compact(t, got.body) != want {
			t.Errorf("got %s, want %s", got.body, want)
		}
	})
}

func TestTheContextHasTheClientsContext(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		startLambda(t, api, runtime, "app.handler")
		for said, want := range map[string]string{
			`{"custom":{"a":"☂"},"client":{"app_title":"shop"}}`: `[{"a":"☂"},"shop",null]`,
			`{"custom":1}`: `[1,null,null]`,
			"":             `null`,
		} {
			got := api.call(t, event{id: "1", body: `{"do":"client context"}`, clientContext: said})
			if got.kind != "response" || compact(t, got.body) != want {
				t.Errorf("of %s the handler sees %+v, want %s", said, got, want)
			}
		}
		// The caller writes it, so whatever it is must end no process.
		for _, odd := range []string{"[]", "7", strings.Repeat("[", 1300) + strings.Repeat("]", 1300)} {
			if got := api.call(t, event{id: "1", body: "1", clientContext: odd}); got.kind != "response" {
				t.Errorf("got %+v", got)
			}
		}
	})
}

func TestHandlersOfEachStyle(t *testing.T) {
	for _, c := range []struct {
		runtime       v1alpha1.RuntimeName
		name, handler string
		event         string
		kind, want    string
	}{
		{v1alpha1.RuntimePython313, "async", "app.asynchronous", `{"a":1}`, "response", `{"event":{"a":1}}`},
		{v1alpha1.RuntimePython313, "async with a stream of the call before", "app.streaming", `{"a":1}`, "response", `{"event":{"a":1}`},
		{v1alpha1.RuntimePython313, "with a forked worker", "app.forks", `{"a":1}`, "response", `{"event":{"a":1},"exit":-15}`},
		{v1alpha1.RuntimeNodeJS22, "plain", "app.plain", `{"a":1}`, "response", `{"event":{"a":1}}`},
		{v1alpha1.RuntimeNodeJS22, "callback", "app.callback", `{"a":1}`, "response", `{"event":{"a":1}}`},
		{v1alpha1.RuntimeNodeJS22, "callback with an error", "app.callback", `{"do":"fail"}`, "error", "called back"},
		{v1alpha1.RuntimeNodeJS22, "callback forgotten", "app.callback", `{"do":"forget"}`, "response", `null`},
		{v1alpha1.RuntimeNodeJS22, "promise forgotten", "app.handler", `{"do":"never"}`, "error", "Runtime.NodeJsExit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newFakeAPI(t)
			startLambda(t, api, c.runtime, c.handler)
			for _, id := range []string{"first", "second"} {
				got := api.call(t, event{id: id, body: c.event})
				if got.kind != c.kind || !strings.Contains(strings.ReplaceAll(got.body, " ", ""), strings.ReplaceAll(c.want, " ", "")) {
					t.Errorf("%s: got %+v, want a %s with %s", id, got, c.kind, c.want)
				}
			}
		})
	}
}

func TestCommonJSIsLoadedToo(t *testing.T) {
	api := newFakeAPI(t)
	startShim(t, v1alpha1.RuntimeNodeJS22, "", "app.nested.handler",
		`const os = require('node:os'); module.exports = { nested: { handler: (e) => typeof os.EOL } };`, api.env()...)
	if got := api.call(t, event{id: "1"}); got.body != `"string"` {
		t.Errorf("got %+v", got)
	}
}

func TestAHandlerThatCannotBeLoadedIsAnInitError(t *testing.T) {
	sources := func(python, node string) map[v1alpha1.RuntimeName]string {
		return map[v1alpha1.RuntimeName]string{v1alpha1.RuntimePython313: python, v1alpha1.RuntimeNodeJS22: node}
	}
	for _, c := range []struct {
		name, handler string
		source        map[v1alpha1.RuntimeName]string
		errorType     string
		says          string
	}{
		{"missing dependency", "app.handler", sources("import not_there", "import 'not-there'"), "Runtime.ImportModuleError", "not"},
		{"wrong syntax", "app.handler", sources("def (", "export const ="), "Runtime.ImportModuleError", "SyntaxError"},
		{"throws", "app.handler", sources("1/0", "throw new TypeError('x')\nexport {}"), "Runtime.ImportModuleError", "Error"},
		{"exits", "app.handler", sources("import sys; sys.exit(0)", "throw 0"), "Runtime.ImportModuleError", "0"},
		{"throws what has no text", "app.handler", sources("class Odd(Exception):\n    def __str__(self): raise self\nraise Odd()", "throw Object.create(null)"), "Runtime.ImportModuleError", "Unable to import"},
		{"named as a module of Python", "time.handler", sources("other = 1", "export const other = 1"), "Runtime.HandlerNotFound", "missing from module"},
		{"missing handler", "app.gone", lambdaSources, "Runtime.HandlerNotFound", "missing"},
		{"not a function", "app.not_a_function", lambdaSources, "Runtime.HandlerNotFound", "not "},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
				api := newFakeAPI(t)
				s := startShim(t, runtime, v1alpha1.ProtocolLambdaRuntime, c.handler, c.source[runtime], api.env()...)
				got := receive(t, "the init error", api.results)
				if got.kind != "init/error" || got.errorType != c.errorType {
					t.Errorf("got %+v, want an init error of type %s", got, c.errorType)
				}
				checkReport(t, got, c.says)
				s.expectExit(1)
				s.expectError(c.errorType)
			})
		})
	}
}

func TestFourCallsRunAtATime(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startLambda(t, api, runtime, "app.handler", "AWS_LAMBDA_MAX_CONCURRENCY=4")
		for i := range 4 {
			api.events <- event{id: fmt.Sprint(i), body: `{"do":"meet"}`} // each waits for the other three
		}
		for range 4 {
			if got := receive(t, "a result", api.results); got.kind != "response" {
				t.Errorf("got %+v, want a response", got)
			}
		}
		if n := api.connections.Load(); n != 4 {
			t.Errorf("%d connections were made, want 4", n)
		}
		s.terminate()
		s.expectExit(0)
	})
}

func TestS13AShimNamesItselfTheSameOnAllItsConnections(t *testing.T) {
	names := map[string]bool{}
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		startLambda(t, api, runtime, "app.handler", "AWS_LAMBDA_MAX_CONCURRENCY=4")
		name := receive(t, "the first call of next", api.clients)
		for range 3 {
			if another := receive(t, "a call of next", api.clients); another != name {
				t.Errorf("it calls itself %q and %q", name, another)
			}
		}
		if len(name) < 32 || names[name] {
			t.Errorf("%q is no name that nobody can guess", name)
		}
		names[name] = true
	})
}

func TestTwoHundredCallsUseOneConnection(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		startLambda(t, api, runtime, "app.handler")
		for i := range 200 {
			id := fmt.Sprint(i)
			if got := api.call(t, event{id: id, body: id}); compact(t, got.body) != `{"event":`+id+`}` {
				t.Fatalf("call %d: got %+v", i, got)
			}
		}
		if n := api.connections.Load(); n != 1 {
			t.Errorf("%d connections were made, want 1", n)
		}
	})
}

func TestSIGTERMEndsAnIdleShimAtOnce(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startLambda(t, api, runtime, "app.handler")
		receive(t, "the first poll", api.polled)
		s.terminate()
		s.expectExit(0)
	})
}

// The interpreter's own end waits for such a thread.
func TestAThreadOfAPythonHandlerKeepsNoProcess(t *testing.T) {
	const thread = "import atexit, threading\natexit.register(print, 'over')\nthreading.Thread(target=threading.Event().wait).start()\n"
	for protocol, handler := range map[v1alpha1.Protocol]string{v1alpha1.ProtocolLambdaRuntime: "app.handler", v1alpha1.ProtocolHTTP: "app.application"} {
		t.Run(string(protocol), func(t *testing.T) {
			api := newFakeAPI(t)
			s := startShim(t, v1alpha1.RuntimePython313, protocol, handler, thread+"import not_there", append(api.env(), "PORT=1")...)
			s.expectExit(1)
			s.expectError("Runtime.ImportModuleError")
		})
	}
	t.Run("after SIGTERM", func(t *testing.T) {
		api := newFakeAPI(t)
		s := startShim(t, v1alpha1.RuntimePython313, "", "app.handler", thread+"def handler(event, context): pass", api.env()...)
		receive(t, "the first poll", api.polled)
		s.terminate()
		s.expectExit(0)
		if got := receive(t, "the line at the end", s.stdout); got != "over" {
			t.Errorf("got %q", got)
		}
	})
}

func TestSIGTERMLetsTheRunningCallFinish(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startLambda(t, api, runtime, "app.handler")
		file := filepath.Join(t.TempDir(), "go-on")
		api.events <- event{id: "1", body: fmt.Sprintf(`{"do":"wait","file":%q}`, file)}
		for receive(t, "the handler's line", s.stdout) != "started" {
		}
		s.terminate()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "the result", api.results); got.body != `"finished"` {
			t.Errorf("got %+v", got)
		}
		s.expectExit(0)
	})
}

func TestAShimWaitsForARuntimeAPIThatStartsLater(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := unstartedAPI(t)
		address := api.server.Listener.Addr().String()
		_ = api.server.Listener.Close()
		s := startLambda(t, api, runtime, "app.handler")
		receive(t, "the module's line", s.stdout) // it connects next
		api.server.Listener = listenOn(t, address)
		api.server.Start()
		if got := api.call(t, event{id: "1", body: "1"}); got.kind != "response" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAShimEndsWhenTheRuntimeAPIIsLost(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startLambda(t, api, runtime, "app.handler")
		receive(t, "the first poll", api.polled)
		api.server.CloseClientConnections()
		s.expectExit(1)
		s.expectError("the Runtime API is lost")
	})
}

func TestAShimEndsWhenOneOfItsConnectionsIsLost(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startLambda(t, api, runtime, "app.handler", "AWS_LAMBDA_MAX_CONCURRENCY=2")
		api.events <- event{id: broken, body: "1"}
		s.expectExit(1)
		s.expectError("the Runtime API is lost")
	})
}

func TestA3AnOrdinaryEndOfTheAgentIsNoLoss(t *testing.T) {
	for name, concurrency := range map[string]string{"one at a time": "1", "two at a time": "2"} {
		t.Run(name, func(t *testing.T) {
			eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
				api := newFakeAPI(t)
				s := startLambda(t, api, runtime, "app.handler", "AWS_LAMBDA_MAX_CONCURRENCY="+concurrency)
				receive(t, "the first poll", api.polled)
				close(api.over)
				s.expectExit(0)
				if said := s.errors(); said != "" {
					t.Errorf("standard error says %q, want nothing", said)
				}
			})
		})
	}
}

func TestAFunctionThatBreaksItsProcessIsReportedAndEnds(t *testing.T) {
	for runtime, c := range map[v1alpha1.RuntimeName]struct{ event, errorType, says string }{
		v1alpha1.RuntimePython313: {`{"do":"exit"}`, "SystemExit", "enough"},
		v1alpha1.RuntimeNodeJS22:  {`{"do":"uncaught"}`, "Error", "from nowhere"},
	} {
		t.Run(string(runtime), func(t *testing.T) {
			api := newFakeAPI(t)
			s := startLambda(t, api, runtime, "app.handler", "AWS_LAMBDA_MAX_CONCURRENCY=2")
			got := api.call(t, event{id: "1", body: c.event})
			if got.kind != "error" || got.errorType != c.errorType {
				t.Errorf("got %+v, want an error of type %s", got, c.errorType)
			}
			checkReport(t, got, c.says)
			s.expectExit(1)
		})
	}
}

func TestAMissingRuntimeAPIIsNamed(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		s := startShim(t, runtime, v1alpha1.ProtocolLambdaRuntime, "app.handler", lambdaSources[runtime])
		s.expectExit(1)
		s.expectError("AWS_LAMBDA_RUNTIME_API is not set")
	})
}
