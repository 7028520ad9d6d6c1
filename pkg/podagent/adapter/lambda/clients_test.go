//go:build clients

package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/internal/lambdaclients"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda/lambdaenv"
)

// instance is a runtime client with a handler, and its adapter.
type instance struct {
	*testing.T
	a *Adapter
	// ctx ends when the client has.
	ctx context.Context
}

// start runs the client with handler from testdata.
func start(t *testing.T, c lambdaclients.Client, handler string, concurrency int) *instance {
	t.Helper()
	args := c.Install(t, handler)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taskRoot, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{Namespace: "shop", Function: "hello", Concurrency: concurrency})
	serveCtx, endServe := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := a.Serve(serveCtx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = taskRoot
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"}, lambdaenv.Environ(lambdaenv.Config{
		RuntimeAPI: l.Addr().String(), Namespace: "shop", Function: "hello", Handler: handler,
		TaskRoot: taskRoot, MemoryMB: 128, Concurrency: concurrency,
	})...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, ended := context.WithCancelCause(context.Background())
	parts.Go(func() {
		err := cmd.Wait()
		ended(fmt.Errorf("the runtime client ended (%v):\n%s", err, &output))
	})
	t.Cleanup(func() {
		// The whole group, since a client may run several processes.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		endServe()
		parts.Wait()
	})
	return &instance{T: t, a: a, ctx: ctx}
}

// invoke calls the handler with event.
func (i *instance) invoke(id, event string) *recorder {
	i.Helper()
	w, err := i.try(id, event)
	if err != nil {
		i.Errorf("event %s: %v", event, err)
	}
	return w
}

// try calls the handler with event, which may fail.
func (i *instance) try(id, event string) (*recorder, error) {
	w := &recorder{}
	call := &adapter.Call{
		ID: id, Attempt: 1, Method: http.MethodPost, RequestURI: "/",
		ContentLength: int64(len(event)), Body: strings.NewReader(event), Deadline: time.Now().Add(time.Minute),
	}
	ctx, cancel := context.WithDeadline(i.ctx, call.Deadline)
	defer cancel()
	return w, i.a.Invoke(ctx, call, w)
}

func (i *instance) waitReady() {
	i.Helper()
	if err := i.a.WaitReady(i.ctx); err != nil {
		i.Fatal(err)
	}
}

// returned is what the handlers in testdata return.
type returned struct {
	Event  map[string]any `json:"event"`
	ID     string         `json:"id"`
	ARN    string         `json:"arn"`
	Name   string         `json:"name"`
	InTime bool           `json:"inTime"`
}

func decode[T any](t *testing.T, w *recorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.body.Bytes(), &v); err != nil {
		t.Fatalf("answer %d %q: %v", w.head.Status, &w.body, err)
	}
	return v
}

func TestOfficialClientsRunUnchangedHandlers(t *testing.T) {
	for _, c := range lambdaclients.All {
		t.Run(c.Name, func(t *testing.T) {
			i := start(t, c, "app.handler", 1)
			i.waitReady()
			t.Run("what the handler returns is the answer", func(t *testing.T) {
				w := i.invoke("f0", `{"text":"grüße 🌍 \u0000"}`)
				want := returned{
					Event: map[string]any{"text": "grüße 🌍 \x00"}, ID: "f0", Name: "hello", InTime: true,
					ARN: "arn:aws:lambda:us-east-1:000000000000:function:shop-hello",
				}
				if diff := cmp.Diff(want, decode[returned](t, w)); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
				if w.head.Status != 200 || w.head.FunctionError != "" || w.head.Header.Get("Content-Type") != "application/json" {
					t.Errorf("head %+v", w.head)
				}
			})
			t.Run("what the handler throws is a function error", func(t *testing.T) {
				w := i.invoke("f1", `{"fail":"größte Not"}`)
				if got := decode[errorBody](t, w); got.Message != "größte Not" || got.Type != c.ErrorType {
					t.Errorf("error %+v", got)
				}
				if w.head.Status != 500 || w.head.FunctionError == "" {
					t.Errorf("head %+v", w.head)
				}
			})
			t.Run("many calls one after another", func(t *testing.T) {
				for n := range 200 {
					id := fmt.Sprintf("%032x", n)
					if got := decode[returned](t, i.invoke(id, fmt.Sprintf(`{"n":%d}`, n))); got.ID != id || got.Event["n"] != float64(n) {
						t.Fatalf("call %d: %+v", n, got)
					}
				}
			})
			t.Run("a call without a body", func(t *testing.T) {
				if got := decode[returned](t, i.invoke("f2", "")); len(got.Event) != 0 {
					t.Errorf("event %v", got.Event)
				}
			})
		})
	}
}

func TestOfficialClientsReportAHandlerThatIsMissing(t *testing.T) {
	for _, c := range lambdaclients.All {
		t.Run(c.Name, func(t *testing.T) {
			err := start(t, c, "nothing.handler", 1).waitError()
			if !strings.Contains(err.Error(), "Runtime.ImportModuleError") || !strings.Contains(err.Error(), "nothing") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// waitError is the error that the client reports as it starts.
func (i *instance) waitError() error {
	i.Helper()
	err := i.a.WaitReady(i.ctx)
	if err == nil {
		i.Fatal("the client is ready")
	}
	return err
}

func TestOfficialClientsRunCallsAtATime(t *testing.T) {
	for _, c := range lambdaclients.All {
		t.Run(c.Name, func(t *testing.T) {
			i := start(t, c, "app.handler", 2)
			i.waitReady()
			event, err := json.Marshal(map[string]string{"meet": t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			for _, id := range []string{"a", "b"} {
				both.Go(func() {
					if w := i.invoke(id, string(event)); !strings.Contains(w.body.String(), `"`+id+`"`) {
						t.Errorf("call %s: answer %q", id, &w.body)
					}
				})
			}
			both.Wait()
		})
	}
}

func TestOfficialClientStreamsAnHTTPAnswer(t *testing.T) {
	i := start(t, lambdaclients.All[1], "app.stream", 1)
	i.waitReady()
	w := i.invoke("a", `{"text":"é"}`)
	if w.head.Status != 201 || w.head.Header.Get("X-A") != "1" || w.body.String() != "aé" {
		t.Errorf("answer %+v %q", w.head, &w.body)
	}
	if w, err := i.try("b", `{"text":"x","fail":"halfway"}`); !errors.Is(err, adapter.ErrFunctionLost) || !strings.Contains(err.Error(), "halfway") {
		t.Errorf("answer %+v %q, error %v", w.head, &w.body, err)
	}
}
