package callwire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind is what a frame says.
type Kind uint8

// The kinds. Their numbers never change.
const (
	KindHello    Kind = 1  // agent: who it is
	KindWelcome  Kind = 2  // gateway: what both speak
	KindClaim    Kind = 3  // agent: asks for the call of a ticket
	KindCall     Kind = 4  // gateway: the call, claimed or by a credit
	KindRefused  Kind = 5  // gateway: there is no call for a claim
	KindHead     Kind = 6  // agent: the head of an answer
	KindBody     Kind = 7  // both: a part of a body
	KindEnd      Kind = 8  // both: the end of a body, or of the attempt
	KindRelease  Kind = 9  // agent: the function has seen nothing of the call
	KindCancel   Kind = 10 // gateway: nobody waits for the answer
	KindWindow   Kind = 11 // both: more of a body may come
	KindLend     Kind = 12 // agent: more credits
	KindTakeBack Kind = 13 // agent: fewer credits
	KindReturn   Kind = 14 // gateway: gives credits back
	KindPing     Kind = 15 // both: asks whether the other side is there
	KindPong     Kind = 16 // both: the answer
	KindNode     Kind = 17 // agent: whether its node is busy
	KindLongWait Kind = 18 // agent: whether a call by a credit has long waited for a core of its node
	KindGiveUp   Kind = 19 // gateway: asks for a Release of such a call, unless it has begun
)

// Flags of frames.
const (
	// FlagWhole says that a Call or a Head has the whole body, so that no Body and, in the
	// agent's direction, no End follows.
	FlagWhole uint8 = 1 << iota
	// FlagKeeps says, in an agent's last frame of a call, that the call's place stays with the
	// gateway as a credit.
	FlagKeeps
	// FlagNoCredit says, in a Release, that the agent had taken the credit back before the
	// Call came.
	FlagNoCredit
	// FlagCut says, in an End of the gateway, that the client broke off its request.
	FlagCut
	// FlagCold says, in a Head, that the call is the first of its instance.
	FlagCold
	// FlagExpect says, in a Call, that the client waits for 100 Continue before it sends its
	// body.
	FlagExpect
	// FlagBusy says, in a Node, that more threads want to run on the node than it has cores.
	FlagBusy
)

const (
	// headerLen is the length of a frame's header: the length of its payload (4 bytes), its
	// kind, its flags, two bytes that are zero, and the number of its call (4 bytes).
	headerLen = 12
	// MaxPayload bounds the payload of a frame: a head of 1 MiB and a whole body.
	MaxPayload = 2 << 20
	// MaxFirst bounds the payload of the first frame of a connection.
	MaxFirst = 16 << 10
	// InitialWindow is how much of a body in frames of its own may be on its way at first,
	// in bytes, in each direction of a call.
	InitialWindow = 64 << 10
	// MaxBody is the longest part of a body that one frame has.
	MaxBody = 32 << 10
	// WholeBody is the longest body that a Call or a Head has.
	WholeBody = 64 << 10
)

// ErrFrame says that a frame breaks the rules.
var ErrFrame = errors.New("callwire: the frame is not valid")

// Frame is a frame as it comes. Its payload is valid until the next one is read.
type Frame struct {
	Kind    Kind
	Flags   uint8
	Call    uint32
	Payload []byte
}

// Has reports whether a flag is set.
func (f Frame) Has(flag uint8) bool { return f.Flags&flag != 0 }

// ByGateway reports whether a call was begun by the gateway.
func ByGateway(call uint32) bool { return call%2 == 0 }

// AppendFrame appends a frame whose payload is what payload appends; nil appends none.
func AppendFrame(b []byte, kind Kind, flags uint8, call uint32, payload func([]byte) []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, byte(kind), flags, 0, 0)
	b = binary.BigEndian.AppendUint32(b, call)
	if payload != nil {
		b = payload(b)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-headerLen))
	return b
}

// parseFrame reads the frame at the beginning of b. need is how many bytes it takes; b has the
// whole frame if it has as many.
func parseFrame(b []byte, limit int) (f Frame, need int, err error) {
	if len(b) < headerLen {
		return Frame{}, headerLen, nil
	}
	n := binary.BigEndian.Uint32(b)
	if n > uint32(limit) {
		return Frame{}, 0, fmt.Errorf("%w: its payload has %d bytes, more than %d", ErrFrame, n, limit)
	}
	need = headerLen + int(n)
	f = Frame{Kind: Kind(b[4]), Flags: b[5], Call: binary.BigEndian.Uint32(b[8:])}
	if len(b) >= need {
		f.Payload = b[headerLen:need:need]
	}
	return f, need, nil
}

// Appending and reading the fields of a payload. A field is a varint, or a length and as many
// bytes. A reader takes zero for what is missing, and remembers that a length was wrong.

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reader reads fields. It returns zero values once broken is set.
type reader struct {
	rest   []byte
	broken bool
}

// uint reads a number, 0 at the end of the payload.
func (r *reader) uint() uint64 {
	if len(r.rest) == 0 {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.broken, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// bytes reads a length and as many bytes, which stay part of the payload.
func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.rest)) {
		r.broken, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) string() string { return string(r.bytes()) }

func (r *reader) err(kind Kind) error {
	if r.broken {
		return fmt.Errorf("%w: a field of kind %d is cut off", ErrFrame, kind)
	}
	return nil
}
