package callwire

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// ends are the two ends of a connection without any buffer: a write waits for its reads.
func ends(t *testing.T) (net.Conn, net.Conn) {
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// counted counts the writes of a connection, and may do something within each.
type counted struct {
	net.Conn
	writes atomic.Int32
	within func()
}

func (c *counted) Write(p []byte) (int, error) {
	if c.writes.Add(1); c.within != nil {
		c.within()
	}
	return c.Conn.Write(p)
}

func TestFramesOfConcurrentWritersDoNotInterleave(t *testing.T) {
	const writers, groups = 8, 200
	synctest.Test(t, func(t *testing.T) {
		a, b := ends(t)
		from, to := NewConn(a, nil), NewConn(b, nil)
		var all sync.WaitGroup
		for w := range uint32(writers) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(w)))
				for n := range uint32(groups) {
					// A group of frames is appended at once, in one of the ways to do that.
					frames, rest := from.Begin(), random.IntN(4)
					for left := rest; left >= 0; left-- {
						frames = AppendFrame(frames, KindHead, uint8(left), w, func(b []byte) []byte {
							b = binary.BigEndian.AppendUint32(b, n)
							return append(b, make([]byte, random.IntN(3000))...)
						})
					}
					switch random.IntN(3) {
					case 0:
						from.Commit(frames)
					case 1:
						from.CommitLater(frames)
						from.Flush()
					default:
						from.CommitLater(frames)
						from.FlushLater()
					}
				}
			})
		}
		next, open := make([]uint32, writers), -1
		for left := writers * groups; left > 0; {
			f, err := to.Read()
			if err != nil {
				t.Fatal(err)
			}
			if open >= 0 && int(f.Call) != open {
				t.Fatalf("a frame of writer %d is within a group of writer %d", f.Call, open)
			}
			if n := binary.BigEndian.Uint32(f.Payload); n != next[f.Call] {
				t.Fatalf("group %d of writer %d comes instead of %d", n, f.Call, next[f.Call])
			}
			if open = int(f.Call); f.Flags == 0 {
				next[f.Call]++
				left--
				open = -1
			}
		}
		all.Wait()
	})
}

func TestWhatIsCommittedDuringAWriteGoesOutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ends(t)
		out := &counted{Conn: a}
		from, to := NewConn(out, nil), NewConn(b, nil)
		go from.Commit(AppendCount(from.Begin(), KindLend, 0, 0))
		synctest.Wait() // it waits for its reader
		const more = 100
		for n := range uint32(more) {
			from.Commit(AppendCount(from.Begin(), KindLend, 0, n+1))
		}
		for n := range uint32(more + 1) {
			f, err := to.Read()
			if got, _ := ParseCount(f); err != nil || got != n {
				t.Fatalf("frame %d is %d, %v", n, got, err)
			}
		}
		if out.writes.Load() != 2 {
			t.Errorf("there were %d writes", out.writes.Load())
		}
	})
}

func TestACallDoesNotWriteForOthersForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ends(t)
		out := &counted{Conn: a}
		from := NewConn(out, nil)
		stop := time.Now().Add(time.Second)
		out.within = func() { // others always have something more to say
			if time.Sleep(time.Millisecond); time.Now().Before(stop) {
				from.CommitLater(AppendCount(from.Begin(), KindLend, 0, 1))
			}
		}
		go func() { _, _ = io.Copy(io.Discard, b) }()
		began := time.Now()
		from.Commit(AppendCount(from.Begin(), KindLend, 0, 1))
		if took := time.Since(began); took > ownRounds*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		time.Sleep(2 * time.Second)
		if out.writes.Load() != 1000 {
			t.Errorf("%d of 1000 frames were written", out.writes.Load())
		}
		from.Close()
	})
}

