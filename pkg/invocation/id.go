package invocation

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
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
