package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// fakeAgent is the path of a file that could be run.
func fakeAgent(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUpHandsOverWhatItWasTold(t *testing.T) {
	th := quiet(t)
	agent := fakeAgent(t)
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {runtimeRef: {name: python3.13}, handler: m.h, code: {path: .}}")})
	var got UpConfig
	up := func(_ context.Context, config UpConfig) error {
		got = config
		fn := defaulted(config.Functions[0])
		fn.Status.URL = "http://gw/function/f"
		config.Log.Debug("a message")
		config.Ready(localapi.Info{Version: "v1", GatewayURL: "http://gw", OpsURL: "http://ops", DataDir: config.DataDir, Key: "wl_x"},
			[]localapi.Applied{{Result: file.Created, Function: fn}})
		return nil
	}
	th.play(t, nil, Programs{Up: up}, "up", "--agent", agent, "-f", dir, "--listen", "127.0.0.1:0", "--max-body-size", "2Ki", "--log-level", "debug", "--log-format", "json", "--auth", "--algorithm", "FPCSch").
		expect(t, exitOK, "out", "Windlass v1 is up\n  gateway   http://gw\n  status    http://ops/\n  metrics   http://ops/metrics\n  data      "+th.dir,
			"\n  key       wl_x\n", "function default/f created\n  url  http://gw/function/f", "Try in another terminal: windlass --data-dir "+th.dir+" invoke f.")
	if !got.RequireKeys || got.DataDir != th.dir || got.AgentPath != agent || got.MaxBody != 2048 || got.Decider != "FPCSch" || got.Listen != "127.0.0.1:0" || got.OpsListen != "127.0.0.1:8081" {
		t.Errorf("got %+v", got)
	}
	if got.KillWith == nil {
		t.Error("a second signal kills nothing")
	}
	if got.Functions[0].Spec.Template.Code.Path != dir {
		t.Errorf("code.path %q, want %q", got.Functions[0].Spec.Template.Code.Path, dir)
	}
}

// Otherwise the next command would change the cluster of the settings.
func TestUpAndDevSuggestCommandsThatReachThem(t *testing.T) {
	home := write(t, map[string]string{".config/windlass.yaml": "context: production\n", "f.yaml": yamlOf("f", "template: {command: [x]}")})
	th := openAt(t, "windlass")
	for _, c := range []struct{ verb, state, want string }{
		{"up", quiet(t).dir, " list"},
		{"dev -f " + home, filepath.Dir(th.dir), " invoke f"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out, errs strings.Builder
		a := newApp(Streams{Out: writerFunc(func(text string) { out.WriteString(text); cancel() }), Err: &errs}, Programs{Up: func(_ context.Context, config UpConfig) error {
			config.Ready(localapi.Info{DataDir: config.DataDir}, nil)
			return nil
		}})
		a.getenv = func(name string) string { return map[string]string{"HOME": home, "XDG_STATE_HOME": c.state}[name] }
		root := a.command()
		root.SetArgs(append(strings.Fields(c.verb), "--agent", fakeAgent(t)))
		err := root.ExecuteContext(ctx)
		if want := "windlass --data-dir " + filepath.Join(c.state, "windlass") + c.want; err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, and it lacks %q:\n%s%s", c.verb, err, want, out.String(), errs.String())
		}
	}
}

func TestUpLogsAsItWasTold(t *testing.T) {
	th := quiet(t)
	up := func(_ context.Context, config UpConfig) error {
		config.Log.Debug("not shown")
		config.Log.Info("shown", "addr", "x")
		return nil
	}
	got := th.play(t, nil, Programs{Up: up}, "up", "--agent", fakeAgent(t), "--log-format", "json")
	got.expect(t, exitOK, "err", `"msg":"shown","addr":"x"`)
	if strings.Contains(got.err, "not shown") {
		t.Error("debug messages are shown without --log-level debug")
	}
}

func TestA11WhatFunctionsPrintIsShownToPeople(t *testing.T) {
	up := func(_ context.Context, config UpConfig) error {
		config.Log.Info("slots changed hands", "gained", 120)
		config.Log.Info("an instance is ready", "function", "default/hello", "cid", "00000001-00000a")
		if config.Printed != nil {
			config.Printed("default/hello", "00000001-00000a", now, "good day")
		}
		return nil
	}
	got := quiet(t).play(t, nil, Programs{Up: up}, "up", "--agent", fakeAgent(t))
	got.expect(t, exitOK, "err", "hello        1-a   · ready\n", "hello        1-a   │ good day\n")
	if strings.Contains(got.err, "slots") || strings.Contains(got.err, "msg=") {
		t.Errorf("people read %s", got.err)
	}
	got = quiet(t).play(t, nil, Programs{Up: up}, "up", "--agent", fakeAgent(t), "--log-format", "text")
	got.expect(t, exitOK, "err", `msg="slots changed hands" gained=120`)
	if strings.Contains(got.err, "good day") {
		t.Error("what functions print is in a log for programs")
	}
}

func TestUpRefusesWhatLocalModeCannotRunBeforeItStarts(t *testing.T) {
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {image: x}")})
	quiet(t).run(t, "up", "--agent", fakeAgent(t), "-f", dir).expect(t, exitUsage, "err", "f.yaml:4: function f: spec.template.image", "needs a cluster")
}

func TestUpKeepsBatchBackOnlyWithNodeScheduling(t *testing.T) {
	quiet(t).run(t, "up", "--agent", fakeAgent(t), "--co-location").expect(t, exitUsage, "err", "--co-location needs --node-scheduling: write --node-scheduling=auto")
	var got UpConfig
	up := func(_ context.Context, config UpConfig) error { got = config; return nil }
	quiet(t).play(t, nil, Programs{Up: up}, "up", "--agent", fakeAgent(t), "--co-location", "--node-scheduling=fifo")
	if !got.CoLocation || got.NodeOrder != "fifo" {
		t.Errorf("got %+v", got)
	}
}

func TestUpThatFailsIsThePlatformsError(t *testing.T) {
	up := func(context.Context, UpConfig) error { return errors.New("the port is taken; choose another") }
	got := quiet(t).play(t, nil, Programs{Up: up}, "up", "--agent", fakeAgent(t))
	got.expect(t, exitPlatform, "err", "windlass: the port is taken")
	if strings.Contains(got.err, "usage:") {
		t.Error("the usage does not help")
	}
}

func TestUpWithWrongFlagsOrManifestsIsMisuse(t *testing.T) {
	for _, flag := range []string{"--listen", "--ops-listen"} {
		for _, addr := range []string{"0.0.0.0:8080", ":8080", "example.com:80", "[2001:db8::1]:80"} {
			quiet(t).run(t, "up", "--agent", fakeAgent(t), flag, addr).
				expect(t, exitUsage, "err", flag+` "`+addr+`" is not a loopback address`, "write for example 127.0.0.1:8080")
		}
		up := func(context.Context, UpConfig) error { return nil }
		for _, addr := range []string{"127.0.0.1:0", "localhost:8080", "[::1]:80", "127.0.0.1:http"} {
			quiet(t).play(t, nil, Programs{Up: up}, "up", "--agent", fakeAgent(t), flag, addr).expect(t, exitOK, "err")
		}
	}
	refuse := func(context.Context, UpConfig) error {
		return &file.InvalidError{Key: invocation.FunctionKey{Namespace: "default", Name: "f"},
			Problems: field.ErrorList{field.Invalid(field.NewPath("spec", "template", "code", "path"), "x", "cannot be read")}}
	}
	got := quiet(t).play(t, nil, Programs{Up: refuse}, "up", "--agent", fakeAgent(t))
	got.expect(t, exitUsage, "err", "function default/f: spec.template.code.path")
	if strings.Contains(got.err, "usage:") {
		t.Error("the usage does not help")
	}
}

func TestDemoHandsOverWhatItWasTold(t *testing.T) {
	trace, examples := t.TempDir(), t.TempDir()
	var got DemoConfig
	demo := func(_ context.Context, config DemoConfig) error { got = config; return nil }
	quiet(t).play(t, nil, Programs{Demo: demo}, "demo", "--examples", examples).expect(t, exitUsage, "err", "the agent's program is not at", "make build, or copy it there")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(filepath.Dir(self), "podagent")
	if err := os.WriteFile(agent, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(agent) })
	quiet(t).play(t, nil, Programs{Demo: demo}, "demo", "--trace", trace, "--minutes", "5", "--speed", "2.5", "--seed", "7", "--examples", examples).
		expect(t, exitOK, "out")
	want := DemoConfig{TraceDir: trace, Minutes: 5, Speed: 2.5, Seed: 7, ExamplesDir: examples, AgentPath: agent, Out: got.Out}
	if got != want || got.Out == nil {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheFirstInterruptStopsAndTheSecondEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		var exits []int
		a := newApp(Streams{Err: &said}, Programs{})
		a.exit = func(code int) { exits = append(exits, code) }
		signals := make(chan os.Signal)
		ctx, done := a.cancelOnSignal(t.Context(), signals)
		defer done()

		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("it stops without a signal")
		}
		signals <- os.Interrupt
		synctest.Wait()
		if ctx.Err() == nil || len(exits) > 0 || !strings.Contains(said.String(), "press Ctrl-C again") {
			t.Errorf("after one signal: context %v, exits %v, said %q", ctx.Err(), exits, said.String())
		}
		signals <- syscall.SIGTERM
		synctest.Wait()
		if len(exits) != 1 || exits[0] != exitPlatform {
			t.Errorf("after two signals: exits %v", exits)
		}
	})
}

