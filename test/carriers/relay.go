package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
)

// relay takes calls as HTTP/1.1 requests and passes them on to the function, and its answers back,
// as the bytes that they are. One goroutine reads the gateway and writes to the function, another
// one the other way, so that no goroutine waits for another, and the end of the gateway's
// connection is noticed while a call runs.
type relay struct {
	address string
	slot    slot
	gateway net.Conn
	in      *bufio.Reader
	out     []byte
	// cut is closeFunction, kept here because a method value is garbage of each call.
	cut func()

	mu       sync.Mutex // guards everything below
	function *functionConn
	running  relayed
}

// relayed is the call that runs.
type relayed struct {
	number      int64
	method      string
	came, begun time.Time
	on          *functionConn
	// answering says that some of the answer has gone out, and over that all has.
	answering, over bool
}

// functionConn is a connection to the function.
type functionConn struct {
	net.Conn
	in *bufio.Reader
	// out and own are the memory of answers and of the carrier's line in them.
	out, own []byte
}

// sayPull asks a gateway to take a connection as a place.
func sayPull(to net.Conn, in *bufio.Reader, cid string) error {
	if _, err := io.WriteString(to, "POST /pull HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: "+pullProtocol+"\r\nWindlass-Instance: "+cid+"\r\nContent-Length: 0\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("the gateway answered %s", answer.Status)
	}
	return nil
}

// pullRelaying serves a gateway until the connection ends. ready is called once a place is lent.
func pullRelaying(c net.Conn, cid, function string, ready func()) error {
	callwire.NoticeDeadPeer(c)
	r := newRelay(c, function)
	defer r.gateway.Close()
	if err := sayPull(r.gateway, r.in, cid); err != nil {
		return err
	}
	ready()
	return r.serve()
}

func newRelay(gateway net.Conn, function string) *relay {
	r := &relay{address: function, gateway: rawtcp.Wrap(gateway)}
	r.in = bufio.NewReaderSize(r.gateway, readBuffer)
	r.cut = r.closeFunction
	return r
}

// serve passes requests on until the gateway's connection ends, which ends the call that runs.
func (r *relay) serve() error {
	defer r.closeFunction()
	for {
		head, err := awaitHead(r.in)
		if err != nil {
			return err
		}
		came := time.Now()
		out, m, err := relayHead(r.out[:0], head, nil)
		r.out = out
		if err == nil && m.status != 0 {
			err = errHead
		}
		if err != nil {
			return err
		}
		own, err := parseMark(m.own)
		if err != nil {
			return err
		}
		_, _ = r.in.Discard(len(head))
		err = r.slot.admit(own[0], came.Add(time.Duration(own[2])), r.cut)
		switch {
		case errors.Is(err, errTakenBack):
			return errors.Join(r.refuse(http.StatusServiceUnavailable, mark{own[0]}), err)
		case err != nil:
			return err // the gateway breaks the rules
		}
		if err := r.send(relayed{number: own[0], method: m.method, came: came}, m.body("")); err != nil {
			return err
		}
	}
}

// send writes a request to the function: its head, which is in out, and its body. An error is the
// gateway's.
func (r *relay) send(call relayed, ends body) error {
	f, err := r.connect(call)
	if err != nil {
		// The function has seen nothing.
		return r.refuse(http.StatusServiceUnavailable, mark{call.number, keepsNumber(r.slot.vacate())})
	}
	refused := false
	// What has come of the body goes out with the head.
	for done := ends.left == 0 && !ends.chunked; ; {
		if !done {
			part, _ := r.in.Peek(r.in.Buffered())
			var n int
			if n, done, err = ends.pass(part); err != nil {
				return err
			}
			r.out = append(r.out, part[:n]...)
			_, _ = r.in.Discard(n)
		}
		if !refused && len(r.out) > 0 {
			// A function that reads no more may have answered already.
			_, err := f.Write(r.out)
			refused = err != nil
		}
		if r.out = r.out[:0]; done {
			return nil
		}
		if _, err := r.in.Peek(1); err != nil {
			return err
		}
	}
}

