package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// aJobsPod is a pod that runs and asks to be filler.
func aJobsPod(uid string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(uid), Namespace: "reports", Name: "job-" + uid,
			Annotations: map[string]string{wellknown.AnnotationClass: "Batch", "other": "much text"},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "work", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable,
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "work", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: "done", ContainerID: "containerd://2", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
			},
		},
	}
}

// asRead is a pod as the node agent reads it of what the API server writes.
func asRead(t *testing.T, whole *corev1.Pod) *pod {
	t.Helper()
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	read := &pod{}
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestWhatIsKeptOfAPodIsWhatDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(p *corev1.Pod)
		want   func(p *nodeagent.Pod)
	}{
		"a pod of a Job": {func(*corev1.Pod) {}, func(*nodeagent.Pod) {}},
		"no annotation":  {func(p *corev1.Pod) { p.Annotations = nil }, func(p *nodeagent.Pod) { p.Class = "" }},
		"Guaranteed":     {func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSGuaranteed }, func(p *nodeagent.Pod) { p.Guaranteed = true }},
		"an instance": {func(p *corev1.Pod) {
			p.Labels = map[string]string{wellknown.LabelManagedBy: wellknown.ManagedBy, wellknown.LabelComponent: wellknown.ComponentFunction}
		}, func(p *nodeagent.Pod) { p.Instance = true }},
		"a spare instance": {func(p *corev1.Pod) {
			p.Labels = map[string]string{wellknown.LabelManagedBy: wellknown.ManagedBy, wellknown.LabelComponent: wellknown.ComponentSpare}
		}, func(p *nodeagent.Pod) { p.Instance = true }},
		"another program's function": {func(p *corev1.Pod) {
			p.Labels = map[string]string{wellknown.LabelComponent: wellknown.ComponentFunction}
		}, func(*nodeagent.Pod) {}},
		"it starts":    {func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }, func(p *nodeagent.Pod) { p.Runs = false }},
		"it has ended": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, func(p *nodeagent.Pod) { p.Runs = false }},
		"an init container": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		}, func(*nodeagent.Pod) {}},
	} {
		whole := aJobsPod(thisPod)
		tt.change(whole)
		read := asRead(t, whole)
		slim, err := slimPod(read)
		if err != nil {
			t.Fatal(err)
		}
		want := nodeagent.Pod{UID: thisPod, Namespace: "reports", Name: "job-" + thisPod, Class: "Batch", Runs: true}
		tt.want(&want)
		for what, of := range map[string]*pod{"the pod": read, "what is kept of it": slim.(*pod)} {
			if got := podFor(of); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %+v, want %+v", name, what, got, want)
			}
		}
		if slim.(*pod).Annotations["other"] != "" {
			t.Errorf("%s: %+v is kept", name, slim)
		}
	}
}

// TestPodsAreReadAsTheAPIServerWritesThem lists pods, and watches them, by the client of the node agent.
func TestPodsAreReadAsTheAPIServerWritesThem(t *testing.T) {
	whole := aJobsPod(thisPod)
	whole.APIVersion, whole.Kind = "v1", "Pod"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/pods" || r.URL.Query().Get("fieldSelector") != "spec.nodeName=n1" {
			t.Errorf("it asks for %s", r.URL)
		}
		var said any = &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Pod{*whole}}
		if r.URL.Query().Get("watch") != "" {
			said = map[string]any{"type": "MODIFIED", "object": whole}
		}
		if err := json.NewEncoder(w).Encode(said); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := clientOf(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pods := toolscache.NewListWatchFromClient(client, "pods", metav1.NamespaceAll, podsOf("n1"))
	listed, err := pods.ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list := listed.(*podList)
	watch, err := pods.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	want := podFor(asRead(t, whole))
	for how, got := range map[string]*pod{"list": &list.Items[0], "watch": (<-watch.ResultChan()).Object.(*pod)} {
		if list.ResourceVersion != "7" || !reflect.DeepEqual(podFor(got), want) || !reflect.DeepEqual(got.DeepCopyObject(), got) {
			t.Errorf("%s: %+v, want %+v", how, podFor(got), want)
		}
	}
}

func TestPodsOfItsOwnNodeAreAskedFor(t *testing.T) {
	selector := podsOf("n1")
	if selector.String() != "spec.nodeName=n1" || !selector.Matches(fields.Set{"spec.nodeName": "n1"}) || selector.Matches(fields.Set{"spec.nodeName": "n2"}) {
		t.Errorf("the selector is %s", selector)
	}
}

// follower is a node agent that follows pods on a node with files as control groups.
type follower struct {
	t       *testing.T
	root    string
	journal *cgroups.Journal
	pods    *cachetesting.FakeControllerSource
	stop    func()
}

