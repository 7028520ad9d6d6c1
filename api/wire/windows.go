package wire

// Flow-control windows in bytes of the connections of gRPC's servers and clients in the control
// plane. They are fixed, because to adapt them gRPC sends a ping after each message, which costs
// several wake-ups. A stream's window bounds what is held that its reader does not take.
const (
	StreamWindow = 256 << 10
	ConnWindow   = 1 << 20
)

// MaxFirst is the longest first message of a stream in bytes, of a client that has no
// certificate. A hello holds a token of some 1,500 bytes.
const MaxFirst = 16 << 10

// MaxMessage is the longest message in bytes that any side of the wire takes.
const MaxMessage = 4 << 20

// MaxNodeMessage is the longest message in bytes that a node agent takes, the first one too: instances tell it
// numbers only, and it serves those of all tenants.
const MaxNodeMessage = 4 << 10
