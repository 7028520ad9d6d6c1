package core

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// welcome lets the session stand for as long as it takes to forget what was before.
func (s *script) welcome(n Session, epoch uint64) {
	s.t.Helper()
	s.on(Opened{n}, Received{n, Welcome{epoch}})
	s.answered(n, steadyAfter)
	s.done = nil
}

func withOwner() Params {
	p := params()
	p.Owner = "o:1"
	return p
}

func TestOwnerThatRefusesIsGivenUpAtOnce(t *testing.T) {
	s := newScript(t, withOwner())
	s.expect("dial 1 o:1")
	s.on(Lost{Session: 1})
	s.pass(minPause)
	s.expect("dial 2 any")
}

func TestOwnerThatDoesNotAnswerTheDialIsGivenUpAfterASecond(t *testing.T) {
	s := newScript(t, withOwner())
	s.pass(dialTimeout - 1)
	s.expect("dial 1 o:1")
	s.pass(1 + minPause)
	s.expect("drop 1", "dial 2 any")
	s.on(Opened{1}) // too late
	s.expect()
}

func TestBrokenSessionIsReplacedAtOnceAndAnyMayName(t *testing.T) {
	s := newScript(t, withOwner())
	s.welcome(1, 7)
	s.on(Lost{Session: 1})
	s.pass(minPause)
	s.expect("dial 2 any")
	s.on(Opened{2}, Received{2, Moved{"o:2", 8}})
	s.expect("send 2 hello", "drop 2", "dial 3 o:2")
	s.on(Opened{3})
	s.expect("send 3 hello")
	s.on(Received{2, Moved{"o:3", 9}}, Lost{Session: 2}, Opened{2}) // of a session that is over
	s.expect()
}

func TestOwnerThatRefusesIsNotTriedAgainAtOnce(t *testing.T) {
	s := newScript(t, withOwner())
	s.on(Lost{Session: 1})
	s.pass(minPause)
	s.on(Opened{2})
	s.done = nil
	s.on(Received{2, Moved{"o:1", 0}})
	s.pass(2 * minPause)
	s.expect("drop 2", "dial 3 any")
}

func TestOwnerWhoseStreamBrokeIsTriedAgainAtOnce(t *testing.T) {
	s := newScript(t, withOwner())
	s.welcome(1, 5)
	s.on(Lost{Session: 1})
	s.pass(minPause)
	s.on(Opened{2})
	s.done = nil
	s.on(Received{2, Moved{"o:1", 5}})
	s.expect("drop 2", "dial 3 o:1")
}

func TestNewSchedulerIsAskedAgainWhatTheLastDidNotAnswer(t *testing.T) {
	s := ready(t, params())
	s.answered(1, 10*time.Minute+10*time.Second)
	s.expect("quiet", "send 1 leave? 10m10s")
	s.on(Lost{Session: 1})
	s.pass(minPause)
	s.on(Opened{2})
	s.expect("dial 2 any", "send 2 hello", "send 2 pull 2", "send 2 leave? 10m10.01s")
}

func TestSilentSchedulerIsLeftAfterThreeHeartbeats(t *testing.T) {
	s := ready(t, params())
	s.pass(3*pingEvery - 1)
	s.expect("send 1 ping 500ms", "send 1 ping 500ms")
	s.pass(1 + minPause)
	s.expect("drop 1", "dial 2 any")
}

// Each change of band announces another interval. Its ping is no heartbeat: several within a moment are no silence.
func TestChangesOfBandAreNoUnansweredHeartbeats(t *testing.T) {
	s := ready(t, params())
	for _, low := range []bool{true, false, true, false} {
		s.on(NodeLow{low})
	}
	s.expect("send 1 ping 5s", "send 1 ping 500ms", "send 1 ping 5s", "send 1 ping 500ms")
	s.pass(3*pingEvery - 1)
	s.expect("send 1 ping 500ms", "send 1 ping 500ms")
	s.pass(1 + minPause)
	s.expect("drop 1", "dial 2 any")
}

func TestSilentSchedulerIsLeftHoweverOftenTheBandChanges(t *testing.T) {
	s := ready(t, params())
	for range 30 {
		s.on(NodeLow{true})
		s.pass(50 * time.Millisecond)
		s.on(NodeLow{false})
		s.pass(50 * time.Millisecond)
	}
	if !slices.Contains(s.done, "drop 1") {
		t.Error("a scheduler that was silent for 3 s was not left")
	}
}

func TestWhatTheAgentSaysIsNoSignOfTheScheduler(t *testing.T) {
	s := ready(t, params())
	s.on(Received{1, ticket('a')}, Granted{1}, Received{1, ticket('b')}, Granted{2})
	s.pass(400 * time.Millisecond)
	s.on(CallEnded{Attempt: 1, Outcome: Complete})
	s.pass(900 * time.Millisecond)
	s.on(CallEnded{Attempt: 2, Outcome: Complete})
	s.done = nil
	s.pass(200*time.Millisecond + minPause)
	s.expect("drop 1", "dial 2 any")
}

