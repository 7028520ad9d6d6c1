package callwire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sink is a connection whose frames are looked at by hand.
func sink(t *testing.T) *Conn {
	conn := NewConn(&saying{}, nil)
	t.Cleanup(conn.Close)
	return conn
}

func TestABodyWaitsForItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutflow(sink(t), 1)
		body := make([]byte, 3*InitialWindow)
		sent := make(chan error, 1)
		var n int
		go func() {
			var err error
			n, err = out.Write(body)
			sent <- err
		}()
		taken := func() int {
			synctest.Wait()
			out.mu.Lock()
			defer out.mu.Unlock()
			return out.window
		}
		if w := taken(); w != 0 || len(sent) > 0 {
			t.Fatalf("the window is %d", w)
		}
		out.Open(10)
		if w := taken(); w != 0 {
			t.Errorf("10 bytes more, and the window is %d", w)
		}
		out.Open(1 << 31) // no receiver has that much room
		if w := taken(); w != 0 {
			t.Errorf("the window is %d", w)
		}
		out.End(nil)
		if err := <-sent; !errors.Is(err, ErrBodyEnded) || n != 2*InitialWindow+10 {
			t.Errorf("%d bytes were sent, %v", n, err)
		}
		out.End(io.ErrUnexpectedEOF)
		if _, err := out.Write(body[:1]); !errors.Is(err, ErrBodyEnded) {
			t.Errorf("then: %v", err)
		}
	})
}

func TestABodyEndsWithItsConnection(t *testing.T) {
	conn := sink(t)
	out := NewOutflow(conn, 1)
	conn.Close()
	if n, err := out.Write([]byte("body")); n != 0 || !errors.Is(err, ErrClosed) {
		t.Error(n, err)
	}
}

func TestAWindowIsOpenedOnceAQuarterWasRead(t *testing.T) {
	out := &counted{Conn: &saying{}}
	in := NewInflow(NewConn(out, nil), 1)
	const quarter = InitialWindow / 4
	push(t, in, InitialWindow)
	for _, c := range []struct{ read, windows int }{{quarter - 1, 0}, {1, 1}, {quarter, 2}, {quarter / 2, 2}} {
		if _, err := io.ReadFull(in, make([]byte, c.read)); err != nil || int(out.writes.Load()) != c.windows {
			t.Errorf("after %d bytes more the window was opened %d times, not %d: %v", c.read, out.writes.Load(), c.windows, err)
		}
	}
	push(t, in, 2*quarter)
	if err := in.Push(make([]byte, 1)); !errors.Is(err, ErrFrame) {
		t.Errorf("a part beyond the window: %v", err)
	}
}

// push brings n bytes.
func push(t *testing.T, in *Inflow, n int) {
	t.Helper()
	for ; n > 0; n -= min(n, MaxBody) {
		if err := in.Push(make([]byte, min(n, MaxBody))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnInflowEndsOnce(t *testing.T) {
	cut := errors.New("cut")
	for name, c := range map[string]struct {
		end, push error // what Push says after the end
	}{
		"a whole body":           {io.EOF, ErrFrame},
		"a body that is cut off": {cut, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := NewInflow(sink(t), 1)
			push(t, in, 4)
			if !in.Buffered() {
				t.Error("nothing is buffered")
			}
			in.End(c.end, []Field{{Name: "a", Value: "b"}})
			in.End(errors.New("late"), nil)
			if err := in.Push([]byte("x")); !errors.Is(err, c.push) {
				t.Errorf("a part after the end: %v", err)
			}
			b := make([]byte, 10)
			if n, err := in.Read(b); n != 4 || err != nil {
				t.Errorf("first it reads %d, %v", n, err)
			}
			if _, err := in.Read(b); !errors.Is(err, c.end) || Whole(err) != (c.end == io.EOF) {
				t.Errorf("then it reads %v", err)
			}
			if in.Buffered() || len(in.Trailer()) != 1 {
				t.Errorf("trailers: %v", in.Trailer())
			}
		})
	}
}

func TestWhatNobodyReadsIsDroppedAndTheSenderGoesOn(t *testing.T) {
	for name, first := range map[string]bool{"from the beginning": true, "after a full window": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := ends(t)
				from, to := NewConn(a, nil), NewConn(b, nil)
				from.Trust()
				to.Trust()
				out, in := NewOutflow(from, 1), NewInflow(to, 1)
				carry(from, flows{1: {out, nil}})
				carry(to, flows{1: {nil, in}})
				sent := make(chan error, 1)
				if first {
					in.Discard()
				}
				go func() { _, err := out.Write(make([]byte, 10*InitialWindow)); sent <- err }()
				if synctest.Wait(); !first && len(in.held) != InitialWindow {
					t.Fatalf("%d bytes came", len(in.held))
				}
				in.Discard()
				in.Discard()
				if err := <-sent; err != nil {
					t.Error(err)
				}
				if _, err := in.Read(make([]byte, 1)); !errors.Is(err, ErrBodyEnded) || cap(in.held) > 0 {
					t.Errorf("it reads %v, and holds %d bytes", err, cap(in.held))
				}
				from.Close()
				to.Close()
			})
		})
	}
}

func TestDiscardEndsAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := NewInflow(sink(t), 1)
		ended := make(chan error, 1)
		go func() { _, err := in.Read(make([]byte, 1)); ended <- err }()
		synctest.Wait()
		in.Discard()
		if err := <-ended; !errors.Is(err, ErrBodyEnded) {
			t.Error(err)
		}
	})
}

// flows are the bodies of calls at one side of a connection.
type flows map[uint32]struct {
	out *Outflow
	in  *Inflow
}

// carry reads a connection and passes on the frames of bodies. The result is why it ended.
func carry(c *Conn, of flows) <-chan error {
	ended := make(chan error, 1)
	go func() {
		err := error(nil)
		for err == nil {
			var f Frame
			if f, err = c.Read(); err == nil {
				err = of.handle(f)
			}
		}
		for _, flow := range of {
			if flow.out != nil {
				flow.out.End(err)
			}
			if flow.in != nil {
				flow.in.End(err, nil)
			}
		}
		ended <- err
	}()
	return ended
}

func (of flows) handle(f Frame) error {
	flow := of[f.Call]
	switch f.Kind {
	case KindBody:
		return flow.in.Push(f.Payload)
	case KindEnd:
		e, err := ParseEnd(f)
		flow.in.End(io.EOF, e.Trailer)
		return err
	case KindWindow:
		n, err := ParseCount(f)
		flow.out.Open(n)
		return err
	}
	return nil
}

// pattern is the byte at a place of a call's body.
func pattern(call uint32, at int) byte { return byte(call) ^ byte(at) ^ byte(at>>8)*3 ^ byte(at>>16)*5 }

// speak sends a body and its end.
func speak(c *Conn, out *Outflow, call uint32, size int, random *rand.Rand) error {
	buffer := make([]byte, 100<<10)
	for at := 0; at < size; {
		part := buffer[:min(size-at, 1+random.IntN(len(buffer)))]
		for n := range part {
			part[n] = pattern(call, at+n)
		}
		if _, err := out.Write(part); err != nil {
			return err
		}
		at += len(part)
	}
	c.Commit((&End{Trailer: []Field{{Name: "size", Value: "all"}}}).Append(c.Begin(), call))
	return nil
}

// hear reads a body slowly, and checks it.
func hear(in *Inflow, call uint32, size int, random *rand.Rand) error {
	buffer := make([]byte, 64<<10)
	for at := 0; ; {
		n, err := in.Read(buffer[:1+random.IntN(len(buffer))])
		for i, b := range buffer[:n] {
			if b != pattern(call, at+i) {
				return errors.New("another byte came than was sent")
			}
		}
		at += n
		switch {
		case err == io.EOF && at == size && len(in.Trailer()) == 1:
			return nil
		case err == io.EOF:
			return errors.New("the body ended early, or without its trailers")
		case err != nil:
			return err
		}
		if random.IntN(8) == 0 {
			time.Sleep(time.Duration(random.IntN(int(time.Millisecond))))
		}
	}
}

// stormy is one side of many calls with large bodies in both directions.
type stormy struct {
	conn *Conn
	of   flows
}

// storm begins calls over a connection.
func storm(c *Conn, calls, size int, all *sync.WaitGroup, failed func(error)) *stormy {
	s := &stormy{conn: c, of: make(flows)}
	for call := range uint32(calls) {
		flow := s.of[call]
		flow.out, flow.in = NewOutflow(c, call), NewInflow(c, call)
		s.of[call] = flow
	}
	for call, flow := range s.of {
		all.Go(func() { failed(speak(c, flow.out, call, size, rand.New(rand.NewPCG(2, uint64(call))))) })
		if call%4 == 0 { // its reader opens the window then
			flow.in.Discard()
			continue
		}
		all.Go(func() { failed(hear(flow.in, call, size, rand.New(rand.NewPCG(3, uint64(call))))) })
	}
	return s
}

