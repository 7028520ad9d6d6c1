package callwire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Field is a header or a trailer.
type Field = invocation.Field

// ALPN is the protocol that agents and gateways agree on in the handshake of TLS, so that no
// connection is taken for one that carries something else. Releases that differ only in frames
// that one of them ignores have the same; Hello and Welcome say the rest.
const ALPN = "windlass-call/1"

// Hello is the first frame of a connection.
type Hello struct {
	// CID is the instance's. It proves nothing: only a valid Claim does.
	CID string
	// ProtocolMin and ProtocolMax are the oldest and the newest protocol that the agent
	// speaks, and Features what it understands beyond them.
	ProtocolMin, ProtocolMax uint32
	Features                 []string
	// Release is for people; no decision depends on it.
	Release string
	// Resume is that of the Welcome of the agent's last connection to this gateway, if it
	// broke, and Seen the highest number of a Call by a credit that came there: the gateway
	// may give later ones to another instance.
	Resume [16]byte
	Seen   uint32
}

// Welcome answers a Hello.
type Welcome struct {
	// Protocol is the newest that both speak; 0 if there is none, after which the gateway
	// closes the connection.
	Protocol uint32
	Features []string
	Release  string
	// Resume names the connection, and only this agent knows it.
	Resume [16]byte
}

// Claim asks for the call of a ticket.
type Claim struct {
	Invocation invocation.ID
	Token      invocation.Token
}

// Call is a call for the function.
type Call struct {
	Invocation invocation.ID
	// Attempt counts from 1.
	Attempt int
	// Remaining is how long the function may take. With 0 the call does not begin.
	Remaining time.Duration
	// Method, RequestURI (path and query behind the function's own prefix) and Host are the
	// client's, and Header has end-to-end headers only.
	Method, RequestURI, Host string
	Header                   []Field
	// ContentLength is -1 if it is not known.
	ContentLength int64
	// Trailer has the names of the trailers that the client announced.
	Trailer []string
	// Upgrade lists the protocols that the client asks to switch to.
	Upgrade string
	// ExpectContinue says that the client waits for 100 Continue before it sends its body.
	ExpectContinue bool
	// Body is the whole body if Whole is set. It is valid as long as the frame.
	Whole bool
	Body  []byte
	// CoreWait is how long the call has waited for cores of nodes at instances that gave it up.
	CoreWait time.Duration
}

// Refusal says why there is no call for a claim.
type Refusal uint8

// The refusals.
const (
	// RefusedNotWaiting says that another instance has claimed the call, or that it has ended.
	RefusedNotWaiting Refusal = 1
	// RefusedBadToken says that the token is not the ticket's.
	RefusedBadToken Refusal = 2
)

// Head is the head of an answer, or an interim answer if Status is below 200 and not 101.
type Head struct {
	// Status is from 100 to 599. With 101 the function switches to the protocol Upgrade.
	Status  int
	Upgrade string
	Header  []Field
	// ContentLength is -1 if the function did not set it.
	ContentLength int64
	// Trailer has the names of the announced trailers.
	Trailer []string
	// FunctionError is not empty if the runtime reported an error of the handler.
	FunctionError string
	// BegunAfter is how long after its frame the function got the call, and Exec how long it
	// has run since.
	BegunAfter, Exec time.Duration
	Cold             bool
	// Body is the whole body if Whole is set: then the head is also the end of the answer, and
	// Keeps is as in End. Body is valid as long as the frame.
	Whole, Keeps bool
	Body         []byte
	// CoreWait is how long the call waited for a core of its node: within BegunAfter, or before
	// the claim if it is longer.
	CoreWait time.Duration
}

// FailureKind is why an attempt failed.
type FailureKind uint8

// The failures; 0 is none.
const (
	// FailureFunctionLost says that the function broke off the call, or ended.
	FailureFunctionLost FailureKind = 1
	// FailureBadAnswer says that its answer is not valid in its protocol.
	FailureBadAnswer FailureKind = 2
	// FailureTimedOut says that the call ran out of time.
	FailureTimedOut FailureKind = 3
	// FailureBodyTooLarge says that the function did not get the call, because its protocol
	// takes no body as large.
	FailureBodyTooLarge FailureKind = 4
	// FailureUnsendable says that the function did not get the call, because its protocol has no
	// such request.
	FailureUnsendable FailureKind = 5
	// FailureTooLate says that the call ran out of time before the function got it.
	FailureTooLate FailureKind = 6
)