// reading reads until an error, and returns it.
func reading(c *Conn) <-chan error {
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Read(); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

func TestAPeerThatIsThereAnswersPings(t *testing.T) {
	for name, wrap := range map[string]func(*testing.T, net.Conn, net.Conn) (net.Conn, net.Conn){
		"plain": func(_ *testing.T, a, b net.Conn) (net.Conn, net.Conn) { return a, b },
		"TLS":   secured,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := ends(t)
				a, b = wrap(t, a, b)
				here, there := Accept(a, time.Minute, nil), NewConn(b, nil)
				hereEnded, thereEnded := reading(here), reading(there)
				there.Commit((&Hello{}).Append(there.Begin()))
				time.Sleep(time.Hour)
				select {
				case err := <-hereEnded:
					t.Error(err)
				case err := <-thereEnded:
					t.Error(err)
				default:
				}
				here.Close()
				if err := <-hereEnded; !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
				if err := <-thereEnded; !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
					t.Error(err)
				}
			})
		})
	}
}

// secured has made the handshake of TLS, without checking anybody.
func secured(t *testing.T, a, b net.Conn) (net.Conn, net.Conn) {
	t.Helper()
	server := tls.Server(a, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, SessionTicketsDisabled: true})
	client := tls.Client(b, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	if err := errors.Join(client.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func TestAPeerThatIsGoneIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		says func(b net.Conn)
		want time.Duration
	}{
		"it says nothing": {func(net.Conn) {}, pingAfter + pongWithin},
		"it says something when it is asked, and nothing after that": {
			func(b net.Conn) {
				time.Sleep(pingAfter + pongWithin/2)
				_, _ = b.Write(AppendFrame(nil, KindPong, 0, 0, nil))
			},
			pingAfter + pongWithin/2 + pingAfter + pongWithin,
		},
		"it stops within a frame": {
			func(b net.Conn) { _, _ = b.Write(AppendCount(nil, KindLend, 0, 1)[:headerLen-1]) },
			pingAfter + pongWithin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := ends(t)
				go func() { _, _ = io.Copy(io.Discard, b) }()
				go c.says(b)
				began := time.Now()
				if err := <-reading(NewConn(a, nil)); !errors.Is(err, ErrSilent) {
					t.Error(err)
				}
				// The deadline is set rarely while frames come.
				if took := time.Since(began); took > c.want || took < c.want-pingAfter/2 {
					t.Errorf("it took %v, want %v", took, c.want)
				}
				_ = a.Close()
			})
		})
	}
}

func TestAnAcceptedConnectionSaysSoonWhatItIsFor(t *testing.T) {
	const within = 5 * time.Second
	hello := (&Hello{CID: "cid"}).Append(nil)
	for name, c := range map[string]struct {
		sent []byte
		want error
		at   time.Duration
	}{
		"nothing":             {nil, ErrLate, within},
		"half a hello":        {hello[:len(hello)/2], ErrLate, within},
		"a ping":              {AppendFrame(nil, KindPing, 0, 0, nil), ErrLate, within},
		"zero bytes":          {make([]byte, 10*headerLen), ErrLate, within},
		"a hello":             {hello, ErrSilent, pingAfter + pongWithin},
		"a long hello":        {AppendFrame(nil, KindHello, 0, 0, func(b []byte) []byte { return make([]byte, MaxFirst+100) })[:headerLen], ErrFrame, 0},
		"a hello and a claim": {AppendClaim(hello, 1, Claim{}), ErrSilent, pingAfter + pongWithin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := ends(t)
				go func() { _, _ = io.Copy(io.Discard, b) }()
				go func() { _, _ = b.Write(c.sent) }()
				began := time.Now()
				if err := <-reading(Accept(a, within, nil)); !errors.Is(err, c.want) || time.Since(began) != c.at {
					t.Errorf("after %v: %v, want %v after %v", time.Since(began), err, c.want, c.at)
				}
				_ = a.Close()
			})
		})
	}
}