func follow(t *testing.T, root string) *follower {
	t.Helper()
	tree := cgroups.Detect(cgroups.Options{Root: root, Below: "/host/cgroup", Base: "/"})
	journal, err := cgroups.OpenJournal(filepath.Join(root, "bands"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	agent, err := nodeagent.New(nodeagent.DefaultConfig(4), nodeagent.Deps{Runnable: func() (int, error) { return 0, nil }, Log: log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{t: t, root: root, journal: journal, pods: cachetesting.NewFakeControllerSource()}
	fillers := nodeagent.NewFillers(agent, []string{"reports"}, fillerGroups{tree, journal}.open, log)
	ended := make(chan error, 2)
	go func() { ended <- agent.Run(ctx) }()
	go func() { ended <- followPods(ctx, f.pods, fillers) }()
	f.stop = func() {
		cancel()
		f.pods.Shutdown()
		if err := errors.Join(<-ended, <-ended, journal.Close()); err != nil {
			t.Error(err)
		}
	}
	// The source takes a pod that comes between the first list and its watch for a list that is too old,
	// and then the next list waits.
	synctest.Wait()
	return f
}

func (f *follower) file(uid, name string) string {
	return filepath.Join(f.root, "host/cgroup/kubepods/burstable/pod"+uid, name)
}

// expectIdle waits for what the watch brings, and reads cpu.idle of a pod.
func (f *follower) expectIdle(when, uid, want string) {
	f.t.Helper()
	synctest.Wait()
	text, err := os.ReadFile(f.file(uid, "cpu.idle"))
	if got := strings.TrimSpace(string(text)); err != nil || got != want {
		f.t.Errorf("%s cpu.idle of %s is %q, %v; want %s", when, uid, got, err, want)
	}
}

func TestPodsOfJobsGetWhatOthersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, plantPods(t))
		pod, other := aJobsPod(thisPod), aJobsPod(otherPod)
		other.Namespace = "shop"
		f.pods.Add(asRead(t, pod))
		f.pods.Add(asRead(t, other))
		f.expectIdle("once it runs", thisPod, "1")
		f.expectIdle("in a namespace that may not", otherPod, "0")
		pod = pod.DeepCopy()
		pod.Annotations = nil
		f.pods.Modify(asRead(t, pod))
		f.expectIdle("without the annotation", thisPod, "0")
		pod = aJobsPod(thisPod)
		f.pods.Modify(asRead(t, pod))
		f.expectIdle("with it again", thisPod, "1")
		f.pods.Delete(asRead(t, pod))
		f.expectIdle("once it is deleted", thisPod, "0")
		f.pods.Add(asRead(t, aJobsPod(thisPod)))
		f.expectIdle("of the same UID", thisPod, "1")
		f.stop()
		f.expectIdle("after the node agent", thisPod, "0")
		if weight, err := os.ReadFile(f.file(thisPod, "cpu.weight")); err != nil || strings.TrimSpace(string(weight)) != "79" {
			t.Errorf("its weight is %q, %v", weight, err)
		}
	})
}

// TestAKilledNodeAgentLeavesItInTheJournal: the next one, or the guardian, opens the journal.
func TestAKilledNodeAgentLeavesItInTheJournal(t *testing.T) {
	root := plantPods(t)
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, root)
		f.pods.Add(asRead(t, aJobsPod(thisPod)))
		f.expectIdle("while it runs", thisPod, "1")
		left, err := os.ReadFile(filepath.Join(root, "bands"))
		if err != nil {
			t.Fatal(err)
		}
		f.stop()
		// As if it had been killed: the group is low, and the journal as it was then.
		if err := errors.Join(os.WriteFile(f.file(thisPod, "cpu.idle"), []byte("1\n"), 0o600), os.WriteFile(filepath.Join(root, "bands"), left, 0o600)); err != nil {
			t.Fatal(err)
		}
		next := follow(t, root)
		next.expectIdle("at the next start", thisPod, "0")
		next.stop()
	})
}

// TestAGroupThatComesLaterIsFoundLater: a pod may be known before its group is.
func TestAGroupThatComesLaterIsFoundLater(t *testing.T) {
	root := plantPods(t)
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, root)
		defer f.stop()
		dir := filepath.Dir(f.file(thisPod, ""))
		aside := filepath.Join(root, "aside")
		if err := os.Rename(filepath.Join(dir, "pod"+thisPod), aside); err != nil {
			t.Fatal(err)
		}
		f.pods.Add(asRead(t, aJobsPod(thisPod)))
		synctest.Wait()
		if err := os.Rename(aside, filepath.Join(dir, "pod"+thisPod)); err != nil {
			t.Fatal(err)
		}
		f.expectIdle("before it is looked for again", thisPod, "0")
		<-time.After(fillerRetry + time.Second)
		f.expectIdle("afterwards", thisPod, "1")
	})
}

// TestAnAdministratorsCoresStay lets only cores be taken away.
func TestAnAdministratorsCoresStay(t *testing.T) {
	root := plantPods(t)
	tree := cgroups.Detect(cgroups.Options{Root: root, Below: "/host/cgroup", Base: "/"})
	journal, err := cgroups.OpenJournal(filepath.Join(root, "bands"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	path := filepath.Join(root, "host/cgroup/kubepods/burstable/pod"+thisPod, "cpuset.cpus")
	cores := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return line
	}
	if err := os.WriteFile(path, []byte("2-5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	is, err := fillerGroups{tree, journal}.open(nodeagent.Pod{UID: thisPod, Namespace: "reports", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	hold, err := is.OpenHold()
	if err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]string{"4-7": "4-5", "1-3": "2-3"} {
		if err := hold.SetCores(list); err != nil || cores() != want {
			t.Errorf("with %s it has %q, %v; want %s", list, cores(), err, want)
		}
	}
	if err := hold.SetCores("6-7"); err != nil || cores() != "2-5" {
		t.Errorf("where nothing is left it has %q, %v", cores(), err)
	}
	if err := hold.SetFrozen(true); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("it can be frozen: %v", err)
	}
	if err := errors.Join(hold.Close(), is.Group.Close()); err != nil || cores() != "2-5" {
		t.Errorf("afterwards it has %q, %v", cores(), err)
	}
}
