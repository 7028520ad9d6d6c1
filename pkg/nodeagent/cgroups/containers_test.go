package cgroups

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheFunctionIsTheOnlyOtherContainerThatComputes(t *testing.T) {
	pause := container{"pause", 10, 30 * time.Millisecond}
	agent := container{"agent", 11, time.Hour}
	function := container{"function", 12, time.Second}
	proxy := container{"proxy", 13, 100 * time.Millisecond}
	young := container{"function", 12, 99 * time.Millisecond}
	for name, tt := range map[string]struct {
		all          []container
		agent        uint64
		want, reason string
	}{
		"as Windlass makes it":      {[]container{pause, agent, function}, 11, "function", ""},
		"without a sandbox":         {[]container{function, agent}, 11, "function", ""},
		"of an older release":       {[]container{pause, agent, function}, 0, "", "does not say"},
		"that sees another kernel":  {[]container{pause, agent, function}, 99, "", "in no container"},
		"with a proxy that works":   {[]container{pause, agent, function, proxy}, 11, "", "several"},
		"whose function is young":   {[]container{pause, agent, young}, 11, "", "has computed yet"},
		"whose agent has used most": {[]container{agent}, 11, "", "has computed yet"},
		"that ends":                 {nil, 11, "", "in no container"},
		"that lies":                 {[]container{pause, agent, function}, 12, "agent", ""}, // it harms itself
	} {
		got, reason := functionAmong(tt.all, tt.agent)
		if got != tt.want || (reason == "") != (tt.reason == "") || !strings.Contains(reason, tt.reason) {
			t.Errorf("a pod %s: %q, %q; want %q, %q", name, got, reason, tt.want, tt.reason)
		}
	}
}

func TestContainersAreChildrenOfPods(t *testing.T) {
	for dir, want := range map[string]bool{
		"/kubepods/burstable/pod0a-1/c1":                                              true,
		"/kubepods.slice/kubepods-burstable-pod0a_1.slice/cri-containerd-2.scope":     true,
		"/kubepods/burstable/pod0a-1":                                                 false,
		"/kubepods/burstable":                                                         false,
		"/kubepods/pod1/pod2":                                                         false,
		"/kubepods/pod1/c1/nested":                                                    false,
		"/system.slice/kubelet.service":                                               false,
		"/kubepods.slice/kubepods-pod1.slice/kubepods-pod2.slice":                     false,
		"/windlass-7-batch":                                                           false,
		"/kubelet.slice/kubelet-kubepods-pod0a_1.slice/cri-containerd-2.scope/system": false,
	} {
		if got := isContainer(dir); got != want {
			t.Errorf("%s is a container: %v", dir, got)
		}
	}
}

func TestListsOfCoresAreCutToWhatAGroupHas(t *testing.T) {
	for _, tt := range []struct{ list, bounds, want string }{
		{"2-3", "", "2-3"}, {"2-3", "0-7", "2-3"}, {"1-7", "0,2-5", "2-5"}, {"1-3", "2", "2"},
		{"0-1", "4-7", ""}, {"3,1,2", "0-2,9", "1-2"}, {"0", "0\n", "0"},
	} {
		if got, err := within(tt.list, tt.bounds); got != tt.want || err != nil {
			t.Errorf("%s within %q is %q, %v; want %q", tt.list, tt.bounds, got, err, tt.want)
		}
	}
	for _, bad := range []string{"a", "1-", "-1", "1-b", "99999"} {
		if got, err := within("1", bad); err == nil {
			t.Errorf("%q was taken: %q", bad, got)
		}
	}
}

// TestAPartOfCoresHasNoOthers compares lists with sets.
func TestAPartOfCoresHasNoOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 44))
	for range 500 {
		sets := [2][]int{}
		for i := range sets {
			for n := range 20 {
				if r.IntN(3) > 0 {
					sets[i] = append(sets[i], n)
				}
			}
		}
		want := slices.DeleteFunc(slices.Clone(sets[0]), func(n int) bool { return len(sets[1]) > 0 && !slices.Contains(sets[1], n) })
		part, err := within(FormatCores(sets[0]), FormatCores(sets[1]))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseCores(part); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v within %v is %q", sets[0], sets[1], part)
		}
	}
}