// End ends a request's body, or an answer.
type End struct {
	// Trailer has the trailers of the body.
	Trailer []Field
	// Cut says, of a request, that the client broke it off.
	Cut bool
	// Failure says why there is no good answer, and Detail the same to a person.
	Failure FailureKind
	Detail  string
	// Exec is how long the attempt ran.
	Exec time.Duration
	// Keeps says that the call's place stays with the gateway as a credit.
	Keeps bool
}

// Release says that the function has seen nothing of a call.
type Release struct {
	Reason string
	// Keeps is as in End. NoCredit says that the gateway had no credit any more when it sent
	// the call.
	Keeps, NoCredit bool
}

func flagIf(set bool, flag uint8) uint8 {
	if set {
		return flag
	}
	return 0
}

func appendFields(b []byte, fields []Field) []byte {
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		b = appendString(appendString(b, f.Name), f.Value)
	}
	return b
}

// fields reads headers. All their text is one string.
func (r *reader) fields() []Field {
	n := r.uint()
	if n == 0 {
		return nil
	}
	if n > uint64(len(r.rest))/2 { // each takes two bytes or more
		r.broken, r.rest = true, nil
		return nil
	}
	scan, size := *r, 0
	for range n {
		scan.broken = scan.broken || len(scan.rest) < 2
		size += len(scan.bytes()) + len(scan.bytes())
	}
	if scan.broken {
		r.broken, r.rest = true, nil
		return nil
	}
	var text strings.Builder
	text.Grow(size)
	for scan = *r; text.Len() < size; {
		text.Write(scan.bytes())
	}
	all, fields := text.String(), make([]Field, n)
	for i := range fields {
		name := len(r.bytes())
		value := len(r.bytes())
		fields[i] = Field{Name: all[:name], Value: all[name : name+value]}
		all = all[name+value:]
	}
	return fields
}

func appendNames(b []byte, names []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = appendString(b, name)
	}
	return b
}

func (r *reader) names() []string {
	n := r.uint()
	if n > uint64(len(r.rest)) { // each takes a byte or more
		r.broken, r.rest = true, nil
		return nil
	}
	if n == 0 {
		return nil
	}
	names := make([]string, 0, n)
	for range n {
		names = append(names, r.string())
	}
	return names
}

// appendLength appends a length; -1 stands for one that is not known.
func appendLength(b []byte, n int64) []byte { return binary.AppendUvarint(b, uint64(n+1)) }

func (r *reader) length() int64 {
	n := r.uint()
	if n > math.MaxInt64 {
		r.broken = true
		return -1
	}
	return int64(n) - 1
}

func (r *reader) duration() time.Duration { return time.Duration(min(r.uint(), math.MaxInt64)) }

func appendDuration(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64(max(0, d)))
}

// byte reads a number of an enumeration. What does not fit stands for a value that only later
// releases know.
func (r *reader) byte() uint8 { return uint8(min(r.uint(), math.MaxUint8)) }

func (r *reader) array16() (a [16]byte) {
	b := r.bytes()
	if len(b) != len(a) && len(b) != 0 {
		r.broken = true
	}
	copy(a[:], b)
	return a
}

// Append appends the frame of h.
func (h *Hello) Append(b []byte) []byte {
	return AppendFrame(b, KindHello, 0, 0, func(b []byte) []byte {
		b = appendString(b, h.CID)
		b = binary.AppendUvarint(b, uint64(h.ProtocolMin))
		b = binary.AppendUvarint(b, uint64(h.ProtocolMax))
		b = appendNames(b, h.Features)
		b = appendString(b, h.Release)
		b = appendBytes(b, h.Resume[:])
		return binary.AppendUvarint(b, uint64(h.Seen))
	})
}

