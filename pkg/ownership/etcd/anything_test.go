package etcd

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// TestKeysAndValuesOfAnyKind reads what somebody has tampered with. It is no fuzz
// target because a fuzzer would build etcd, which other tests here run, with its
// instruments.
func TestKeysAndValuesOfAnyKind(t *testing.T) {
	key := rapid.OneOf(rapid.String(), rapid.StringMatching(`/windlass/slots/[0-9+-]{0,6}.?`))
	value := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(
		rapid.StringMatching(`\{"(id|ID|x)":("[^"\\]{0,3}"|1|null|\[\]),"(addr|Addr)":("[^"\\]{0,3}"|\{\})\}.?`),
		func(s string) []byte { return []byte(s) }))
	rapid.Check(t, func(t *rapid.T) {
		k, key, value := keys("/windlass"), key.Draw(t, "key"), value.Draw(t, "value")
		if slot, err := k.parseSlot(key); err == nil && (slot >= ownership.Slots || k.slot(slot) != key) {
			t.Errorf("%q is the slot %d", key, slot)
		}
		m, err := decodeMember(value)
		if err != nil {
			return
		}
		if again, err := decodeMember([]byte(m.encode())); err != nil || again != m || m.ID == "" || m.Addr == "" {
			t.Errorf("%q is %+v, and then %+v, %v", value, m, again, err)
		}
	})
}
