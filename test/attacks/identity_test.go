package attacks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// unauthenticated and the like are how the scheduler refuses a hello.
const (
	unauthenticated = onTheWire + "{code=Unauthenticated}"
	invalid         = onTheWire + "{code=InvalidArgument}"
	tooMuch         = onTheWire + "{code=ResourceExhausted}"
	tooSlow         = onTheWire + "{code=DeadlineExceeded}"
	notAllowed      = onTheWire + "{code=PermissionDenied}"
)

// refusedHello says hello with a proof for the instance of evil that the attacker
// is, and must be refused with one of the codes.
func refusedHello(proof func(w *platform, own provisioner.Key) string, want ...codes.Code) func(*platform) {
	return func(w *platform) {
		key := w.instanceOf(evil)
		w.refusesHello(key, proof(w, key), want...)
	}
}

func (w *platform) refusesHello(key provisioner.Key, token string, want ...codes.Code) {
	w.Helper()
	stream := w.hello(w.asAgent(), key, token)
	_ = stream.Send(pull(1))
	if err := ends(w, stream.Recv); !slices.Contains(want, status.Code(err)) {
		w.Errorf("refused with %v, want %v", err, want)
	}
}

func claims(changes func(w *platform) map[string]any) func(w *platform, own provisioner.Key) string {
	return func(w *platform, own provisioner.Key) string { return w.token(podOf(own), changes(w)) }
}