// ParseHello reads a Hello.
func ParseHello(f Frame) (Hello, error) {
	r := reader{rest: f.Payload}
	h := Hello{CID: r.string(), ProtocolMin: uint32(r.uint()), ProtocolMax: uint32(r.uint()), Features: r.names(), Release: r.string()}
	h.Resume, h.Seen = r.array16(), uint32(r.uint())
	if f.Kind != KindHello {
		return h, fmt.Errorf("%w: the first frame must be a hello", ErrFrame)
	}
	return h, r.err(f.Kind)
}

// Append appends the frame of w.
func (w *Welcome) Append(b []byte) []byte {
	return AppendFrame(b, KindWelcome, 0, 0, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(w.Protocol))
		b = appendNames(b, w.Features)
		b = appendString(b, w.Release)
		return appendBytes(b, w.Resume[:])
	})
}

// ParseWelcome reads a Welcome.
func ParseWelcome(f Frame) (Welcome, error) {
	r := reader{rest: f.Payload}
	w := Welcome{Protocol: uint32(r.uint()), Features: r.names(), Release: r.string(), Resume: r.array16()}
	if f.Kind != KindWelcome {
		return w, fmt.Errorf("%w: the gateway's first frame must be a welcome", ErrFrame)
	}
	return w, r.err(f.Kind)
}

// AppendClaim appends the frame of a claim under a number.
func AppendClaim(b []byte, call uint32, c Claim) []byte {
	return AppendFrame(b, KindClaim, 0, call, func(b []byte) []byte {
		return appendBytes(appendBytes(b, c.Invocation[:]), c.Token[:])
	})
}

// ParseClaim reads a Claim.
func ParseClaim(f Frame) (Claim, error) {
	r := reader{rest: f.Payload}
	c := Claim{Invocation: r.array16(), Token: r.array16()}
	return c, r.err(f.Kind)
}

// Append appends the frame of a call under a number.
func (c *Call) Append(b []byte, call uint32) []byte {
	flags := flagIf(c.Whole, FlagWhole) | flagIf(c.ExpectContinue, FlagExpect)
	return AppendFrame(b, KindCall, flags, call, func(b []byte) []byte {
		b = appendBytes(b, c.Invocation[:])
		b = binary.AppendUvarint(b, uint64(c.Attempt))
		b = appendDuration(b, c.Remaining)
		b = appendString(b, c.Method)
		b = appendString(b, c.RequestURI)
		b = appendString(b, c.Host)
		b = appendFields(b, c.Header)
		b = appendLength(b, c.ContentLength)
		b = appendNames(b, c.Trailer)
		b = appendString(b, c.Upgrade)
		b = appendBytes(b, c.Body)
		return appendDuration(b, c.CoreWait)
	})
}

// ParseCall reads a Call.
func ParseCall(f Frame) (Call, error) {
	r := reader{rest: f.Payload}
	c := Call{Invocation: r.array16(), Attempt: int(uint32(r.uint())), Remaining: r.duration()}
	c.Method, c.RequestURI, c.Host = r.string(), r.string(), r.string()
	c.Header, c.ContentLength, c.Trailer, c.Upgrade = r.fields(), r.length(), r.names(), r.string()
	c.Body, c.Whole, c.ExpectContinue = r.bytes(), f.Has(FlagWhole), f.Has(FlagExpect)
	c.CoreWait = r.duration()
	return c, r.err(f.Kind)
}

// AppendRefused appends a Refused of a claim.
func AppendRefused(b []byte, call uint32, why Refusal) []byte {
	return AppendFrame(b, KindRefused, 0, call, func(b []byte) []byte { return binary.AppendUvarint(b, uint64(why)) })
}

// ParseRefused reads a Refused.
func ParseRefused(f Frame) (Refusal, error) {
	r := reader{rest: f.Payload}
	why := Refusal(r.byte())
	return why, r.err(f.Kind)
}

// Append appends the frame of a head of the answer to a call.
func (h *Head) Append(b []byte, call uint32) []byte {
	flags := flagIf(h.Whole, FlagWhole) | flagIf(h.Keeps, FlagKeeps) | flagIf(h.Cold, FlagCold)
	return AppendFrame(b, KindHead, flags, call, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(h.Status))
		b = appendFields(b, h.Header)
		b = appendLength(b, h.ContentLength)
		b = appendDuration(appendDuration(b, h.BegunAfter), h.Exec)
		b = appendNames(b, h.Trailer)
		b = appendString(b, h.Upgrade)
		b = appendString(b, h.FunctionError)
		b = appendBytes(b, h.Body)
		return appendDuration(b, h.CoreWait)
	})
}

