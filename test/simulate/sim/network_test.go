package sim

import (
	"slices"
	"testing"
	"time"
)

// recorder is a program that takes what it is sent.
type recorder struct {
	took   []any
	ended  []closing
	opens  int
	refuse bool
}

func (r *recorder) boot()              {}
func (r *recorder) audit() Rule        { return "" }
func (r *recorder) opened()            { r.opens++ }
func (r *recorder) take(m any)         { r.took = append(r.took, m) }
func (r *recorder) closed(how closing) { r.ended = append(r.ended, how) }

func (r *recorder) accept(*stream, any) sink {
	if r.refuse {
		return nil
	}
	return r
}

// pair is two nodes and a stream between them.
func pair(t *testing.T) (w *World, from, to *node, a, b *recorder, s *stream) {
	t.Helper()
	w = newWorld(Default(1), nil)
	a, b = &recorder{}, &recorder{}
	from, to = w.newNode("a", 0, 1), w.newNode("b", 0, 2)
	from.start(a)
	to.start(b)
	s = from.dial(to, "hello", a)
	w.until(time.Second)
	if a.opens != 1 {
		t.Fatalf("the stream was opened %d times", a.opens)
	}
	return w, from, to, a, b, s
}

func TestMessagesArriveInOrderAndOnce(t *testing.T) {
	w, from, _, _, b, s := pair(t)
	w.net.slow[1][2], w.net.lossy[1][2] = 300*time.Millisecond, 0.5
	var sent []any
	for i := range 200 {
		s.send(from, i)
		sent = append(sent, i)
	}
	w.until(time.Hour)
	if !slices.Equal(b.took, sent) {
		t.Errorf("of 200 messages %d arrived: %v", len(b.took), b.took)
	}
}

func TestAPartitionHoldsBackAndHealingDelivers(t *testing.T) {
	w, from, to, a, b, s := pair(t)
	w.net.block(1, 2)
	s.send(from, 1)
	s.send(to, 2)
	w.until(2 * time.Second)
	if len(b.took) != 0 || len(a.took) != 1 {
		t.Errorf("cut one way, %v went there and %v came back", b.took, a.took)
	}
	w.net.unblock(1, 2)
	s.send(from, 3)
	w.until(4 * time.Second)
	if !slices.Equal(b.took, []any{1, 3}) {
		t.Errorf("after healing %v arrived", b.took)
	}
}

func TestTheOtherSideHearsOfADeath(t *testing.T) {
	w, _, to, a, _, _ := pair(t)
	to.kill(false)
	w.until(2 * time.Second)
	if !slices.Equal(a.ended, []closing{reset}) {
		t.Errorf("after a kill: %v", a.ended)
	}
}

func TestOfAMachineThatIsOffNothingIsHeardForLong(t *testing.T) {
	w, from, to, a, _, s := pair(t)
	to.kill(true)
	s.send(from, 1)
	w.until(5 * time.Second)
	if len(a.ended) != 0 {
		t.Errorf("too early: %v", a.ended)
	}
	w.until(2 * keepAlive)
	if !slices.Equal(a.ended, []closing{reset}) {
		t.Errorf("in the end: %v", a.ended)
	}
}

func TestNobodyListensWhereAProcessIsDown(t *testing.T) {
	w, from, to, _, _, _ := pair(t)
	to.kill(false)
	again := &recorder{}
	from.dial(to, "hello", again)
	w.until(3 * time.Second)
	if !slices.Equal(again.ended, []closing{refused}) || again.opens != 0 {
		t.Errorf("opened %d times, ended %v", again.opens, again.ended)
	}
}

func TestAProcessThatStandsStillTakesAllWhenItGoesOn(t *testing.T) {
	w, from, to, _, b, s := pair(t)
	timer := false
	to.after(time.Second, func() { timer = true })
	to.pause()
	s.send(from, 1)
	w.until(10 * time.Second)
	if len(b.took) != 0 || timer {
		t.Errorf("a process that stands still took %v, timer %v", b.took, timer)
	}
	to.resume()
	if !slices.Equal(b.took, []any{1}) || !timer {
		t.Errorf("going on it took %v, timer %v", b.took, timer)
	}
}

func TestATimerOfADeadProcessDoesNothing(t *testing.T) {
	w, _, to, _, _, _ := pair(t)
	to.after(time.Second, func() { t.Error("it went off") })
	to.kill(false)
	to.start(&recorder{})
	w.until(time.Minute)
}

func TestClocksOfOneWorldDiffer(t *testing.T) {
	slow := clock{rate: 0.5, shown: start, since: time.Second}
	if got := slow.read(3 * time.Second); !got.Equal(start.Add(time.Second)) {
		t.Errorf("after two seconds it shows %v more", got.Sub(start))
	}
	if got := slow.span(time.Second); got < 2*time.Second || got > 2*time.Second+2 {
		t.Errorf("a second on it takes %v", got)
	}
}

func TestEventsHappenInTheirOrder(t *testing.T) {
	w := newWorld(Default(3), nil)
	var got []time.Duration
	for range 500 {
		w.at(w.between(0, time.Minute), func() { got = append(got, w.now) })
	}
	var ties []int
	for i := range 10 {
		w.at(time.Minute, func() { ties = append(ties, i) })
	}
	w.until(time.Hour)
	if len(got) != 500 || !slices.IsSorted(got) || !slices.IsSorted(ties) {
		t.Errorf("%d events, in order %v, those of one time in order %v", len(got), slices.IsSorted(got), slices.IsSorted(ties))
	}
}
