package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

func TestAnInstanceLivesUntilItsAgentLeaves(t *testing.T) {
	th := newHarness(t, noTimeout)
	function, agent := th.startInstance("c-1")
	if got, want := function.request("getenv PORT"), agent.request("getenv WINDLASS_PORT"); got != want || got == "" {
		t.Errorf("the function has port %q and the agent %q", got, want)
	}
	work := filepath.Join(th.config.DataDir, "instances", testUID+"-c-1")
	if got := function.request("getwd"); got != work {
		t.Errorf("the function works in %s, want %s", got, work)
	}
	if got := agent.request("getenv HOME"); got != "" {
		t.Errorf("the agent inherits HOME=%s, want nothing but PATH", got)
	}
	function.request("print good morning")
	agent.send("exit 0")
	want := provisioner.Exit{FunctionUID: testUID, CID: "c-1", Reason: "the agent exited with status 0", LogTail: []string{"good morning"}}
	if diff := cmp.Diff(want, th.exit()); diff != "" {
		t.Errorf("Exit (-want +got):\n%s", diff)
	}
	wantReaped(t, function)
	wantReaped(t, agent)
	th.wantNoTrace()
}

func TestAFunctionThatIsFasterThanItsAgentWaitsForIt(t *testing.T) {
	th := newHarness(t, noTimeout)
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Protocol = v1alpha1.ProtocolLambdaRuntime
	th.Start(spec)
	function, agent := th.await(roleFunction, "c-1"), th.await(roleAgent, "c-1")
	addr := function.request("getenv AWS_LAMBDA_RUNTIME_API")
	conn, err := net.Dial("tcp", addr) // nobody accepts yet
	if err != nil {
		t.Fatalf("before the agent serves: %v", err)
	}
	defer conn.Close()
	agent.request("serve-inherited good morning")
	if words, err := io.ReadAll(conn); string(words) != "good morning" || err != nil {
		t.Errorf("the agent says %q, %v", words, err)
	}
	function.send("call-runtime-api")
	agent.request("serve-inherited good night")
	if got := function.line(); got != "good night" {
		t.Errorf("the function hears %q", got)
	}
	function.request("ignore-term")
	agent.kill(syscall.SIGKILL)
	agent.awaitEnd()
	if got := function.request("call-runtime-api"); !strings.Contains(got, "connection refused") {
		t.Errorf("once the agent has ended somebody listens: %q", got)
	}
	function.send("exit 0")
	th.exit()
	th.wantNoTrace()
}

func TestWhenProcessesWereStartedIsKnown(t *testing.T) {
	th := newHarness(t, noTimeout)
	before := time.Now()
	_, agent := th.startInstance("c-1")
	created, sandboxed := th.Progress(testUID, "c-1")
	for created.IsZero() { // the processes run, and nobody has noted it yet
		runtime.Gosched()
		created, sandboxed = th.Progress(testUID, "c-1")
	}
	if created.Before(before) || created.After(time.Now()) || !sandboxed.IsZero() {
		t.Errorf("created %v, sandboxed %v", created, sandboxed)
	}
	agent.send("exit 0")
	th.exit()
	if created, _ := th.Progress(testUID, "c-1"); !created.IsZero() {
		t.Errorf("of an instance that has ended is told %v", created)
	}
}

func TestWhicheverProcessEndsTheOtherFollows(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(function, agent *testProgram)
		want string
	}{
		"the function exits":     {func(f, _ *testProgram) { f.send("exit 3") }, "the function exited with status 3"},
		"the function is killed": {func(f, _ *testProgram) { f.kill(syscall.SIGKILL) }, "the function was killed by signal killed"},
		"the agent fails":        {func(_, a *testProgram) { a.send("exit 7") }, "the agent exited with status 7"},
		"the agent is killed":    {func(_, a *testProgram) { a.kill(syscall.SIGKILL) }, "the agent was killed by signal killed"},
	} {
		t.Run(name, func(t *testing.T) {
			th := newHarness(t, noTimeout)
			function, agent := th.startInstance("c-1")
			c.end(function, agent)
			if e := th.exit(); e.Reason != c.want {
				t.Errorf("reason %q, want %q", e.Reason, c.want)
			}
			wantReaped(t, function)
			wantReaped(t, agent)
			th.wantNoTrace()
		})
	}
}

