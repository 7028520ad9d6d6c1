package contract

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// What an image asks, by the contract v1.
const (
	askEvent      = "GET /2018-06-01/runtime/invocation/next"
	askAssignment = "GET /windlass/v1/assignment"
	tellInitError = "POST /2018-06-01/runtime/init/error"
)

// ready runs the handler of a function, and waits until it can be called.
func (s *harness) ready(handler string, change ...func(*v1alpha1.FunctionTemplate)) (*program, *lambda.Adapter, func()) {
	s.t.Helper()
	f := function(handler, change...)
	a := lambda.New(lambda.Config{Namespace: f.Namespace, Function: f.Name, Concurrency: int(f.Spec.Template.Concurrency)})
	stop := s.agent(a)
	pod, err := podspec.Pod(input(f))
	p := s.run(s.task, s.here(environment(s.t, pod, err), s.task))
	if err := a.WaitReady(waiting(s.t)); err != nil {
		s.t.Fatal(err)
	}
	return p, a, stop
}

// answers wants a call to be answered as the handler does.
func answers(t *testing.T, a *lambda.Adapter, id string) {
	t.Helper()
	w := call(t, a, id, `{"say": "☂", "n": [1, null]}`)
	var got any
	if err := json.Unmarshal(w.body.Bytes(), &got); err != nil {
		t.Fatalf("the answer %q: %v", &w.body, err)
	}
	want := map[string]any{
		"event": map[string]any{"say": "☂", "n": []any{1.0, nil}}, "greeting": "ahoy = ☂", "spare": nil, "word": word,
	}
	if diff := cmp.Diff(want, got); diff != "" || w.head.Status != http.StatusOK || w.head.FunctionError != "" {
		t.Errorf("answered with status %d and error %q (-want +got):\n%s", w.head.Status, w.head.FunctionError, diff)
	}
}

// known wants nothing to have been asked but what the contract has.
func (s *harness) known() {
	s.t.Helper()
	for _, request := range s.listener.requests() {
		rest, ofCall := strings.CutPrefix(request, "POST /2018-06-01/runtime/invocation/")
		_, what, _ := strings.Cut(rest, "/")
		if ofCall && (what == "response" || what == "error") || slices.Contains([]string{askEvent, askAssignment, tellInitError}, request) {
			continue
		}
		s.t.Errorf("%q is not of the contract v1", request)
	}
}

func TestItAnswersAndEnds(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		p, a, _ := s.ready("contract.handler")
		for i := range 3 {
			answers(t, a, strconv.Itoa(i))
		}
		p.terminate()
		p.ends(true)
		s.known()
	})
}

func TestItReportsWhatTheHandlerThrowsAndGoesOn(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		_, a, _ := s.ready("contract.handler")
		w := call(t, a, "f", `{"fail": "no ☂ today"}`)
		var report struct{ ErrorMessage, ErrorType string }
		if err := json.Unmarshal(w.body.Bytes(), &report); err != nil {
			t.Errorf("the report %q: %v", &w.body, err)
		}
		if w.head.FunctionError == "" || !strings.Contains(report.ErrorMessage, "no ☂ today") || report.ErrorType == "" {
			t.Errorf("got an error of type %q, and %+v", w.head.FunctionError, report)
		}
		answers(t, a, "1")
		s.known()
	})
}

func TestItSaysWhyAHandlerCannotBeLoaded(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		for name, handler := range map[string]string{"no such module": "gone.handler", "no such function": "contract.gone"} {
			t.Run(name, func(t *testing.T) {
				s := newStage(t, of)
				f := function(handler)
				a := lambda.New(lambda.Config{Namespace: f.Namespace, Function: f.Name, Concurrency: 1})
				s.agent(a)
				pod, err := podspec.Pod(input(f))
				p := s.run(s.task, s.here(environment(t, pod, err), s.task))
				if err := a.WaitReady(waiting(t)); err == nil || !strings.Contains(err.Error(), "gone") {
					t.Errorf("it tells %v", err)
				}
				s.listener.await(t, tellInitError, 1)
				p.ends(false)
			})
		}
	})
}

func TestItAsksAsOftenAsCallsMayRun(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		p, a, _ := s.ready("contract.handler", func(f *v1alpha1.FunctionTemplate) { f.Concurrency = 3 })
		s.listener.await(t, askEvent, 3)
		answers(t, a, "1")
		p.terminate()
		p.ends(true)
	})
}

func TestItEndsWithItsAgent(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		p, a, stop := s.ready("contract.handler")
		answers(t, a, "1")
		s.listener.await(t, askEvent, 2)
		stop()
		select {
		case <-p.exited:
		case <-time.After(patience):
			t.Fatal("it outlives its agent")
		}
	})
}

// assignmentOf is what a function of the handler hands to a spare instance, with the
// files of the subject's folder.
func (s *harness) assignmentOf(handler, task string) adapter.Assignment {
	s.t.Helper()
	f := function(handler)
	to := adapter.Assignment{Namespace: f.Namespace, Function: f.Name, Concurrency: 1}
	var variables []adapter.Variable
	for _, v := range podspec.AssignmentOf(input(f)).Variables {
		variables = append(variables, adapter.Variable{Name: v.Name, Value: v.Value})
	}
	to.Variables = append([]adapter.Variable{{Name: "GREETING", Value: "the last one counts"}}, s.here(variables, task)...)
	entries, err := os.ReadDir(s.task)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(s.task, e.Name()))
		if err != nil {
			s.t.Fatal(err)
		}
		to.Files = append(to.Files, adapter.File{Path: e.Name(), Content: content})
	}
	to.Files = append(to.Files, adapter.File{Path: "a/b/c.txt", Content: []byte{0, 255}})
	return to
}

