package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// neighbours are a service and batch processes on one machine, and who decides about them.
type neighbours struct {
	self, dir, kind string
	side            side
	tree            *cgroups.Tree
	journal         *cgroups.Journal

	service *neighbour
	address string
	batch   []*neighbour
	core    *colocate.Core
	frozen  time.Duration
	moves   int
}

// neighbour is a process in a group of its own.
type neighbour struct {
	cmd    *exec.Cmd
	stdin  io.Closer // open for as long as it should run
	folder cgroups.Folder
	group  *cgroups.Group
	hold   *cgroups.Hold // nil without a controller
	// done are the rounds of work that a batch process counts.
	done  []byte
	froze time.Time // when it was frozen; zero if it is not
}

// batchProcesses is how many batch processes there are for each core.
const batchProcesses = 2

// begin starts the service and batch.
func (n *neighbours) begin() error {
	if n.side.control != nil {
		core, err := colocate.New(*n.side.control)
		if err != nil {
			return err
		}
		n.core = core
	}
	if err := n.beginService(); err != nil {
		return err
	}
	if !n.side.batch {
		return nil
	}
	for i := range batchProcesses * runtime.NumCPU() {
		if err := n.beginBatch(i); err != nil {
			return err
		}
	}
	return nil
}

func (n *neighbours) beginService() error {
	cmd := exec.Command(n.self, "-answer")
	if n.kind == "memcached" {
		cmd = exec.Command("memcached", "-l", "127.0.0.1", "-p", memcachedPort, "-t", "2", "-u", "nobody", "-c", "1024")
	}
	service, out, err := n.start("service", cmd)
	n.service = service
	if err != nil {
		return err
	}
	if n.kind == "memcached" {
		n.address = "127.0.0.1:" + memcachedPort
		return awaitMemcached(n.address)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	n.address = strings.TrimSpace(line)
	return err
}

// beginBatch starts a batch process, which the controller lets run only once it is placed.
func (n *neighbours) beginBatch(i int) error {
	counter := filepath.Join(n.dir, fmt.Sprint("batch", i))
	if err := os.WriteFile(counter, make([]byte, os.Getpagesize()), 0o600); err != nil {
		return err
	}
	b, _, err := n.start(fmt.Sprint("batch", i), exec.Command(n.self, "-toil", counter))
	n.batch = append(n.batch, b)
	if err != nil {
		return err
	}
	if b.done, err = countedIn(counter, unix.PROT_READ); err != nil {
		return err
	}
	if n.side.low {
		if err := b.group.SetLow(true); err != nil {
			return err
		}
	}
	if n.core == nil {
		return nil
	}
	if b.hold, err = n.tree.OpenHold(b.folder, 0, n.journal); err != nil {
		return err
	}
	if err := b.hold.SetFrozen(true); err != nil {
		return err
	}
	return n.carryOut(n.core.Step(elapsed(), colocate.Arrived{Job: colocate.JobID(i), Threads: 1}))
}

// start starts a process in a group of its own.
func (n *neighbours) start(name string, cmd *exec.Cmd) (*neighbour, io.Reader, error) {
	b := &neighbour{cmd: cmd}
	cmd.Env, cmd.Stderr = os.Environ(), os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	b.stdin = stdin
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if b.folder, err = n.tree.Create(name); err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, b.folder.Remove())
	}
	if err := b.folder.AddProcess(cmd.Process.Pid); err != nil {
		return b, nil, err
	}
	b.group, err = n.tree.Open(b.folder, n.journal)
	return b, out, err
}

// stop ends all processes and removes their groups.
func (n *neighbours) stop() error {
	var err error
	for _, b := range append(n.batch, n.service) {
		if b == nil {
			continue
		}
		if b.done != nil {
			err = errors.Join(err, unix.Munmap(b.done))
		}
		if b.hold != nil {
			err = errors.Join(err, b.hold.Close())
		}
		if b.group != nil {
			err = errors.Join(err, b.group.Close())
		}
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
		err = errors.Join(err, removeSoon(b.folder))
	}
	return err
}