func TestA3TheAgentHearsHowTheFunctionEndedInsteadOfBeingAskedToEnd(t *testing.T) {
	th := newHarness(t, noTimeout)
	function, agent := th.startInstance("c-1")
	agent.request("ignore-term") // it would wait for a call that nobody answers
	function.request("print last words")
	function.send("exit 3")
	e := th.exit()
	if diff := cmp.Diff(provisioner.Exit{
		FunctionUID: testUID, CID: "c-1", Reason: "the function exited with status 3", LogTail: []string{"last words"},
	}, e); diff != "" {
		t.Errorf("Exit (-want +got):\n%s", diff)
	}
	dir := instancelog.Dir(th.config.DataDir, testKey())
	for file, want := range map[string]string{
		instancelog.AgentFile("c-1"):    "the function exited with status 3\nlast words\n",
		instancelog.FunctionFile("c-1"): "last words\nwindlass: the function exited with status 3\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s has %q (%v), want %q", file, got, err, want)
		}
	}
}

func TestAFunctionThatExitsAtOnceIsReportedWithItsLastWords(t *testing.T) {
	th := newHarness(t, noTimeout)
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Command = []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 4"}
	th.Start(spec)
	e := th.exit()
	if e.Reason != "the function exited with status 4" {
		t.Errorf("reason %q", e.Reason)
	}
	if diff := cmp.Diff([]string{"out", "err"}, e.LogTail); diff != "" {
		t.Errorf("LogTail (-want +got):\n%s", diff)
	}
}

func TestTheLengthOfALogIsKnownWhileItsInstanceRuns(t *testing.T) {
	th := newHarness(t, noTimeout)
	if size, runs := th.LogSize(testKey(), "c-1"); runs {
		t.Errorf("before the start it is %d", size)
	}
	function, _ := th.startInstance("c-1")
	function.request("print last words")
	if size, runs := th.LogSize(testKey(), "c-1"); !runs || size != int64(len("last words\n")) {
		t.Errorf("it is %d (%t)", size, runs)
	}
	function.send("exit 3")
	th.exit()
	if size, runs := th.LogSize(testKey(), "c-1"); runs {
		t.Errorf("after the end it is %d", size)
	}
}

func TestAFunctionThatWroteNothingHasNoLastWords(t *testing.T) {
	th := newHarness(t, noTimeout)
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Command = []string{"/bin/sh", "-c", "exit 3"}
	th.Start(spec)
	if e := th.exit(); e.Reason != "the function exited with status 3" || e.LogTail != nil || !e.LogEmpty {
		t.Errorf("Exit is %+v", e)
	}
}

