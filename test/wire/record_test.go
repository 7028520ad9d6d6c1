package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// play lets a story happen among the programs of this tree, and returns what they said.
func play(t *testing.T, s story) (lines []line) {
	n := newNetwork(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(n)
		w := newHarness(t, n, func(string) bool { return true }, func(d action) { r.add(line{Seen: &d}) })
		w.recorder = r
		w.begin()
		for act := range strings.Lines(strings.TrimSpace(s.script)) {
			after, what, _ := strings.Cut(strings.TrimSpace(act), " ")
			pause, err := time.ParseDuration(after)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			synctest.Wait()
			r.add(line{Do: strings.TrimSpace(what)})
			w.act(what)
			synctest.Wait()
		}
		lines = r.stop()
		w.end()
	})
	return lines
}

// recorder writes down what servers hear and say.
type recorder struct {
	network *network
	began   time.Time

	mu      sync.Mutex
	over    bool
	streams int
	lines   []*line
}

func newRecorder(n *network) *recorder { return &recorder{network: n, began: time.Now()} }

func (r *recorder) stop() []line {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	lines := make([]line, len(r.lines))
	for i, l := range r.lines {
		lines[i] = *l
	}
	return lines
}

func (r *recorder) add(l line) *line {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.At = elapsed(time.Since(r.began))
	if !r.over {
		r.lines = append(r.lines, &l)
	}
	return &l
}

// drop takes back what could not be said.
func (r *recorder) drop(unsaid *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = slices.DeleteFunc(r.lines, func(l *line) bool { return l == unsaid })
}

func (r *recorder) open(ctx context.Context, role, method string) (stream int) {
	from, _ := peer.FromContext(ctx)
	r.mu.Lock()
	r.streams++
	stream = r.streams
	r.mu.Unlock()
	r.add(line{Stream: stream, Opens: &opening{Client: from.Addr.String(), Server: role, Method: method}})
	return stream
}

func (r *recorder) say(stream int, by string, m any) *line {
	text, err := protojson.Marshal(m.(proto.Message))
	if err != nil {
		panic(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		panic(err)
	}
	return r.add(line{Stream: stream, By: by, Message: r.named(compact.Bytes())})
}

// named has the names of roles instead of their addresses.
func (r *recorder) named(text []byte) []byte {
	for role, addr := range r.network.addrs {
		text = bytes.ReplaceAll(text, []byte(addr), []byte(recordedAddr(role)))
	}
	return text
}

func (r *recorder) end(stream int, by string, how codes.Code) {
	r.add(line{Stream: stream, By: by, Ends: how.String()})
}

// overheard lets the streams of a service be overheard, whatever server they are served by.
func (r *recorder) overheard(role string, service *grpc.ServiceDesc) *grpc.ServiceDesc {
	copied := *service
	copied.Streams = slices.Clone(service.Streams)
	for i, of := range copied.Streams {
		method := "/" + service.ServiceName + "/" + of.StreamName
		copied.Streams[i].Handler = func(srv any, stream grpc.ServerStream) error {
			heard := &captured{ServerStream: stream, recorder: r, number: r.open(stream.Context(), role, method)}
			err := of.Handler(srv, heard)
			heard.end(stream.Context(), err)
			return err
		}
	}
	return &copied
}

// options let the calls with one message be overheard that the server of a role gets.
func (r *recorder) options(role string) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			n := r.open(ctx, role, info.FullMethod)
			r.say(n, client, request)
			r.end(n, client, codes.OK)
			reply, err := handler(ctx, request)
			if err == nil {
				r.say(n, server, reply)
			}
			r.end(n, server, status.Code(err))
			return reply, err
		}),
	}
}

// captured is a stream as its server sees it.
type captured struct {
	grpc.ServerStream
	recorder *recorder
	number   int
	mu       sync.Mutex
	said     bool // the client has ended it
}

// SendMsg notes what is said before it is, so that what follows from it comes later.
func (o *captured) SendMsg(m any) error {
	l := o.recorder.say(o.number, server, m)
	err := o.ServerStream.SendMsg(m)
	if err != nil {
		o.recorder.drop(l)
	}
	return err
}

func (o *captured) RecvMsg(m any) error {
	err := o.ServerStream.RecvMsg(m)
	switch {
	case err == nil:
		o.recorder.say(o.number, client, m)
	case errors.Is(err, io.EOF):
		o.clientEnds(codes.OK)
	default:
		o.clientEnds(codes.Canceled)
	}
	return err
}

func (o *captured) clientEnds(how codes.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.said {
		o.said = true
		o.recorder.end(o.number, client, how)
	}
}

func (o *captured) end(ctx context.Context, err error) {
	if ctx.Err() != nil {
		o.clientEnds(codes.Canceled)
	}
	o.recorder.end(o.number, server, status.Code(err))
}
