package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestWhatAFunctionWroteCannotTakeOverTheTerminal(t *testing.T) {
	const clearScreen, title = "\x1b[2J", "\x1b]0;owned\x07"
	fn := clusterFunction("team", "broken", metav1.ConditionFalse, v1alpha1.ReasonStartFailed)
	fn.Status.Conditions[0].Message = "the last log lines:\n" + clearScreen + "a\tb\r\n" + title + "c"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "broken-00000007", CreationTimestamp: metav1.NewTime(now.Add(-3 * time.Minute)),
		Labels: map[string]string{wellknown.LabelFunctionUID: string(fn.UID), wellknown.LabelCID: "00000007"}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "function",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: clearScreen + "not found"}}}}}}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: fn.UID},
		Type: "Warning", Reason: "StartFailed", Message: "instance 00000007: " + clearScreen + title, Count: 1, LastTimestamp: metav1.NewTime(now.Add(-2 * time.Minute))}
	s := newClusterHarness(t, fn, pod, event)
	golden(t, "describe-controls.txt", s.run(t, "describe", "broken").out)
	if got := s.run(t, "describe", "broken", "-o", "json").out; !strings.Contains(got, `\u001b[2Ja\tb\r\n`) {
		t.Errorf("for programs the message has changed:\n%s", got)
	}

	th := sampleFunctions(t)
	hello := invocation.FunctionKey{Namespace: "default", Name: "hello"}
	th.accounts[hello] = decisionlog.Report{Calls: 1, Problem: clearScreen, Decisions: []decisionlog.ReportEntry{{Number: 1, At: now, Summary: clearScreen, Why: title}},
		LastFailure: &decisionlog.Failure{At: now, Code: clearScreen, Detail: "one\n" + clearScreen + "two"}}
	var out, errs bytes.Buffer
	a := newApp(Streams{Out: &out, Err: &errs}, Programs{})
	a.report(&cobra.Command{}, errors.New("no: "+clearScreen+"\nsee it"))
	for what, text := range map[string]string{
		"describe": th.run(t, "describe", "hello").out, "explain": th.run(t, "explain", "hello").out, "its notes": th.run(t, "explain", "hello").err,
		"a reason": reasonOf(fn.Status.Conditions[0]), "an error": errs.String(),
	} {
		if !strings.Contains(text, "?[2J") || strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("%s: %q", what, text)
		}
	}
}
