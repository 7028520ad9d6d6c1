package wiretest

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Numbers that no release has given away.
const (
	unknownField = 18_000
	unknownValue = 18_000
)

// Beyond is a message that says only what no release so far knows, such as a member of
// its oneof that is new.
func Beyond[M proto.Message](m M) M {
	proto.Reset(m)
	m.ProtoReflect().SetUnknown(unknown())
	return m
}

// Newer is a copy of a message as a later release may write it: with a field more in it
// and in every message that it has.
func Newer[M proto.Message](m M) M {
	newer := proto.CloneOf(m)
	eachMessage(newer.ProtoReflect(), func(in protoreflect.Message) { in.SetUnknown(append(in.GetUnknown(), unknown()...)) })
	return newer
}

// Renamed is a copy of a message in which every enum has a value that no release so far
// knows. It tells whether there was one.
func Renamed[M proto.Message](m M) (M, bool) {
	renamed, changed := proto.CloneOf(m), false
	eachMessage(renamed.ProtoReflect(), func(in protoreflect.Message) {
		in.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if field.Kind() == protoreflect.EnumKind && !field.IsList() {
				in.Set(field, protoreflect.ValueOfEnum(unknownValue))
				changed = true
			}
			return true
		})
	})
	return renamed, changed
}

func unknown() []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, unknownField, protowire.BytesType), []byte("what a later release says"))
}

// eachMessage visits a message and all that are in it.
func eachMessage(m protoreflect.Message, visit func(protoreflect.Message)) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				eachMessage(value.List().Get(i).Message(), visit)
			}
		default:
			eachMessage(value.Message(), visit)
		}
		return true
	})
	visit(m)
}
