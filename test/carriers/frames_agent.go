package main

import (
	"fmt"
	"net"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// framesAgent takes calls by the product's frames.
type framesAgent struct {
	*worker
	conn *callwire.Conn
}

// pullFrames serves a gateway until the connection ends. ready is called once a place is lent.
func pullFrames(c net.Conn, cid, function string, ready func()) error {
	callwire.NoticeDeadPeer(c)
	a := framesAgent{newWorker(function), callwire.NewConn(rawtcp.Wrap(c), nil)}
	defer close(a.work)
	defer a.conn.Close()
	if err := sayHello(a.conn, cid); err != nil {
		return err
	}
	ready()
	defer a.slot.abandon()
	for {
		f, err := a.conn.Read()
		if err != nil {
			return err
		}
		if err := a.onFrame(f); err != nil {
			return err
		}
	}
}

// sayHello agrees with a gateway, and lends it a place.
func sayHello(to *callwire.Conn, cid string) error {
	hello := callwire.Hello{CID: cid, ProtocolMin: 1, ProtocolMax: 1}
	to.Commit(hello.Append(to.Begin()))
	first, err := to.Read()
	if err != nil {
		return err
	}
	if _, err := callwire.ParseWelcome(first); err != nil {
		return err
	}
	to.Commit(callwire.AppendCount(to.Begin(), callwire.KindLend, 0, 1))
	return nil
}

func (a *framesAgent) onFrame(f callwire.Frame) error {
	switch f.Kind {
	case callwire.KindCancel:
		a.slot.abandon()
		return nil
	case callwire.KindCall:
	default:
		return fmt.Errorf("%w: of kind %d", callwire.ErrFrame, f.Kind)
	}
	m, err := callwire.ParseCall(f)
	if err != nil {
		return err
	}
	if !m.Whole {
		return fmt.Errorf("%w: the body is not whole", callwire.ErrFrame)
	}
	call := adapter.Call{
		ID: m.Invocation.String(), Attempt: m.Attempt, Method: m.Method, RequestURI: m.RequestURI, Host: m.Host, Header: m.Header,
	}
	err = a.accept(newJob(call, int64(f.Call), m.Remaining, append([]byte(nil), m.Body...), a.answerCall))
	if err != nil {
		r := callwire.Release{Reason: err.Error(), NoCredit: true}
		a.conn.CommitLater(r.Append(a.conn.Begin(), f.Call))
		a.conn.FlushLater()
	}
	return nil
}

// answerCall sends the last frame of a call.
func (a *framesAgent) answerCall(j *job, err error) {
	number := uint32(j.number)
	if err != nil {
		end := callwire.End{Failure: callwire.FailureFunctionLost, Detail: err.Error(), Exec: j.answer.exec, Keeps: j.answer.keeps}
		a.conn.Commit(end.Append(a.conn.Begin(), number))
		return
	}
	head := callwire.Head{
		Status: j.answer.head.Status, Header: j.answer.head.Header, ContentLength: j.answer.head.ContentLength,
		BegunAfter: j.answer.begun.Sub(j.answer.came), Exec: j.answer.exec, Whole: true, Keeps: j.answer.keeps, Body: j.answer.body,
	}
	a.conn.Commit(head.Append(a.conn.Begin(), number))
}
