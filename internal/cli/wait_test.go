package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// script is a registry whose Get answers one thing after the other, and then
// the last again.
type script struct {
	registry
	answers []func() (*v1alpha1.Function, error)
}

func (s *script) Get(context.Context, invocation.FunctionKey) (*v1alpha1.Function, error) {
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return next()
}

// restarts is what an API server that restarts answers.
func restarts() (*v1alpha1.Function, error) {
	return nil, &kubeclient.Error{Reason: kubeclient.ReasonUnreachable, Message: "the cluster does not answer"}
}

func is(fn *v1alpha1.Function) func() (*v1alpha1.Function, error) {
	return func() (*v1alpha1.Function, error) { return fn, nil }
}

// rolledOut is a function whose latest revision is so.
func rolledOut(ready metav1.ConditionStatus, reason string, edits ...func(*v1alpha1.Function)) *v1alpha1.Function {
	fn := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted)
	fn.Generation, fn.Status.ObservedGeneration = 2, 2
	fn.Status.LatestCreatedRevisionName, fn.Status.LatestReadyRevisionName = "f-00002", "f-00001"
	fn.Status.Traffic = []v1alpha1.TrafficStatus{{RevisionName: "f-00001", Weight: 100}}
	if ready == metav1.ConditionTrue {
		fn.Status.LatestReadyRevisionName, fn.Status.Traffic[0].RevisionName = "f-00002", "f-00002"
	}
	condition(v1alpha1.ConditionRevisionReady, ready, reason)(fn)
	for _, edit := range edits {
		edit(fn)
	}
	return fn
}

func condition(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		fn.Status.Conditions = append(fn.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			LastTransitionTime: metav1.NewTime(now), Message: "f-00002: the reason in full"})
	}
}

func since(d time.Duration) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		for i := range fn.Status.Conditions {
			fn.Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(d))
		}
	}
}

func TestA2DeployWaitsForTheProofOfWhatWasDeployed(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	behind := func(fn *v1alpha1.Function) { fn.Status.ObservedGeneration = 1 }
	deployed := rolledOut(no, v1alpha1.ReasonStartFailed, behind)
	say := func(ready metav1.ConditionStatus, reason string, edits ...func(*v1alpha1.Function)) func() (*v1alpha1.Function, error) {
		return is(rolledOut(ready, reason, edits...))
	}
	verifying, started := say(unknown, v1alpha1.ReasonVerifying), say(yes, v1alpha1.ReasonStarted)
	failed := say(no, v1alpha1.ReasonStartFailed, since(time.Second))
	other := rolledOut(yes, v1alpha1.ReasonStarted)
	other.UID = "another"
	noCalls := func(fn *v1alpha1.Function) { fn.Status.Traffic[0].RevisionName = "f-00001" }
	step := func(fn *v1alpha1.Function) {
		fn.Status.Traffic = []v1alpha1.TrafficStatus{{RevisionName: "f-00001", Weight: 90}, {RevisionName: "f-00002", Weight: 10}}
		fn.Status.Conditions = append(fn.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReconciling, Status: yes, Reason: v1alpha1.ReasonStepping,
			Message: "step 1 of 2: calls go 90 % to f-00001, 10 % to f-00002"})
	}
	pinned := func(fn *v1alpha1.Function) {
		fn.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", RevisionName: "f-00001", Weight: 100}, {Tag: "next"}}
		fn.Status.Traffic = []v1alpha1.TrafficStatus{{Tag: "live", RevisionName: "f-00001", Weight: 100}, {Tag: "next", RevisionName: "f-00002"}}
	}
	for name, c := range map[string]struct {
		answers []func() (*v1alpha1.Function, error)
		code    int
		want    []string
	}{
		"it starts":                     {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, behind), verifying, started}, 0, []string{"f-00002 has started; all calls go to f-00002"}},
		"it starts, and has no calls":   {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, noCalls), started}, 0, []string{"all calls go to f-00002"}},
		"it starts, and never gets any": {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, noCalls)}, exitTimeout, []string{"all calls go to f-00001"}},
		"it takes steps":                {[]func() (*v1alpha1.Function, error){verifying, say(yes, v1alpha1.ReasonStarted, step)}, 0, []string{"step 1 of 2: calls go 90 % to f-00001, 10 % to f-00002"}},
		"spec.traffic has others":       {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, pinned)}, 0, []string{"all calls go to f-00001, tag live; 0 % of the calls go to f-00002, tag next"}},
		"it fails":                      {[]func() (*v1alpha1.Function, error){verifying, failed}, exitPlatform, []string{"function team/f does not start: StartFailed: f-00002: the reason in full", "all calls go to f-00001", "windlass logs f"}},
		"it is stalled":                 {[]func() (*v1alpha1.Function, error){say(unknown, v1alpha1.ReasonVerifying, condition(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonRevisionMissing))}, exitPlatform, []string{"RevisionMissing: f-00002: the reason in full"}},
		"it failed before":              {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonStartFailed), started}, 0, nil},
		"it goes on failing":            {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonStartFailed)}, exitTimeout, []string{"has not started yet, after 30s: StartFailed"}},
		"nothing is tried":              {[]func() (*v1alpha1.Function, error){verifying}, exitTimeout, []string{"has not started yet, after 30s: Verifying", "windlass rollout status f"}},
		"nobody looks at it":            {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, behind)}, exitTimeout, []string{"generation 2 of function team/f has not been taken up yet"}},
		"room is found":                 {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonNoCapacity), started}, 0, nil},
		"no room is found":              {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonNoCapacity)}, exitTimeout, []string{"has not started yet, after 30s: NoCapacity"}},
		"it is another":                 {[]func() (*v1alpha1.Function, error){is(other)}, exitPlatform, []string{"was deleted"}},
		"it cannot be asked once":       {[]func() (*v1alpha1.Function, error){verifying, restarts, restarts, started}, 0, []string{"all calls go to f-00002"}},
		"it cannot be asked any more":   {[]func() (*v1alpha1.Function, error){verifying, restarts}, exitTimeout, []string{"after 30s: Verifying", "the last question was not answered: the cluster does not answer\n"}},
		"it cannot be asked":            {[]func() (*v1alpha1.Function, error){func() (*v1alpha1.Function, error) { return nil, errors.New("broken") }}, exitPlatform, []string{"broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told bytes.Buffer
				d := deployer{reporter{&finder{home: "team", host: &host{Streams: Streams{Err: &told}, now: time.Now}}}}
				fn, err := d.awaitProof(t.Context(), &target{registry: &script{answers: c.answers}}, deployed, defaultReadyTime)
				text, code := "", exitOK
				if err != nil {
					var known *exitError
					text, code = err.Error(), exitPlatform
					if errors.As(err, &known) {
						code = known.code
					}
				} else {
					text = progressOf(fn).text
				}
				if code != c.code {
					t.Errorf("exit code %d, want %d: %s", code, c.code, text)
				}
				for _, want := range c.want {
					if !strings.Contains(text, want) {
						t.Errorf("it says %q, want %q", text, want)
					}
				}
				if strings.Count(told.String(), "asking again") > 1 {
					t.Errorf("it tells one trouble more than once:\n%s", told.String())
				}
			})
		})
	}
}

