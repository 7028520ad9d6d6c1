package cgroups

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a process of this test program does, by the environment; see TestMain.
const (
	roleVar, journalVar, groupVar = "CGROUPS_TEST_ROLE", "CGROUPS_TEST_JOURNAL", "CGROUPS_TEST_GROUP"
	watchedVar                    = "CGROUPS_TEST_WATCHED"

	roleGuardian, roleAgent, roleRestless = "guardian", "agent", "restless"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case roleGuardian:
		if err := RunGuardian(os.Stdin, os.Getenv(journalVar)); err != nil {
			os.Exit(1)
		}
	case roleAgent, roleRestless:
		if err := runAgent(os.Getenv(roleVar) == roleRestless); err != nil {
			_, _ = os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// self is this test program in another role.
func self(role string, env ...string) *exec.Cmd {
	command := exec.Command(os.Args[0])
	command.Env = append(append(os.Environ(), roleVar+"="+role), env...)
	return command
}

// runAgent lowers a group, says so, and never ends by itself. A restless one lowers and lifts it
// again and again.
func runAgent(restless bool) error {
	journal, err := OpenJournal(os.Getenv(journalVar))
	if err != nil {
		return err
	}
	watched := os.Getenv(watchedVar) != ""
	if !watched {
		if _, err := StartGuardian(self(roleGuardian)); err != nil {
			return err
		}
	}
	dirs := strings.Split(os.Getenv(groupVar), ":")
	g, err := Detect(Options{Create: true}).Open(Folder{CPU: dirs[0], Usage: dirs[1]}, journal)
	if err != nil {
		return err
	}
	if err := g.SetLow(true); err != nil {
		return err
	}
	if watched {
		if err := live(journal); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(os.Stdout, "low %d\n", os.Getpid())
	for restless {
		if err := errors.Join(g.SetLow(false), g.SetLow(true)); err != nil {
			return err
		}
	}
	select {}
}

// live tells the watcher again and again that this process lives.
func live(journal *Journal) error {
	life, err := NewLife(journal)
	if err != nil {
		return err
	}
	life.Tell(time.Now(), true)
	go func() {
		for now := range time.Tick(lifeEvery / 5) {
			life.Tell(now, true)
		}
	}()
	return nil
}

// realTree is the machine's own control groups, if the test may use them.
func realTree(t *testing.T) *Tree {
	t.Helper()
	tree := Detect(Options{Create: true})
	switch {
	case os.Getuid() != 0:
		t.Skip("only root may create control groups")
	case tree.version != v1 || tree.lever != leverIdle:
		t.Skipf("the test is for cpu.idle in cgroup v1; here: %s", tree)
	case isFolder(filepath.Join(tree.base.CPU, created+strconv.Itoa(os.Getpid())+"-probe")):
		t.Fatal("the group that Detect tried to create is still there")
	}
	return tree
}

func createGroup(t *testing.T, tree *Tree, name string) Folder {
	t.Helper()
	f, err := tree.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Remove(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func shares(f Folder) string {
	return strings.TrimSpace(readFile(filepath.Join(f.CPU, v1.weight)))
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	poll, deadline := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer poll.Stop()
	for !is() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func TestTheKernelKeepsItsPartOfTheBargain(t *testing.T) {
	tree := realTree(t)
	f := createGroup(t, tree, "weight")
	journal := openJournal(t, filepath.Join(t.TempDir(), "weights"))
	g, err := tree.Open(f, journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := put(g.weight, "512"); err != nil {
		t.Fatal(err)
	}
	if err := g.SetLow(true); err != nil {
		t.Fatal(err)
	}
	if idle := readFile(filepath.Join(f.CPU, idleFile)); idle != "1\n" || shares(f) == "512" {
		t.Errorf("low: idle is %q, shares are %s", idle, shares(f))
	}
	if err := put(g.weight, "512"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a weight while idle: %v; the journal exists because this is EINVAL", err)
	}
	if err := g.SetLow(false); err != nil || shares(f) != "512" || readFile(filepath.Join(f.CPU, idleFile)) != "0\n" {
		t.Errorf("normal: %v, shares are %s", err, shares(f))
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// spin starts a process that computes for as long as the test lasts, on the first processor that
// the test may use.
func spin(t *testing.T, f Folder, cpu string) {
	t.Helper()
	command := exec.Command("taskset", "-c", cpu, "sh", "-c", "read go; while :; do :; done")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Skipf("taskset is needed: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if err := f.AddProcess(command.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
}

func TestALowGroupYieldsToANormalOne(t *testing.T) {
	tree := realTree(t)
	journal := openJournal(t, filepath.Join(t.TempDir(), "weights"))
	var groups [2]*Group
	for i, name := range []string{"low", "normal"} {
		f := createGroup(t, tree, name)
		g, err := tree.Open(f, journal)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		groups[i] = g
		spin(t, f, "0")
	}
	used := func(i int) time.Duration {
		d, err := groups[i].Usage()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	const enough = 200 * time.Millisecond
	// Both compute until the second has had its part.
	began := used(0)
	eventually(t, "the second group computes", func() bool { return used(1) > enough })
	if first := used(0) - began; first < enough/4 {
		t.Errorf("of two normal groups, one got %v while the other got %v", first, enough)
	}
	if err := groups[0].SetLow(true); err != nil {
		t.Fatal(err)
	}
	low, normal := used(0), used(1)
	eventually(t, "the normal group computes", func() bool { return used(1)-normal > 2*enough })
	if got := used(0) - low; got > enough/4 {
		t.Errorf("the low group got %v while the normal one got %v", got, used(1)-normal)
	}
	if err := groups[0].SetLow(false); err != nil {
		t.Fatal(err)
	}
	low = used(0)
	eventually(t, "the group that is normal again computes", func() bool { return used(0)-low > enough })
}

func TestAGuardianRestoresWhatAKilledAgentLeft(t *testing.T) {
	tree := realTree(t)
	f := createGroup(t, tree, "killed")
	write(t, filepath.Join(f.CPU, v1.weight), "512")
	killAgent(t, f, roleAgent, 0)
}

// It may be killed between any two writes.
func TestAnAgentMayBeKilledAtAnyMoment(t *testing.T) {
	tree := realTree(t)
	f := createGroup(t, tree, "moments")
	write(t, filepath.Join(f.CPU, v1.weight), "512")
	for range 20 {
		killAgent(t, f, roleRestless, rand.N(20*time.Millisecond))
	}
}

// killAgent runs an agent that lowers a group, kills it some time later, and expects that the
// group gets its 512 shares back.
func killAgent(t *testing.T, f Folder, role string, after time.Duration) {
	t.Helper()
	journal := filepath.Join(t.TempDir(), "weights")
	agent := self(role, journalVar+"="+journal, groupVar+"="+f.CPU+":"+f.Usage)
	stdout, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); !strings.HasPrefix(line, "low ") {
		t.Fatalf("the agent says %q, %v", line, err)
	}
	if role == roleAgent && shares(f) == "512" {
		t.Fatal("the group is not low")
	}
	<-time.After(after)
	if err := agent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait()
	eventually(t, "the journal is empty", func() bool { return readFile(journal) == "" })
	if idle := readFile(filepath.Join(f.CPU, idleFile)); shares(f) != "512" || idle != "0\n" {
		t.Fatalf("killed after %v, the group has %s shares, and idle is %q", after, shares(f), idle)
	}
	// The guardian writes the journal once more before it gives up the lock. Its folder ends with the test.
	lock, err := lockFor(journal)
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.Close()
}

// TestWhoWatchesAnAgentRestoresWhatItLeft stops an agent that does not end when it is asked to, and one
// that nobody asks and that does nothing any more; and kills one.
func TestWhoWatchesAnAgentRestoresWhatItLeft(t *testing.T) {
	tree := realTree(t)
	for name, end := range map[string]func(pid int, stop func()){
		"stopped": func(_ int, stop func()) { stop() },
		"killed":  func(pid int, _ func()) { _ = syscall.Kill(pid, syscall.SIGKILL) },
		"hanging": func(pid int, stop func()) { _ = syscall.Kill(pid, syscall.SIGSTOP); stop() },
		"hung":    func(pid int, _ func()) { _ = syscall.Kill(pid, syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			f := createGroup(t, tree, "watched-"+name)
			write(t, filepath.Join(f.CPU, v1.weight), "512")
			journal := filepath.Join(t.TempDir(), "bands")
			agent := self(roleAgent, journalVar+"="+journal, groupVar+"="+f.CPU+":"+f.Usage, watchedVar+"=1")
			said, says, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer said.Close()
			agent.Stdout = says
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- Watch(ctx, agent, journal, 100*time.Millisecond) }()
			var pid int // Watch starts the agent, and nobody else may look at it
			if n, err := fmt.Fscanf(said, "low %d\n", &pid); n != 1 || shares(f) == "512" {
				t.Fatalf("the agent says nothing, %v, or the group has %s shares", err, shares(f))
			}
			end(pid, stop)
			if err := <-ended; err == nil {
				t.Error("the end of the agent is no error")
			}
			_ = says.Close()
			if idle := readFile(filepath.Join(f.CPU, idleFile)); shares(f) != "512" || idle != "0\n" || readFile(journal) != "" {
				t.Errorf("the group has %s shares, idle is %q, and the journal has %q", shares(f), idle, readFile(journal))
			}
		})
	}
}

func TestAGroupMayGoWhileItIsLow(t *testing.T) {
	tree := realTree(t)
	f, err := tree.Create("gone")
	if err != nil {
		t.Fatal(err)
	}
	journal := openJournal(t, filepath.Join(t.TempDir(), "weights"))
	g, err := tree.Open(f, journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.SetLow(true), f.Remove()); err != nil {
		t.Fatal(err)
	}
	if err := g.SetLow(true); err != nil {
		t.Errorf("set low again: %v", err)
	}
	if err := g.SetLow(false); err == nil {
		t.Error("a group that is gone became normal")
	}
	if err := g.Close(); err != nil || len(journal.Low()) > 0 {
		t.Errorf("%v; low are %v", err, journal.Low())
	}
}

func TestAGuardianEndsWithItsAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	journal, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	guardian, err := StartGuardian(self(roleGuardian, journalVar+"="+path))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-guardian.Gone():
		t.Fatal("the guardian is gone already")
	default:
	}
	if err := errors.Join(journal.Close(), guardian.Close()); err != nil {
		t.Error(err)
	}
}

func BenchmarkBand(b *testing.B) {
	tree := Detect(Options{Create: true})
	if !tree.Bands() {
		b.Skip(tree)
	}
	f, err := tree.Create("bench")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Remove()
	journal, err := OpenJournal(filepath.Join(b.TempDir(), "weights"))
	if err != nil {
		b.Fatal(err)
	}
	defer journal.Close()
	g, err := tree.Open(f, journal)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	for b.Loop() {
		if err := errors.Join(g.SetLow(true), g.SetLow(false)); err != nil {
			b.Fatal(err)
		}
	}
}
