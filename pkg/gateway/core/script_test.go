package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// The stories in testdata/stories tell what follows from what. Each line is an event, which
// "at" puts at a time after the admission; the answer says what was decided, and at last
// where the invocation is. To rewrite the answers: go test -run Stories -rewrite.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		var s story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "call" {
				s = newStory(d)
			}
			return s.tell(t, d.Input)
		})
	})
}

// story is one invocation and the time.
type story struct {
	v   *Invocation
	now time.Time
}

// newStory admits an invocation; "idempotent" and "cancel" are what its function says.
func newStory(d *datadriven.TestData) story {
	s := spec()
	s.MayRepeat, s.CancelOnDisconnect = d.HasArg("idempotent"), d.HasArg("cancel")
	return story{New(s), start}
}

func (s *story) tell(t *testing.T, events string) string {
	var out strings.Builder
	for line := range strings.Lines(events) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "at" {
			after, err := time.ParseDuration(words[1])
			if err != nil {
				t.Fatal(err)
			}
			s.now, words = start.Add(after), words[2:]
		}
		fmt.Fprintf(&out, "%s: %s\n", words[0], s.play(t, words))
	}
	fmt.Fprintf(&out, "%s, %s\n", phaseNames[s.v.Phase()], answerNames[s.v.Answer()])
	return out.String()
}

var (
	phaseNames  = [...]string{"admitted", "queued", "claimed", "ended"}
	answerNames = [...]string{"no answer", "an answer has begun", "answered", "cut off", "unheard"}
)

var causeNames = map[Cause]string{
	CauseLate: "nobody took it", CauseTimedOut: "it ran for too long", CauseDeleted: "its function is gone", CauseLost: "its instance is silent",
}

// play carries out one event and says what was decided.
func (s *story) play(t *testing.T, words []string) string {
	v, now, n := s.v, s.now, s.v.current.number
	has := func(word string) bool { return strings.Contains(strings.Join(words[1:], " "), word) }
	token := func() invocation.Token { return invocation.Token{words[len(words)-1][0]} }
	switch words[0] {
	case "queue":
		return said(v.Queue(token(), now), nil)
	case "ask":
		return s.sent(v.Ask(now))
	case "not-queued":
		v.NotQueued(has("admitted"))
		return "noted"
	case "audit":
		return s.sent(v.Audit(now, Observed{Deleted: has("deleted"), Moved: has("moved"), Ended: has("silent")}, token()))
	case "move":
		return said(v.Move(token(), time.Minute, now), nil)
	case "refuse":
		return said(v.Refuse(), nil)
	case "queue-time-up":
		return said(v.QueueTimeout(now), nil)
	case "claim":
		return granted(v.Claim(now, token(), "a"))
	case "loan":
		return granted(v.ClaimByLoan(now))
	case "begin":
		d, err := v.Begin(n, has("whole"))
		if err == nil {
			return "pass it on to the client; " + said(d, nil)
		}
		return said(d, err)
	case "finish":
		d, err := v.Finish(n)
		return said(d, err)
	case "wrote":
		d := v.Wrote(has("whole"))
		if d == (Decision{}) {
			return "noted"
		}
		return said(d, nil)
	case "release":
		d, err := v.Release(n, now, token(), !has("body-gone"))
		return said(d, err)
	case "give-up":
		d, err := v.GiveUp(n, now, token())
		return said(d, err)
	case "lose":
		d, err := v.Lose(n, now, token(), "InstanceLost")
		return said(d, err)
	case "fail":
		return said(v.Fail(n), nil)
	case "run-time-up":
		return said(v.RunTimeout(n, now), nil)
	case "client-left":
		return said(v.ClientLeft(), nil)
	case "client-left-early":
		return said(v.ClientLeftEarly(), nil)
	case "abort":
		return said(v.Abort(has("stop")), nil)
	}
	t.Fatalf("unknown event %q", words[0])
	return ""
}

// sent is a decision in words. If that is to offer the ticket, a scheduler gets it.
func (s *story) sent(d Decision) string {
	if d.Offer {
		s.v.TicketSent()
	}
	return said(d, nil)
}

// granted is the answer to a claim in words.
func granted(g Grant, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case g.CancelTicket:
		return fmt.Sprintf("granted as attempt %d; cancel its other tickets", g.Attempt)
	}
	return fmt.Sprintf("granted as attempt %d", g.Attempt)
}

// said is a decision in words.
func said(d Decision, err error) string {
	var words []string
	add := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(err != nil, "%v", err)
	add(d.Wait, "let it wait")
	add(d.Offer, "offer its ticket")
	add(d.CancelTicket, "cancel its ticket")
	add(d.Fail, "answer with a problem, executed %s", d.Failure.Executed)
	add((d.Fail || d.Cut) && d.Failure.Cause != CauseGiven, "because %s", causeNames[d.Failure.Cause])
	add(d.Failure.Lost != "", "after %s", d.Failure.Lost)
	add(d.Cut, "cut the answer")
	add(d.Cancel, "stop the instance")
	add(d.GiveUp, "ask for it if it waits for a core")
	add(d.End, "forget it")
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, "; ")
}
