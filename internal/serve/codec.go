package serve

import "google.golang.org/protobuf/proto"

// Messages may know a shorter way than that of package proto for some of what they say.
type (
	encoder interface {
		Encode(b []byte) (encoded []byte, ok bool)
	}
	decoder interface{ Decode(b []byte) (ok bool) }
)

// encode appends a message.
func encode(b []byte, m proto.Message) ([]byte, error) {
	if short, is := m.(encoder); is {
		if encoded, ok := short.Encode(b); ok {
			return encoded, nil
		}
	}
	return proto.MarshalOptions{}.MarshalAppend(b, m)
}

// decode decodes into an empty message.
func decode(b []byte, m proto.Message) error {
	if short, is := m.(decoder); is && short.Decode(b) {
		return nil
	}
	return proto.Unmarshal(b, m)
}
