package lambda

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// given is a machine that has handed out the call "a".
func given(t *testing.T, concurrency int) *machine {
	t.Helper()
	m := newMachine(concurrency)
	if err := m.submit("a"); err != nil {
		t.Fatal(err)
	}
	if _, no := m.parkPoll(1); no != nil {
		t.Fatal(no)
	}
	if poll, id, ok := m.match(); !ok || poll != 1 || id != "a" {
		t.Fatalf("matched %d with %q, want 1 with a", poll, id)
	}
	return m
}

func wantRefusal(t *testing.T, got, want *refusal) {
	t.Helper()
	if got != want {
		t.Errorf("refusal %+v, want %+v", got, want)
	}
}

func TestAnswersToACall(t *testing.T) {
	for _, tc := range []struct {
		name    string
		do      func(m *machine)
		id      string
		discard bool
		no      *refusal
	}{
		{"that runs", func(m *machine) { m.sent("a") }, "a", false, nil},
		{"that the client has before the server knows", func(*machine) {}, "a", false, nil},
		{"that never was", func(*machine) {}, "b", false, &refusedID},
		{"that was not handed out", func(m *machine) { m.abandonCall("a", false); _ = m.submit("b") }, "b", false, &refusedID},
		{"that is being answered", func(m *machine) { _, _ = m.answer("a") }, "a", false, &refusedState},
		{"that was answered", func(m *machine) { _, _ = m.answer("a"); _, _ = m.finishAnswer("a") }, "a", false, &refusedState},
		{"that was given up", func(m *machine) { m.abandonCall("a", false) }, "a", true, nil},
		{"that was given up and answered", func(m *machine) { m.abandonCall("a", false); _, _ = m.answer("a") }, "a", false, &refusedState},
		{"that ran out of time", func(m *machine) { m.sent("a"); m.abandonCall("a", true) }, "a", false, &refusedID},
		{"whose connection broke", func(m *machine) { m.lost("a") }, "a", false, &refusedID},
		{"that went back to the queue", func(m *machine) { m.unsent("a") }, "a", false, &refusedID},
		{"that the client finished by asking for the next", func(m *machine) { _, _ = m.parkPoll(2) }, "a", false, &refusedID},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := given(t, 1)
			tc.do(m)
			discard, no := m.answer(tc.id)
			wantRefusal(t, no, tc.no)
			if discard != tc.discard {
				t.Errorf("discard %t, want %t", discard, tc.discard)
			}
		})
	}
}

func TestACallIsWrittenWhileTheClientAsksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		written func(m *machine) (unanswered bool)
		want    bool // the call has ended without an answer
		next    string
	}{
		"to a connection that was given up": {func(m *machine) bool { m.unsent("a"); return false }, false, "a"},
		"to the client, which wants more":   {func(m *machine) bool { return m.sent("a") }, true, "b"},
		"in part":                           {func(m *machine) bool { return m.lost("a") }, true, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			m := given(t, 1)
			if ended, no := m.parkPoll(2); len(ended) > 0 || no != nil {
				t.Fatalf("calls %v have ended, refusal %v", ended, no)
			}
			if got := tc.written(m); got != tc.want {
				t.Errorf("ended is %t, want %t", got, tc.want)
			}
			_ = m.submit("b") // refused for as long as a is here
			if poll, id, ok := m.match(); !ok || poll != 2 || id != tc.next {
				t.Errorf("matched %d with %q, want 2 with %s", poll, id, tc.next)
			}
		})
	}
}

func TestAnswerWhoseCallEndsMeanwhile(t *testing.T) {
	for _, tc := range []struct {
		name      string
		outOfTime bool
		no        *refusal
	}{
		{"given up", false, nil},
		{"out of time", true, &refusedID},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := given(t, 1)
			_, _ = m.answer("a")
			if !m.abandonCall("a", tc.outOfTime) {
				t.Error("said that the function did not see the call")
			}
			discard, no := m.finishAnswer("a")
			wantRefusal(t, no, tc.no)
			if !discard {
				t.Error("the answer is wanted, though nobody waits for it")
			}
		})
	}
}

func TestNextWithoutAnAnswer(t *testing.T) {
	t.Run("finishes the call of a client that does one at a time", func(t *testing.T) {
		m := given(t, 1)
		m.sent("a")
		if ids, _ := m.parkPoll(2); !slices.Equal(ids, []string{"a"}) {
			t.Errorf("unanswered %v, want [a]", ids)
		}
	})
	t.Run("says nothing of a client that does several", func(t *testing.T) {
		m := given(t, 2)
		if ids, _ := m.parkPoll(2); len(ids) != 0 {
			t.Errorf("unanswered %v, want none", ids)
		}
	})
	t.Run("leaves an answer alone that is being read", func(t *testing.T) {
		m := given(t, 1)
		_, _ = m.answer("a")
		if ids, _ := m.parkPoll(2); len(ids) != 0 {
			t.Errorf("unanswered %v, want none", ids)
		}
	})
}