// plantContainers gives a pod of a tree of version 2 containers that have used some processor time, and returns
// the folder of the pod and the inode number of the agent's.
func plantContainers(t *testing.T, tree *Tree, used map[string]time.Duration) (pod Folder, agent uint64) {
	t.Helper()
	pod, err := tree.FindPod("0a1b-22")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(pod.CPU, coresFile), "\n")
	write(t, filepath.Join(pod.CPU, freezeFile), "0\n")
	for name, used := range used {
		dir := filepath.Join(pod.CPU, name)
		write(t, filepath.Join(dir, freezeFile), "0\n")
		write(t, filepath.Join(dir, statFile), fmt.Sprintf("usage_usec %d\nthrottled_usec 500\n", used.Microseconds()))
	}
	if agent, err = inodeOf(filepath.Join(pod.CPU, "agent")); err != nil {
		t.Fatal(err)
	}
	return pod, agent
}

func TestOnlyTheFunctionOfAPodIsFrozen(t *testing.T) {
	tree := Detect(Options{Root: plant(t, "v2-cgroupfs"), Base: "/"})
	pod, agent := plantContainers(t, tree, map[string]time.Duration{"agent": time.Second, "function": time.Minute, "pause": 0})
	journal := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	h, err := tree.OpenHold(pod, agent, journal)
	if err != nil {
		t.Fatal(err)
	}
	frozen := func() (all []string) {
		for _, dir := range []string{"", "agent", "function", "pause"} {
			if strings.HasPrefix(readFile(filepath.Join(pod.CPU, dir, freezeFile)), "1") {
				all = append(all, dir)
			}
		}
		return all
	}
	if err := h.SetFrozen(true); err != nil || !slices.Equal(frozen(), []string{"function"}) {
		t.Fatalf("%v; frozen are %q", err, frozen())
	}
	if text := readFile(journal.Path()); !strings.Contains(text, filepath.Join(pod.CPU, "function", freezeFile)) {
		t.Errorf("the journal does not know it: %q", text)
	}
	if err := h.SetFrozen(false); err != nil || len(frozen()) > 0 || h.stop != nil {
		t.Errorf("%v; frozen are %q", err, frozen())
	}
	// A second time, and then the node agent dies.
	if err := h.SetFrozen(true); err != nil {
		t.Fatal(err)
	}
	if err := journal.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RunGuardian(strings.NewReader(""), journal.Path()); err != nil || len(frozen()) > 0 {
		t.Errorf("%v; after the guardian frozen are %q", err, frozen())
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// podOfVersion1 is a pod in whose cpuset containers can be planted, and how a container's cores are read.
func podOfVersion1(t *testing.T) (tree *Tree, pod Folder, plantCores func(name, list string), cores func(name string) string) {
	t.Helper()
	root := plant(t, "v1-cgroupfs")
	mountinfo := filepath.Join(root, "proc/self/mountinfo")
	write(t, mountinfo, readFile(mountinfo)+"35 24 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n")
	tree = Detect(Options{Root: root, Base: "/"})
	pod, err := tree.FindPod("0a1b-22")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := tree.sameIn("cpuset", pod)
	if err != nil || dir == "" {
		t.Fatalf("%q, %v", dir, err)
	}
	path := func(name string) string { return filepath.Join(dir, name, coresFile) }
	return tree, pod, func(name, list string) { write(t, path(name), list+"\n") }, func(name string) string {
		line, _, _ := strings.Cut(readFile(path(name)), "\n")
		return line
	}
}

// A kubelet starts the containers of a pod one after the other, the agent's first.
func TestContainersThatStartLaterAreKeptOffCoresToo(t *testing.T) {
	tree, pod, plantCores, cores := podOfVersion1(t)
	plantCores("pause", "0-7")
	plantCores("agent", "0-7")
	journal := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	h, err := tree.OpenHold(pod, 0, journal)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(list string, want map[string]string) {
		t.Helper()
		err := h.SetCores(list)
		for name, want := range want {
			if got := cores(name); got != want || err != nil {
				t.Errorf("with %q the container %s has %q, %v; want %q", list, name, got, err, want)
			}
		}
	}
	expect("1-7", map[string]string{"pause": "1-7", "agent": "1-7"})
	plantCores("function", "0-7")
	plantCores("pause", "0-3") // somebody else
	plantCores("new", "")      // it has no cores and no processes yet
	expect("1-7", map[string]string{"pause": "1-7", "agent": "1-7", "function": "1-7", "new": ""})
	if err := os.RemoveAll(filepath.Dir(h.cores[0].path)); err != nil {
		t.Fatal(err)
	}
	plantCores("new", "0-7")
	expect("2-7", map[string]string{"pause": "2-7", "function": "2-7", "new": "2-7"})
	if len(h.cores) != 3 || len(journal.held) != 3 {
		t.Errorf("%d files are open, and held are %v", len(h.cores), journal.held)
	}
	expect("", map[string]string{"pause": "0-7", "function": "0-7", "new": "0-7"})
	if err := h.Close(); err != nil || len(journal.held) > 0 {
		t.Errorf("%v; held are %v", err, journal.held)
	}
}

func TestAPodWithoutContainersIsNoError(t *testing.T) {
	tree, pod, plantCores, cores := podOfVersion1(t)
	h, err := tree.OpenHold(pod, 0, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if err == nil {
		err = h.SetCores("1-7")
	}
	if err != nil {
		t.Fatal(err)
	}
	plantCores("agent", "0-7")
	if err := h.SetCores("1-7"); err != nil || cores("agent") != "1-7" {
		t.Errorf("%v; the agent's container has %q", err, cores("agent"))
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatSomebodyElseHasFrozenIsLeftAlone(t *testing.T) {
	tree := Detect(Options{Root: plant(t, "v2-systemd"), Base: "/"})
	pod, agent := plantContainers(t, tree, map[string]time.Duration{"agent": 0, "function": time.Minute})
	write(t, filepath.Join(pod.CPU, "function", freezeFile), "1\n")
	h, err := tree.OpenHold(pod, agent, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetFrozen(true); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if err := h.Close(); err != nil || readFile(filepath.Join(pod.CPU, "function", freezeFile)) != "1\n" {
		t.Errorf("%v; it was let go", err)
	}
}

func TestPressureLeavesOutWhatLimitsCost(t *testing.T) {
	root := plant(t, "v2-cgroupfs")
	write(t, filepath.Join(root, "sys/fs/cgroup/kubepods/cpu.pressure"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n")
	kernel := &countingKernel{}
	tree := Detect(Options{Root: root, Base: "/", kernel: kernel})
	if got := tree.Holding(); got.Waits != Pressure {
		t.Fatalf("it is %s", got)
	}
	pod, _ := plantContainers(t, tree, map[string]time.Duration{"agent": 0, "function": 0})
	write(t, filepath.Join(pod.CPU, "cpu.pressure"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=71500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n")
	g, err := tree.Open(pod, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if got, err := g.Waited(); got != 70500*time.Microsecond || err != nil {
		t.Errorf("it waited %s, %v; want 71.5 ms without 0.5 for each container", got, err)
	}
	// A limit stopped four threads for a second, which pressure counts as one, and then they waited for half of one.
	write(t, filepath.Join(pod.CPU, "function", statFile), "usage_usec 0\nthrottled_usec 4000500\n")
	waited := func(total int) time.Duration {
		write(t, filepath.Join(pod.CPU, "cpu.pressure"), fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", total))
		got, err := g.Waited()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if before := waited(1_071_500); waited(1_571_500)-before != 500*time.Millisecond {
		t.Errorf("it waited %s more, want 500 ms", waited(1_571_500)-before)
	}
	before := kernel.opened
	for range 2 * limitsFor {
		if _, err := g.Waited(); err != nil {
			t.Fatal(err)
		}
	}
	if n := kernel.opened - before; n > 2*3 {
		t.Errorf("%d files were opened for %d looks", n, 2*limitsFor)
	}
	plantContainers(t, tree, map[string]time.Duration{"third": 0})
	seen := waited(1_571_500)
	for range limitsFor {
		seen = waited(1_571_500)
	}
	if seen != (1_571_500-4_000_500-2*500)*time.Microsecond {
		t.Errorf("with a third container, which was stopped for 0.5 ms, it waited %s", seen)
	}
	write(t, filepath.Join(pod.CPU, "cpu.pressure"), "full total=3\n")
	if got, err := g.Waited(); err == nil {
		t.Errorf("nonsense is %s", got)
	}
}

// countingKernel counts the files that it opens.
type countingKernel struct {
	realKernel
	opened int
}

func (k *countingKernel) open(name string, flag int) (file, error) {
	k.opened++
	return k.realKernel.open(name, flag)
}

func TestWaitSumIsReadWhereTheKernelKeepsIt(t *testing.T) {
	root := plant(t, "v1-cgroupfs")
	if got := Detect(Options{Root: root, Base: "/"}).Holding(); got != (Holding{}) || !strings.Contains(got.String(), "nothing says") {
		t.Errorf("without anything: %s", got)
	}
	pods := "sys/fs/cgroup/cpu,cpuacct/kubepods/"
	write(t, filepath.Join(root, pods, statFile), "nr_periods 0\nnr_throttled 0\nthrottled_time 0\nwait_sum 7\n")
	write(t, filepath.Join(root, pods, "burstable/pod0a1b-22", statFile), "nr_periods 0\nwait_sum 1234567\n")
	tree := Detect(Options{Root: root, Base: "/"})
	pod, err := tree.FindPod("0a1b-22")
	if err != nil || tree.Holding().Waits != WaitSum {
		t.Fatalf("%v, %v", tree.Holding(), err)
	}
	g, err := tree.Open(pod, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if got, err := g.Waited(); got != 1234567 || err != nil {
		t.Errorf("it waited %s, %v", got, err)
	}
}

func TestThreadsOfARealGroupWait(t *testing.T) {
	tree := realTree(t)
	if got := tree.Holding(); got.Waits != RunDelay {
		t.Skipf("here: %s", got)
	}
	f := createGroup(t, tree, "waits")
	spin(t, f, "0")
	spin(t, f, "0")
	g, err := tree.Open(f, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	begin, err := g.Waited()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "one of two on one core waits", func() bool {
		now, err := g.Waited()
		return err == nil && now > begin+50*time.Millisecond
	})
}

// TestAFunctionInARealPodStops makes what a kubelet makes with cgroup v1, in a corner of its own.
func TestAFunctionInARealPodStops(t *testing.T) {
	realTree(t)
	const uid = "0a1b-44"
	base := fmt.Sprintf("windlass-test-%d", os.Getpid())
	for _, controller := range []string{"cpu", "cpuacct", "freezer", "cpuset"} {
		for _, dir := range []string{"", "pod" + uid, "pod" + uid + "/agent", "pod" + uid + "/function"} {
			dir := filepath.Join("/sys/fs/cgroup", controller, base, dir)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Skip("no group of each controller can be made here: ", err)
			}
			t.Cleanup(func() { _ = os.Remove(dir) })
			for _, name := range []string{coresFile, nodesFile} {
				if controller == "cpuset" {
					write(t, filepath.Join(dir, name), readFile(filepath.Join(filepath.Dir(dir), name)))
				}
			}
		}
	}
	tree := Detect(Options{Base: "/" + base})
	pod, err := tree.FindPod(uid)
	if err != nil {
		t.Fatalf("%v; %s", err, tree)
	}
	inPod := func(controller, name, file string) string {
		return filepath.Join("/sys/fs/cgroup", controller, base, "pod"+uid, name, file)
	}
	function := pod.below("function")
	spin(t, function, "0")
	spinner := strings.TrimSpace(readFile(inPod("cpu", "function", processesFile)))
	for _, controller := range []string{"freezer", "cpuset"} {
		write(t, inPod(controller, "function", processesFile), spinner)
	}
	agent, err := inodeOf(inPod("freezer", "agent", ""))
	if err != nil {
		t.Fatal(err)
	}
	h, err := tree.OpenHold(pod, agent, openJournal(t, filepath.Join(t.TempDir(), "journal")))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "has computed", func() bool { return usedBy(t, function) > computing })
	if err := errors.Join(h.SetFrozen(true), h.SetCores("0")); err != nil {
		t.Fatal(err)
	}
	state := func(name string) string { return strings.TrimSpace(readFile(inPod("freezer", name, stateFile))) }
	eventually(t, "frozen", func() bool { return state("function") == "FROZEN" })
	cores := func() string { return strings.TrimSpace(readFile(inPod("cpuset", "function", coresFile))) }
	if state("agent") != "THAWED" || state("") != "THAWED" || cores() != "0" {
		t.Errorf("the agent's container is %s, the pod %s, and the function has the cores %s", state("agent"), state(""), cores())
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "goes on", func() bool { return state("function") == "THAWED" })
	if want := strings.TrimSpace(readFile(inPod("cpuset", "", coresFile))); cores() != want {
		t.Errorf("the function has the cores %s, want %s", cores(), want)
	}
}
