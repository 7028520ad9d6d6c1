package core

import (
	"strings"
	"testing"
	"time"
)

func spareParams() Params { return Params{Spare: true, Owner: "o:1", Jitter: 1} }

func assignment() Assignment {
	return Assignment{StartupTimeout: time.Minute, Concurrency: 2, BackoffAfter: 10 * time.Second, IdleTimeout: 10 * time.Minute}
}

// spare is a script of a spare instance that is welcome in session 1.
func spare(t *testing.T) *script {
	t.Helper()
	s := newScript(t, spareParams())
	s.on(RuntimeReady{}, Opened{1}, Received{1, Welcome{}}, Received{1, Pong{}})
	s.done = nil
	return s
}

func TestASpareInstanceBecomesAFunctionsOnce(t *testing.T) {
	s := newScript(t, spareParams())
	s.pass(time.Hour)
	s.expect() // its runtime is not there
	s.on(RuntimeReady{}, RuntimeReady{})
	s.expect("quiet", "dial 1 o:1")
	s.on(Opened{1}, Received{1, Welcome{}})
	s.expect("send 1 hello spare", "send 1 ping 5s")
	s.on(Received{1, Pong{}}, FunctionReady{}, Received{1, ticket('a')})
	s.expect() // it is of no function
	s.on(Received{1, assignment()})
	s.expect("loadfunction", "drop 1", "dial 2 o:1")
	s.on(Received{1, assignment()}, Opened{2})
	s.expect("send 2 hello")
	s.on(Received{2, Welcome{7}}, Received{2, assignment()}, FunctionReady{})
	s.expect("send 2 pull 2")
	s.on(Received{2, ticket('a')})
	s.expect("claim 1 of a")
	s.on(Refused{1})
	s.expect("send 2 pull 1 done a 0s")
	s.answered(2, 10*time.Second)
	s.expect("quiet")
	s.on(Lost{Session: 2})
	s.pass(minPause)
	s.expect("dial 3 any")
}

func TestASpareInstanceWaitsForAsLongAsItsSchedulerIsThere(t *testing.T) {
	s := spare(t)
	s.answered(1, 24*time.Hour)
	s.expect()
	s.pass(3*quietPingEvery + minPause)
	s.expect("send 1 ping 5s", "send 1 ping 5s", "drop 1", "dial 2 o:1")
}

func TestASpareInstanceTriesItsOwnSchedulerOnlyAndThenEnds(t *testing.T) {
	s := spare(t)
	s.on(Received{1, Moved{"o:2", 9}})
	s.pass(minPause)
	s.expect("drop 1", "dial 2 o:1")
	begun := s.now
	for !s.core.life.over && s.now.Sub(begun) < time.Hour {
		s.on(Lost{Session: s.core.link.session})
		s.pass(maxRecentPause)
	}
	if took := s.now.Sub(begun); took < spareReconnectTimeout-time.Second || took > spareReconnectTimeout+time.Second {
		t.Errorf("it tried for %v", took)
	}
	for _, done := range s.done {
		if strings.HasPrefix(done, "dial") && !strings.HasSuffix(done, "o:1") {
			t.Error(done)
		}
	}
	s.done = s.done[len(s.done)-3:]
	s.expect("draining 0: no scheduler could be reached", "drained", "end")
}

func TestASpareInstanceThatIsNotWantedGoesAtOnce(t *testing.T) {
	s := spare(t)
	s.on(Received{1, Drain{Detail: "too many"}}, Received{1, assignment()})
	s.expect("draining 0: too many", "send 1 goodbye 0", "drained", "hangup 1")
	s.on(Lost{Session: 1, Cause: CauseClosed})
	s.expect("end")

	s = spare(t)
	s.on(Stop{"told"})
	s.expect("draining 5: told", "drained", "hangup 1")

	s = spare(t)
	s.on(Lost{Session: 1, Cause: CauseUnknown, Detail: "who"})
	s.expect("draining 0: who", "drained", "end")
}

func TestASpareInstanceWhoseRuntimeFailsIsNotOffered(t *testing.T) {
	s := newScript(t, spareParams())
	s.on(FunctionFailed{Detail: "oh"})
	s.expect("draining 1: oh", "drained", "end")
}

func TestAnAssignmentThatMakesNoSenseIsAFailedStart(t *testing.T) {
	for field, change := range map[string]func(*Assignment){
		"StartupTimeout": func(a *Assignment) { a.StartupTimeout = 0 },
		"Concurrency":    func(a *Assignment) { a.Concurrency = 0 },
		"IdleTimeout":    func(a *Assignment) { a.IdleTimeout = -1 },
	} {
		a := assignment()
		change(&a)
		s := spare(t)
		s.on(Received{1, a})
		if len(s.done) == 0 || !strings.Contains(s.done[0], field) {
			t.Fatalf("%s: %q", field, s.done)
		}
		s.done = s.done[1:]
		s.expect("send 1 goodbye 1", "drained", "hangup 1")
	}
}

func TestAFunctionThatASpareInstanceCannotLoadIsAFailedStart(t *testing.T) {
	s := spare(t)
	s.on(Received{1, assignment()}, FunctionFailed{Detail: "no module"}, Opened{2})
	s.expect("loadfunction", "drop 1", "dial 2 o:1", "draining 1: no module", "drained",
		"send 2 hello", "send 2 goodbye 1", "hangup 2")
}
