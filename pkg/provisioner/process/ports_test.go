package process

import (
	"errors"
	"strings"
	"testing"
)

func TestNoPortIsHandedOutTwice(t *testing.T) {
	offers := []int{4000, 4000, 4000, 4001, 4000}
	p := newPorts(func() (int, error) {
		port := offers[0]
		offers = offers[1:]
		return port, nil
	})
	for i, want := range []int{4000, 4001} {
		if got, err := p.take(); got != want || err != nil {
			t.Errorf("take %d: %d, %v; want %d", i, got, err, want)
		}
	}
	p.release(4000)
	if got, err := p.take(); got != 4000 || err != nil {
		t.Errorf("after its release: %d, %v; want 4000", got, err)
	}
}

func TestTakeGivesUpWithAReason(t *testing.T) {
	stuck := newPorts(func() (int, error) { return 4000, nil })
	if _, err := stuck.take(); err != nil {
		t.Fatal(err)
	}
	if _, err := stuck.take(); err == nil || !strings.Contains(err.Error(), "other instances") {
		t.Errorf("error %v", err)
	}
	failure := errors.New("no sockets left")
	if _, err := newPorts(func() (int, error) { return 0, failure }).take(); !errors.Is(err, failure) {
		t.Errorf("error %v, want one that wraps %v", err, failure)
	}
}
