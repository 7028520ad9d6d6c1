package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// said plays events and returns the last message of a kind that they led to.
func said[M Message](s *script, events ...Event) M {
	s.t.Helper()
	var last M
	found := false
	for _, e := range events {
		for _, effect := range s.core.Step(s.now, e) {
			if send, ok := effect.(Send); ok {
				if m, ok := send.Message.(M); ok {
					last, found = m, true
				}
			}
		}
	}
	if !found {
		s.t.Fatalf("no %T was said", last)
	}
	return last
}

func TestReportCountsWhatHappened(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Granted{1}, CallEnded{Attempt: 1, Outcome: Complete})
	s.on(Received{1, ticket('b')}, Refused{2})
	s.on(Received{1, lent('c')}, Granted{3}, CallEnded{Attempt: 3, Outcome: Complete}) // stays with its gateway
	s.on(Called{Conn: 1, Call: 2}, CallEnded{Attempt: 4, Outcome: Complete})
	s.on(Lost{Session: 1})
	s.pass(minPause)
	s.on(Opened{2}, Received{2, Welcome{7}})
	s.now = s.now.Add(pingEvery)
	if diff := cmp.Diff(Report{Calls: 3, ClaimsRefused: 1, Reconnects: 1}, said[Ping](s, Wake{}).Report); diff != "" {
		t.Errorf("while it waits (-want +got):\n%s", diff)
	}
	s.now = s.now.Add(params().BackoffAfter)
	if diff := cmp.Diff(Report{Calls: 3, ClaimsRefused: 1, Reconnects: 1, BackedOff: true}, said[Ping](s, Received{2, Pong{}}).Report); diff != "" {
		t.Errorf("having gone quiet (-want +got):\n%s", diff)
	}
	s.on(Received{2, ticket('d')}, Granted{5}, Received{2, ticket('e')}, Granted{6})
	s.on(CallEnded{Attempt: 5, Outcome: NotStarted}, CallEnded{Attempt: 6, Outcome: Broken})
	if diff := cmp.Diff(Report{Calls: 4, Broken: 1, ClaimsRefused: 1, Reconnects: 1}, s.core.report()); diff != "" {
		t.Errorf("after a call that broke (-want +got):\n%s", diff)
	}
}

func TestHelloTellsHowTheInstanceCameIntoBeing(t *testing.T) {
	s := newScript(t, params())
	s.pass(300 * time.Millisecond)
	if got, want := said[Hello](s, Opened{1}), (Hello{Age: 300 * time.Millisecond}); got != want {
		t.Errorf("before the function is ready: %+v, want %+v", got, want)
	}
	s.on(Received{1, Moved{"o:1", 1}})
	s.now = s.now.Add(100 * time.Millisecond)
	s.on(FunctionReady{})
	s.now = s.now.Add(50 * time.Millisecond)
	if got, want := said[Hello](s, Opened{2}), (Hello{Age: 450 * time.Millisecond, ReadyAfter: 400 * time.Millisecond}); got != want {
		t.Errorf("to the owner: %+v, want %+v", got, want)
	}
	s.on(Received{2, Welcome{1}}, Lost{Session: 2})
	s.pass(minPause)
	if got := said[Hello](s, Opened{3}); got != (Hello{}) {
		t.Errorf("to the next one: %+v", got)
	}
}

// What a spare instance did before it was assigned is not the function's.
func TestSpareInstanceBeginsAnewWhenItIsAssigned(t *testing.T) {
	s := newScript(t, spareParams())
	s.pass(time.Minute)
	s.on(RuntimeReady{})
	if got, want := said[Hello](s, Opened{1}), (Hello{Spare: true, Age: time.Minute}); got != want {
		t.Errorf("as a spare instance: %+v, want %+v", got, want)
	}
	s.on(Received{1, Welcome{1}})
	s.pass(time.Second)
	s.on(Received{1, assignment()})
	s.now = s.now.Add(20 * time.Millisecond)
	if got, want := said[Hello](s, Opened{2}), (Hello{Age: 20 * time.Millisecond}); got != want {
		t.Errorf("as the function's: %+v, want %+v", got, want)
	}
	if got := s.core.report(); got != (Report{}) {
		t.Errorf("it reports %+v", got)
	}
}
