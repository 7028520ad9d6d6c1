package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// openHold opens a group of the machine's own tree for being held back.
func openHold(t *testing.T, tree *Tree, f Folder, journal *Journal) *Hold {
	t.Helper()
	h, err := tree.OpenHold(f, 0, journal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if h.stop == nil {
		t.Skip(h.reason)
	}
	return h
}

// usedBy is the processor time of a group.
func usedBy(t *testing.T, f Folder) time.Duration {
	t.Helper()
	text := strings.TrimSpace(readFile(filepath.Join(f.Usage, v1.usage)))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n)
}

func TestAFrozenGroupStopsAndGoesOn(t *testing.T) {
	tree := realTree(t)
	f := createGroup(t, tree, "frozen")
	spin(t, f, "0")
	journal := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	h := openHold(t, tree, f, journal)
	if err := h.SetFrozen(true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "frozen", func() bool { return strings.TrimSpace(readFile(h.stop.path)) == "FROZEN" })
	if text := readFile(journal.Path()); !strings.Contains(text, h.stop.path) {
		t.Errorf("the journal does not know it: %q", text)
	}
	before, polls := usedBy(t, f), 0
	eventually(t, "some time", func() bool { polls++; return polls > 100 })
	if after := usedBy(t, f); after != before {
		t.Errorf("a frozen group used %s", after-before)
	}
	if err := h.SetFrozen(false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "goes on", func() bool { return usedBy(t, f) > before })
	if len(journal.held) > 0 {
		t.Errorf("the journal still has %v", journal.held)
	}
}

func TestAFrozenGroupGoesOnAfterItsAgentWasKilled(t *testing.T) {
	tree := realTree(t)
	f := createGroup(t, tree, "left")
	spin(t, f, "0")
	path := filepath.Join(t.TempDir(), "journal")
	journal := openJournal(t, path)
	h := openHold(t, tree, f, journal)
	if err := h.SetFrozen(true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "frozen", func() bool { return strings.TrimSpace(readFile(h.stop.path)) == "FROZEN" })
	// What a guardian finds once the lock of the agent is gone with it.
	if err := journal.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RunGuardian(strings.NewReader(""), path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "thawed", func() bool { return strings.TrimSpace(readFile(h.stop.path)) == "THAWED" })
}

