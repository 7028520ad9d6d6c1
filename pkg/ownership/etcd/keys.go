package etcd

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// keys names the keys under a prefix.
type keys string

func (k keys) slots() string { return string(k) + "/slots/" }

func (k keys) slot(slot ownership.Slot) string { return fmt.Sprintf("%s%04d", k.slots(), slot) }

func (k keys) member(id string) string { return string(k) + "/members/" + id }

// parseSlot reads what slot wrote.
func (k keys) parseSlot(key string) (ownership.Slot, error) {
	digits, under := strings.CutPrefix(key, k.slots())
	n, err := strconv.ParseUint(digits, 10, 16)
	if !under || err != nil || n >= ownership.Slots || k.slot(ownership.Slot(n)) != key {
		return 0, fmt.Errorf("etcd: key %q names no slot: remove it", key)
	}
	return ownership.Slot(n), nil
}

// member is the value of every key.
type member struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

func (m member) encode() string {
	// A struct of strings always encodes.
	text, _ := json.Marshal(m)
	return string(text)
}

func decodeMember(value []byte) (member, error) {
	var m member
	if err := json.Unmarshal(value, &m); err != nil {
		return member{}, fmt.Errorf("etcd: value %q is no owner: remove the key: %w", value, err)
	}
	if m.ID == "" || m.Addr == "" {
		return member{}, fmt.Errorf("etcd: value %q lacks an id or addr: remove the key", value)
	}
	return m, nil
}
