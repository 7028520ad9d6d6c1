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
	key := rapid.OneOf(rapid.String(), rapid.StringMatching(`/windlass/(slots|members)/[0-9a+-]{0,6}.?`))
	value := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(
		rapid.StringMatching(`\{"(id|ID|x)":("[^"\\]{0,3}"|1|null|\[\]),"(addr|Addr)":("[^"\\]{0,3}"|\{\})\}.?`),
		func(s string) []byte { return []byte(s) }))
	rapid.Check(t, func(t *rapid.T) {
		k, key, value := keys("/windlass"), key.Draw(t, "key"), value.Draw(t, "value")
		if named, err := k.parse(key); err == nil && (named.Slot >= ownership.Slots || k.name(named) != key) {
			t.Errorf("%q is the key %+v", key, named)
		}
		m, err := decode(value)
		if err != nil {
			return
		}
		if again, err := decode([]byte(encode(m))); err != nil || again != m || m.ID == "" || m.Addr == "" {
			t.Errorf("%q is %+v, and then %+v, %v", value, m, again, err)
		}
	})
}