func TestOnlyWhoIsTrustedSendsLongFrames(t *testing.T) {
	frame := func(n int) []byte {
		return AppendFrame(nil, KindHead, 0, 1, func(b []byte) []byte { return append(b, make([]byte, n)...) })
	}
	dialled := func(c net.Conn) *Conn { return NewConn(c, nil) }
	accepted := func(c net.Conn) *Conn { return Accept(c, time.Minute, nil) }
	trusted := func(c net.Conn) *Conn { conn := accepted(c); conn.Trust(); return conn }
	for name, c := range map[string]struct {
		make  func(net.Conn) *Conn
		sizes []int
		read  int // of them
	}{
		"an accepted one may send short frames": {accepted, []int{MaxFirst, MaxFirst, MaxFirst}, 3},
		"and no long ones":                      {accepted, []int{MaxFirst, MaxFirst + 1}, 1},
		"it may once it is trusted":             {trusted, []int{MaxPayload, 0, MaxPayload}, 3},
		"but no longer ones":                    {trusted, []int{MaxPayload, MaxPayload + 1}, 1},
		"who was dialled answers in short":      {dialled, []int{MaxFirst + 1}, 0},
		"and may send long frames then":         {dialled, []int{MaxFirst, MaxPayload}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := ends(t)
			go func() {
				for _, size := range c.sizes {
					_, _ = b.Write(frame(size))
				}
			}()
			conn, read := c.make(a), 0
			for range c.sizes {
				f, err := conn.Read()
				if err == nil && len(f.Payload) == c.sizes[read] {
					read++
				} else if !errors.Is(err, ErrFrame) {
					t.Fatal(err)
				}
			}
			if read != c.read {
				t.Errorf("%d frames were read, want %d", read, c.read)
			}
		})
	}
}

// The length of a frame is the other side's word: it takes memory by what it sends.
func TestAFrameTakesMemoryAsItComes(t *testing.T) {
	frame := AppendFrame(nil, KindHead, 0, 1, func(b []byte) []byte { return append(b, make([]byte, MaxPayload)...) })
	conn := NewConn(&saying{rest: frame, piece: 1000}, nil)
	conn.Trust()
	for len(conn.in) < len(frame) {
		if err := conn.fill(len(frame)); err != nil {
			t.Fatal(err)
		}
		if most := max(keptBuffer, 2*len(conn.in)); cap(conn.in) > most {
			t.Fatalf("%d bytes have come, and %d are held, want %d at most", len(conn.in), cap(conn.in), most)
		}
	}
	if f, err := conn.Read(); err != nil || len(f.Payload) != MaxPayload {
		t.Errorf("%d bytes, %v", len(f.Payload), err)
	}
}

// A peer that sends and does not read must not make this side remember all the answers.
func TestAnAcceptedPeerThatDoesNotReadIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ends(t)
		conn := Accept(a, time.Minute, nil)
		began := time.Now()
		var sent atomic.Int64
		go func() {
			for b.SetWriteDeadline(time.Time{}) == nil {
				n, err := b.Write(bytes.Repeat(AppendFrame(nil, KindPing, 0, 0, nil), 1000))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}()
		ended := reading(conn)
		time.Sleep(writeWithin / 2)
		conn.mu.Lock()
		held := len(conn.pending)
		conn.mu.Unlock()
		if held < unreadLimit/2 || held > unreadLimit+2*keptBuffer || sent.Load() > 2*unreadLimit+3*keptBuffer { // as much is being written
			t.Errorf("of %d bytes of pings it holds %d of pongs", sent.Load(), held)
		}
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > writeWithin {
			t.Errorf("it ended after %v: %v", time.Since(began), err)
		}
		if len(conn.Begin()) > 0 {
			t.Error("it still holds them")
		}
		conn.CommitLater(nil)
	})
}

func TestAWriteThatDoesNotGetOnBreaksTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ends(t)
		conn := NewConn(a, nil)
		time.Sleep(time.Hour) // an old deadline does not count
		began := time.Now()
		conn.Commit(AppendBody(conn.Begin(), 1, make([]byte, MaxBody)))
		if took := time.Since(began); took != writeWithin {
			t.Errorf("it took %v", took)
		}
		if _, err := conn.Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the reader learns %v", err)
		}
		_ = b.Close()
	})
}

func TestASlowPeerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := ends(t)
		conn := NewConn(a, nil)
		const size = MaxPayload
		go conn.Commit(AppendFrame(conn.Begin(), KindHead, 0, 1, func([]byte) []byte { return make([]byte, size) }))
		read := 0
		for buffer := make([]byte, 32<<10); read < size; {
			n, err := b.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			read += n
			time.Sleep(time.Second) // 64 s in all, and 8 s for each part
		}
	})
}

func TestCloseEndsReadersAndWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := ends(t)
		conn := NewConn(a, nil)
		ended := make(chan error, 3)
		go func() { _, err := conn.Read(); ended <- err }()
		go func() { conn.Commit(AppendBody(conn.Begin(), 1, make([]byte, MaxBody))); ended <- ErrClosed }()
		synctest.Wait()
		for range pendingLimit/MaxBody + 1 {
			conn.CommitLater(AppendBody(conn.Begin(), 1, make([]byte, MaxBody)))
		}
		go func() { ended <- conn.sendBody(1, []byte("part")) }()
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal(<-ended)
		}
		began := time.Now()
		conn.Close()
		for range 3 {
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
		conn.Close()
		conn.Commit(AppendCount(conn.Begin(), KindLend, 0, 1))
		if err := conn.sendBody(1, nil); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if _, err := conn.Read(); !errors.Is(err, ErrClosed) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestABrokenConnectionHoldsNothing(t *testing.T) {
	a, b := ends(t)
	_ = b.Close()
	conn := NewConn(a, nil)
	conn.Commit(AppendCount(conn.Begin(), KindLend, 0, 1))
	conn.Commit(AppendCount(conn.Begin(), KindLend, 0, 2))
	if _, err := conn.Read(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the reader learns %v", err)
	}
	if held := conn.Begin(); len(held) > 0 {
		t.Errorf("it holds %q", held)
	}
	conn.CommitLater(nil)
}

// loopback are the ends of a TCP connection.
func loopback(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func TestCloseWriteDeliversEverything(t *testing.T) {
	for name, wrap := range map[string]func(*testing.T, net.Conn, net.Conn) (net.Conn, net.Conn){
		"plain": func(_ *testing.T, a, b net.Conn) (net.Conn, net.Conn) { return a, b },
		"TLS":   secured,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := loopback(t)
			a, b = wrap(t, a, b)
			from, to := NewConn(a, nil), NewConn(b, nil)
			const frames = 500 // more than the kernel takes at once
			got := make(chan int, 1)
			written := make(chan struct{})
			go func() {
				<-written // by now somebody is probably writing
				n := 0
				for {
					if _, err := to.Read(); err != nil {
						to.Close()
						got <- n
						return
					}
					n++
				}
			}()
			for range frames {
				from.CommitLater(AppendBody(from.Begin(), 1, make([]byte, MaxFirst)))
			}
			go from.Flush()
			close(written)
			from.CloseWrite(time.Minute)
			from.Commit(AppendCount(from.Begin(), KindLend, 0, 1)) // is dropped
			if err := from.sendBody(1, nil); !errors.Is(err, ErrClosed) {
				t.Errorf("a body goes on: %v", err)
			}
			if n := <-got; n != frames {
				t.Errorf("%d of %d frames came", n, frames)
			}
			if _, err := from.Read(); !errors.Is(err, io.EOF) {
				t.Errorf("the reader learns %v", err)
			}
			from.Close()
		})
	}
}

// halfClosed is a connection that shows only when it is closed for writing.
type halfClosed struct {
	net.Conn
	closed chan struct{}
}

func (h halfClosed) CloseWrite() error { close(h.closed); return nil }

