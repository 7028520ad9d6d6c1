package nodewire

import "google.golang.org/protobuf/encoding/protowire"

// A node agent sleeps between two messages, so the way of package proto through tables of types is in no cache. Nearly all that
// a busy node hears are asks and ends of calls, and nearly all that it says are grants: those know a shorter way.

// Encode appends the encoded reply. It is false if only package proto knows how.
func (x *ComputeReply) Encode(b []byte) ([]byte, bool) {
	if x.GetGrant() == nil {
		return b, false
	}
	return appendGrant(b, x.GetGrant().GetAsk()), true
}

// Decode decodes an ask or the end of a call into an empty request. It is false for everything else, also if a later release says
// more in them.
func (x *ComputeRequest) Decode(b []byte) bool {
	field, wireType, n := protowire.ConsumeTag(b)
	if x.Kind != nil || n < 0 || wireType != protowire.BytesType {
		return false
	}
	inner, m := protowire.ConsumeBytes(b[n:])
	if m < 0 || n+m < len(b) {
		return false
	}
	switch field {
	case askField:
		if members, ok := numbers(inner, 2); ok {
			x.Kind = &ComputeRequest_Ask{Ask: &Ask{Ask: members[1], WaitedNs: int64(members[2])}}
		}
	case endedField:
		if members, ok := numbers(inner, 1); ok {
			x.Kind = &ComputeRequest_Ended{Ended: &Ended{Refused: members[1] != 0}}
		}
	}
	return x.Kind != nil
}

// appendGrant appends a reply that is a grant.
func appendGrant(b []byte, ask uint64) []byte {
	b = protowire.AppendTag(b, grantField, protowire.BytesType)
	if ask == 0 {
		return append(b, 0)
	}
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeVarint(ask)))
	return protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), ask)
}

// Fields of ComputeRequest, and of ComputeReply.
const (
	askField, endedField = 3, 4
	grantField           = 3
)

// numbers reads the members of a message, from 1 to at most 2, that are all numbers. It is false if there is another one.
func numbers(b []byte, most protowire.Number) (members [3]uint64, ok bool) {
	for len(b) > 0 {
		member, wireType, n := protowire.ConsumeTag(b)
		if n < 0 || member > most || wireType != protowire.VarintType {
			return members, false
		}
		value, m := protowire.ConsumeVarint(b[n:])
		if m < 0 {
			return members, false
		}
		members[member], b = value, b[n+m:]
	}
	return members, true
}