// Nobody waits for anybody forever: neither a reader for a writer nor the other way round. The
// gateway's reader also writes by itself, whole bodies and more of them than fit on the way.
func TestBothSidesStreamAtOnce(t *testing.T) {
	const calls, total, claims = 64, 100 << 20, 500
	for name, connect := range map[string]func(*testing.T) (net.Conn, net.Conn){
		"no buffer on the way":   ends,
		"small buffers":          func(t *testing.T) (net.Conn, net.Conn) { return buffered(700) },
		"TLS with small buffers": func(t *testing.T) (net.Conn, net.Conn) { a, b := buffered(700); return secured(t, a, b) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := connect(t)
				gateway, agent := Accept(a, time.Minute, nil), NewConn(b, nil)
				gateway.Trust()
				agent.Trust()
				var all sync.WaitGroup
				failed := func(err error) {
					if err != nil {
						t.Error(err)
					}
				}
				atGateway, atAgent := storm(gateway, calls, total/calls, &all, failed), storm(agent, calls, total/calls, &all, failed)
				gatewayEnded := granting(atGateway)
				agentEnded := carry(agent, atAgent.of)
				all.Go(func() {
					for range claims {
						agent.Commit(AppendClaim(agent.Begin(), 1, Claim{}))
					}
				})
				all.Wait()
				gateway.Close()
				if err := <-gatewayEnded; !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
				if err := <-agentEnded; !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
				agent.Close()
			})
		})
	}
}

// granting is carry for a gateway: it answers each claim with a call, which its reader writes.
func granting(s *stormy) <-chan error {
	ended := make(chan error, 1)
	whole := Call{Whole: true, Body: bytes.Repeat([]byte("x"), WholeBody)}
	go func() {
		for {
			f, err := s.conn.Read()
			if err == nil && f.Kind == KindClaim {
				s.conn.Commit(whole.Append(s.conn.Begin(), f.Call))
				continue
			}
			if err == nil {
				err = s.of.handle(f)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// The agent's reader waits for no write, so that the gateway's reader may: it answers pings and
// opens windows for a gateway that reads nothing.
func TestTheSideThatDialledReadsWithoutWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ends(t)
		agent := NewConn(a, nil)
		agent.Trust()
		in := NewInflow(agent, 1)
		in.Discard()
		carry(agent, flows{1: {nil, in}})
		began := time.Now()
		for range 1000 {
			if _, err := b.Write(AppendBody(AppendFrame(nil, KindPing, 0, 0, nil), 1, make([]byte, MaxBody))); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		agent.Close()
	})
}

// One call whose body nobody reads holds up no other.
func TestASlowCallHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := buffered(700)
		from, to := NewConn(a, nil), NewConn(b, nil)
		from.Trust()
		to.Trust()
		const calls, size = 10, 1 << 20
		sending, receiving := make(flows), make(flows)
		for call := range uint32(calls) {
			sending[call] = struct {
				out *Outflow
				in  *Inflow
			}{NewOutflow(from, call), nil}
			receiving[call] = struct {
				out *Outflow
				in  *Inflow
			}{nil, NewInflow(to, call)}
		}
		ended := []<-chan error{carry(from, sending), carry(to, receiving)}
		var others sync.WaitGroup
		slow := make(chan error, 1)
		for call := range uint32(calls) {
			random := rand.New(rand.NewPCG(4, uint64(call)))
			if call == 0 {
				go func() { slow <- speak(from, sending[call].out, call, size, random) }()
				continue
			}
			others.Go(func() { _ = speak(from, sending[call].out, call, size, random) })
			others.Go(func() {
				if err := hear(receiving[call].in, call, size, rand.New(rand.NewPCG(5, uint64(call)))); err != nil {
					t.Error(err)
				}
			})
		}
		others.Wait()
		if held := len(receiving[0].in.held); held != InitialWindow || len(slow) > 0 {
			t.Errorf("of the slow one %d bytes wait", held)
		}
		from.Close()
		to.Close()
		if err := <-slow; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		for _, e := range ended {
			<-e
		}
	})
}
