package core

import (
	"testing"
	"time"
)

// BenchmarkCall is what the decisions of one call cost.
func BenchmarkCall(b *testing.B) {
	p := params()
	p.Concurrency = 32
	c, now := New(p), time.Unix(1_000_000, 0)
	for _, e := range []Event{Begin{}, Opened{1}, Received{1, Welcome{1}}, FunctionReady{}, Received{1, ticket('a')}, ConnOpened{1}, Refused{1}} {
		c.Step(now, e)
	}
	b.ReportAllocs()
	n := Attempt(1)
	for b.Loop() {
		n++
		now = now.Add(time.Microsecond)
		c.Step(now, Received{1, ticket('a')})
		c.Step(now, Granted{n})
		c.Step(now, CallEnded{Attempt: n, Outcome: Complete})
	}
}

// BenchmarkCallByLoan is what the decisions of a call by a loan cost.
func BenchmarkCallByLoan(b *testing.B) {
	p := params()
	p.Concurrency = 32
	c, now := New(p), time.Unix(1_000_000, 0)
	for _, e := range []Event{
		Begin{}, Opened{1}, Received{1, Welcome{1}}, FunctionReady{}, Received{1, lent('a')},
		ConnOpened{1}, Granted{1}, CallEnded{Attempt: 1, Outcome: Complete},
	} {
		c.Step(now, e)
	}
	b.ReportAllocs()
	n := Attempt(1)
	for b.Loop() {
		n++
		now = now.Add(time.Microsecond)
		c.Step(now, Called{Conn: 1, Call: uint32(2 * n)})
		c.Step(now, CallEnded{Attempt: n, Outcome: Complete})
	}
}
