package kubeclient

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

var storyID = invocation.NewID(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// windlassPod is a pod of a component.
func windlassPod(name, component string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "windlass", Name: name, UID: types.UID(name),
		Labels: map[string]string{"app.kubernetes.io/part-of": "windlass", labelComponent: component}}}
}

// ended is a gateway's line about the end of the call.
func ended(cid string) string {
	return fmt.Sprintf(`2026-03-01T12:00:02.0Z {"time":"2026-03-01T12:00:02Z","level":"INFO","msg":"call ended","function":"default/f","invocation":"%s",`+
		`"trace":"abc","cid":"%s","code":200,"executed":"yes","attempt":2,"cold":true,"claimed":"2026-03-01T12:00:01Z","received":"2026-03-01T12:00:00Z",`+
		`"ended":"2026-03-01T12:00:02Z","admit_ms":0.5,"queue_ms":999.5,"claim_ms":1,"execute_ms":990,"return_ms":9}`, storyID, cid)
}

// logsOf makes pods whose containers' logs are these lines.
func logsOf(lines map[string][]string) *nodes {
	return &nodes{open: func(pod string, _ int) (io.ReadCloser, error) { return text(lines[pod]...) }}
}

func TestTheStoryOfACall(t *testing.T) {
	other := strings.ReplaceAll(ended("1"), storyID.String(), invocation.ID{9}.String())
	logs := logsOf(map[string][]string{
		"gateway-1": {other},
		"gateway-2": {other, ended("1"), other},
		"scheduler": {
			`2026-03-01T12:00:00.2Z {"msg":"an instance is ready","function":"default/f","cid":"1"}`,
			`2026-03-01T12:00:00.3Z {"msg":"an instance is ready","function":"default/other","cid":"1"}`,
			`2026-03-01T13:00:00.2Z {"msg":"an instance is gone","function":"default/f","cid":"1"}`,
		},
		"f-1": {
			"2026-03-01T12:00:00.5Z of the call before", "2026-03-01T12:00:01.5Z of the call", "2026-03-01T12:00:02.1Z soon after it",
			"2026-03-01T12:00:03Z of the next one",
		},
	})
	of := podNamed("f-1", time.Hour, corev1.PodRunning)
	of.Spec.NodeName = "node-2"
	c, _ := withPods(logs, windlassPod("gateway-1", "gateway"), windlassPod("gateway-2", "gateway"), windlassPod("scheduler", "scheduler"),
		of, podNamed("f-2", time.Hour, corev1.PodRunning))
	got, err := c.LookUpCall(t.Context(), "", storyID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Node != "node-2" {
		t.Errorf("it ran on %q", got.Node)
	}
	second := func(n int) time.Time { return time.Date(2026, 3, 1, 12, 0, n, 0, time.UTC) }
	want := invocation.Record{
		ID: storyID, Function: key("default", "f"), Trace: "abc", CID: "1", Attempt: 2, Code: 200, Executed: invocation.ExecutedYes, Cold: true,
		Received: second(0), Claimed: second(1), Ended: second(2),
		Phases: []invocation.PhaseTime{
			{Phase: "admit", Took: 500 * time.Microsecond}, {Phase: "queue", Took: 999500 * time.Microsecond}, {Phase: "claim", Took: time.Millisecond},
			{Phase: "execute", Took: 990 * time.Millisecond}, {Phase: "return", Took: 9 * time.Millisecond},
		},
	}
	if diff := cmp.Diff(&want, got.Record); diff != "" {
		t.Errorf("the account (-want +got):\n%s", diff)
	}
	var lines []string
	for _, line := range got.Lines {
		lines = append(lines, line.Source+": "+line.Text)
	}
	_, told, _ := strings.Cut(ended("1"), " ")
	if diff := cmp.Diff([]string{
		"gateway-2: " + told, `scheduler: {"msg":"an instance is ready","function":"default/f","cid":"1"}`,
		"1: of the call", "1: soon after it",
	}, lines); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
	if len(got.Notes) > 0 {
		t.Errorf("notes: %v", got.Notes)
	}
}

func TestAStoryThatIsNotWholeSaysWhy(t *testing.T) {
	gateway := windlassPod("gateway", "gateway")
	for name, tt := range map[string]struct {
		pods []*corev1.Pod
		logs map[string][]string
		note string
	}{
		"no gateway":         {nil, nil, "--windlass-namespace"},
		"no line":            {[]*corev1.Pod{gateway}, nil, "gateway.logCalls=All"},
		"a line of text":     {[]*corev1.Pod{gateway}, map[string][]string{"gateway": {"2026-03-01T12:00:02.0Z level=INFO invocation=" + storyID.String()}}, "log.format=json"},
		"a pod that is gone": {[]*corev1.Pod{gateway}, map[string][]string{"gateway": {ended("7")}}, "the pod of instance 7 is gone"},
	} {
		c, _ := withPods(logsOf(tt.logs), tt.pods...)
		got, err := c.LookUpCall(t.Context(), "", storyID)
		if err != nil || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], tt.note) {
			t.Errorf("%s: %v, notes %q", name, err, got.Notes)
		}
	}
}