func TestCoresAreSetAndSetBack(t *testing.T) {
	tree := realTree(t)
	f := createGroup(t, tree, "cores")
	h := openHold(t, tree, f, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if len(h.cores) == 0 {
		t.Skip("there are no cpusets")
	}
	path := h.cores[0].path
	usual := readFile(path)
	if err := h.SetCores("0"); err != nil || readFile(path) != "0\n" {
		t.Fatalf("%v; cores are %q", err, readFile(path))
	}
	if err := h.SetCores(""); err != nil || readFile(path) != usual {
		t.Errorf("%v; cores are %q, want %q", err, readFile(path), usual)
	}
	if err := h.SetCores("no list"); err == nil || readFile(path) != usual {
		t.Errorf("error %v; cores are %q", err, readFile(path))
	}
}

// goneFile is a file of a group that was removed.
type goneFile struct{ file }

func (goneFile) ReadAt([]byte, int64) (int, error) { return 0, errGone }

// TestCoresOfAContainerThatHasEndedAreNoError: the other containers of its pod keep theirs.
func TestCoresOfAContainerThatHasEndedAreNoError(t *testing.T) {
	h := &Hold{cores: []*held{{path: "/gone/" + coresFile, file: goneFile{}}}}
	if err := h.SetCores("1-3"); err != nil {
		t.Error(err)
	}
}

// coresKernel takes no empty list of cores, as most kernels with version 2 do not while processes are in a group.
type coresKernel struct{ realKernel }

func (k coresKernel) open(name string, flag int) (file, error) {
	f, err := k.realKernel.open(name, flag)
	if err == nil && filepath.Base(name) == coresFile {
		f = populatedCores{f, name}
	}
	return f, err
}

type populatedCores struct {
	file
	name string
}

func (f populatedCores) WriteAt(p []byte, _ int64) (int, error) {
	if strings.TrimSpace(string(p)) == "" && strings.TrimSpace(readFile(f.name)) != "" {
		return 0, &os.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	return len(p), os.WriteFile(f.name, p, 0o644)
}

// narrowPod opens a Hold for a pod of version 2 with eight cores, whose list is empty as kubelets leave it.
func narrowPod(t *testing.T, journal *Journal) (h *Hold, cores func() string) {
	t.Helper()
	tree := Detect(Options{Root: plant(t, "v2-systemd"), Base: "/", kernel: coresKernel{}})
	pod, err := tree.FindPod("0a1b-22")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(pod.CPU, coresFile)
	write(t, path, "\n")
	write(t, filepath.Join(filepath.Dir(pod.CPU), effectiveCoresFile), "0-7\n")
	if h, err = tree.OpenHold(pod, 0, journal); err != nil {
		t.Fatal(err)
	}
	return h, func() string { return strings.TrimSpace(readFile(path)) }
}

func TestCoresOfAPodOfVersion2ComeBack(t *testing.T) {
	journal := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	h, cores := narrowPod(t, journal)
	for range 2 {
		if err := h.SetCores("2-7"); err != nil || cores() != "2-7" {
			t.Fatalf("%v; cores are %q", err, cores())
		}
		if err := h.SetCores(""); err != nil || cores() != "0-7" || len(journal.held) > 0 {
			t.Errorf("%v; cores are %q, held %v", err, cores(), journal.held)
		}
	}
}

// A machine of 640 cores whose numbers alternate between its two parts.
func TestALongListOfCoresComesBackWhole(t *testing.T) {
	journal := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	h, cores := narrowPod(t, journal)
	var even []int
	for n := range 320 {
		even = append(even, 2*n)
	}
	usual := FormatCores(even)
	write(t, h.cores[0].path, usual+"\n")
	if err := h.SetCores("2-638"); err != nil || cores() != strings.TrimPrefix(usual, "0,") {
		t.Errorf("%v; cores are %q", err, cores())
	}
	if err := h.SetCores(""); err != nil || cores() != usual {
		t.Errorf("%v; cores are %q, want %q", err, cores(), usual)
	}
}

// TestAListThatWasNotGivenBackIsNotUsual has a Hold that failed, and the next one of the same group.
func TestAListThatWasNotGivenBackIsNotUsual(t *testing.T) {
	tree := Detect(Options{Root: plant(t, "v2-systemd"), Base: "/"})
	pod, err := tree.FindPod("0a1b-22")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(pod.CPU, coresFile)
	write(t, path, "2-7\n")
	journal := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	if err := journal.noteHeld(path, "0-7"); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"", "3-7"} { // nothing has to wait again, or something has
		h, err := tree.OpenHold(pod, 0, journal)
		if err != nil {
			t.Fatal(err)
		}
		if list != "" {
			err = h.SetCores(list)
		}
		if err = errors.Join(err, h.Close()); err != nil || !strings.HasPrefix(readFile(path), "0-7\n") || len(journal.held) > 0 {
			t.Errorf("%v; after %q the cores are %q, held %v", err, list, readFile(path), journal.held)
		}
		write(t, path, "2-7\n")
		if err := journal.noteHeld(path, "0-7"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAJournalLetsAllGoOn restores files of both versions, and no others.
func TestAJournalLetsAllGoOn(t *testing.T) {
	root := t.TempDir()
	file := func(dir, name string) string {
		path := filepath.Join(root, dir, name)
		write(t, path, "held\n")
		return path
	}
	mine := created + "7-batch"
	frozen, stopped, moved := file(mine, stateFile), file(mine, freezeFile), file("pod1", coresFile)
	pod, foreign, other := file("pod1", freezeFile), file("system.slice", coresFile), file(mine, "cgroup.procs")
	path := filepath.Join(t.TempDir(), "journal")
	text := "held \"THAWED\" \"/gone/" + mine + "/" + stateFile + "\"\nheld \"x\n"
	for _, held := range [][2]string{{frozen, "THAWED"}, {stopped, "0"}, {moved, "0-3"}, {pod, "0"}, {foreign, "1"}, {other, "1"}} {
		text += heldLine(held[0], held[1])
	}
	write(t, path, text+fmt.Sprintf("low 512 %q\n", "/gone/pod1"))
	j := openJournal(t, path)
	for path, want := range map[string]string{frozen: "THAWED", stopped: "0", moved: "0-3", pod: "held", foreign: "held", other: "held"} {
		got, _, _ := strings.Cut(readFile(path), "\n")
		if got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
	if len(j.held) > 0 || len(j.Low()) > 0 || readFile(path) != "" {
		t.Errorf("the journal still has %v and %v", j.held, j.Low())
	}
}

func TestAJournalThatIsWrittenAnewKeepsWhatIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	held := filepath.Join(t.TempDir(), created+"7-batch", stateFile)
	write(t, filepath.Join(held, "a folder"), "") // cannot be written
	j := openJournal(t, path)
	if err := errors.Join(j.noteHeld(held, "THAWED"), j.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := OpenJournal(path)
	if again == nil || err == nil || !strings.Contains(err.Error(), held) {
		t.Fatalf("%v, %v", again, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if text := readFile(path); text != heldLine(held, "THAWED") {
		t.Errorf("the journal has %q", text)
	}
}

func TestPodsOfSilentAgentsAreNotFrozen(t *testing.T) {
	root := plant(t, "v2-systemd")
	tree := Detect(Options{Root: root, Base: "/"})
	var pods []Folder
	err := filepath.WalkDir(root, func(dir string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && podSlice.MatchString(entry.Name()) {
			pods = append(pods, Folder{CPU: dir, Usage: dir})
		}
		return err
	})
	if err != nil || len(pods) == 0 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	pod := pods[0]
	write(t, filepath.Join(pod.CPU, freezeFile), "0\n")
	write(t, filepath.Join(pod.CPU, coresFile), "0-7\n")
	h, err := tree.OpenHold(pod, 0, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetFrozen(true); !errors.Is(err, errors.ErrUnsupported) || readFile(filepath.Join(pod.CPU, freezeFile)) != "0\n" {
		t.Errorf("a pod was frozen: %v", err)
	}
	if err := h.SetCores("2-7"); err != nil || !strings.HasPrefix(readFile(filepath.Join(pod.CPU, coresFile)), "2-7\n") {
		t.Errorf("%v; cores are %q", err, readFile(filepath.Join(pod.CPU, coresFile)))
	}
	if err := h.Close(); err != nil || !strings.HasPrefix(readFile(filepath.Join(pod.CPU, coresFile)), "0-7\n") {
		t.Errorf("%v; cores are %q", err, readFile(filepath.Join(pod.CPU, coresFile)))
	}
	if _, err := tree.OpenHold(Folder{CPU: root, Usage: root}, 0, nil); err == nil {
		t.Error("a group that is no pod's was opened")
	}
}