// spare runs an instance without a function, whose code will be in the folder task, which it
// makes.
func (s *harness) spare(task string) *program {
	s.t.Helper()
	pod, err := podspec.Spare(spareInput())
	return s.run(filepath.Dir(task), s.here(environment(s.t, pod, err), task))
}

func TestASpareInstanceBecomesAFunctions(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		a := lambda.NewSpare(0)
		s.agent(a)
		task := filepath.Join(t.TempDir(), "code")
		p := s.spare(task)
		if err := a.WaitRuntime(waiting(t)); err != nil {
			t.Fatal(err)
		}
		if got := s.listener.requests(); !slices.Equal(got, []string{askAssignment}) {
			t.Errorf("before the assignment it asked %q, want %q alone", got, askAssignment)
		}
		if err := a.Assign(s.assignmentOf("contract.handler", task)); err != nil {
			t.Fatal(err)
		}
		if err := a.WaitReady(waiting(t)); err != nil {
			t.Fatal(err)
		}
		answers(t, a, "1")
		if !s.contained() {
			if content, err := os.ReadFile(filepath.Join(task, "a", "b", "c.txt")); err != nil || string(content) != "\x00\xff" {
				t.Errorf("a file in a folder has %q, %v", content, err)
			}
		}
		p.terminate()
		p.ends(true)
		s.known()
	})
}

func TestASpareInstanceSaysWhyAHandlerCannotBeLoaded(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		a := lambda.NewSpare(0)
		s.agent(a)
		task := filepath.Join(t.TempDir(), "code")
		p := s.spare(task)
		if err := a.Assign(s.assignmentOf("gone.handler", task)); err != nil {
			t.Fatal(err)
		}
		if err := a.WaitReady(waiting(t)); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("it tells %v", err)
		}
		p.ends(false)
	})
}

func TestASpareInstanceThatNobodyTookEndsWhenAsked(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		a := lambda.NewSpare(0)
		s.agent(a)
		p := s.spare(filepath.Join(t.TempDir(), "code"))
		if err := a.WaitRuntime(waiting(t)); err != nil {
			t.Fatal(err)
		}
		p.terminate()
		p.ends(true)
	})
}

// handOut is a stand-in that answers the request for the assignment with one that could be
// carried out, but for the files that are added, and with a status. Nobody gets an event.
func (s *harness) handOut(task string, status int, added ...adapter.File) {
	s.t.Helper()
	to := s.assignmentOf("contract.handler", task)
	text, err := json.Marshal(map[string]any{"variables": to.Variables, "files": append(to.Files, added...)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.standIn(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case askAssignment:
			w.WriteHeader(status)
			_, _ = w.Write(text)
		case askEvent:
			<-r.Context().Done()
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

// The agent hands over no such file, and nobody who is not the agent should be able to.
func TestASpareInstanceRefusesFilesElsewhere(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		for _, path := range []string{"../stray", "/stray", "a//stray", "./stray", "a/../../stray", `a\stray`} {
			t.Run(path, func(t *testing.T) {
				s := newStage(t, of)
				task := filepath.Join(t.TempDir(), "code")
				s.handOut(task, http.StatusOK, adapter.File{Path: path, Content: []byte("x")})
				p := s.spare(task)
				p.ends(false)
				if got := s.listener.requests(); !slices.Contains(got, tellInitError) || slices.Contains(got, askEvent) {
					t.Errorf("it asked %q, want it to say why it does not start", got)
				}
				if found, _ := filepath.Glob(filepath.Join(filepath.Dir(task), "stray")); len(found) > 0 {
					t.Errorf("it has written %q", found)
				}
			})
		}
	})
}

func TestASpareInstanceThatIsTooLateIsNone(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		s := newStage(t, of)
		task := filepath.Join(t.TempDir(), "code")
		s.handOut(task, http.StatusGone)
		p := s.spare(task)
		p.ends(false)
		if got := s.listener.requests(); slices.Contains(got, askEvent) {
			t.Errorf("it asked %q", got)
		}
	})
}

// A port is the function's own with HTTP. Idle connections are kept.
func TestItServesHTTPOnItsPort(t *testing.T) {
	each(t, func(t *testing.T, of subject) {
		if found, _ := filepath.Glob(filepath.Join(of.code, "web.*")); len(found) == 0 {
			t.Skip("there is no handler web.application")
		}
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := free.Addr().(*net.TCPAddr).Port
		_ = free.Close()
		s := newStage(t, of)
		f := function("web.application", func(f *v1alpha1.FunctionTemplate) { f.Protocol, f.Port = v1alpha1.ProtocolHTTP, int32(port) })
		pod, err := podspec.Pod(input(f))
		p := s.run(s.task, s.here(environment(t, pod, err), s.task))
		conn := connect(t, p, port)
		replies := bufio.NewReader(conn)
		for range 2 {
			if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: checked\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			reply, err := http.ReadResponse(replies, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, reply.Body)
			_ = reply.Body.Close()
			if err != nil || reply.StatusCode >= 500 || reply.Close {
				t.Fatalf("answered with %s, and will be closed: %v; %v", reply.Status, reply.Close, err)
			}
		}
		p.terminate()
		p.ends(true)
		if asked := s.listener.requests(); len(asked) > 0 {
			t.Errorf("it asked the Runtime API %q", asked)
		}
	})
}

// connect waits until something listens on the port.
func connect(t *testing.T, p *program, port int) net.Conn {
	t.Helper()
	ctx := waiting(t)
	tries := time.NewTicker(10 * time.Millisecond)
	defer tries.Stop()
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		select {
		case <-tries.C:
		case <-p.exited:
			t.Fatal("it has ended, and listened on no port")
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}
