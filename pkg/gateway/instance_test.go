package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// instance is one attempt as an instance sees it.
type instance struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[agentwire.AttemptRequest, agentwire.AttemptReply]
	// die breaks the stream as the end of the instance would.
	die     context.CancelFunc
	granted *agentwire.Granted
	refused *agentwire.Refused
}

// claim claims a ticket.
func (w *harness) claim(ticket *agentwire.Ticket) *instance {
	w.Helper()
	ctx, die := context.WithTimeout(context.Background(), patience)
	w.Cleanup(die)
	stream, err := w.instances.Attempt(ctx)
	if err != nil {
		w.Fatal(err)
	}
	i := &instance{t: w.T, stream: stream, die: die}
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Claim{Claim: &agentwire.Claim{
		InvocationId: ticket.GetInvocationId(), Token: ticket.GetToken(), Cid: "00000001-000001",
	}}})
	reply, err := stream.Recv()
	if err != nil {
		w.Fatalf("claiming: %v", err)
	}
	i.granted, i.refused = reply.GetGranted(), reply.GetRefused()
	return i
}

// start claims a ticket whose request it has, without waiting for an answer.
func (w *harness) start(ticket *agentwire.Ticket) *instance {
	w.Helper()
	ctx, die := context.WithTimeout(context.Background(), patience)
	w.Cleanup(die)
	stream, err := w.instances.Attempt(ctx)
	if err != nil {
		w.Fatal(err)
	}
	i := &instance{t: w.T, stream: stream, die: die}
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Claim{Claim: &agentwire.Claim{
		InvocationId: ticket.GetInvocationId(), Token: ticket.GetToken(), Cid: "00000001-000001", Started: true,
	}}})
	return i
}

// take claims tickets until it is granted a call: a ticket may have been offered
// twice.
func (w *harness) take() *instance {
	w.Helper()
	for {
		if i := w.claim(w.scheduler.ticket()); i.granted != nil {
			return i
		}
	}
}

// send sends to the gateway. If the gateway has ended the stream, ended says so.
func (i *instance) send(msg *agentwire.AttemptRequest) {
	i.t.Helper()
	if err := i.stream.Send(msg); err != nil && !errors.Is(err, io.EOF) {
		i.t.Fatal(err)
	}
}

// head begins an answer; name and value pairs are its headers.
func (i *instance) head(status int32, headers ...string) {
	i.t.Helper()
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Head{Head: &agentwire.ResultHead{
		Status: status, Headers: wireHeaders(headers),
	}}})
}

// whole is an answer in one message.
func (i *instance) whole(status int32, body string, headers ...string) {
	i.t.Helper()
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Head{Head: &agentwire.ResultHead{
		Status: status, Headers: wireHeaders(headers), Whole: true, WholeBody: []byte(body),
	}}})
}

func wireHeaders(pairs []string) (headers []*agentwire.Header) {
	for n := 0; n < len(pairs); n += 2 {
		headers = append(headers, &agentwire.Header{Name: pairs[n], Value: []byte(pairs[n+1])})
	}
	return headers
}

func (i *instance) body(body string) {
	i.t.Helper()
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Body{Body: []byte(body)}})
}

func (i *instance) end() {
	i.t.Helper()
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_End{End: &agentwire.ResultEnd{}}})
}

func (i *instance) fail(kind agentwire.Failure_Kind, detail string) {
	i.t.Helper()
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_End{End: &agentwire.ResultEnd{
		Failure: &agentwire.Failure{Kind: kind, Detail: detail},
	}}})
}

func (i *instance) release(reason string) {
	i.t.Helper()
	i.send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Release{Release: &agentwire.Release{Reason: reason}}})
}

// upload is what an instance was sent after the grant.
type upload struct {
	body      bytes.Buffer
	whole     bool // a BodyEnd came that was not aborted
	aborted   bool // a BodyEnd came that was
	cancelled bool
	err       error // end of the stream; nil if reading stopped before it
}

// read reads what the gateway sends until stop is content, or until the stream
// ends.
func (i *instance) read(stop func(u *upload) bool) *upload {
	i.t.Helper()
	u := &upload{}
	for !stop(u) {
		reply, err := i.stream.Recv()
		if err != nil {
			u.err = err
			return u
		}
		switch kind := reply.GetKind().(type) {
		case *agentwire.AttemptReply_Body:
			u.body.Write(kind.Body)
		case *agentwire.AttemptReply_BodyEnd:
			u.aborted = kind.BodyEnd.GetAborted()
			u.whole = !u.aborted
		case *agentwire.AttemptReply_Cancel:
			u.cancelled = true
		}
	}
	return u
}

func bodyEnded(u *upload) bool { return u.whole || u.aborted }
func never(*upload) bool       { return false }

// cancelled reads until the gateway cancels the attempt.
func (i *instance) cancelled() {
	i.t.Helper()
	if u := i.read(func(u *upload) bool { return u.cancelled }); !u.cancelled {
		i.t.Errorf("the attempt was not cancelled, but ended with %v", u.err)
	}
}

// ended reads until the gateway ends the stream and checks that it ends well.
func (i *instance) ended() *upload {
	i.t.Helper()
	u := i.read(never)
	if !errors.Is(u.err, io.EOF) {
		i.t.Errorf("the gateway ended the attempt with %v", u.err)
	}
	return u
}
