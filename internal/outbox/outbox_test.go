package outbox

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// sent notes what an outbox sends. Its lock shows the race detector that one goroutine sends at a time: it
// is only tried.
type sent struct {
	t        *testing.T
	alone    sync.Mutex
	messages []int
	failAt   int
}

var errBroken = errors.New("the stream is broken")

func (s *sent) send(m int) error {
	if !s.alone.TryLock() {
		s.t.Error("two goroutines send at a time")
		return nil
	}
	defer s.alone.Unlock()
	s.messages = append(s.messages, m)
	if m == s.failAt {
		return errBroken
	}
	return nil
}

func put(t *testing.T, o *Outbox[int], messages ...int) {
	t.Helper()
	for _, m := range messages {
		if !o.Put(m) {
			t.Fatalf("there is no room for %d", m)
		}
	}
}

func TestMessagesWaitForOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, s := New[int](3), sent{t: t}
		put(t, o, 1, 2, 3)
		if o.Put(4) {
			t.Error("a fourth message has room among three")
		}
		synctest.Wait()
		if len(s.messages) > 0 {
			t.Fatalf("%v was sent before SendBy", s.messages)
		}
		o.SendBy(s.send)
		synctest.Wait()
		put(t, o, 5)
		synctest.Wait() // nor does a goroutine remain: the bubble would not end
		if want := []int{1, 2, 3, 5}; !slices.Equal(s.messages, want) {
			t.Errorf("%v was sent, want %v", s.messages, want)
		}
	})
}

func TestNothingIsSentAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, s := New[int](3), sent{t: t, failAt: 2}
		o.SendBy(s.send)
		put(t, o, 1, 2, 3)
		synctest.Wait()
		put(t, o, 4)
		synctest.Wait()
		if want := []int{1, 2}; !slices.Equal(s.messages, want) {
			t.Errorf("%v was sent, want %v", s.messages, want)
		}
	})
}

func TestWhatIsPutMeanwhileIsSentByRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, s := New[int](3), sent{t: t}
		o.SendBy(s.send)
		synctest.Wait()
		if !o.Hold() {
			t.Fatal("an idle outbox cannot be held")
		}
		put(t, o, 1, 2)
		synctest.Wait()
		if len(s.messages) > 0 || o.Hold() {
			t.Fatalf("while it is held, %v was sent, or another one holds it", s.messages)
		}
		o.Release()
		if want := []int{1, 2}; !slices.Equal(s.messages, want) {
			t.Errorf("Release has sent %v, want %v", s.messages, want)
		}
		put(t, o, 3)
		synctest.Wait()
		if want := []int{1, 2, 3}; !slices.Equal(s.messages, want) || !o.Hold() {
			t.Errorf("%v was sent afterwards, want %v", s.messages, want)
		}
	})
}

// Goroutines that put at any moment, also while the last message is being sent.
func TestEachMessageIsSentOnceInItsPutterOrder(t *testing.T) {
	const putters, each = 8, 2000
	synctest.Test(t, func(t *testing.T) {
		o, s := New[int](putters*each), sent{t: t}
		o.SendBy(s.send)
		var all sync.WaitGroup
		for p := range putters {
			all.Go(func() {
				for n := range each {
					held := n%3 == 0 && o.Hold()
					if !o.Put(1 + p*each + n) {
						t.Error("there is no room")
					}
					if held {
						o.Release()
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if len(s.messages) != putters*each {
			t.Errorf("%d messages were sent, want %d", len(s.messages), putters*each)
		}
		last := make(map[int]int)
		for _, m := range s.messages {
			if p := (m - 1) / each; m <= last[p] {
				t.Fatalf("%d was sent after %d", m, last[p])
			} else {
				last[p] = m
			}
		}
	})
}
