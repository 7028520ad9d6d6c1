package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
)

// framesRelay takes calls by the product's frames, and talks to the function as relay does: the
// goroutine that reads the gateway writes the request, and the one that reads the function writes
// the answer's frame. It says how much of what a relay saves is the carrier's.
type framesRelay struct {
	address string
	conn    *callwire.Conn
	slot    slot
	out     []byte
	cut     func()

	mu       sync.Mutex // guards everything below
	function *functionConn
	running  relayed
}

// pullFramesRelaying serves a gateway until the connection ends. ready is called once a place is lent.
func pullFramesRelaying(c net.Conn, cid, function string, ready func()) error {
	callwire.NoticeDeadPeer(c)
	r := &framesRelay{address: function, conn: callwire.NewConn(rawtcp.Wrap(c), nil)}
	r.cut = r.closeFunction
	defer r.conn.Close()
	defer r.closeFunction()
	if err := sayHello(r.conn, cid); err != nil {
		return err
	}
	ready()
	for {
		f, err := r.conn.Read()
		if err != nil {
			return err
		}
		if err := r.onFrame(f); err != nil {
			return err
		}
	}
}

func (r *framesRelay) onFrame(f callwire.Frame) error {
	switch f.Kind {
	case callwire.KindCancel:
		r.slot.abandon()
		return nil
	case callwire.KindCall:
	default:
		return fmt.Errorf("%w: of kind %d", callwire.ErrFrame, f.Kind)
	}
	came := time.Now()
	m, err := callwire.ParseCall(f)
	if err != nil {
		return err
	}
	if !m.Whole {
		return fmt.Errorf("%w: the body is not whole", callwire.ErrFrame)
	}
	if err := r.slot.admit(int64(f.Call), came.Add(m.Remaining), r.cut); err != nil {
		r.release(f.Call, callwire.Release{Reason: err.Error(), NoCredit: true})
		return nil
	}
	to, err := r.connect(relayed{number: int64(f.Call), method: m.Method, came: came})
	if err != nil {
		r.release(f.Call, callwire.Release{Reason: err.Error(), Keeps: r.slot.vacate()})
		return nil
	}
	r.out = appendRequest(r.out[:0], &m)
	// A function that reads no more may have answered already.
	_, _ = to.Write(r.out)
	return nil
}

// release answers that the function has seen nothing.
func (r *framesRelay) release(number uint32, why callwire.Release) {
	r.conn.CommitLater(why.Append(r.conn.Begin(), number))
	r.conn.FlushLater()
}

// appendRequest appends the request of a call. What may not be in a head ends the line early; the
// product's own client checks that.
func appendRequest(b []byte, m *callwire.Call) []byte {
	b = append(append(append(b, m.Method...), ' '), m.RequestURI...)
	b = appendLine(append(b, " HTTP/1.1\r\n"...), "Host", m.Host)
	if len(m.Body) > 0 || m.Method == http.MethodPost || m.Method == http.MethodPut || m.Method == http.MethodPatch {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(m.Body)), 10), '\r', '\n')
	}
	for _, f := range m.Header {
		if f.Name != "Content-Length" {
			b = appendLine(b, f.Name, f.Value)
		}
	}
	return append(append(b, '\r', '\n'), m.Body...)
}

// connect notes that a call runs, and returns the connection that it has.
func (r *framesRelay) connect(call relayed) (*functionConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.function == nil {
		c, err := net.DialTimeout("tcp", r.address, 10*time.Second)
		if err != nil {
			return nil, err
		}
		r.function = &functionConn{Conn: rawtcp.Wrap(c)}
		r.function.in = bufio.NewReaderSize(r.function.Conn, readBuffer)
		go r.readFunction(r.function)
	}
	call.on, call.begun = r.function, time.Now()
	r.running = call
	return r.function, nil
}

func (r *framesRelay) closeFunction() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.function != nil {
		_ = r.function.Close()
	}
}

// readFunction sends answers until a connection to the function ends.
func (r *framesRelay) readFunction(f *functionConn) {
	var err error
	for err == nil {
		err = r.sendAnswer(f)
	}
	_ = f.Close()
	r.mu.Lock()
	if r.function == f {
		r.function = nil
	}
	call, lost := r.running, r.running.on == f && !r.running.over
	r.running.over = r.running.over || lost
	r.mu.Unlock()
	if lost {
		end := callwire.End{Failure: callwire.FailureFunctionLost, Detail: err.Error(), Keeps: r.slot.vacate()}
		r.conn.Commit(end.Append(r.conn.Begin(), uint32(call.number)))
	}
}

// sendAnswer sends one answer, which must be short and of known length.
func (r *framesRelay) sendAnswer(f *functionConn) error {
	raw, err := awaitHead(f.in)
	if err != nil {
		return err
	}
	r.mu.Lock()
	call, asked := r.running, r.running.on == f && !r.running.over
	r.mu.Unlock()
	if !asked {
		return errUnasked
	}
	fields := make([]callwire.Field, 0, 8)
	m, err := readFields(raw, func(name, value string) { fields = append(fields, callwire.Field{Name: name, Value: value}) })
	if err != nil {
		return err
	}
	_, _ = f.in.Discard(len(raw))
	ends := m.body(call.method)
	if m.status < http.StatusOK || ends.chunked || ends.left > mostBody {
		return errors.Join(errLargeBody, errSwitches)
	}
	f.out = append(f.out[:0], make([]byte, ends.left)...)
	if _, err := io.ReadFull(f.in, f.out); err != nil {
		return err
	}
	r.mu.Lock()
	if r.running.over = true; m.closing {
		r.function = nil
	}
	r.mu.Unlock()
	head := callwire.Head{
		Status: m.status, Header: fields, ContentLength: m.length, BegunAfter: call.begun.Sub(call.came), Exec: time.Since(call.begun),
		Whole: true, Keeps: r.slot.vacate(), Body: f.out,
	}
	r.conn.Commit(head.Append(r.conn.Begin(), uint32(call.number)))
	if m.closing {
		return errClosing
	}
	return nil
}