// ParseHead reads a Head.
func ParseHead(f Frame) (Head, error) {
	r := reader{rest: f.Payload}
	h := Head{Status: int(uint32(r.uint())), Header: r.fields(), ContentLength: r.length(), BegunAfter: r.duration(), Exec: r.duration()}
	h.Trailer, h.Upgrade, h.FunctionError, h.Body = r.names(), r.string(), r.string(), r.bytes()
	h.CoreWait = r.duration()
	h.Whole, h.Keeps, h.Cold = f.Has(FlagWhole), f.Has(FlagKeeps), f.Has(FlagCold)
	return h, r.err(f.Kind)
}

// AppendBody appends a part of a body, of at most MaxBody bytes.
func AppendBody(b []byte, call uint32, part []byte) []byte {
	return AppendFrame(b, KindBody, 0, call, func(b []byte) []byte { return append(b, part...) })
}

// Append appends the frame of the end of a call's body or answer.
func (e *End) Append(b []byte, call uint32) []byte {
	return AppendFrame(b, KindEnd, flagIf(e.Keeps, FlagKeeps)|flagIf(e.Cut, FlagCut), call, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(e.Failure))
		b = appendDuration(b, e.Exec)
		b = appendFields(b, e.Trailer)
		return appendString(b, e.Detail)
	})
}

// ParseEnd reads an End.
func ParseEnd(f Frame) (End, error) {
	r := reader{rest: f.Payload}
	e := End{Failure: FailureKind(r.byte()), Exec: r.duration(), Trailer: r.fields(), Detail: r.string()}
	e.Keeps, e.Cut = f.Has(FlagKeeps), f.Has(FlagCut)
	return e, r.err(f.Kind)
}

// Append appends the frame of a release of a call.
func (l *Release) Append(b []byte, call uint32) []byte {
	return AppendFrame(b, KindRelease, flagIf(l.Keeps, FlagKeeps)|flagIf(l.NoCredit, FlagNoCredit), call, func(b []byte) []byte {
		return appendString(b, l.Reason)
	})
}

// ParseRelease reads a Release.
func ParseRelease(f Frame) (Release, error) {
	r := reader{rest: f.Payload}
	l := Release{Reason: r.string(), Keeps: f.Has(FlagKeeps), NoCredit: f.Has(FlagNoCredit)}
	return l, r.err(f.Kind)
}

// AppendNode appends a Node.
func AppendNode(b []byte, busy bool) []byte {
	return AppendFrame(b, KindNode, flagIf(busy, FlagBusy), 0, nil)
}

// ParseNode reads a Node.
func ParseNode(f Frame) (busy bool, err error) { return f.Has(FlagBusy), nil }

// AppendLongWait appends a LongWait of a call by a credit: how long it has waited for a core of its
// node, or 0 once it does not wait any more.
func AppendLongWait(b []byte, call uint32, waited time.Duration) []byte {
	return AppendFrame(b, KindLongWait, 0, call, func(b []byte) []byte { return appendDuration(b, waited) })
}

// ParseLongWait reads a LongWait.
func ParseLongWait(f Frame) (waited time.Duration, err error) {
	r := reader{rest: f.Payload}
	waited = r.duration()
	return waited, r.err(f.Kind)
}

// AppendCount appends a Window, whose count is bytes of a call, or a Lend, a TakeBack or a
// Return, whose count is credits.
func AppendCount(b []byte, kind Kind, call, n uint32) []byte {
	return AppendFrame(b, kind, 0, call, func(b []byte) []byte { return binary.AppendUvarint(b, uint64(n)) })
}

// ParseCount reads the count of a Window, a Lend, a TakeBack or a Return.
func ParseCount(f Frame) (uint32, error) {
	r := reader{rest: f.Payload}
	n := r.uint()
	if n > math.MaxUint32 {
		r.broken = true
	}
	return uint32(n), r.err(f.Kind)
}
