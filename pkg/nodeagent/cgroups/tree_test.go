package cgroups

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// plant writes a tree of testdata into a new folder: a path and a content in each line, in which
// a bar begins the next line.
func plant(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".tree"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for line := range strings.Lines(string(text)) {
		path, content, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if path == "#" {
			continue
		}
		if !found {
			t.Fatalf("%s: no content in %q", name, line)
		}
		write(t, filepath.Join(root, path), strings.ReplaceAll(content, "|", "\n")+"\n")
	}
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fakeKernel gives new groups their files, and has weights and cpu.idle behave as the kernel
// does: a group that is idle has the weight 0, takes no other, and has the usual one afterwards.
type fakeKernel struct {
	files []string // of a new group
	deny  error    // of what is made or written
}

func (k *fakeKernel) mkdir(dir string) error {
	if k.deny != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: k.deny}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range k.files {
		name, content, _ := strings.Cut(file, "=")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (k *fakeKernel) open(name string, flag int) (file, error) {
	if k.deny != nil && flag != os.O_RDONLY {
		return nil, &fs.PathError{Op: "open", Path: name, Err: k.deny}
	}
	f, err := os.OpenFile(name, flag, 0)
	if err != nil {
		return nil, err
	}
	return fakeFile{f}, nil
}

type fakeFile struct{ *os.File }

func (f fakeFile) WriteAt(p []byte, _ int64) (int, error) {
	dir, name := filepath.Split(f.Name())
	value := strings.TrimSpace(string(p))
	idle := strings.TrimSpace(readFile(dir + idleFile))
	if name == idleFile {
		weight := "100"
		if value == "1" {
			weight = "0"
		}
		if err := os.WriteFile(dir+v2.weight, []byte(weight+"\n"), 0o644); err != nil {
			return 0, err
		}
	} else if idle == "1" {
		return 0, syscall.EINVAL
	} else if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 10_000 {
		return 0, syscall.ERANGE
	}
	return len(p), os.WriteFile(f.Name(), p, 0o644)
}

func readFile(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

func TestDetectSaysWhatCanBeDone(t *testing.T) {
	all := []string{"cpu.weight=100", "cpu.idle=0", "cpu.stat=usage_usec 0"}
	for _, tt := range []struct {
		tree    string
		options Options
		want    string // ROOT is the root folder
	}{
		{"v1-cgroupfs", Options{Base: "/"}, "bands by cpu.idle in cgroup v1"},
		{"v1-old", Options{Base: "/"}, "bands by weights in cgroup v1: the kernel has no cpu.idle"},
		{"v2-systemd", Options{Base: "/"}, "bands by cpu.idle in cgroup v2"},
		{"v2-systemd", Options{Base: "/", kernel: &fakeKernel{deny: syscall.EROFS}},
			"order only: cannot write ROOT/sys/fs/cgroup/kubepods.slice/cpu.idle: read-only file system"},
		{"container", Options{Base: "/kubepods.slice"}, "bands by cpu.idle in cgroup v2"},
		{"container", Options{Below: "/host/cgroup", Base: "/"}, "bands by cpu.idle in cgroup v2"},
		{"container", Options{Below: "/host/cgrou", Base: "/"}, "order only: /host/cgrou: no control groups are mounted"},
		{"container-v1", Options{Below: "/host/cgroup", Base: "/"}, "bands by cpu.idle in cgroup v1"},
		{"container-v1", Options{Below: "/host/cgroup/cpu", Base: "/"}, "order only: /host/cgroup/cpu: the cpuacct controller of cgroup v1 is not mounted"},
		{"v1-systemd", Options{Base: "/"}, "bands by cpu.idle in cgroup v1"},
		{"v2-cgroupfs", Options{Base: "/"}, "bands by cpu.idle in cgroup v2"},
		{"v2-kind", Options{Base: "/"}, "order only: cgroups in ROOT/sys/fs/cgroup/kubelet.slice count no processor time"},
		{"v2-no-cpu", Options{}, "order only: the cpu controller is not available at /sys/fs/cgroup/unified"},
		{"v2-user", Options{Base: "/"}, "order only: there are no cgroups of pods below ROOT/sys/fs/cgroup"},
		{"none", Options{}, "order only: no control groups are mounted"},
		{"v2-user", Options{Create: true, kernel: &fakeKernel{files: all}}, "bands by cpu.idle in cgroup v2"},
		{"v2-user", Options{Create: true, kernel: &fakeKernel{files: []string{all[0], all[2]}}}, "bands by weights in cgroup v2: the kernel has no cpu.idle"},
		{"v2-user", Options{Create: true, kernel: &fakeKernel{files: all[2:]}},
			"order only: the cpu controller is not enabled in ROOT/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice"},
		{"v2-user", Options{Create: true, kernel: &fakeKernel{deny: syscall.EACCES}},
			"order only: cannot create cgroups below ROOT/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice: permission denied"},
	} {
		t.Run(tt.tree, func(t *testing.T) {
			tt.options.Root = plant(t, tt.tree)
			tree := Detect(tt.options)
			want := strings.ReplaceAll(tt.want, "ROOT", tt.options.Root)
			if tree.String() != want || tree.Bands() != strings.HasPrefix(want, "bands") {
				t.Errorf("bands: %v, %q; want %q", tree.Bands(), tree, want)
			}
		})
	}
}

func TestPodsAreFoundByUID(t *testing.T) {
	for _, tt := range []struct{ tree, base, uid, want string }{
		{"v1-cgroupfs", "/", "0a1b-22", "sys/fs/cgroup/cpu,cpuacct/kubepods/burstable/pod0a1b-22"},
		{"v1-cgroupfs", "/", "fe-1", "sys/fs/cgroup/cpu,cpuacct/kubepods/besteffort/podfe-1"},
		{"v1-cgroupfs", "/", "77-1", "sys/fs/cgroup/cpu,cpuacct/kubepods/pod77-1"},
		{"v2-systemd", "/", "0a1b-22", "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_22.slice"},
		{"v2-systemd", "/", "77-1", "sys/fs/cgroup/kubepods.slice/kubepods-pod77_1.slice"},
		{"v2-kind", "/", "0a1b-22", "sys/fs/cgroup/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod0a1b_22.slice"},
		{"container", "/kubepods.slice", "0a1b-22", "host/cgroup/kubepods-burstable.slice/kubepods-burstable-pod0a1b_22.slice"},
		{"v1-systemd", "/", "0a1b-22", "sys/fs/cgroup/cpu/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_22.slice"},
		{"v1-systemd", "/", "fe-1", "sys/fs/cgroup/cpu/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podfe_1.slice"},
		{"v1-systemd", "/", "77-1", "sys/fs/cgroup/cpu/kubepods.slice/kubepods-pod77_1.slice"},
		{"v2-cgroupfs", "/", "0a1b-22", "sys/fs/cgroup/kubepods/burstable/pod0a1b-22"},
		{"v2-cgroupfs", "/", "fe-1", "sys/fs/cgroup/kubepods/besteffort/podfe-1"},
		{"v2-cgroupfs", "/", "77-1", "sys/fs/cgroup/kubepods/pod77-1"},
		{"container-v1", "/", "0a1b-22", "host/cgroup/cpu/kubepods/burstable/pod0a1b-22"},
		{"v2-systemd", "/", "0a1b", ""},
		{"v2-kind", "/", "b-22", ""},
		{"v2-systemd", "/", "77-1/../x", "refused"},
		{"v2-systemd", "/", "", "refused"},
	} {
		t.Run(tt.tree+" "+tt.uid, func(t *testing.T) {
			root := plant(t, tt.tree)
			found, err := Detect(Options{Root: root, Base: tt.base}).FindPod(tt.uid)
			switch missing := errors.Is(err, fs.ErrNotExist); {
			case tt.want == "refused":
				if err == nil || missing {
					t.Errorf("found %v, %v; want a refusal", found, err)
				}
			case tt.want == "":
				if !missing {
					t.Errorf("found %v, %v; want none", found, err)
				}
			default:
				want := Folder{CPU: filepath.Join(root, tt.want), Usage: filepath.Join(root, strings.Replace(tt.want, "cgroup/cpu/", "cgroup/cpuacct/", 1))}
				if err != nil || found != want {
					t.Errorf("found %v, %v; want %s", found, err, want)
				}
			}
		})
	}
}

func TestUsageIsReadInBothVersions(t *testing.T) {
	for tree, want := range map[string]time.Duration{"v1-cgroupfs": 123456789, "v2-systemd": 123456 * time.Microsecond} {
		g := openPod(t, tree, Options{}, nil)
		if got, err := g.Usage(); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", tree, got, err, want)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = g.Usage() }); n > 0 {
			t.Errorf("%s: a read makes %v pieces of garbage", tree, n)
		}
	}
	if _, err := v2.parseUsage([]byte("nr_periods 3\n")); err == nil {
		t.Error("what is not the usage was read as one")
	}
}

// openPod opens the pod 0a1b-22 of a tree.
func openPod(t *testing.T, tree string, o Options, journal *Journal) *Group {
	t.Helper()
	o.Root, o.Base = plant(t, tree), "/"
	detected := Detect(o)
	pod, err := detected.FindPod("0a1b-22")
	if err != nil {
		t.Fatal(err)
	}
	g, err := detected.Open(pod, journal)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestBandsOfVersion2KeepTheWeight(t *testing.T) {
	journal := openJournal(t, filepath.Join(t.TempDir(), "weights"))
	g := openPod(t, "v2-systemd", Options{kernel: &fakeKernel{}}, journal)
	idle, weight := filepath.Join(g.dir, idleFile), filepath.Join(g.dir, v2.weight)
	for range 2 {
		if err := g.SetLow(true); err != nil {
			t.Fatal(err)
		}
		if readFile(idle) != "1\n" || readFile(weight) != "0\n" || len(journal.Low()) != 1 {
			t.Fatalf("low: idle %q, weight %q, journal %v", readFile(idle), readFile(weight), journal.Low())
		}
		if err := g.SetLow(false); err != nil {
			t.Fatal(err)
		}
		if readFile(idle) != "0\n" || readFile(weight) != "4\n" || len(journal.Low()) != 0 {
			t.Fatalf("normal: idle %q, weight %q, journal %v", readFile(idle), readFile(weight), journal.Low())
		}
	}
	// systemd applies the weight of its unit, which was changed.
	if err := g.SetLow(true); err != nil {
		t.Fatal(err)
	}
	write(t, idle, "0\n")
	write(t, weight, "9\n")
	for range 2 {
		if err := g.SetLow(true); err != nil || readFile(idle) != "1\n" || journal.weightOf(g.dir) != "9" {
			t.Errorf("lifted by somebody else and set low again: idle %q, weight %q in the journal, %v", readFile(idle), journal.weightOf(g.dir), err)
		}
	}
	if err := g.SetLow(false); err != nil || readFile(idle) != "0\n" || readFile(weight) != "9\n" {
		t.Errorf("normal: idle %q, weight %q, %v", readFile(idle), readFile(weight), err)
	}
	// Kubelet has changed the weight meanwhile, and the agent ends while the group is low.
	write(t, weight, "7\n")
	if err := errors.Join(g.SetLow(true), g.Close()); err != nil {
		t.Fatal(err)
	}
	if readFile(weight) != "7\n" || readFile(idle) != "0\n" {
		t.Errorf("closed: idle %q, weight %q", readFile(idle), readFile(weight))
	}
}

func TestWithoutIdleTheLeastWeightIsLow(t *testing.T) {
	journal := openJournal(t, filepath.Join(t.TempDir(), "weights"))
	tree := Detect(Options{Root: plant(t, "v1-old"), Base: "/"})
	pod, err := tree.FindPod("1")
	if err != nil {
		t.Fatal(err)
	}
	g, err := tree.Open(pod, journal)
	if err != nil {
		t.Fatal(err)
	}
	weight := filepath.Join(pod.CPU, v1.weight)
	if err := g.SetLow(true); err != nil || !strings.HasPrefix(readFile(weight), "2\n") {
		t.Errorf("low: %q, %v", readFile(weight), err)
	}
	if err := g.Close(); err != nil || readFile(weight) != "512\n" {
		t.Errorf("normal: %q, %v", readFile(weight), err)
	}
}

func TestAGroupThatWasLeftLowBecomesNormal(t *testing.T) {
	root := plant(t, "v2-systemd")
	tree := Detect(Options{Root: root, Base: "/", kernel: &fakeKernel{}})
	pod, err := tree.FindPod("0a1b-22")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(pod.CPU, idleFile), "1\n")
	g, err := tree.Open(pod, openJournal(t, filepath.Join(t.TempDir(), "weights")))
	if err != nil {
		t.Fatal(err)
	}
	if idle, weight := readFile(filepath.Join(g.dir, idleFile)), readFile(filepath.Join(g.dir, v2.weight)); idle != "0\n" || weight != "100\n" {
		t.Errorf("idle %q, weight %q", idle, weight)
	}
}

func TestAGroupThatIsOpenedTwiceKeepsItsWeight(t *testing.T) {
	journal := openJournal(t, filepath.Join(t.TempDir(), "weights"))
	first := openPod(t, "v2-systemd", Options{kernel: &fakeKernel{}}, journal)
	if err := first.SetLow(true); err != nil {
		t.Fatal(err)
	}
	tree := &Tree{version: v2, lever: leverIdle, kernel: &fakeKernel{}}
	second, err := tree.Open(Folder{first.dir, first.dir}, journal)
	if err != nil {
		t.Fatal(err)
	}
	weight := filepath.Join(first.dir, v2.weight)
	if readFile(weight) != "4\n" {
		t.Errorf("opened again, its weight is %q", readFile(weight))
	}
	if err := errors.Join(first.Close(), second.SetLow(true), second.Close()); err != nil || readFile(weight) != "4\n" {
		t.Errorf("closed, its weight is %q, %v", readFile(weight), err)
	}
	if len(journal.Low()) > 0 {
		t.Errorf("low are %v", journal.Low())
	}
}

// liftingKernel lets lift run once somebody has read that a group is idle.
type liftingKernel struct {
	fakeKernel
	lift func()
}

func (k *liftingKernel) open(name string, flag int) (file, error) {
	f, err := k.fakeKernel.open(name, flag)
	if err == nil && filepath.Base(name) == idleFile {
		f = liftedWhenRead{f, k}
	}
	return f, err
}

type liftedWhenRead struct {
	file
	kernel *liftingKernel
}

func (f liftedWhenRead) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.file.ReadAt(p, offset)
	if lift := f.kernel.lift; lift != nil {
		f.kernel.lift = nil
		lift()
	}
	return n, err
}

// TestAGroupThatIsLiftedWhileItIsOpenedAgainKeepsItsWeight: its first stream ends at that moment.
func TestAGroupThatIsLiftedWhileItIsOpenedAgainKeepsItsWeight(t *testing.T) {
	journal := openJournal(t, filepath.Join(t.TempDir(), "weights"))
	first := openPod(t, "v2-systemd", Options{kernel: &fakeKernel{}}, journal)
	if err := first.SetLow(true); err != nil {
		t.Fatal(err)
	}
	lifting := &liftingKernel{lift: func() {
		if err := first.SetLow(false); err != nil {
			t.Error(err)
		}
	}}
	tree := &Tree{version: v2, lever: leverIdle, kernel: lifting}
	second, err := tree.Open(Folder{first.dir, first.dir}, journal)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if weight := readFile(filepath.Join(first.dir, v2.weight)); weight != "4\n" {
		t.Errorf("its weight is %q", weight)
	}
}

func TestNoGroupButThatOfAPodIsOpened(t *testing.T) {
	root := plant(t, "v2-systemd")
	tree := Detect(Options{Root: root, Base: "/"})
	for _, dir := range []string{"", "kubepods.slice", "kubepods.slice/kubepods-burstable.slice", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_22.slice/cri-containerd-2.scope"} {
		if g, err := tree.Open(tree.base.below(dir), nil); err == nil {
			t.Errorf("%q was opened: %v", dir, g)
		}
	}
}

func TestNamesOfCreatedGroupsAreChecked(t *testing.T) {
	tree := Detect(Options{Root: plant(t, "v2-user"), Create: true, kernel: &fakeKernel{files: []string{"cpu.weight=100", "cpu.stat=usage_usec 0"}}})
	for _, name := range []string{"", "../x", "a/b", strings.Repeat("x", 300)} {
		if f, err := tree.Create(name); err == nil {
			t.Errorf("%q became %v", name, f)
		}
	}
	if f, err := tree.Create("hello-7.a"); err != nil || !mayBeLow(f.CPU) {
		t.Errorf("%v, %v", f, err)
	}
}

func TestGroupsOfEndedProcessesAreRemoved(t *testing.T) {
	root := plant(t, "v2-user")
	app := filepath.Join(root, "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice")
	stale, live := filepath.Join(app, created+"77-f"), filepath.Join(app, created+"78-f")
	for _, dir := range []string{stale, live, filepath.Join(root, "proc/78")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	Detect(Options{Root: root, Create: true, kernel: &fakeKernel{}})
	if isFolder(stale) || !isFolder(live) {
		t.Errorf("stale is there: %v, live is there: %v", isFolder(stale), isFolder(live))
	}
}