func TestTheSecondInterruptFirstKillsWhatWouldStay(t *testing.T) {
	for name, c := range map[string]struct {
		kill time.Duration
		want time.Duration
	}{
		"what can be killed": {time.Second, time.Second},
		"what cannot":        {2 * killTime, killTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var exited time.Duration
				a := newApp(Streams{Err: io.Discard}, Programs{})
				a.exit = func(int) { exited = time.Since(began) }
				signals := make(chan os.Signal, 2)
				signals <- os.Interrupt
				signals <- os.Interrupt
				kill := func() { time.Sleep(c.kill) }
				a.kill.Store(&kill)
				_, done := a.cancelOnSignal(t.Context(), signals)
				time.Sleep(c.want)
				synctest.Wait()
				done()
				if exited != c.want {
					t.Errorf("it ended after %s, want %s", exited, c.want)
				}
				time.Sleep(c.kill)
			})
		})
	}
}

func TestATerminalThatIsClosedStopsWork(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("nohup runs the tests")
	}
	var said strings.Builder
	a := newApp(Streams{Err: &said}, Programs{})
	err := a.interruptible(t.Context(), func(ctx context.Context) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	if err != nil || !strings.Contains(said.String(), "stopping") {
		t.Errorf("err %v, said %q", err, said.String())
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if slices.Contains(endingSignals(), os.Signal(syscall.SIGHUP)) {
		t.Error("it stops with its terminal though nohup runs it")
	}
}

func TestWorkThatEndsByItselfNeedsNoSignal(t *testing.T) {
	a := newApp(Streams{}, Programs{})
	var during context.Context
	failed := errors.New("failed")
	err := a.interruptible(t.Context(), func(ctx context.Context) error {
		during = ctx
		return failed
	})
	// goleak sees that nothing is left.
	if !errors.Is(err, failed) || during.Err() == nil {
		t.Errorf("err %v, context %v", err, during.Err())
	}
}

func TestChooseDataDir(t *testing.T) {
	for name, c := range map[string]struct {
		flag string
		env  map[string]string
		want string
	}{
		"the flag wins":                 {"/flag", map[string]string{"WINDLASS_DATA_DIR": "/env", "HOME": "/h"}, "/flag"},
		"then the variable":             {"", map[string]string{"WINDLASS_DATA_DIR": "/env", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/env"},
		"then the state folder":         {"", map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/windlass"},
		"a relative one is ignored":     {"", map[string]string{"XDG_STATE_HOME": "x", "HOME": "/h"}, "/h/.local/state/windlass"},
		"then the home folder":          {"", map[string]string{"HOME": "/h"}, "/h/.local/state/windlass"},
		"nothing is known about nobody": {"", nil, ""},
	} {
		if got := chooseDataDir(c.flag, func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	a := newApp(Streams{}, Programs{})
	a.getenv = func(string) string { return "" }
	if _, err := a.resolveDataDir(); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("got %v", err)
	}
}
