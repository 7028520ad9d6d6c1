package attacks

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// hogAttacks take up what the kernel counts for each user, as functions on one node can.
// Only root can give processes the users that pods would have. User namespaces do not keep
// inotify instances apart: the kernel counts them for who made the namespace, too.
var hogAttacks = []attack{
	{"F110", "S6: a function takes all room for pipes, with user namespaces", "", hogs(hogPipes, func(c *podspec.Config) { c.UserNamespaces = true })},
	{"F110", "S6: a function takes all room for pipes, with users of namespaces", "", hogs(hogPipes, ownUsers)},
	{"F110", "S6: a function takes all inotify instances, with users of namespaces", "", hogs(hogInotify, ownUsers)},
}

// ownUsers are as docs/security.md advises.
func ownUsers(c *podspec.Config) {
	c.UserIDs = podspec.UserIDs{Base: 1_000_000_000, Count: 800_000_000}
}

// What a hog takes.
const (
	hogPipes   = "pipes"
	hogInotify = "inotify"
)

// hogs has functions of two tenants on one node take as much as they get; the second must
// get as much as the first.
func hogs(what string, change func(*podspec.Config)) func(*platform) {
	return func(w *platform) {
		node := rand.IntN(1<<20) + 1<<20 // users of this attack alone
		let, taken := w.hog(what, "team-a", node, change)
		other, left := w.hog(what, "team-b", node+1<<16, change)
		if taken == 0 || left != taken {
			w.Errorf("one function has taken %d (%s), and another could take %d", taken, what, left)
		}
		other()
		let()
	}
}

// hog plays the container of a function that takes what it can get. It has the user of
// the pod that Windlass would make, which in a user namespace is another one of the node.
func (w *platform) hog(what, namespace string, node int, change func(*podspec.Config)) (let func(), taken int) {
	w.Helper()
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hog", UID: types.UID(namespace)}}
	fn.Spec.Template.Image = "hog:1"
	v1alpha1.Default(fn)
	config := podspec.Config{
		AgentImage: "podagent:1", AgentRequests: placement.Amount{MilliCPU: 10, Memory: 32 << 20, Pods: 1}, AgentMemoryLimit: 256 << 20,
		SchedulerAddr: "scheduler:9443", CA: "ca", TLSDomain: string(domain),
	}
	change(&config)
	pod, err := podspec.Pod(podspec.Input{Config: config, Function: fn, CID: invocation.Term{Epoch: 1}.CID(1), Node: nodeName, Decided: time.Now()})
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Dir = []string{part + "=" + partHog, hogVariable + "=" + what}, "/"
	cmd.SysProcAttr = userOf(pod, node)
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := fmt.Fscan(stdout, &taken); err != nil {
		w.Fatal(err)
	}
	return func() { _ = stdin.Close(); _, _ = io.Copy(io.Discard, stdout) }, taken
}

// userOf is the user of a pod's function. One without users of its own is kept apart from
// what else runs here by another number.
func userOf(pod *corev1.Pod, node int) *syscall.SysProcAttr {
	user := int(*pod.Spec.SecurityContext.RunAsUser)
	for _, c := range pod.Spec.Containers {
		if s := c.SecurityContext; c.Name == podspec.ContainerFunction && s != nil && s.RunAsUser != nil {
			user = int(*s.RunAsUser)
		}
	}
	as := &syscall.Credential{Uid: uint32(user), Gid: uint32(podspec.UserID), NoSetGroups: true}
	if users := pod.Spec.HostUsers; users == nil || *users {
		return &syscall.SysProcAttr{Credential: as}
	}
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, Credential: as,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: node, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(podspec.UserID), HostID: node, Size: 1}},
	}
}

// playHog takes what it is told for as long as it gets it, tells how much, and keeps it
// until it may go.
func playHog(stdin io.Reader) {
	take := map[string]func() bool{hogPipes: takePipe, hogInotify: takeInotify}[os.Getenv(hogVariable)]
	taken := 0
	for taken < 1<<14 && take() {
		taken++
	}
	_, _ = fmt.Fprintln(os.Stdout, taken)
	_, _ = io.Copy(io.Discard, stdin)
}

// takePipe takes a pipe of the usual size.
func takePipe() bool {
	const getPipeSize, usual = 1032, 64 << 10 // the first is F_GETPIPE_SZ
	var pipe [2]int
	if syscall.Pipe2(pipe[:], 0) != nil {
		return false
	}
	size, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(pipe[0]), getPipeSize, 0)
	return size == usual
}

func takeInotify() bool {
	_, err := syscall.InotifyInit1(0)
	return err == nil
}