var identityAttacks = []attack{
	{"F81", "the queue of another function", unauthenticated, func(w *platform) {
		own := w.instanceOf(evil)
		stolen := provisioner.Key{FunctionUID: "uid-of-" + honest, CID: own.CID}
		w.refusesHello(stolen, w.token(podOf(own), nil), codes.Unauthenticated)
	}},
	{"F81", "an instance of the same function that it is not", unauthenticated, func(w *platform) {
		own := w.instanceOf(evil)
		other := provisioner.Key{FunctionUID: own.FunctionUID, CID: own.CID + "0"}
		w.refusesHello(other, w.token(podOf(own), nil), codes.Unauthenticated)
	}},
	{"F81", "a function that does not exist", "", func(w *platform) {
		own := w.instanceOf(evil)
		w.refusesHello(provisioner.Key{FunctionUID: marker, CID: own.CID}, w.token(podOf(own), nil), codes.Unavailable)
	}},
	{"F83", "an expired token", unauthenticated, refusedHello(claims(func(*platform) map[string]any {
		return map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}
	}), codes.Unauthenticated)},
	{"F83", "a token that is not valid yet", unauthenticated, refusedHello(claims(func(*platform) map[string]any {
		return map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}
	}), codes.Unauthenticated)},
	{"F83", "a token for the API server", unauthenticated, refusedHello(claims(func(*platform) map[string]any {
		return map[string]any{"aud": []string{"https://kubernetes.default.svc"}}
	}), codes.Unauthenticated)},
	{"F83", "a token that is not of a pod", unauthenticated, refusedHello(claims(func(*platform) map[string]any {
		return map[string]any{"kubernetes.io": map[string]any{"namespace": "shop"}}
	}), codes.Unauthenticated)},
	{"F83", "the token of a pod that is gone", unauthenticated, func(w *platform) {
		own := w.instanceOf(evil)
		w.mu.Lock()
		delete(w.pods, podOf(own))
		w.mu.Unlock()
		w.refusesHello(own, w.token(podOf(own), nil), codes.Unauthenticated)
	}},
	{"F83", "a token that another key has signed", unauthenticated, refusedHello(func(w *platform, own provisioner.Key) string {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.Fatal(err)
		}
		return w.signed(key, podOf(own), nil)
	}, codes.Unauthenticated)},
	{"F83", "a token that nobody has signed", unauthenticated, refusedHello(func(w *platform, own provisioner.Key) string {
		parts := strings.Split(w.token(podOf(own), nil), ".")
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k"}`)) + "." + parts[1] + "."
	}, codes.Unauthenticated)},
	{"F84", "no token at all", unauthenticated, refusedHello(func(*platform, provisioner.Key) string { return "" }, codes.Unauthenticated)},
	{"F86", "a hello of 20 KiB", tooMuch, refusedHello(func(w *platform, own provisioner.Key) string {
		return w.token(podOf(own), map[string]any{"x": strings.Repeat(marker, 2<<10)})
	}, codes.ResourceExhausted)},
	{"F86", "a hello that is longer than any message", tooMuch, refusedHello(func(*platform, provisioner.Key) string {
		return strings.Repeat("A", 5<<20)
	}, codes.ResourceExhausted)},
	{"F83", "the identity of an instance that is connected", "", func(w *platform) {
		own := w.instanceOf(evil)
		first := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
		_ = first.Send(pull(1))
		w.until("it has joined", func() bool { return w.counter("windlass_scheduler_instances_started_total{function="+evil+"}") == 1 })
		// The same token once more: there is one stream at a time, the latest.
		second := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
		_ = second.Send(pull(1))
		if err := ends(w, first.Recv); status.Code(err) != codes.Aborted {
			w.Errorf("the first stream ended with %v", err)
		}
		go w.call("/function/evil.shop/attack")
		if _, err := nextTicket(second); err != nil {
			w.Errorf("the second stream suffered: %v", err)
		}
	}},
	{"F86", "10,000 hellos in one stream", invalid, func(w *platform) {
		own := w.instanceOf(evil)
		stream := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
		hello := &agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{FunctionUid: own.FunctionUID, Cid: string(own.CID)}}}
		for range 10_000 {
			if stream.Send(hello) != nil {
				break
			}
		}
		if err := ends(w, stream.Recv); status.Code(err) != codes.InvalidArgument {
			w.Errorf("ended with %v", err)
		}
	}},
	{"F86", "1,000 hellos in as many streams", unauthenticated, func(w *platform) {
		own, conn := w.instanceOf(evil), w.asAgent()
		for range 1_000 {
			stream := w.hello(conn, own, marker)
			if err := ends(w, stream.Recv); status.Code(err) != codes.Unauthenticated {
				w.Fatalf("ended with %v", err)
			}
		}
	}},
	{"F86", "a stream of pulls without a hello", invalid, func(w *platform) {
		stream := w.pulls(w.asAgent())
		_ = stream.Send(pull(1))
		if err := ends(w, stream.Recv); status.Code(err) != codes.InvalidArgument {
			w.Errorf("ended with %v", err)
		}
	}},
	{"F77", "a stream of pulls that says nothing", tooSlow, func(w *platform) {
		if err := ends(w, w.pulls(w.asAgent()).Recv); status.Code(err) != codes.DeadlineExceeded {
			w.Errorf("ended with %v", err)
		}
	}},
	{"F77", "an agent that does not say who it is", tooSlow, func(w *platform) {
		c := w.connected()
		defer c.close()
		_ = c.ends()
	}},
	{"F77", "a connection that never shakes hands", "", func(w *platform) {
		for _, addr := range []string{w.scheduler, w.gateway} {
			conn := w.dial(addr)
			if n, err := io.Copy(io.Discard, conn); n > 0 || isTimeout(err) {
				w.Errorf("%d bytes and %v", n, err)
			}
		}
	}},
}

// ticketOfEvil makes a call to evil and returns its ticket, which the attacker gets
// as the instance that it is.
func (w *platform) ticketOfEvil() (*agentwire.Ticket, pullStream, chan response) {
	w.Helper()
	own := w.instanceOf(evil)
	pulls := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
	_ = pulls.Send(pull(1))
	responses := make(chan response, 1)
	go func() { responses <- w.call("/function/evil.shop/") }()
	ticket, err := nextTicket(pulls)
	if err != nil {
		w.Fatal(err)
	}
	return ticket, pulls, responses
}

func newID() []byte { id := invocation.NewID(time.Now()); return id[:] }