func TestAgentThatIsBusyPingsOnlyToReport(t *testing.T) {
	s := ready(t, params())
	for n := Attempt(1); n <= 120; n++ {
		s.on(Received{1, ticket('a')}, Granted{n})
		s.pass(100 * time.Millisecond)
		s.on(CallEnded{Attempt: n, Outcome: Complete})
	}
	s.done = slices.DeleteFunc(s.done, func(d string) bool { return !strings.Contains(d, "ping") })
	s.expect("send 1 ping 500ms", "send 1 ping 500ms") // in 12 s
}

func TestAgentThatOnlyListensStillTellsThatItIsThere(t *testing.T) {
	p := params()
	p.Concurrency = 100
	s := ready(t, p)
	pings := 0
	for range 50 {
		s.on(Received{1, ticket('a')})
		s.on(Granted{s.core.calls.last})
		s.pass(100 * time.Millisecond)
	}
	for _, d := range s.done {
		if strings.Contains(d, "ping") {
			pings++
		}
	}
	if pings < 8 || pings > 10 {
		t.Errorf("%d pings in 5 s", pings)
	}
}

func TestQuietAgentPingsLessOften(t *testing.T) {
	s := ready(t, params())
	s.answered(1, 10*time.Second)
	s.on(Received{1, Pong{}})
	s.done = nil
	s.pass(3 * quietPingEvery)
	s.expect("send 1 ping 5s", "send 1 ping 5s", "drop 1")
}

func TestHelloThatIsNotAnsweredIsWaitedForLongerEachTime(t *testing.T) {
	s := newScript(t, params())
	s.on(Opened{1})
	s.pass(helloTimeout + minPause)
	s.expect("dial 1 any", "send 1 hello", "drop 1", "dial 2 any")
	s.on(Opened{2})
	s.pass(2*helloTimeout - 1)
	s.expect("send 2 hello")
	s.on(Received{2, Welcome{1}})
	s.answered(2, time.Minute)
	s.on(Lost{Session: 2})
	s.pass(minPause)
	s.on(Opened{3})
	s.pass(helloTimeout)
	s.expect("dial 3 any", "send 3 hello", "drop 3")
}

func TestSchedulersThatNameEachOtherAreNotBelievedForEver(t *testing.T) {
	s := newScript(t, params())
	dials := 0
	for begun := s.now; s.now.Sub(begun) < 10*time.Second; {
		for _, d := range s.done {
			if strings.HasPrefix(d, "dial") {
				dials++
			}
		}
		s.done = nil
		n := s.core.link.session
		if s.core.link.phase == linkDialing {
			addr := "o:1"
			if s.core.link.addr == addr {
				addr = "o:2"
			}
			s.on(Opened{n}, Received{n, Welcome{3}}, Received{n, Moved{addr, 3}})
			continue
		}
		s.pass(10 * time.Millisecond)
	}
	if dials < 60 || dials > 150 { // three in each of the pauses, which grow to 250 ms
		t.Errorf("dialled %d times in 10 s", dials)
	}
}

func TestMovedIsFollowedTwice(t *testing.T) {
	s := newScript(t, params())
	s.on(Opened{1}, Received{1, Moved{"o:1", 1}}, Opened{2}, Received{2, Moved{"o:2", 2}}, Opened{3})
	s.done = nil
	s.on(Received{3, Moved{"o:3", 3}})
	s.expect("drop 3")
	s.pass(minPause)
	s.expect("dial 4 any")
}

func TestOwnerThatIsGoneIsTriedAgainOnlyAnewOrLater(t *testing.T) {
	at := func(epoch uint64, later time.Duration) []string {
		s := newScript(t, withOwner())
		s.welcome(1, 5)
		s.pass(4*pingEvery + minPause) // it fell silent
		s.on(Opened{2})
		s.pass(later)
		s.done = nil
		s.on(Received{2, Moved{"o:1", epoch}})
		return s.done
	}
	stay, follow := "drop 2", "drop 2,dial 3 o:1"
	for name, tc := range map[string]struct{ got, want string }{
		"earlier epoch": {strings.Join(at(4, 0), ","), stay},
		"same epoch":    {strings.Join(at(5, 0), ","), stay},
		"later epoch":   {strings.Join(at(6, 0), ","), follow},
		"same, later":   {strings.Join(at(5, avoidFor), ","), follow},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", name, tc.got, tc.want)
		}
	}
}

func TestSchedulerThatCannotBeReachedIsGivenUp(t *testing.T) {
	s := ready(t, params())
	begun := s.now
	s.on(Lost{Session: 1})
	for !s.core.life.over {
		s.pass(maxPause)
		if s.now.Sub(begun) > time.Hour {
			t.Fatal("it tries for ever")
		}
	}
	last := s.done[len(s.done)-3:]
	if got := strings.Join(last, ","); got != "draining 0: no scheduler could be reached,drained,end" {
		t.Error(got)
	}
	if took, want := s.now.Sub(begun), 10*time.Minute+10*time.Second; took < want || took > want+maxPause {
		t.Errorf("took %v", took)
	}
}
