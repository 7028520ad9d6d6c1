package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// parted is the function whose calls are parted among its revisions.
const parted = "parted"

// What is asked of calls that are parted.
const (
	partCalls   = 100_000
	part        = 10  // percent
	partOff     = 0.3 // percent
	partChanges = 50
	partUndos   = 10
	undoWithin  = time.Second
)

// traffic is what was seen of a function while its calls were parted, parted again, and
// given back to an earlier revision.
type traffic struct {
	// share is how many percent of the calls went where 10 % were to go.
	share float64
	// undo is the time from the beginning of the command until no call went elsewhere at any
	// gateway, of the slowest one.
	undo time.Duration
	// cold are the instances that were started for that.
	cold int
}

// run prints one line, and is 1 if a figure is not as it should be.
func (f *traffic) run(ctx context.Context, r *runner, out io.Writer) (status int, err error) {
	s, err := r.newEnv(ctx, "traffic")
	if err != nil {
		return 1, err
	}
	defer s.etcd.Close()
	err = s.with(ctx, parted, func(spec *v1alpha1.FunctionSpec) {
		// One that is started is not there for the calls, but because one was missing.
		spec.Scaling.MinInstances, spec.Scaling.MaxInstances = warm, new(int32(warm))
	}, func(*v1alpha1.Function) error {
		return errors.Join(f.deploy(ctx, s), f.parts(ctx, s, r.times(partCalls)), f.changes(ctx, s), f.undos(ctx, s))
	})
	if err != nil {
		return 1, err
	}
	report, err := r.judge(s, nothing())
	if err != nil {
		return 1, err
	}
	for _, fault := range slices.Concat(report.Faults, s.notes) {
		fmt.Fprintf(out, "      %s\n", fault)
	}
	failed := report.Calls - report.Succeeded
	fmt.Fprintf(out, "share=%.2f failed=%d undo_seconds=%.3f cold_starts=%d lost=%d twice=%d calls=%d\n",
		f.share, failed, f.undo.Seconds(), f.cold, report.Lost, report.Duplicated, report.Calls)
	if !report.Kept() || failed > 0 || math.Abs(f.share-part) > partOff || f.undo > undoWithin || f.cold > 0 {
		status = 1
	}
	return status, nil
}

// deploy makes a second revision, and returns when it has all calls.
func (f *traffic) deploy(ctx context.Context, s *faultEnv) error {
	if err := s.partedAs(ctx, map[string]int32{revisionOf(1): 100}); err != nil {
		return err
	}
	err := s.change(ctx, parted, func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Env = append(spec.Template.Env, v1alpha1.EnvVar{Name: "VERSION", Value: "2"})
	})
	if err != nil {
		return err
	}
	return s.partedAs(ctx, map[string]int32{revisionOf(2): 100})
}

func revisionOf(generation int64) string { return v1alpha1.RevisionName(parted, generation) }

// parts has that many calls made while a tenth of them is to go to one revision.
func (f *traffic) parts(ctx context.Context, s *faultEnv, many int) error {
	if err := s.part(ctx, part); err != nil {
		return err
	}
	config := s.config(slowly(toParted, "ms=0"))
	config.Rate, config.Clients = 0, 2*warm
	l := startLoad(ctx, config)
	for l.Begun() < many && ctx.Err() == nil {
		sleep.For(ctx, 10*time.Millisecond)
	}
	calls := l.Stop()
	s.calls = append(s.calls, calls...)
	small := 0
	for _, c := range calls {
		if c.Revision == revisionOf(2) {
			small++
		}
	}
	f.share = 100 * float64(small) / float64(len(calls))
	return context.Cause(ctx)
}