// connect notes that a call runs, and returns the connection that it has.
func (r *relay) connect(call relayed) (*functionConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.function; f != nil {
		call.on, call.begun = f, time.Now()
		r.running = call
		return f, nil
	}
	c, err := net.DialTimeout("tcp", r.address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	f := &functionConn{Conn: rawtcp.Wrap(c)}
	f.in = bufio.NewReaderSize(f.Conn, readBuffer)
	call.on, call.begun = f, time.Now()
	r.function, r.running = f, call
	go r.readFunction(f)
	return f, nil
}

// closeFunction ends the call that runs.
func (r *relay) closeFunction() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.function != nil {
		_ = r.function.Close()
	}
}

// current is the call that runs on a connection, and is not over.
func (r *relay) current(f *functionConn) (relayed, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running, r.running.on == f && !r.running.over
}

// readFunction passes answers on until a connection to the function ends.
func (r *relay) readFunction(f *functionConn) {
	var err error
	for err == nil {
		err = r.passAnswer(f)
	}
	_ = f.Close()
	r.mu.Lock()
	if r.function == f {
		r.function = nil
	}
	call, lost := r.running, r.running.on == f && !r.running.over
	r.running.over = r.running.over || lost
	r.mu.Unlock()
	switch {
	case !lost:
	case call.answering:
		_ = r.gateway.Close()
	default:
		_ = r.refuse(http.StatusBadGateway, mark{call.number, keepsNumber(r.slot.vacate())})
	}
}

var (
	errUnasked  = errors.New("the function answers what nobody asked")
	errClosing  = errors.New("the function closes the connection")
	errSwitches = errors.New("the function switches protocols, which this carrier cannot")
)

// passAnswer passes one answer on, or an interim one before it.
func (r *relay) passAnswer(f *functionConn) error {
	head, err := awaitHead(f.in)
	if err != nil {
		return err
	}
	call, asked := r.current(f)
	if !asked {
		return errUnasked
	}
	f.own = appendMark(f.own[:0], mark{
		call.number, keepsNumber(!r.slot.isTakenBack()), int64(call.begun.Sub(call.came)), int64(time.Since(call.begun)),
	})
	var m message
	f.out, m, err = relayHead(f.out[:0], head, f.own)
	switch {
	case err != nil:
		return err
	case m.status == 0:
		return errHead
	case m.switching:
		return errSwitches
	}
	_, _ = f.in.Discard(len(head))
	if m.status < http.StatusOK {
		_, err = r.gateway.Write(f.out)
		return err
	}
	if err := r.passBody(f, m.body(call.method), m.closing); err != nil || !m.closing {
		return err
	}
	return errClosing
}

// passBody writes an answer to the gateway: its head, which is in out, and its body. After it the
// function may close the connection.
func (r *relay) passBody(f *functionConn, ends body, closing bool) error {
	for done := ends.left == 0 && !ends.chunked; ; {
		if !done {
			part, _ := f.in.Peek(f.in.Buffered())
			n, over, err := ends.pass(part)
			if err != nil {
				return err
			}
			f.out, done = append(f.out, part[:n]...), over
			_, _ = f.in.Discard(n)
		}
		r.note(done, closing)
		if _, err := r.gateway.Write(f.out); err != nil {
			return err
		}
		if f.out = f.out[:0]; done {
			return nil
		}
		if _, err := f.in.Peek(1); err != nil {
			return err
		}
	}
}

// note says that more of the answer goes out now, or the last of it. Then the place is free at
// once, because a call may come as soon as the last byte has gone.
func (r *relay) note(last, closing bool) {
	r.mu.Lock()
	r.running.answering, r.running.over = true, last
	if last && closing {
		r.function = nil
	}
	r.mu.Unlock()
	if last {
		r.slot.vacate()
	}
}

// refuse answers in the place of the function.
func (r *relay) refuse(status int, own mark) error {
	_, err := r.gateway.Write(appendRefusal(nil, status, own))
	return err
}

// keepsNumber is how a mark says whether a place stays with the gateway.
func keepsNumber(keeps bool) int64 {
	if keeps {
		return 1
	}
	return 0
}
