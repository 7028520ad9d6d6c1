package process

import (
	"errors"
	"net"
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
		if got, err := p.acquire(); got != want || err != nil {
			t.Errorf("take %d: %d, %v; want %d", i, got, err, want)
		}
	}
	p.release(4000)
	if got, err := p.acquire(); got != 4000 || err != nil {
		t.Errorf("after its release: %d, %v; want 4000", got, err)
	}
}

func TestTakeGivesUpWithAReason(t *testing.T) {
	stuck := newPorts(func() (int, error) { return 4000, nil })
	if _, err := stuck.acquire(); err != nil {
		t.Fatal(err)
	}
	if _, err := stuck.acquire(); err == nil || !strings.Contains(err.Error(), "other instances") {
		t.Errorf("error %v", err)
	}
	failure := errors.New("no sockets left")
	if _, err := newPorts(func() (int, error) { return 0, failure }).acquire(); !errors.Is(err, failure) {
		t.Errorf("error %v, want one that wraps %v", err, failure)
	}
}

func TestAPortThatAnotherProgramTakesIsGivenUp(t *testing.T) {
	other, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().(*net.TCPAddr).Port
	free, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	offers := []int{taken, free}
	r := &Driver{ports: newPorts(func() (int, error) {
		port := offers[0]
		offers = offers[1:]
		return port, nil
	})}
	var p prepared
	if err := r.acquirePort(&p, true); err != nil || p.port != free || p.listener == nil {
		t.Fatalf("%v; port %d, want %d, which the agent listens at", err, p.port, free)
	}
	_ = p.listener.Close()
	if r.ports.taken[taken] {
		t.Error("the port of the other program is kept")
	}
}