// removeSoon removes a group whose process has just ended.
func removeSoon(f cgroups.Folder) error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := f.Remove(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// work is how many rounds batch has done.
func (n *neighbours) work() (rounds int64) {
	for _, b := range n.batch {
		rounds += int64(binary.NativeEndian.Uint64(b.done))
	}
	return rounds
}

// started is the beginning of the time that controllers know.
var started = time.Now()

func elapsed() time.Duration { return time.Since(started) }

// control looks as often as the controller wants until stop is closed.
func (n *neighbours) control(stop <-chan struct{}) error {
	if n.core == nil {
		<-stop
		return nil
	}
	ticker := time.NewTicker(n.side.look)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return n.carryOut(n.core.Step(elapsed(), colocate.Stopped{}))
		case <-ticker.C:
			if err := n.look(); err != nil {
				return err
			}
		}
	}
}

func (n *neighbours) look() error {
	for i, b := range n.batch {
		used, err := b.group.Usage()
		if err != nil {
			return err
		}
		if err := n.carryOut(n.core.Step(elapsed(), colocate.Sampled{Job: colocate.JobID(i), Usage: used})); err != nil {
			return err
		}
	}
	used, err := n.service.group.Usage()
	if err != nil {
		return err
	}
	waited, err := waitedFor(n.service.cmd.Process.Pid)
	if err != nil {
		return err
	}
	before := n.core.Reserved()
	effects := n.core.Step(elapsed(), colocate.Looked{Usage: used, Waited: waited})
	if n.core.Reserved() != before {
		n.moves++
	}
	return n.carryOut(effects)
}

func (n *neighbours) carryOut(effects []colocate.Effect) error {
	var err error
	for _, e := range effects {
		switch e := e.(type) {
		case colocate.Confine:
			err = errors.Join(err, moveTo(n.service.cmd.Process.Pid, e.To))
		case colocate.Place:
			b := n.batch[e.Job]
			err = errors.Join(err, moveTo(b.cmd.Process.Pid, e.On))
			if b.froze.IsZero() {
				err = errors.Join(err, b.hold.SetFrozen(false))
			}
		case colocate.Freeze:
			b := n.batch[e.Job]
			err = errors.Join(err, b.hold.SetFrozen(true))
			b.froze = time.Now()
			n.moves++
		case colocate.Thaw:
			b := n.batch[e.Job]
			err = errors.Join(err, b.hold.SetFrozen(false))
			n.frozen += time.Since(b.froze)
			b.froze = time.Time{}
		}
	}
	return err
}

// moveTo lets all threads of a process run on some cores only, as taskset does.
func moveTo(pid int, on colocate.Cores) error {
	var set unix.CPUSet
	for i := range on.N {
		set.Set(on.First + i)
	}
	threads, err := threadsOf(pid)
	for _, thread := range threads {
		if moved := unix.SchedSetaffinity(thread, &set); moved != nil && !errors.Is(moved, unix.ESRCH) {
			err = errors.Join(err, moved)
		}
	}
	return err
}

func threadsOf(pid int) ([]int, error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	var all []int
	for _, path := range paths {
		var thread int
		if _, err := fmt.Sscan(filepath.Base(path), &thread); err == nil {
			all = append(all, thread)
		}
	}
	return all, err
}

// waitedFor is the time in which threads of a process could have run and did not, added up, which is
// at least the time in which one of them waited.
func waitedFor(pid int) (time.Duration, error) {
	threads, err := threadsOf(pid)
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, thread))
		if err != nil {
			continue // the thread is gone
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
			return 0, err
		}
		sum += time.Duration(waited)
	}
	return sum, err
}

// countedIn maps the file in which a batch process counts.
func countedIn(path string, protection int) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), protection, unix.MAP_SHARED)
}

// toil is a batch process: it works through memory, as large as a core's cache, and counts rounds.
func toil(path string) error {
	runtime.GOMAXPROCS(1)
	counter, err := countedIn(path, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return err
	}
	memory := make([]float64, 1<<17)
	for rounds := uint64(1); ; rounds++ {
		for i := range memory {
			memory[i] = math.Sqrt(memory[i] + float64(i))
		}
		binary.NativeEndian.PutUint64(counter, rounds)
	}
}