func TestCloseWriteWaitsOnlySoLong(t *testing.T) {
	const within = 3 * time.Second
	for name, reads := range map[string]bool{"the other side reads nothing": false, "it reads, and does not close": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := ends(t)
				half := halfClosed{a, make(chan struct{})}
				conn := NewConn(half, nil)
				if reads {
					go func() { _, _ = io.Copy(io.Discard, b) }()
				}
				conn.CommitLater(AppendCount(conn.Begin(), KindLend, 0, 1))
				began := time.Now()
				ended := reading(conn)
				conn.CloseWrite(within)
				if reads {
					if <-half.closed; time.Since(began) != 0 {
						t.Errorf("everything was written after %v", time.Since(began))
					}
				}
				if err := <-ended; !errors.Is(err, ErrClosed) || time.Since(began) != within {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

func TestUnknownKindsAreCountedAndSkipped(t *testing.T) {
	sent := AppendFrame(nil, 0, 0, 0, nil)
	sent = AppendFrame(sent, KindGiveUp+1, 0, 7, func(b []byte) []byte { return append(b, "something new"...) })
	sent = AppendCount(sent, KindLend, 0, 3)
	sent = AppendFrame(sent, 255, 0, 0, nil)
	var unknown []Kind
	conn := NewConn(&saying{rest: sent, piece: len(sent)}, func(k Kind) { unknown = append(unknown, k) })
	f, err := conn.Read()
	if n, _ := ParseCount(f); err != nil || n != 3 {
		t.Errorf("it has read %+v, %v", f, err)
	}
	if _, err := conn.Read(); !errors.Is(err, io.EOF) || !slices.Equal(unknown, []Kind{0, KindGiveUp + 1, 255}) {
		t.Errorf("%v were counted, then %v", unknown, err)
	}
}

// A reader that writes what it has to say once it would wait must not wait for frames that Read
// keeps to itself.
func TestReadReturnsAtOnceOnlyIfItHasAFrame(t *testing.T) {
	lend := AppendCount(nil, KindLend, 0, 1)
	ping, unknown := AppendFrame(nil, KindPing, 0, 0, nil), AppendFrame(nil, 200, 0, 0, nil)
	for name, c := range map[string]struct {
		buffered []byte
		want     bool
	}{
		"nothing":                       {nil, false},
		"a frame":                       {lend, true},
		"a part of one":                 {lend[:len(lend)-1], false},
		"a ping":                        {ping, false},
		"a frame that is not known":     {unknown, false},
		"a frame behind others":         {slices.Concat(ping, unknown, lend), true},
		"a part of one behind others":   {slices.Concat(ping, unknown, lend[:3]), false},
		"a frame that breaks the rules": {[]byte{255, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, true},
	} {
		conn := NewConn(nil, nil)
		if conn.in = c.buffered; conn.HasWholeFrame() != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

func TestASilentConnectionHoldsSmallBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		from, to := NewConn(a, nil), NewConn(b, nil)
		to.Trust()
		go func() {
			for {
				if _, err := from.Read(); err != nil {
					return
				}
			}
		}()
		frames := make(chan Frame)
		go func() {
			defer close(frames)
			for f, err := to.Read(); err == nil; f, err = to.Read() {
				frames <- f
			}
		}()
		to.Commit(AppendCount(to.Begin(), KindLend, 0, 1))
		const short, large, huge = 10, MaxBody, MaxPayload
		for _, size := range []int{huge, short, large, short, short} {
			go from.Commit(AppendFrame(from.Begin(), KindHead, 0, 1, func(b []byte) []byte { return append(b, make([]byte, size)...) }))
			if f := <-frames; len(f.Payload) != size {
				t.Fatalf("of %d bytes %d came", size, len(f.Payload))
			}
			<-time.After(2*pingAfter + time.Second)
			synctest.Wait()
			if held := cap(to.in) + cap(to.pending) + cap(to.spare); held > 2*idleBuffer {
				t.Errorf("after a frame of %d bytes and a silence it holds %d bytes", size, held)
			}
		}
		from.Close()
		to.Close()
		for range frames {
			t.Error("a frame came twice")
		}
	})
}

func TestWhatBeganIsNotForgottenInSilence(t *testing.T) {
	conn := NewConn(&saying{rest: AppendCount(nil, KindLend, 0, 5), piece: 3}, nil)
	if err := conn.fill(headerLen); err != nil {
		t.Fatal(err)
	}
	conn.CommitLater(AppendCount(conn.Begin(), KindReturn, 0, 1))
	conn.shrink()
	if f, err := conn.Read(); err != nil || f.Kind != KindLend {
		t.Error(f, err)
	}
	if len(conn.Begin()) == 0 {
		t.Error("what was pending is gone")
	}
	conn.CommitLater(nil)
}