// changes parts the calls again and again while they are made.
func (f *traffic) changes(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toParted, func() error {
		for i := range int32(partChanges) {
			// None and all of them, and everything between, in no order.
			if err := s.part(ctx, i*37%(partChanges)*100/(partChanges-1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// undos goes back to the other revision by the command, again and again. Each has had all
// calls before, and the instances for them.
func (f *traffic) undos(ctx context.Context, s *faultEnv) error {
	now2, now1 := map[string]int32{revisionOf(2): 100}, map[string]int32{revisionOf(1): 100}
	if err := errors.Join(s.part(ctx, 0), s.staffed(ctx, 1)); err != nil {
		return err
	}
	if err := s.change(ctx, parted, func(spec *v1alpha1.FunctionSpec) { spec.Traffic = nil }); err != nil {
		return err
	}
	if err := errors.Join(s.partedAs(ctx, now2), s.staffed(ctx, 2)); err != nil {
		return err
	}
	for i := range partUndos {
		to := now1
		if i%2 == 1 {
			to = now2
		}
		if err := f.back(ctx, s, to); err != nil {
			return err
		}
	}
	return nil
}

// back goes back once, and sees how long calls go elsewhere.
func (f *traffic) back(ctx context.Context, s *faultEnv, to map[string]int32) error {
	watch := startLoad(ctx, s.config(toParted))
	sleep.For(ctx, after)
	before, err := s.podsOf(ctx, parted)
	if err != nil {
		return err
	}
	began := now()
	err = s.windlass(ctx, "rollout", "undo", parted)
	if err == nil {
		err = s.partedAs(ctx, to)
	}
	sleep.For(ctx, after)
	calls := watch.Stop()
	s.calls = append(s.calls, calls...)
	for _, c := range calls {
		if to[c.Revision] == 0 {
			f.undo = max(f.undo, time.Duration(c.Began-began))
		}
	}
	after, listErr := s.podsOf(ctx, parted)
	for name, pod := range after {
		if _, known := before[name]; !known {
			f.cold++
			s.note("%s of %s was started while calls went to %v", name, pod.Labels[wellknown.LabelRevision], to)
		}
	}
	return errors.Join(err, listErr)
}

// podsOf are a function's pods, of every revision, by their names.
func (s *faultEnv) podsOf(ctx context.Context, function string) (map[string]*corev1.Pod, error) {
	list, err := s.Cluster.Core.CoreV1().Pods(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: wellknown.LabelFunction + "=" + function})
	if err != nil {
		return nil, err
	}
	found := make(map[string]*corev1.Pod)
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found, nil
}

// staffed returns when a revision has the instances that it is to have with all calls.
func (s *faultEnv) staffed(ctx context.Context, generation int64) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	return sleep.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		pods, err := s.podsOf(ctx, parted)
		running := 0
		for _, pod := range pods {
			if pod.Labels[wellknown.LabelRevision] == fmt.Sprintf("%05d", generation) && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == warm, err
	})
}

// toParted calls the function whose calls are parted, for 5 ms each: few wait for others.
func toParted(*rand.Rand) request {
	return request{Function: lab.Namespace + "/" + parted, Query: "ms=5", Body: 10}
}

// part gives a part of the calls, in percent, to the second revision, and returns when
// the function says so.
func (s *faultEnv) part(ctx context.Context, percent int32) error {
	err := s.change(ctx, parted, func(spec *v1alpha1.FunctionSpec) {
		spec.Traffic = []v1alpha1.TrafficTarget{
			{Tag: "one", Weight: 100 - percent, RevisionName: revisionOf(1)},
			{Tag: "two", Weight: percent, RevisionName: revisionOf(2)},
		}
	})
	if err != nil {
		return err
	}
	return s.partedAs(ctx, map[string]int32{revisionOf(1): 100 - percent, revisionOf(2): percent})
}

// change changes the spec of a function.
func (s *faultEnv) change(ctx context.Context, name string, change func(*v1alpha1.FunctionSpec)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var fn v1alpha1.Function
		if err := s.Cluster.Get(ctx, name, &fn); err != nil {
			return err
		}
		change(&fn.Spec)
		return s.Cluster.Objects.Update(ctx, &fn)
	})
}

// partedAs returns when the function's status says that its calls are parted so.
func (s *faultEnv) partedAs(ctx context.Context, want map[string]int32) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	var fn v1alpha1.Function
	err := sleep.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		if err := s.Cluster.Get(ctx, parted, &fn); err != nil {
			return false, err
		}
		got := make(map[string]int32)
		for _, part := range fn.Status.Traffic {
			got[part.RevisionName] += part.Weight
		}
		for name, weight := range want {
			if got[name] != weight {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("calls are not parted as %v: %w: %+v", want, err, fn.Status)
	}
	return nil
}

// windlass runs the command as a user of the lab.
func (s *faultEnv) windlass(ctx context.Context, arguments ...string) error {
	arguments = append(arguments, "--kubeconfig", s.Config.Kubeconfig(), "--namespace", lab.Namespace)
	command := exec.CommandContext(ctx, s.Config.Program("windlass"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG=")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("windlass %v: %w\n%s", arguments, err, text)
	}
	return nil
}
