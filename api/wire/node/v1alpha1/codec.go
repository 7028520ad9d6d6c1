package nodewire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Unmarshal is proto.Unmarshal. An ask and the end of a call, which are nearly all that a busy node hears, it decodes itself: a
// node agent sleeps between two of them, and the way through tables of types is then in no cache.
func Unmarshal(b []byte, m proto.Message) error {
	if r, is := m.(*ComputeRequest); is && r.Kind == nil && r.decodeCall(b) {
		return nil
	}
	return proto.Unmarshal(b, m)
}

// MarshalAppend is that of package proto. A grant, which is nearly all that a node agent says, it encodes itself, for the
// same reason.
func MarshalAppend(b []byte, m proto.Message) ([]byte, error) {
	if r, is := m.(*ComputeReply); is && r.GetGrant() != nil {
		return appendGrant(b, r.GetGrant().GetAsk()), nil
	}
	return proto.MarshalOptions{}.MarshalAppend(b, m)
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

// decodeCall decodes an ask or the end of a call. It is false for everything else, also if a later release says more in them.
func (x *ComputeRequest) decodeCall(b []byte) bool {
	field, wireType, n := protowire.ConsumeTag(b)
	if n < 0 || wireType != protowire.BytesType {
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
