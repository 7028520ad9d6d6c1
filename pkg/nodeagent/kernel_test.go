package nodeagent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// processes are instances whose calls are processes in control groups.
type processes struct {
	tree    *cgroups.Tree
	journal *cgroups.Journal
	folders map[string]cgroups.Folder
}

func (p *processes) Identify(_ context.Context, hello Hello, _ net.Addr) (Instance, error) {
	folder, known := p.folders[hello.Name]
	if !known {
		return Instance{}, fmt.Errorf("no instance is called %s", hello.Name)
	}
	g, err := p.tree.Open(folder, p.journal)
	if err != nil {
		return Instance{}, err
	}
	return Instance{
		Namespace: hello.Namespace, Function: hello.Function, Name: hello.Name, Key: hello.Namespace + "/" + hello.Function + "/" + hello.Name, Group: g,
		Waited: g.Waited, OpenHold: func() (Hold, error) { return p.tree.OpenHold(folder, 0, p.journal) },
	}, nil
}

// spin starts a process in a group of its own that computes on the first processor.
func (p *processes) spin(t *testing.T, name string) {
	t.Helper()
	folder, err := p.tree.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	p.folders[name] = folder
	command := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done")
	if err := command.Start(); err != nil {
		_ = folder.Remove()
		t.Skipf("taskset is needed: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if err := folder.Remove(); err != nil {
			t.Error(err)
		}
	})
	if err := folder.AddProcess(command.Process.Pid); err != nil {
		t.Fatal(err)
	}
}

// A real long call and real short ones share a processor: the long one yields, breathes, and is
// normal in the end.
func TestALongProcessYields(t *testing.T) {
	tree := cgroups.Detect(cgroups.Options{Create: true})
	if os.Getuid() != 0 || !tree.Bands() {
		t.Skipf("only root may create control groups; here: %s", tree)
	}
	journal, err := cgroups.OpenJournal(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	p := &processes{tree: tree, journal: journal, folders: map[string]cgroups.Folder{}}
	p.spin(t, "long")
	p.spin(t, "short")
	reg := prometheus.NewRegistry()
	agent, err := New(DefaultConfig(1), Deps{
		Instances: p, Runnable: func() (int, error) { return 2, nil }, Registry: reg, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	m := &machine{Agent: agent, t: t}
	long, short := m.dial(false), m.dial(false)
	say := func(a *fakeAgent, r *nodewire.ComputeRequest) { a.requests <- r }
	say(long, helloOf(&nodewire.Hello{Namespace: "ns", Function: "long", Instance: "long"}))
	say(short, helloOf(&nodewire.Hello{Namespace: "ns", Function: "short", Instance: "short"}))
	say(long, &nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: 1}}})
	used := func(name string) time.Duration {
		agent.mu.Lock()
		defer agent.mu.Unlock()
		s := agent.state.byKey["ns/"+name+"/"+name]
		s.look(agent.now())
		return s.usage
	}
	// Short calls of 10 ms, one after the other, for 2 s.
	calls := time.NewTicker(10 * time.Millisecond)
	defer calls.Stop()
	var begin time.Duration
	for n := range uint64(200) {
		<-calls.C
		say(short, &nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: n}}})
		if n == 30 {
			begin = used("long")
		}
	}
	longUsed, shortUsed := used("long"), used("short")
	t.Logf("the long call got %v, %v in the last 1.7 s, and the short ones %v; %v breaths",
		longUsed, longUsed-begin, shortUsed, value(t, reg, "windlass_node_breaths_total", ""))
	if longUsed > shortUsed/2 {
		t.Errorf("the long call got %v, and the short ones %v", longUsed, shortUsed)
	}
	// On a processor that others use, too, the low band may get enough without a breath.
	if longUsed-begin < 4*time.Millisecond {
		t.Errorf("in 1.7 s the long call got %v", longUsed-begin)
	}
	if n := value(t, reg, "windlass_node_demotions_total", "slice") + value(t, reg, "windlass_node_demotions_total", "preempted"); n < 1 {
		t.Error("the long call was never low")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if low := journal.Low(); len(low) > 0 {
		t.Errorf("after the end these are low: %v", low)
	}
	if idle, err := os.ReadFile(filepath.Join(p.folders["long"].CPU, "cpu.idle")); err != nil && !os.IsNotExist(err) || err == nil && string(idle) != "0\n" {
		t.Errorf("cpu.idle is %q, %v", idle, err)
	}
}

// twice starts another process in a group, on the same processor.
func (p *processes) twice(t *testing.T, name string) {
	t.Helper()
	command := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done")
	if err := command.Start(); err != nil {
		t.Skipf("taskset is needed: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if err := p.folders[name].AddProcess(command.Process.Pid); err != nil {
		t.Fatal(err)
	}
}

// Two real threads of a latency-critical instance share a processor, so one of them waits, and the real batch
// process beside them is frozen. It goes on when the node agent ends.
func TestARealBatchProcessIsFrozen(t *testing.T) {
	tree := cgroups.Detect(cgroups.Options{Create: true})
	has := tree.Holding()
	if os.Getuid() != 0 || has.Waits != cgroups.RunDelay || !has.Freezer {
		t.Skipf("the test is for root and the freezer of cgroup v1; here: %s; %s", tree, has)
	}
	journal, err := cgroups.OpenJournal(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	p := &processes{tree: tree, journal: journal, folders: map[string]cgroups.Folder{}}
	p.spin(t, "critical")
	p.twice(t, "critical")
	p.spin(t, "batch")
	config, reg := DefaultConfig(2), prometheus.NewRegistry()
	config.LatencyCritical = []string{"ns"}
	config.SwitchOnCoLocation(2, nil, tree, slog.New(slog.DiscardHandler))
	// A process freezes once the kernel runs it again. In the low band beside two others that may take longer
	// than the core believes in what does not help them.
	config.CoLocation.JudgeFor = 0
	agent, err := New(config, Deps{
		Instances: p, Runnable: func() (int, error) { return 0, nil }, Registry: reg, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	m := &machine{Agent: agent, t: t}
	for name, class := range map[string]string{"critical": "LatencyCritical", "batch": "Batch"} {
		m.dial(false).requests <- helloOf(&nodewire.Hello{Namespace: "ns", Function: name, Instance: name, Class: class})
	}
	freezer := ""
	state := func() string {
		// The journal has the file before it is written.
		text, _ := os.ReadFile(journal.Path())
		if found := regexp.MustCompile(`"(/[^"]*/freezer\.state)"`).FindSubmatch(text); found != nil {
			freezer = string(found[1])
		}
		text, _ = os.ReadFile(freezer)
		return strings.TrimSpace(string(text))
	}
	poll, late := time.NewTicker(10*time.Millisecond), time.After(20*time.Second)
	defer poll.Stop()
	for state() != "FROZEN" {
		select {
		case <-poll.C:
		case <-late:
			t.Fatalf("the batch process is %q; %v", state(), value(t, reg, "windlass_node_critical_wait_seconds_total", ""))
		}
	}
	t.Logf("frozen after a wait of %.2f s", value(t, reg, "windlass_node_critical_wait_seconds_total", ""))
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := state(); got == "FROZEN" || got == "FREEZING" {
		t.Errorf("after the end of the node agent it is %s", got)
	}
}
