//go:build apiserver

package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// classOf waits until the function's condition SchedulingClass is "Status/Reason", or absent for "",
// for the present generation.
func (w *harness) classOf(f *v1alpha1.Function, want string) {
	w.t.Helper()
	eventually(w.t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(f), f); err != nil {
			return err
		}
		c, got := findCondition(f.Status.Conditions, v1alpha1.ConditionSchedulingClass), ""
		if c.Type != "" {
			got = string(c.Status) + "/" + c.Reason
		}
		if got != want || f.Status.ObservedGeneration != f.Generation {
			return fmt.Errorf("SchedulingClass of generation %d of %d is %q, want %q (%s)", f.Status.ObservedGeneration, f.Generation, got, want, c.Message)
		}
		return nil
	})
}

func scheduled(s v1alpha1.Scheduling) v1alpha1.FunctionSpec {
	return v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b", Scheduling: s}}
}

func TestTheConditionSaysWhatBecomesOfAClass(t *testing.T) {
	latencyCritical, batch := v1alpha1.Scheduling{Class: v1alpha1.ClassLatencyCritical}, v1alpha1.Scheduling{Class: v1alpha1.ClassBatch}
	slice := v1alpha1.Scheduling{Slice: v1alpha1.Duration{Duration: 50 * time.Millisecond}}
	for name, c := range map[string]struct {
		nodeAgents bool
		allowed    []string
		of         map[string]v1alpha1.Scheduling
		want       map[string]string
	}{
		"without node agents": {false, []string{wellknown.AllNamespaces},
			map[string]v1alpha1.Scheduling{"a": latencyCritical, "b": batch, "c": slice, "d": {}},
			map[string]string{"a": "False/NodeSchedulingOff", "b": "False/NodeSchedulingOff", "c": "False/NodeSchedulingOff", "d": ""}},
		"with node agents": {true, nil,
			map[string]v1alpha1.Scheduling{"a": latencyCritical, "b": batch, "c": slice, "d": {}},
			map[string]string{"a": "False/NotPermitted", "b": "", "c": "", "d": ""}},
		"with a permit": {true, []string{wellknown.AllNamespaces},
			map[string]v1alpha1.Scheduling{"a": latencyCritical, "b": batch}, map[string]string{"a": "True/Permitted", "b": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, func(config *Config, _ *Deps) { config.NodeAgents, config.LatencyCritical = c.nodeAgents, c.allowed })
			for function, asks := range c.of {
				f := w.makeFunction(function, scheduled(asks))
				w.tells(f, nil)
				w.ready(f, "True/Started")
				w.classOf(f, c.want[function])
				if said := findCondition(f.Status.Conditions, v1alpha1.ConditionSchedulingClass); said.Status == metav1.ConditionFalse {
					w.event(f, corev1.EventTypeWarning, said.Reason)
				}
			}
			// Without a class there is nothing to say any more.
			f := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
			eventually(t, func(ctx context.Context) error {
				if err := w.Get(ctx, client.ObjectKeyFromObject(f), f); err != nil {
					return err
				}
				f.Spec.Template.Scheduling = v1alpha1.Scheduling{}
				return w.Update(ctx, f)
			})
			w.tells(f, nil)
			w.classOf(f, "")
		})
	}
}
