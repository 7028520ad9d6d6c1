package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestExplainTellsNewcomersWhatIsAmiss(t *testing.T) {
	th := sampleFunctions(t)
	th.run(t, "explain", "fresh", "-n", "team").expect(t, exitOK, "err",
		"no decisions yet: the function has not been called since Windlass took it over at 10:00:00.0")
	th.run(t, "explain", "broken").expect(t, exitOK, "err", "no decisions yet: no change was needed", "2 calls, 0 instances",
		"instances do not start: StartFailed; see windlass describe broken")
	th.run(t, "explain", "helo").expect(t, exitPlatform, "err", "there is no function default/helo; did you mean hello?")
	th.run(t, "explain", "hello", "--last", "0").expect(t, exitUsage, "err", "--last 0: write how many")
	th.run(t, "explain", "hello", "-o", "yaml").expect(t, exitUsage, "err", "-o yaml is not known; write -o and one of table, json")
	th.run(t, "explain").expect(t, exitUsage, "err", "NAME of the function is missing")
	th.run(t, "explain", "hello", "--windlass-namespace", "x").expect(t, exitUsage, "err", "--windlass-namespace is for a cluster")
	if got := th.run(t, "explain", "hello", "--last", "1"); strings.Count(got.out, "\n") != 1 || !strings.Contains(got.out, "NoDemand") {
		t.Errorf("of the last decision is said:\n%s", got.out)
	}
	key := invocation.FunctionKey{Namespace: "default", Name: "hello"}
	account := th.accounts[key]
	account.LastCoreWait = &decisionlog.CoreWait{At: now.Add(-3 * time.Second), Instance: "00001-000007", Node: "node-2", Waited: .12}
	th.accounts[key] = account
	th.run(t, "explain", "hello").expect(t, exitOK, "err", "a call waited 120 ms for a core of node node-2 (instance 00001-000007), 3s ago\n")
	quiet(t).run(t, "explain", "x").expect(t, exitPlatform, "err", "no Windlass runs with the data folder")
}

// decisionSequence tells more every time it is asked.
type decisionSequence struct {
	accounts []decisionlog.Report
	errs     []error
	asked    int
}

func (s *decisionSequence) Decisions(context.Context, invocation.FunctionKey) (decisionlog.Report, error) {
	i := s.asked
	s.asked++
	return s.accounts[i], s.errs[i]
}

func (s *decisionSequence) Close() error { return nil }

// printerInto prints into buffers what is new, as explain -f does.
func printerInto(out, errs *bytes.Buffer, output string) *decisionPrinter {
	shown := &decisions{newApp(Streams{Out: out, Err: errs}, Programs{}).finder}
	shown.now = func() time.Time { return now }
	return &decisionPrinter{decisions: shown, e: explanation{output: output, last: 1}, shown: make(map[teller]decisionlog.ReportEntry)}
}

func TestFollowingPrintsEachDecisionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The clock of the scheduler s-1 is an hour behind.
		told := func(scheduler, revision string, numbers ...int) decisionlog.Report {
			a := decisionlog.Report{Scheduler: scheduler, Revision: revision, Revisions: 2}
			for _, n := range numbers {
				at := now.Add(time.Duration(n) * time.Second)
				if scheduler == "s-1" {
					at = at.Add(-time.Hour)
				}
				a.Decisions = append(a.Decisions, decisionlog.ReportEntry{Number: uint64(n), At: at, Times: 1, Summary: "launched 1",
					Why: fmt.Sprintf("%s %s %d", scheduler, revision, n), Launched: 1})
			}
			return a
		}
		again := told("s-1", "00007", 1)
		again.Decisions[0].At = now.Add(time.Hour)
		away, gone := errors.New("the scheduler is away"), &localapi.Error{Reason: localapi.ReasonNotFound, Message: "there is no function"}
		s := &decisionSequence{
			accounts: []decisionlog.Report{
				told("s-0", "00007", 1, 2), told("s-0", "00006", 1, 2, 3), told("s-0", "00007", 1, 2, 3), told("s-0", "00006", 1, 2, 3),
				{}, {},
				told("s-1", "00007", 1, 2), told("s-1", "00007", 1, 2, 3, 4), again,
				{},
			},
			errs: []error{nil, nil, nil, nil, away, away, nil, nil, nil, gone},
		}
		const want = `s-0 00007 2
revision 00006 of 2, by the scheduler s-0:
s-0 00006 1
s-0 00006 2
s-0 00006 3
revision 00007 of 2, by the scheduler s-0:
s-0 00007 3
revision 00007 of 2, by the scheduler s-1:
s-1 00007 1
s-1 00007 2
s-1 00007 3
s-1 00007 4
s-1 00007 1
`
		for _, output := range []string{"table", "json"} {
			var out, errs bytes.Buffer
			p := printerInto(&out, &errs, output)
			s.asked = 0
			first := told("s-0", "00007", 0, 1)
			p.subject = tellerOf(&first)
			if err := p.print(&first); err != nil {
				t.Fatal(err)
			}
			if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), "s-0 00007 1") {
				t.Errorf("of those before is printed:\n%s", out.String())
			}
			out.Reset()
			if err := p.follow(t.Context(), s, invocation.FunctionKey{}); !isNotFound(err) {
				t.Errorf("it ended with %v", err)
			}
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				if output == "json" {
					var d toldDecision
					if err := json.Unmarshal([]byte(line), &d); err != nil || !strings.HasPrefix(d.Why, d.Scheduler+" "+d.Revision+" ") {
						t.Errorf("%v: %s", err, line)
					}
					line = d.Why + "\n"
				}
				_, why, _ := strings.Cut(line, "launched 1: ")
				got.WriteString(cmp.Or(why, line))
			}
			lines := want
			if output == "json" {
				lines = regexp.MustCompile("(?m)^revision.*\n").ReplaceAllString(want, "")
			}
			if diff := gocmp.Diff(lines, got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", output, diff)
			}
			if strings.Count(errs.String(), "the scheduler is away; asking again") != 1 {
				t.Errorf("said:\n%s", errs.String())
			}
		}
	})
}

