package podagent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// fakeGateway hands every claim to the test, which speaks for it.
type fakeGateway struct {
	agentwire.UnimplementedGatewayServer
	claims chan *claimed
}

// claimed is the gateway's end of one attempt.
type claimed struct {
	t      *testing.T
	claim  *agentwire.Claim
	stream grpc.BidiStreamingServer[agentwire.AttemptRequest, agentwire.AttemptReply]
	said   chan *agentwire.AttemptRequest
	end    chan error // takes one
}

func (g *fakeGateway) Attempt(stream grpc.BidiStreamingServer[agentwire.AttemptRequest, agentwire.AttemptReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	c := &claimed{claim: first.GetClaim(), stream: stream, said: make(chan *agentwire.AttemptRequest), end: make(chan error, 1)}
	g.claims <- c
	go func() {
		defer close(c.said)
		for {
			msg, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case c.said <- msg:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	select {
	case err := <-c.end:
		return err
	case <-stream.Context().Done():
		return nil
	}
}

func (c *claimed) say(reply *agentwire.AttemptReply) {
	c.t.Helper()
	if err := c.stream.Send(reply); err != nil {
		c.t.Fatal(err)
	}
}

func (c *claimed) grant(g *agentwire.Granted) {
	c.t.Helper()
	if g.RemainingNs == 0 {
		g.RemainingNs = int64(time.Minute)
	}
	c.say(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Granted{Granted: g}})
}

func (c *claimed) refuse() {
	c.t.Helper()
	c.say(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Refused{Refused: &agentwire.Refused{Reason: agentwire.Refused_REASON_NOT_WAITING}}})
	c.end <- nil
}

func (c *claimed) body(text string) {
	c.t.Helper()
	c.say(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Body{Body: []byte(text)}})
}

func (c *claimed) bodyEnd(aborted bool) {
	c.t.Helper()
	c.say(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_BodyEnd{BodyEnd: &agentwire.BodyEnd{Aborted: aborted}}})
}

func (c *claimed) cancel() {
	c.t.Helper()
	c.say(&agentwire.AttemptReply{Kind: &agentwire.AttemptReply_Cancel{Cancel: &agentwire.Cancel{}}})
}

// released tells whether the agent has given the claim up, and ends it if so.
func (c *claimed) released() bool {
	select {
	case msg := <-c.said:
		c.end <- nil
		return msg.GetRelease() != nil
	default:
		return false
	}
}

// hear expects the agent's next words.
func (c *claimed) hear(want ...string) {
	c.t.Helper()
	for _, want := range want {
		msg, ok := <-c.said
		if !ok {
			c.t.Fatalf("the attempt's stream ended, want %q", want)
		}
		if got := tellAttempt(msg); got != want {
			c.t.Fatalf("heard %q, want %q", got, want)
		}
	}
}

// hearEnd expects that the agent says nothing more, and ends the stream.
func (c *claimed) hearEnd() {
	c.t.Helper()
	if msg, ok := <-c.said; ok {
		c.t.Fatalf("heard %q, want the end of the attempt", tellAttempt(msg))
	}
	c.end <- nil
}

func tellAttempt(msg *agentwire.AttemptRequest) string {
	switch kind := msg.GetKind().(type) {
	case *agentwire.AttemptRequest_Release:
		return "release"
	case *agentwire.AttemptRequest_Head:
		text := fmt.Sprintf("head %d", kind.Head.GetStatus())
		if kind.Head.GetCold() {
			text += " cold"
		}
		if e := kind.Head.GetFunctionError(); e != "" {
			text += " error " + e
		}
		if kind.Head.ContentLength != nil && kind.Head.GetContentLength() != int64(len(kind.Head.GetWholeBody())) {
			text += fmt.Sprintf(" promises %d", kind.Head.GetContentLength())
		}
		if kind.Head.GetWhole() {
			text += " whole " + tellBytes(kind.Head.GetWholeBody())
		}
		return text
	case *agentwire.AttemptRequest_Body:
		return "body " + tellBytes(kind.Body)
	case *agentwire.AttemptRequest_End:
		if f := kind.End.GetFailure(); f != nil {
			return "end " + strings.TrimPrefix(f.GetKind().String(), "KIND_")
		}
		return "end"
	}
	return "nonsense"
}

func tellBytes(b []byte) string {
	if len(b) > 32 {
		return fmt.Sprintf("of %d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}