func TestWhatCannotStartIsAnExitThatSaysWhy(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*provisioner.InstanceSpec)
		want   string
	}{
		"a program that is not on PATH": {
			func(s *provisioner.InstanceSpec) { s.Function.Spec.Template.Command = []string{"no-such-program"} },
			`exec: "no-such-program": executable file not found in $PATH`,
		},
		"a program that is not in the folder of the code": {
			func(s *provisioner.InstanceSpec) {
				s.Function.Spec.Template.Command = []string{"./app"}
				s.Function.Spec.Template.Code = &v1alpha1.Code{Path: dir}
			},
			"fork/exec " + dir + "/app: no such file or directory",
		},
		"A15: a command line in one word": {
			func(s *provisioner.InstanceSpec) { s.Function.Spec.Template.Command = []string{"python3 srv.py"} },
			`exec: "python3 srv.py": executable file not found in $PATH: it looks like a command line in one word: write the words apart, as in -- python3 srv.py`,
		},
		"A15: a file that is not executable": {
			func(s *provisioner.InstanceSpec) {
				s.Function.Spec.Template.Command = []string{"./plain"}
				s.Function.Spec.Template.Code = &v1alpha1.Code{Path: dir}
			},
			"fork/exec " + dir + "/plain: permission denied: make the program executable: chmod +x " + dir + "/plain",
		},
		"code that is not there": {
			func(s *provisioner.InstanceSpec) { s.Function.Spec.Template.Code = &v1alpha1.Code{Path: dir + "/gone"} },
			"spec.template.code.path must be a file or a folder: stat " + dir + "/gone: no such file or directory",
		},
		"a runtime that is refused": {
			func(s *provisioner.InstanceSpec) {
				s.Function.Spec.Template.Command, s.Function.Spec.Template.RuntimeRef.Name = nil, v1alpha1.RuntimePython313
			},
			"this test has no launcher",
		},
		"an image": {
			func(s *provisioner.InstanceSpec) {
				s.Function.Spec.Template.Command, s.Function.Spec.Template.Image = nil, "example/app"
			},
			"the function has neither a command nor a runtime, and local mode cannot run an image: set spec.template.command or spec.template.runtimeRef.name",
		},
		"a name that leads elsewhere": {
			func(s *provisioner.InstanceSpec) { s.Function.Namespace = ".." },
			`preparing the instance: the function's namespace ".." cannot name a folder`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := newHarness(t, noTimeout)
			spec := specFor(th.path, "c-1")
			c.change(&spec)
			th.Start(spec)
			want := provisioner.Exit{FunctionUID: testUID, CID: "c-1", Reason: c.want}
			if diff := cmp.Diff(want, th.exit()); diff != "" {
				t.Errorf("Exit (-want +got):\n%s", diff)
			}
			th.wantNoTrace()
		})
	}
}

func TestAFunctionWithoutItsAgentIsKilled(t *testing.T) {
	th := newHarness(t, noTimeout)
	th.config.AgentPath = filepath.Join(t.TempDir(), "gone")
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Command = []string{"/bin/sh", "-c", "trap '' TERM; while :; do read x; done < /dev/zero"}
	th.Start(spec)
	if e := th.exit(); !strings.HasPrefix(e.Reason, "starting the agent: ") || !strings.Contains(e.Reason, "no such file") || e.LogEmpty {
		t.Errorf("Exit is %+v", e)
	}
	th.wantNoTrace()
}

func TestStopAsksTheAgentAndThenTheFunction(t *testing.T) {
	th := newHarness(t, noTimeout)
	function, agent := th.startInstance("c-1")
	th.Stop(testUID, "c-1", false)
	th.Stop(testUID, "c-1", false)
	th.Stop(testUID, "unknown", false)
	if e := th.exit(); e.Reason != "stopped" {
		t.Errorf("reason %q", e.Reason)
	}
	wantReaped(t, function)
	wantReaped(t, agent)
}

func TestStopLeavesTheFunctionToAnAgentInACall(t *testing.T) {
	th := newHarness(t, noTimeout)
	function, agent := th.startInstance("c-1")
	agent.request("ignore-term")
	th.Stop(testUID, "c-1", false)
	agent.request("print still in a call")
	if got := function.request("print the result"); got != "done" {
		t.Errorf("the function says %q", got)
	}
	agent.send("exit 0")
	if e := th.exit(); e.Reason != "stopped" {
		t.Errorf("reason %q", e.Reason)
	}
}

func TestWhatIgnoresTheRequestToEndIsKilledAfterTheGrace(t *testing.T) {
	th := newHarness(t, time.Millisecond)
	function, agent := th.startInstance("c-1")
	function.request("ignore-term")
	agent.request("ignore-term")
	th.Stop(testUID, "c-1", false)
	if e := th.exit(); e.Reason != "stopped" {
		t.Errorf("reason %q", e.Reason)
	}
	wantReaped(t, function)
	wantReaped(t, agent)
}

