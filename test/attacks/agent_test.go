package attacks

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// runtimeFunction is a function for the Lambda Runtime API whose agent is the program,
// and whose code is the attacker's.
const runtimeFunction = "runtime"

// atATime is how many calls it runs at a time.
const atATime = 4

// agentProgram is the agent's program.
var agentProgram string

// buildAgent builds it.
func buildAgent(t *testing.T) {
	agentProgram = filepath.Join(t.TempDir(), "podagent")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-o", agentProgram, "../../cmd/podagent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// agentProcess is an agent that runs, with the memory of one in a pod.
type agentProcess struct {
	*platform
	pid   int
	limit uint64
	// api is where it serves the Runtime API.
	api string
	// runtime is the function's own client, which keeps its connection.
	runtime *http.Client
}

// startAgent starts the agent of an instance.
func (w *platform) startAgent() *agentProcess {
	w.Helper()
	w.put(runtimeFunction, time.Minute, func(fn *v1alpha1.Function) { fn.Spec.Template.Concurrency = atATime })
	key := receive(w.T, w.started[runtimeFunction], "an instance")
	free := w.listen()
	_ = free.Close()
	a := &agentProcess{platform: w, limit: limits()["agent"], api: free.Addr().String(), runtime: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	cmd := exec.Command(agentProgram)
	cmd.Env = append(w.agentConfig(key, free.Addr().(*net.TCPAddr).Port).Environ(), "GOMEMLIMIT="+strconv.FormatUint(a.limit/10*9, 10))
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	a.pid = cmd.Process.Pid
	w.Cleanup(func() {
		a.runtime.CloseIdleConnections()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if w.Failed() {
			w.Logf("the agent's log:\n%.4000s", log.String())
		}
	})
	w.until("the agent listens", func() bool {
		conn, err := net.Dial("tcp", a.api)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return a
}

func (w *platform) agentConfig(key provisioner.Key, port int) agentenv.Config {
	return agentenv.Config{
		Scheduler: w.scheduler, FunctionUID: key.FunctionUID, Function: "shop/" + runtimeFunction, Revision: "1", CID: string(key.CID),
		Token: w.token(podOf(key), nil), CA: string(w.ca.PEM()), TLSDomain: string(domain), Protocol: agentenv.ProtocolLambdaRuntime, Port: port,
		Concurrency: atATime, StartupTimeout: patience, BackoffAfter: patience, IdleTimeout: time.Hour,
	}
}

// asked is a request to the Runtime API.
type asked struct {
	status  int
	id      string // of the event
	content string
	err     error
}

// asAStranger asks the Runtime API on a connection of its own.
func (a *agentProcess) asAStranger(method, path, body string, change ...func(*http.Request)) asked {
	a.Helper()
	return a.ask(&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, method, path, body, change...)
}

func (a *agentProcess) ask(client *http.Client, method, path, body string, change ...func(*http.Request)) asked {
	a.Helper()
	r, err := http.NewRequest(method, "http://"+a.api+path, strings.NewReader(body))
	if err != nil {
		a.Fatal(err)
	}
	for _, c := range change {
		c(r)
	}
	resp, err := client.Do(r)
	if err != nil {
		return asked{err: err}
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return asked{resp.StatusCode, resp.Header.Get("Lambda-Runtime-Aws-Request-Id"), string(content), err}
}

const runtimeAPI = "/2018-06-01/runtime"

// asRuntime names the function's own client, as our shims do.
func asRuntime(r *http.Request) { r.Header.Set("Windlass-Client", "made-up-by-the-process") }

// next takes an event, and answer answers it.
func (a *agentProcess) next() asked {
	a.Helper()
	event := a.ask(a.runtime, http.MethodGet, runtimeAPI+"/invocation/next", "", asRuntime)
	if event.status != http.StatusOK {
		a.Errorf("the runtime's question for an event is answered with %d, %v: %s", event.status, event.err, event.content)
	}
	return event
}

func (a *agentProcess) answer(event asked) {
	a.Helper()
	path := runtimeAPI + "/invocation/" + event.id + "/response"
	if got := a.ask(a.runtime, http.MethodPost, path, event.content, asRuntime); got.status != http.StatusAccepted {
		a.Errorf("the runtime's answer is answered with %d, %v: %s", got.status, got.err, got.content)
	}
}

// callRuntime calls the function with an event that is a text.
func (w *platform) callRuntime(text string) <-chan response {
	answers := make(chan response, 1)
	go func() {
		answers <- w.raw(request("POST /function/"+runtimeFunction+".shop/", "Connection: close", "Content-Length: "+itoa(len(text)+2), "", strconv.Quote(text)))
	}()
	return answers
}

// bounded prints the most memory that the agent has had, and checks it.
func (a *agentProcess) bounded() {
	a.Helper()
	most := residentPeak(a.T, a.pid)
	fmt.Fprintf(os.Stdout, "agent_resident_peak_mib{%s}=%d\n", a.row, most>>20)
	if most > a.limit/4*3 {
		a.Errorf("the agent came to %d MiB; its limit is %d MiB, of which it may be three quarters", most>>20, a.limit>>20)
	}
}