func TestCallsAreHandedOutInOrderToTheNewestRequest(t *testing.T) {
	m := newMachine(3)
	for _, id := range []string{"a", "b", "c"} {
		_ = m.submit(id)
	}
	for poll := range uint64(3) {
		_, _ = m.parkPoll(poll)
	}
	for i, want := range []string{"a", "b", "c"} {
		if poll, id, ok := m.match(); !ok || id != want || poll != uint64(2-i) {
			t.Errorf("matched %d with %q, want %d with %s", poll, id, 2-i, want)
		}
	}
	m.unsent("b")
	_, _ = m.parkPoll(9)
	if _, id, _ := m.match(); id != "b" {
		t.Errorf("handed out %q, want b again", id)
	}
}

func TestRequestThatWentAwayGetsNothing(t *testing.T) {
	m := newMachine(1)
	_, _ = m.parkPoll(1)
	if !m.unpark(1) {
		t.Error("the request was not there")
	}
	_ = m.submit("a")
	if _, id, ok := m.match(); ok {
		t.Errorf("%q was handed out", id)
	}
	if m.unpark(1) {
		t.Error("the request was there twice")
	}
}

func TestSubmitRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(m *machine)
		id   string
		want error
	}{
		{"a call that is here", func(*machine) {}, "a", errDuplicate},
		{"a call whose late answer may come", func(m *machine) { m.abandonCall("a", true) }, "a", errDuplicate},
		{"more calls than concurrency", func(*machine) {}, "b", errFull},
		{"everything after the end", func(m *machine) { m.ended = true }, "b", errEnded},
		{"nothing when the one before was given up", func(m *machine) { m.abandonCall("a", false) }, "b", nil},
		{"nothing when the one before was answered", func(m *machine) { _, _ = m.answer("a"); _, _ = m.finishAnswer("a") }, "b", nil},
		{"no second attempt at a call that was answered", func(m *machine) { _, _ = m.answer("a"); _, _ = m.finishAnswer("a") }, "a", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := given(t, 1)
			tc.do(m)
			if err := m.submit(tc.id); err != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestGiveUpKnowsWhetherTheFunctionSawTheCall(t *testing.T) {
	m := given(t, 2)
	_ = m.submit("b")
	if m.abandonCall("b", true) {
		t.Error("b was not handed out")
	}
	if !m.abandonCall("a", true) {
		t.Error("a was handed out")
	}
}

func TestInitErrorComesOnceAndBeforeTheFirstEvent(t *testing.T) {
	m := newMachine(1)
	wantRefusal(t, m.initError(), nil)
	wantRefusal(t, m.initError(), &refusedState)
	_, no := m.parkPoll(1)
	wantRefusal(t, no, &refusedState)
	wantRefusal(t, given(t, 1).initError(), &refusedState)
}

func TestParkedRequestsAreBounded(t *testing.T) {
	m := newMachine(2)
	for poll := range uint64(2 + extraPolls) {
		if _, no := m.parkPoll(poll); no != nil {
			t.Fatalf("request %d was refused", poll)
		}
	}
	_, no := m.parkPoll(99)
	wantRefusal(t, no, &refusedState)
}

// Whatever comes in whatever order: no call is handed out twice unless it was
// given back, and nothing grows without bounds.
func TestMachineKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		concurrency := rapid.IntRange(1, 3).Draw(t, "concurrency")
		m := newMachine(concurrency)
		out := map[string]bool{}
		var poll uint64
		id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "id")) })
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				if c := id.Draw(t, "call"); m.submit(c) == nil {
					delete(out, c)
				}
			},
			"next": func(*rapid.T) { poll++; _, _ = m.parkPoll(poll) },
			"unsent": func(t *rapid.T) {
				c := id.Draw(t, "call")
				if s := m.calls[c]; s == handed || s == overtaken {
					delete(out, c)
				}
				m.unsent(c)
			},
			"sent":    func(t *rapid.T) { m.sent(id.Draw(t, "call")) },
			"lost":    func(t *rapid.T) { m.lost(id.Draw(t, "call")) },
			"answer":  func(t *rapid.T) { _, _ = m.answer(id.Draw(t, "call")) },
			"finish":  func(t *rapid.T) { _, _ = m.finishAnswer(id.Draw(t, "call")) },
			"give up": func(t *rapid.T) { m.abandonCall(id.Draw(t, "call"), rapid.Bool().Draw(t, "out of time")) },
			"match": func(t *rapid.T) {
				_, c, ok := m.match()
				if ok && out[c] {
					t.Fatalf("call %s was handed out twice", c)
				}
				if ok {
					out[c] = true
				}
			},
			"": func(t *rapid.T) {
				lapsed := 0
				for _, s := range m.calls {
					if s == abandoned || s == timedOut {
						lapsed++
					}
				}
				if lapsed != len(m.lapsed) || lapsed > concurrency || len(m.calls)-lapsed > concurrency ||
					len(m.answered) > concurrency || len(m.queue) > concurrency || len(m.parked) > concurrency+extraPolls {
					t.Fatalf("out of bounds: %+v", m)
				}
			},
		})
	})
}
