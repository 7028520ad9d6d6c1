package invocation

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID identifies an invocation: 48 bits of milliseconds since 1970, so that ids
// sort by time, and 80 random bits.
type ID [16]byte

// NewID mints an ID at the given time.
func NewID(now time.Time) ID {
	var id ID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(id[:6], ms[2:])
	rand.Read(id[6:])
	return id
}

// String is the id as 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText is String.
func (id ID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText is ParseID.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// Time is when it was minted, to the millisecond.
func (id ID) Time() time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:])))
}

// ParseID reads what String wrote.
func ParseID(s string) (ID, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(ID{}) {
		return ID{}, fmt.Errorf("invocation: the id %q is not 32 hexadecimal digits", s)
	}
	return ID(b), nil
}

// IDFromBytes reads an id from the wire.
func IDFromBytes(b []byte) (ID, error) {
	if len(b) != len(ID{}) {
		return ID{}, fmt.Errorf("invocation: the id has %d bytes, want %d", len(b), len(ID{}))
	}
	return ID(b), nil
}

// Token is a secret of 128 random bits that a ticket carries and a claim must repeat, so that
// an instance can claim only calls that it was handed.
type Token [16]byte

// NewToken makes a Token.
func NewToken() Token {
	var t Token
	rand.Read(t[:])
	return t
}

// TokenFromBytes reads a token from the wire. A token of the wrong length
// becomes the zero Token, which no ticket carries.
func TokenFromBytes(b []byte) Token {
	if len(b) != len(Token{}) {
		return Token{}
	}
	return Token(b)
}

// Equal compares in constant time, so that the time of a refusal does not reveal how much of a
// guess was right.
func (t Token) Equal(other Token) bool { return subtle.ConstantTimeCompare(t[:], other[:]) == 1 }

// CID is an instance's id within its function and its rank in the pull order:
// CIDs are compared as strings, and the first one pulls first.
type CID string

// Rank is an instance's place among those that could take a call. Schedulers and gateways rank alike.
type Rank struct {
	// NodeBusy says that more threads want to run on its node than there are cores.
	NodeBusy bool
	CID      CID
}

// Before reports whether an instance gets a call before another one: those of calm nodes come first, and then
// those with the alphabetically first CIDs.
func (r Rank) Before(other Rank) bool {
	if r.NodeBusy != other.NodeBusy {
		return other.NodeBusy
	}
	return r.CID < other.CID
}

// Term is the time in which one scheduler is responsible for a function.
type Term struct {
	// Epoch is that of the function's slot; 0 if it never had an owner.
	Epoch uint64
	// Standby is empty for the owner. A scheduler that acts for an unresponsive owner puts
	// its own name here, in hexadecimal digits, since both may create instances in one epoch.
	Standby string
}

// CID names the seq-th instance that was created in the term. The CIDs of a revision rise with
// epoch and sequence, so older instances pull first and the youngest become idle; those of a
// standby come last in their epoch. The same arguments always give the same name.
func (t Term) CID(seq uint64) CID {
	if t.Standby != "" {
		return CID(fmt.Sprintf("%08x-h%s-%06x", t.Epoch, t.Standby, seq))
	}
	return CID(fmt.Sprintf("%08x-%06x", t.Epoch, seq))
}

// Epoch is that of the term in which an instance was named, with or without its revision before
// the term's CID; false for another name.
func (c CID) Epoch() (epoch uint64, ok bool) {
	parts := strings.Split(string(c), "-")
	at := len(parts) - 2
	if at > 0 && strings.HasPrefix(parts[at], "h") {
		at--
	}
	if at < 0 {
		return 0, false
	}
	// A bit less than there are, so that there are later ones.
	epoch, err := strconv.ParseUint(parts[at], 16, 63)
	if err != nil {
		return 0, false
	}
	return epoch, true
}

// Ticket is the note that an invocation waits at a gateway.
type Ticket struct {
	ID ID
	// Token must be repeated by the claim.
	Token Token
	// Gateway is the address at which to claim, host:port.
	Gateway string
	// Arrived is when the call was admitted, on the local clock: tickets
	// are served in this order.
	Arrived time.Time
	// Deadline is when the client no longer waits for the call, on the local clock.
	Deadline time.Time
}
