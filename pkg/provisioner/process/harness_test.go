package process

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

const (
	testUID = "u-1"
	// noTimeout is a grace that no test outlives.
	noTimeout = time.Hour
)

var noLauncher = LauncherFunc(func(runtimes.Request) (runtimes.Launched, error) {
	return runtimes.Launched{}, errors.New("this test has no launcher")
})

// specFor is an instance whose function and agent are puppets of the stage.
func specFor(stage string, cid invocation.CID) provisioner.InstanceSpec {
	return provisioner.InstanceSpec{
		Function: &v1alpha1.Function{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: testUID, Generation: 3},
			Spec: v1alpha1.FunctionSpec{
				Template: v1alpha1.FunctionTemplate{Command: []string{os.Args[0]}, Protocol: v1alpha1.ProtocolHTTP, Concurrency: 1, StartupTimeout: v1alpha1.Duration{Duration: 10 * time.Second}, Env: []v1alpha1.EnvVar{{Name: roleEnv, Value: roleFunction}, {Name: serverEnv, Value: stage}}},
				Scaling: v1alpha1.Scaling{
					ScaleDown: v1alpha1.ScaleDown{IdleTimeout: v1alpha1.Duration{Duration: time.Minute}},
				},
			},
		},
		CID:   cid,
		Token: stage,
	}
}

func testKey() invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: "default", Name: "hello"}
}

// harness is a Driver that runs, and a stage for its instances.
type harness struct {
	*programServer
	*Driver
	// close ends Run, waits until it has ended, and closes the Driver.
	close func()
}

func newHarness(t *testing.T, grace time.Duration) *harness {
	t.Helper()
	r, err := New(testConfig(t.TempDir(), grace), Deps{Launcher: noLauncher, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	closed := false
	th := &harness{programServer: newProgramServer(t), Driver: r}
	th.close = func() {
		t.Helper()
		cancel()
		if closed {
			return
		}
		closed = true
		if err := errors.Join(<-ran, r.Close()); err != nil {
			t.Errorf("Run and Close: %v", err)
		}
	}
	t.Cleanup(th.close)
	return th
}

func testConfig(dir string, grace time.Duration) Config {
	return Config{DataDir: dir, AgentPath: os.Args[0], SchedulerAddr: "127.0.0.1:7001", StopGrace: grace}
}

// startInstance starts an instance and returns its puppets.
func (th *harness) startInstance(cid invocation.CID) (function, agent *testProgram) {
	th.t.Helper()
	th.Start(specFor(th.path, cid))
	return th.await(roleFunction, string(cid)), th.await(roleAgent, string(cid))
}

// exit returns the next Exit.
func (th *harness) exit() provisioner.Exit {
	th.t.Helper()
	select {
	case e := <-th.Exits():
		return e
	case <-time.After(testTimeout):
		th.t.Fatal("no Exit came")
		return provisioner.Exit{}
	}
}

// wantNoTrace fails if anything but logs is left of the instances.
func (th *harness) wantNoTrace() {
	th.t.Helper()
	entries, err := os.ReadDir(filepath.Join(th.config.DataDir, "instances"))
	if err != nil || len(entries) > 0 {
		th.t.Errorf("folders of instances: %v, %v; want none", entries, err)
	}
	th.ports.mu.Lock()
	defer th.ports.mu.Unlock()
	if len(th.ports.taken) > 0 {
		th.t.Errorf("ports %v are still taken", th.ports.taken)
	}
}

// wantReaped fails if the process exists, be it as a zombie.
func wantReaped(t *testing.T, p *testProgram) {
	t.Helper()
	if err := syscall.Kill(p.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the %s with process id %d is still there: %v", p.role, p.pid, err)
	}
}
