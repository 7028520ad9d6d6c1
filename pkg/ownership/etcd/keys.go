package etcd

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// keys names the keys under a prefix.
type keys string

func (k keys) prefix() string { return string(k) + "/" }

func (k keys) slots() string { return string(k) + "/slots/" }

func (k keys) slot(slot ownership.Slot) string { return fmt.Sprintf("%s%04d", k.slots(), slot) }

// records are outside the prefix of the other keys, so that followers of those need not read
// them.
func (k keys) records() string { return string(k) + "-estimates/" }

func (k keys) record(slot ownership.Slot) string { return fmt.Sprintf("%s%04d", k.records(), slot) }

func (k keys) members() string { return string(k) + "/members/" }

func (k keys) member(id string) string { return k.members() + id }

func (k keys) name(key coordinator.Key) string {
	if key.Member != "" {
		return k.member(key.Member)
	}
	return k.slot(key.Slot)
}

// parse is the inverse of name.
func (k keys) parse(name string) (coordinator.Key, error) {
	if id, under := strings.CutPrefix(name, k.members()); under && id != "" && !strings.Contains(id, "/") {
		return coordinator.Key{Member: id}, nil
	}
	slot, ok := slotIn(name, k.slots(), k.slot)
	if !ok {
		return coordinator.Key{}, fmt.Errorf("etcd: key %q names no slot and no member: remove it", name)
	}
	return coordinator.Key{Slot: slot}, nil
}

// parseRecord is the inverse of record.
func (k keys) parseRecord(name string) (ownership.Slot, error) {
	slot, ok := slotIn(name, k.records(), k.record)
	if !ok {
		return 0, fmt.Errorf("etcd: key %q names no slot: remove it", name)
	}
	return slot, nil
}

// slotIn is the slot in a name that consists of a prefix and the result of nameOf.
func slotIn(name, prefix string, nameOf func(ownership.Slot) string) (ownership.Slot, bool) {
	digits, under := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseUint(digits, 10, 16)
	if !under || err != nil || n >= ownership.Slots || nameOf(ownership.Slot(n)) != name {
		return 0, false
	}
	return ownership.Slot(n), true
}

// entry reads an existing key. If only its value cannot be read, it returns the error together
// with an entry of an unknown owner.
func (k keys) entry(kv *mvccpb.KeyValue) (entry coordinator.Entry, known bool, err error) {
	key, err := k.parse(string(kv.Key))
	if err != nil {
		return coordinator.Entry{}, false, err
	}
	value, err := decode(kv.Value)
	return coordinator.Entry{Key: key, Value: value, Lease: coordinator.Lease(kv.Lease), Revision: kv.ModRevision}, true, err
}

// member is the value of every key.
type member struct {
	ID       string `json:"id"`
	Addr     string `json:"addr"`
	Draining bool   `json:"draining,omitempty"`
}

func encode(value coordinator.Value) string {
	// A struct of strings always encodes.
	text, _ := json.Marshal(member(value))
	return string(text)
}

func decode(value []byte) (coordinator.Value, error) {
	var m member
	if err := json.Unmarshal(value, &m); err != nil {
		return coordinator.Value{}, fmt.Errorf("etcd: value %q is no owner: remove the key: %w", value, err)
	}
	if m.ID == "" || m.Addr == "" {
		return coordinator.Value{}, fmt.Errorf("etcd: value %q lacks an id or addr: remove the key", value)
	}
	return coordinator.Value(m), nil
}