// Gateways follow the API server by themselves.
func TestDeployWaitsUntilGatewaysHaveHeard(t *testing.T) {
	applied := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted)
	applied.Status.ObservedGeneration, applied.Status.LatestCreatedRevisionName = applied.Generation, "f-00001"
	applied.Status.Traffic = []v1alpha1.TrafficStatus{{RevisionName: "f-00001", Weight: 100}}
	meta.SetStatusCondition(&applied.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionRevisionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStarted})
	for context, want := range map[string]time.Duration{"": 0, "somewhere": gatewaysHear} {
		synctest.Test(t, func(t *testing.T) {
			d := deployer{reporter{&finder{home: "team", host: &host{now: time.Now}}}}
			began := time.Now()
			if _, err := d.awaitProof(t.Context(), &target{context: context}, applied, defaultReadyTime); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("in the context %q it took %v, want %v", context, took, want)
			}
		})
	}
}

func TestDeleteWaitsUntilItIsGone(t *testing.T) {
	draining := clusterFunction("team", "f", metav1.ConditionFalse, v1alpha1.ReasonDraining)
	draining.DeletionTimestamp, draining.Finalizers = &metav1.Time{Time: now}, []string{wellknown.FinalizerDrain}
	draining.Status.Instances = v1alpha1.InstanceCounts{Ready: 1, Desired: 2}
	gone := func() (*v1alpha1.Function, error) {
		return nil, &kubeclient.Error{Reason: kubeclient.ReasonNotFound, Message: "gone"}
	}
	forbidden := func() (*v1alpha1.Function, error) {
		return nil, &kubeclient.Error{Reason: kubeclient.ReasonForbidden, Message: "you may not"}
	}
	recreated := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	for name, c := range map[string]struct {
		answers   []func() (*v1alpha1.Function, error)
		told, err string
	}{
		"at once":                        {[]func() (*v1alpha1.Function, error){gone}, "", ""},
		"after a time":                   {[]func() (*v1alpha1.Function, error){is(draining), is(draining), gone}, "2 of its instances have not ended", ""},
		"though the API server restarts": {[]func() (*v1alpha1.Function, error){is(draining), restarts, gone}, "the cluster does not answer; asking again\n", ""},
		"away to the end":                {[]func() (*v1alpha1.Function, error){restarts}, "asking again", "the last question was not answered: the cluster does not answer\n"},
		"forbidden":                      {[]func() (*v1alpha1.Function, error){forbidden}, "", "you may not"},
		"made again":                     {[]func() (*v1alpha1.Function, error){is(draining), is(recreated)}, "waiting for function team/f", ""},
		"never":                          {[]func() (*v1alpha1.Function, error){is(draining)}, "waiting", "function team/f is still there after 2m0s: 2 of its instances"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told bytes.Buffer
				d := remover{&finder{home: "team", host: &host{Streams: Streams{Err: &told}}}}
				err := d.awaitGone(t.Context(), &script{answers: c.answers}, draining.Key(), defaultGoneTime)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				if !strings.Contains(told.String(), c.told) || strings.Count(told.String(), "waiting") > 1 {
					t.Errorf("it tells %q, want %q", told.String(), c.told)
				}
			})
		})
	}
}
