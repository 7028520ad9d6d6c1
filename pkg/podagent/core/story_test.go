package core

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// The stories in testdata tell what an agent does about what happens to it. Each line of
// a story is an event, or "pass" and how long; the answer has what was done about each.
// An "agent gateways" plays its connections to gateways, too; those of other agents open and
// close at once. A "single" one runs one call at a time, and so asks its node agent for a core.
// To write the answers again: go test -run Stories -rewrite.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		var s *script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "agent" {
				p := params()
				if d.HasArg("single") {
					p.Concurrency = 1
				}
				s = &script{t: t, core: New(p), now: time.Unix(1_000_000, 0), byHand: d.HasArg("gateways")}
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				line = strings.TrimSpace(line)
				s.play(strings.Fields(line))
				fmt.Fprintf(&out, "%s: %s\n", line, cmp.Or(strings.Join(s.done, "; "), "nothing"))
				s.done = nil
			}
			return out.String()
		})
	})
}

// audit is one that sees "session" and its number, "calls" and theirs, and, if so said, that the
// "function" has ended. It sees all connections to gateways, or those behind "gateways".
func (s *script) audit(words []string) Audit {
	t := s.t
	t.Helper()
	a := Audit{Conns: s.core.conns.numbers()}
	seeing := ""
	for _, word := range words {
		n, err := strconv.ParseUint(word, 10, 64)
		switch {
		case word == "function-down":
			a.FunctionEnd = "exit status 3"
		case err != nil:
			seeing = word
			if seeing == "gateways" {
				a.Conns = nil
			}
		case seeing == "session":
			a.Session = Session(n)
		case seeing == "calls":
			a.Calls = append(a.Calls, Attempt(n))
		case seeing == "gateways":
			a.Conns = append(a.Conns, Conn(n))
		default:
			t.Fatalf("audit %v: %s", words, word)
		}
	}
	return a
}

// play plays an event that is written in words: its name, the number of its session or
// attempt, and what else it has.
func (s *script) play(words []string) {
	s.t.Helper()
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	number, _ := strconv.ParseUint(word(1), 10, 64)
	session, attempt, conn := Session(number), Attempt(number), Conn(number)
	second, _ := strconv.Atoi(word(2))
	duration := func(i int) time.Duration {
		d, err := time.ParseDuration(word(i))
		if err != nil {
			s.t.Fatalf("%v: %v", words, err)
		}
		return d
	}
	if word(0) == "pass" {
		s.pass(duration(1))
		return
	}
	if word(0) == "audit" {
		s.on(s.audit(words[1:]))
		return
	}
	if word(0) == "answered" {
		s.answered(session, duration(2))
		return
	}
	if word(0) == "stilled" { // the node agent says that the call still waits
		for until := s.now.Add(duration(1)); s.now.Before(until); {
			s.answered(1, 100*time.Millisecond)
			s.on(NodeStill{})
		}
		s.done = slices.DeleteFunc(s.done, func(d string) bool { return strings.Contains(d, "ping") })
		return
	}
	event, known := map[string]func() Event{
		"begin":         func() Event { return Begin{} },
		"opened":        func() Event { return Opened{session} },
		"welcome":       func() Event { return Received{session, Welcome{7}} },
		"lost":          func() Event { return Lost{Session: session, Detail: "broken"} },
		"closed":        func() Event { return Lost{Session: session, Cause: CauseClosed} },
		"moved":         func() Event { return Received{session, Moved{Addr: word(2), Epoch: 8}} },
		"function-up":   func() Event { return FunctionReady{} },
		"function-down": func() Event { return FunctionEnded{"exit status 3"} },
		"ticket":        func() Event { return Received{session, ticket(word(2)[0])} },
		"leave-granted": func() Event { return Received{session, LeaveAnswer{Granted: true}} },
		"leave-refused": func() Event { return Received{session, LeaveAnswer{AskAgain: time.Minute}} },
		"drain":         func() Event { return Received{session, Drain{Detail: "changed"}} },
		"stop":          func() Event { return Stop{"told to stop"} },
		"granted":       func() Event { return Granted{attempt} },
		"refused":       func() Event { return Refused{attempt} },
		"lent":          func() Event { return Received{session, lent(word(2)[0])} },
		"recall":        func() Event { return Received{session, Recall{Gateway: "g", Calls: second, Term: duration(3)}} },
		"gateway-open":  func() Event { return ConnOpened{conn} },
		"gateway-lost":  func() Event { return ConnLost{conn} },
		"called": func() Event {
			called := Called{Conn: conn, Call: uint32(second)}
			if word(3) != "" {
				called.Remaining = duration(3)
			}
			return called
		},
		"promises":  func() Event { return NodeWelcome{duration(1)} },
		"node":      func() Event { return NodeMode{Busy: word(1) == "busy", Ask: word(1) == "busy" && word(2) != "exempt"} },
		"core":      func() Event { return NodeGranted{attempt} },
		"still":     func() Event { return NodeStill{} },
		"node-lost": func() Event { return NodeLost{} },
		"band":      func() Event { return NodeLow{word(1) == "low"} },
		"returned":  func() Event { return Returned{conn, second} },
		"cancelled": func() Event { return Cancelled{attempt} },
		"wanted":    func() Event { return GiveUp{attempt} },
		"complete":  func() Event { return CallEnded{Attempt: attempt, Outcome: Complete, Exec: 20 * time.Millisecond} },
		"broken":    func() Event { return CallEnded{Attempt: attempt, Detail: "no answer"} },
	}[word(0)]
	if !known {
		s.t.Fatalf("unknown event %q", word(0))
	}
	s.on(event())
}