func TestKillLeavesNobody(t *testing.T) {
	th := newHarness(t, noTimeout)
	function, agent := th.startInstance("c-1")
	function.request("spawn")
	grandchild := th.await(roleGrandchild, "c-1")
	for _, p := range []*testProgram{function, agent, grandchild} {
		p.request("ignore-term")
	}
	th.Kill()
	grandchild.awaitEnd()
	wantReaped(t, function)
	wantReaped(t, agent)
	th.wantNoTrace()
	th.exit()
	th.Start(specFor(th.path, "c-2"))
	if e := th.exit(); e.Reason != reasonStopped {
		t.Errorf("an instance that is started now ends with %q", e.Reason)
	}
}

func TestGrandchildrenDieWithTheirGroup(t *testing.T) {
	th := newHarness(t, noTimeout)
	function, agent := th.startInstance("c-1")
	function.request("spawn")
	grandchild := th.await(roleGrandchild, "c-1")
	grandchild.request("ignore-term")
	agent.send("exit 0")
	th.exit()
	grandchild.awaitEnd()
}

func TestStopBeforeTheStartIsDone(t *testing.T) {
	r, err := New(testConfig(t.TempDir(), noTimeout), Deps{Launcher: noLauncher, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Start(specFor("", "c-1"))
	r.Stop(testUID, "c-1", false)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	if e := <-r.Exits(); e.Reason != "stopped" || e.CID != "c-1" {
		t.Errorf("Exit %+v", e)
	}
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

func TestStopWhileTheLauncherWorks(t *testing.T) {
	th := newHarness(t, noTimeout)
	launching, proceed := make(chan struct{}), make(chan struct{})
	th.launcher = LauncherFunc(func(runtimes.Request) (runtimes.Launched, error) {
		close(launching)
		<-proceed
		return runtimes.Launched{Argv: []string{"/no/such/program"}}, nil
	})
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Command, spec.Function.Spec.Template.RuntimeRef.Name = nil, v1alpha1.RuntimeNodeJS22
	th.Start(spec)
	<-launching
	th.Stop(testUID, "c-1", false)
	close(proceed)
	if e := th.exit(); e.Reason != "stopped" {
		t.Errorf("reason %q", e.Reason)
	}
	th.wantNoTrace()
}

func TestAnInstanceThatIsThereIsNotStartedAgain(t *testing.T) {
	th := newHarness(t, noTimeout)
	_, agent := th.startInstance("c-1")
	spec := specFor(th.path, "c-1")
	spec.Function.Spec.Template.Command = []string{"no-such-program"}
	th.Start(spec)
	agent.send("exit 0")
	if e := th.exit(); e.Reason != "the agent exited with status 0" {
		t.Errorf("reason %q", e.Reason)
	}
	th.close()
	select {
	case e := <-th.Exits():
		t.Errorf("another Exit: %+v", e)
	default:
	}
}

func TestRunLeavesNoProcess(t *testing.T) {
	th := newHarness(t, time.Millisecond)
	var puppets []*testProgram
	for i := range 3 {
		function, agent := th.startInstance(invocation.CID(fmt.Sprintf("c-%d", i)))
		puppets = append(puppets, function, agent)
	}
	puppets[0].request("ignore-term")
	puppets[3].request("ignore-term")
	th.close()
	for _, p := range puppets {
		wantReaped(t, p)
	}
	for range 3 {
		if e := th.exit(); e.Reason != "stopped" {
			t.Errorf("reason %q", e.Reason)
		}
	}
	th.wantNoTrace()
	th.Start(specFor(th.path, "late"))
	if e := th.exit(); e.Reason != "stopped" || e.CID != "late" {
		t.Errorf("a Start after Run: %+v", e)
	}
	if err := th.Run(t.Context()); err == nil {
		t.Error("Run ran twice")
	}
}

func TestRunEndsAlthoughNobodyReadsExits(t *testing.T) {
	th := newHarness(t, noTimeout)
	const starts = exitsBuffer + 20
	for i := range starts {
		spec := specFor(th.path, invocation.CID(fmt.Sprintf("c-%d", i)))
		spec.Function.Spec.Template.Command = []string{"no-such-program"}
		th.Start(spec)
	}
	th.close()
	if n := len(th.Exits()); n != exitsBuffer {
		t.Errorf("%d Exits wait, want the %d that fit", n, exitsBuffer)
	}
}

func TestKillingWindlassLeavesNoProcess(t *testing.T) {
	needsLinux(t, "a child cannot be tied to its parent's life")
	s := newProgramServer(t)
	data := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+roleParent, serverEnv+"="+s.path, "PUPPET_DATA="+data)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	function, agent := s.await(roleFunction, "c-1"), s.await(roleAgent, "c-1")
	parent := s.await(roleParent, "")
	function.request("ignore-term")
	agent.request("ignore-term")
	if _, err := New(testConfig(data, noTimeout), Deps{Launcher: noLauncher, Logger: slog.Default()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("New in the folder of another Windlass: %v", err)
	}
	if parent.pid != cmd.Process.Pid {
		t.Fatalf("the parent has process id %d, want %d", parent.pid, cmd.Process.Pid)
	}
	parent.kill(syscall.SIGKILL)
	cmd.Wait()
	function.awaitEnd()
	agent.awaitEnd()

	leftover := filepath.Join(data, "instances", testUID+"-c-1")
	if _, err := os.Stat(leftover); err != nil {
		t.Fatalf("the killed Windlass left no folder: %v", err)
	}
	r, err := New(testConfig(data, noTimeout), Deps{Launcher: noLauncher, Logger: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next Windlass leaves %s there: %v", leftover, err)
	}
}

func TestThirtyInstancesAtATime(t *testing.T) {
	th := newHarness(t, noTimeout)
	const n = 30
	for i := range n {
		th.Start(specFor(th.path, invocation.CID(fmt.Sprintf("c-%02d", i))))
	}
	seen := map[string]bool{}
	for i := range n {
		cid := fmt.Sprintf("c-%02d", i)
		seen[th.await(roleFunction, cid).request("getenv PORT")] = true
		th.await(roleAgent, cid).send("exit 0")
	}
	if len(seen) != n {
		t.Errorf("%d instances share %d ports", n, len(seen))
	}
	ended := map[invocation.CID]bool{}
	for range n {
		ended[th.exit().CID] = true
	}
	if len(ended) != n {
		t.Errorf("Exits of %d instances, want %d", len(ended), n)
	}
	th.wantNoTrace()
	entries, err := os.ReadDir(instancelog.Dir(th.config.DataDir, testKey()))
	if err != nil || len(entries) != 2*keptLogs {
		t.Errorf("%d logs (%v), want those of %d instances", len(entries), err, keptLogs)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	deps := Deps{Launcher: noLauncher, Logger: slog.Default()}
	for name, c := range map[string]struct {
		change func(*Config, *Deps)
		want   string
	}{
		"no folder":        {func(c *Config, _ *Deps) { c.DataDir = "" }, "DataDir"},
		"no agent":         {func(c *Config, _ *Deps) { c.AgentPath = "" }, "AgentPath"},
		"a missing agent":  {func(c *Config, _ *Deps) { c.AgentPath = "no-such-agent" }, `AgentPath must be the agent's program: exec: "no-such-agent"`},
		"a CA alone":       {func(c *Config, _ *Deps) { c.CA = "ca" }, "TLSDomain"},
		"no scheduler":     {func(c *Config, _ *Deps) { c.SchedulerAddr = "here" }, `SchedulerAddr "here"`},
		"a negative grace": {func(c *Config, _ *Deps) { c.StopGrace = -1 }, "StopGrace"},
		"no logger":        {func(_ *Config, d *Deps) { d.Logger = nil }, "Logger"},
	} {
		t.Run(name, func(t *testing.T) {
			config, deps := testConfig(t.TempDir(), 0), deps
			c.change(&config, &deps)
			if _, err := New(config, deps); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