func TestExplainSaysWhichOfSeveralRevisionsItIsAbout(t *testing.T) {
	th := sampleFunctions(t)
	key := invocation.FunctionKey{Namespace: "default", Name: "hello"}
	account := th.accounts[key]
	account.Revision, account.Revisions = "00007", 2
	th.accounts[key] = account
	if got := th.run(t, "explain", "hello", "--last", "1").out; !strings.HasPrefix(got, "revision 00007 of 2:\n") || strings.Count(got, "\n") != 2 {
		t.Errorf("printed was:\n%s", got)
	}
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		s := &decisionSequence{accounts: make([]decisionlog.Report, 1), errs: make([]error, 1)}
		if err := printerInto(&bytes.Buffer{}, &bytes.Buffer{}, "table").follow(ctx, s, invocation.FunctionKey{}); err != nil || s.asked != 1 {
			t.Errorf("asked %d times, then %v", s.asked, err)
		}
	})
}

func schedulerPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "windlass", Name: name, Labels: map[string]string{
			"app.kubernetes.io/part-of": "windlass", "app.kubernetes.io/component": "scheduler"}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "scheduler", Ports: []corev1.ContainerPort{{Name: "ops", ContainerPort: 8081}}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func TestExplainAsksTheSchedulersOfACluster(t *testing.T) {
	account := decided()
	account.Served, account.Scheduler = true, "scheduler-0"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/decisions/team/web" {
			http.Error(w, "there is no function", http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(account)
	}))
	t.Cleanup(server.Close)
	s := newClusterHarness(t, schedulerPod("scheduler-0"),
		clusterFunction("team", "web", metav1.ConditionTrue, v1alpha1.ReasonAccepted),
		clusterFunction("team", "other", metav1.ConditionFalse, v1alpha1.ReasonInvalid))
	s.streams = pipes{address: strings.TrimPrefix(server.URL, "http://")}
	golden(t, "explain.txt", s.run(t, "explain", "web").out)
	s.run(t, "describe", "web").expect(t, exitOK, "out", "Last decision   11:59:04.0  no change (NoDemand)")
	s.run(t, "explain", "other").expect(t, exitPlatform, "err", "the scheduler windlass/scheduler-0 does not tell what it decided",
		"404 Not Found: there is no function", "kubectl -n windlass logs scheduler-0")
	s.run(t, "explain", "wob").expect(t, exitPlatform, "err", "there is no function team/wob; did you mean web?")

	none := newClusterHarness(t, clusterFunction("team", "web", metav1.ConditionTrue, v1alpha1.ReasonAccepted))
	none.run(t, "explain", "web", "--windlass-namespace", "w").expect(t, exitPlatform, "err", "Windlass is not installed in the namespace w")
	none.run(t, "describe", "web").expect(t, exitOK, "out", "Last decision   unknown: Windlass is not installed in any namespace")
}

func TestTimesOfOtherDaysHaveTheirDay(t *testing.T) {
	a := newApp(Streams{}, Programs{})
	a.now = func() time.Time { return now }
	for at, want := range map[time.Time]string{
		now.Add(-3 * time.Second):           "11:59:57.0",
		now.Add(-24 * time.Hour):            "2026-02-28 12:00:00",
		now.In(time.FixedZone("x", 3600*5)): "12:00:00.0",
	} {
		if got := a.clock(at); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}

// pipes lead to an address, whichever pod is dialled.
type pipes struct{ address string }

func (p pipes) DialPod(string, string) (httpstream.Connection, error) {
	return pipeConnection(p), nil
}

type pipeConnection struct{ address string }

func (p pipeConnection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	if headers.Get(corev1.StreamType) == corev1.StreamTypeError {
		quiet, other := net.Pipe()
		return pipe{quiet}, other.Close()
	}
	conn, err := net.Dial("tcp", p.address)
	return pipe{conn}, err
}
func (pipeConnection) Close() error                       { return nil }
func (pipeConnection) CloseChan() <-chan bool             { return nil }
func (pipeConnection) SetIdleTimeout(time.Duration)       {}
func (pipeConnection) RemoveStreams(...httpstream.Stream) {}

type pipe struct{ net.Conn }

func (p pipe) Reset() error       { return p.Close() }
func (pipe) Headers() http.Header { return nil }
func (pipe) Identifier() uint32   { return 0 }
