package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// parsingAgent takes calls as HTTP/1.1 requests, which it parses, and calls the function by the
// product's own client.
type parsingAgent struct {
	*worker
	gateway net.Conn
	in      *bufio.Reader
	// out is the memory of answers. One call at a time has it.
	out []byte
}

// pullParsing serves a gateway until the connection ends. ready is called once a place is lent.
func pullParsing(c net.Conn, cid, function string, ready func()) error {
	callwire.NoticeDeadPeer(c)
	a := &parsingAgent{worker: newWorker(function), gateway: rawtcp.Wrap(c)}
	a.in = bufio.NewReaderSize(a.gateway, readBuffer)
	defer close(a.work)
	defer a.gateway.Close()
	if err := sayPull(a.gateway, a.in, cid); err != nil {
		return err
	}
	ready()
	defer a.slot.abandon()
	for {
		// While a call runs this waits for the end of the connection, which ends the call.
		r, err := http.ReadRequest(a.in)
		if err != nil {
			return err
		}
		if err := a.onRequest(r); err != nil {
			return err
		}
	}
}

// onRequest lets a call in. An error says that the gateway breaks the rules.
func (a *parsingAgent) onRequest(r *http.Request) error {
	own, err := parseMark([]byte(r.Header.Get(carrierHeader)))
	if err != nil {
		return err
	}
	var body []byte
	if r.ContentLength != 0 {
		if body, err = io.ReadAll(io.LimitReader(r.Body, mostBody+1)); err != nil || len(body) > mostBody {
			return errors.Join(errLargeBody, err)
		}
	}
	delete(r.Header, carrierHeader)
	delete(r.Header, "Content-Length")
	call := adapter.Call{
		ID: r.Header.Get(invocation.HeaderInvocationID), Attempt: int(own[1]), Method: r.Method, RequestURI: r.RequestURI, Host: r.Host, Header: adapter.FieldsOf(r.Header),
	}
	err = a.accept(newJob(call, own[0], time.Duration(own[2]), body, a.answerCall))
	if errors.Is(err, errTakenBack) {
		_, refused := a.gateway.Write(appendRefusal(nil, http.StatusServiceUnavailable, mark{own[0]}))
		return errors.Join(err, refused)
	}
	return err
}

// answerCall sends an answer.
func (a *parsingAgent) answerCall(j *job, err error) {
	own := mark{j.number, keepsNumber(j.answer.keeps), int64(j.answer.begun.Sub(j.answer.came)), int64(j.answer.exec)}
	if err != nil {
		a.out = appendRefusal(a.out[:0], http.StatusBadGateway, own)
		_, _ = a.gateway.Write(a.out)
		return
	}
	head := j.answer.head
	b := appendStatus(a.out[:0], head.Status)
	b = appendMark(b, own)
	if head.ContentLength >= 0 {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), head.ContentLength, 10), '\r', '\n')
	} else {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(j.answer.body)), 10), '\r', '\n')
	}
	for _, f := range head.Header {
		b = appendLine(b, f.Name, f.Value)
	}
	a.out = append(append(b, '\r', '\n'), j.answer.body...)
	// A gateway that has gone shows when the next request is read.
	_, _ = a.gateway.Write(a.out)
}

// appendStatus appends a status line.
func appendStatus(b []byte, status int) []byte {
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	return append(append(append(b, ' '), http.StatusText(status)...), '\r', '\n')
}

// appendRefusal appends an answer that is none of the function.
func appendRefusal(b []byte, status int, own mark) []byte {
	return append(appendMark(appendStatus(b, status), own), "Content-Length: 0\r\n\r\n"...)
}
