package etcd

import (
	"testing"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// FuzzKeys reads keys and values that somebody has tampered with.
func FuzzKeys(f *testing.F) {
	f.Add("/windlass/slots/0007", []byte(`{"id":"a","addr":"b:1"}`))
	f.Add("/windlass/slots/7", []byte(`{"id":"a"}`))
	f.Add("/windlass/slots/1024", []byte(`[]`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		k := keys("/windlass")
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
