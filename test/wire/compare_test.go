package wire

import (
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// kind is what a field says.
type kind int

const (
	meaning kind = iota // is to be the same
	name                // of something, which has another one each time
	text                // for people
	amount              // is to be there, whatever it is
	speech              // what the sender speaks, which later ones speak more of
	list                // of things with a name and a value, of which there may be more
	set                 // whose order means nothing
)

// kinds are those of fields by their names, but for times.
var kinds = map[protoreflect.Name]kind{
	"invocation_id": name, "function_uid": name, "revision": name, "cid": name, "token": name,
	"gateway": name, "address": name, "id": name, "scheduler": name, "trace": name,
	"detail": text, "release": text, "how": text, "message": text, "last_lines": text,
	"resident_bytes": amount, "cpu_ns": amount,
	"protocol_min": speech, "protocol_max": speech, "headers": list, "variables": list,
	"released": set, "functions": set, "reports": set,
}

func kindOf(field protoreflect.FieldDescriptor) kind {
	switch {
	case field.FullName() == "windlass.agent.v1alpha1.Release.reason":
		return text
	case strings.HasSuffix(string(field.Name()), "_ns") && kinds[field.Name()] == meaning:
		return amount
	case field.Name() == "features" && field.Parent().(protoreflect.MessageDescriptor).Fields().ByName("protocol_min") != nil:
		return speech
	}
	return kinds[field.Name()]
}

// names are what is called otherwise today: by its name in the recording.
type names map[string]string

// bind takes note that something in the recording has a name today. It says what is wrong
// if it had another one before.
func (n names) bind(recorded, today string) error {
	switch before, known := n[recorded]; {
	case (recorded == "") != (today == ""):
		return fmt.Errorf("it is called %q, and was %q", today, recorded)
	case !known:
		for other, called := range n {
			if called == today && today != "" {
				return fmt.Errorf("it is %q, which was %q and not %q", today, other, recorded)
			}
		}
		n[recorded] = today
	case before != today:
		return fmt.Errorf("%q is called %q now, and was %q before", recorded, today, before)
	}
	return nil
}

func (n names) today(recorded string) string {
	if today, known := n[recorded]; known {
		return today
	}
	return recorded
}

// translate gives everything in a message that a fake peer says the name that it has today,
// which is that of the recording if the fake peer names it first.
func (n names) translate(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() != nil && field.IsList():
			for i := range v.List().Len() {
				n.translate(v.List().Get(i).Message())
			}
		case field.Message() != nil:
			n.translate(v.Message())
		case field.IsList():
			return true // no names are in lists
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(n.named(field, v)))
		case field.Kind() == protoreflect.BytesKind:
			m.Set(field, protoreflect.ValueOfBytes([]byte(n.named(field, v))))
		}
		return true
	})
}

// named is the text of a field with the name that it has today.
func (n names) named(field protoreflect.FieldDescriptor, v protoreflect.Value) string {
	recorded := plain(v)
	if _, known := n[recorded]; !known && kindOf(field) == name {
		n[recorded] = recorded
	}
	return n.today(recorded)
}

// differ says how what was said differs from what was recorded; nil if it means the same.
func (n names) differ(want, got protoreflect.Message) error {
	fields := want.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if want.Has(field) != got.Has(field) && (field.HasPresence() || kindOf(field) == meaning) {
			return fmt.Errorf("%s is %s, and was %s", field.FullName(), shown(got, field), shown(want, field))
		}
		if err := n.differIn(field, want, got); err != nil {
			return fmt.Errorf("%s: %w", field.FullName(), err)
		}
	}
	return nil
}

func shown(m protoreflect.Message, field protoreflect.FieldDescriptor) string {
	if !m.Has(field) {
		return "not there"
	}
	return fmt.Sprint(m.Get(field))
}

func (n names) differIn(field protoreflect.FieldDescriptor, want, got protoreflect.Message) error {
	a, b := want.Get(field), got.Get(field)
	switch k := kindOf(field); {
	case k == text || k == speech:
		return nil
	case k == list:
		return n.missing(a.List(), b.List())
	case field.IsList():
		return n.differInList(field, k, a.List(), b.List())
	case field.Message() != nil:
		if !want.Has(field) {
			return nil
		}
		return n.differ(a.Message(), b.Message())
	default:
		return n.differInValue(k, a, b)
	}
}

func (n names) differInList(field protoreflect.FieldDescriptor, k kind, a, b protoreflect.List) error {
	if a.Len() != b.Len() {
		return fmt.Errorf("there are %d, and were %d", b.Len(), a.Len())
	}
	if k == set {
		return n.differInSet(field, a, b)
	}
	for i := range a.Len() {
		var err error
		if field.Message() != nil {
			err = n.differ(a.Get(i).Message(), b.Get(i).Message())
		} else {
			err = n.differInValue(k, a.Get(i), b.Get(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// differInSet says which element is not there any more.
func (n names) differInSet(field protoreflect.FieldDescriptor, a, b protoreflect.List) error {
	for i := range a.Len() {
		found := false
		for j := range b.Len() {
			if field.Message() == nil {
				found = found || a.Get(i).Equal(b.Get(j))
			} else {
				found = found || n.same(a.Get(i).Message(), b.Get(j).Message())
			}
		}
		if !found {
			return fmt.Errorf("there is no %v", a.Get(i))
		}
	}
	return nil
}

func (n names) differInValue(k kind, a, b protoreflect.Value) error {
	switch {
	case k == name:
		return n.bind(plain(a), plain(b))
	case k == amount && sign(a) == sign(b) || k == meaning && a.Equal(b):
		return nil
	}
	return fmt.Errorf("it is %v, and was %v", b, a)
}

func plain(v protoreflect.Value) string {
	if b, is := v.Interface().([]byte); is {
		return string(b)
	}
	return v.String()
}

func sign(v protoreflect.Value) int {
	switch n := v.Interface().(type) {
	case int64:
		return min(max(int(n), -1), 1)
	case uint64:
		return int(min(n, 1))
	}
	panic("amounts are numbers")
}

// told are headers that are new in each call, and what defaults of functions decide.
var told = []string{"Windlass-", "Traceparent", "Date", "X-Forwarded-", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"}

// missing says which of the recorded things is not there any more, or has another value.
func (n names) missing(want, got protoreflect.List) error {
	for i := range want.Len() {
		key, value := keyAndValue(want.Get(i).Message())
		found := false
		for j := range got.Len() {
			k, v := keyAndValue(got.Get(j).Message())
			found = found || k == key && (v == n.inText(value) || newEachTime(key))
		}
		if !found {
			return fmt.Errorf("%s: %s is missing", key, value)
		}
	}
	return nil
}

// inText is a text with the names that are in it as they are today.
func (n names) inText(recorded string) string {
	for name, today := range n {
		if name != "" && name != today {
			recorded = strings.ReplaceAll(recorded, name, today)
		}
	}
	return recorded
}

func keyAndValue(m protoreflect.Message) (key, value string) {
	fields := m.Descriptor().Fields()
	return m.Get(fields.ByName("name")).String(), plain(m.Get(fields.ByName("value")))
}

func newEachTime(key string) bool {
	for _, prefix := range told {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// same tells whether two messages mean the same, without taking note of names.
func (n names) same(want, got protoreflect.Message) bool {
	return maps.Clone(n).differ(want, got) == nil
}