// One node that is gone must not hide what the others have.
func TestAStoryGoesOnWithoutPodsThatCannotBeRead(t *testing.T) {
	pods := []*corev1.Pod{windlassPod("gateway-1", "gateway"), windlassPod("gateway-2", "gateway"), windlassPod("scheduler", "scheduler"),
		podNamed("f-1", time.Hour, corev1.PodRunning)}
	lines := map[string][]string{
		"gateway-1": {}, "gateway-2": {ended("1")}, "f-1": {"2026-03-01T12:00:01.5Z of the call"},
		"scheduler": {`2026-03-01T12:00:00.2Z {"msg":"an instance is ready","function":"default/f","cid":"1"}`},
	}
	for name, tt := range map[string]struct {
		gone  []string
		fails bool
		lines int
		notes []string
	}{
		"a gateway's node":     {[]string{"gateway-1"}, false, 3, []string{"the log of gateway-1 cannot be read"}},
		"the other gateway's":  {[]string{"gateway-2"}, false, 0, []string{"the log of gateway-2 cannot be read", "the logs of 1 gateways do not tell"}},
		"both gateways' nodes": {[]string{"gateway-1", "gateway-2"}, true, 0, []string{"gateway-1", "gateway-2"}},
		"a scheduler's":        {[]string{"scheduler"}, false, 2, []string{"the log of scheduler cannot be read"}},
		"the instance's":       {[]string{"f-1"}, false, 2, []string{"the log of f-1 cannot be read"}},
		"the function":         {[]string{"f"}, false, 2, []string{"the log of instance 1 cannot be read: there is no function default/f"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, kube := withPods(&nodes{open: func(pod string, _ int) (io.ReadCloser, error) {
				if slices.Contains(tt.gone, pod) {
					return nodeGone()
				}
				return text(lines[pod]...)
			}}, pods...)
			if slices.Contains(tt.gone, "f") {
				if err := kube.Delete(t.Context(), &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "f"}}); err != nil {
					t.Fatal(err)
				}
			}
			got, err := c.LookUpCall(t.Context(), "", storyID)
			if (err != nil) != tt.fails {
				t.Errorf("the error is %v", err)
			}
			if len(got.Lines) != tt.lines {
				t.Errorf("%d lines, want %d", len(got.Lines), tt.lines)
			}
			if len(got.Notes) != len(tt.notes) {
				t.Fatalf("the notes are %q, want %q", got.Notes, tt.notes)
			}
			for i, note := range tt.notes {
				if !strings.Contains(got.Notes[i], note) {
					t.Errorf("note %q does not say %q", got.Notes[i], note)
				}
			}
		})
	}
}

// A chart value that a note advises is one that the chart takes.
func TestAdvisedValuesAreThoseOfTheChart(t *testing.T) {
	raw, err := os.ReadFile("../../charts/windlass/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Properties map[string]schema `json:"properties"`
		Enum       []any             `json:"enum"`
	}
	var chart schema
	if err := json.Unmarshal(raw, &chart); err != nil {
		t.Fatal(err)
	}
	s := callSearch{id: storyID}
	s.noteMissing(1)
	s.Lines = make([]invocation.Line, 1)
	s.noteMissing(1)
	advised := regexp.MustCompile(`([a-zA-Z.]+)=(\w+)`).FindAllStringSubmatch(strings.Join(s.Notes, " "), -1)
	if len(advised) != 2 {
		t.Errorf("values in %q: %v", s.Notes, advised)
	}
	for _, value := range advised {
		at := chart
		for name := range strings.SplitSeq(value[1], ".") {
			at = at.Properties[name]
		}
		if !slices.Contains(at.Enum, any(value[2])) {
			t.Errorf("a note advises %s, the chart takes %v", value[0], at.Enum)
		}
	}
}

func TestAStoryIsBounded(t *testing.T) {
	lines := make([]string, 0, 2*maxLines)
	for range cap(lines) {
		lines = append(lines, "2026-03-01T12:00:01.5Z again")
	}
	c, _ := withPods(logsOf(map[string][]string{"gateway": {ended("1")}, "f-1": lines}), windlassPod("gateway", "gateway"), podNamed("f-1", time.Hour, corev1.PodRunning))
	got, err := c.LookUpCall(t.Context(), "", storyID)
	if err != nil || len(got.Lines) != maxLines+1 || len(got.Notes) != 1 {
		t.Errorf("%d lines, notes %q, %v", len(got.Lines), got.Notes, err)
	}
}
