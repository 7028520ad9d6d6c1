package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Space is a network namespace that is joined to the lab's bridge. A thread of
// its own is in it and does what is to be done there.
type Space struct {
	Name string
	Addr netip.Addr
	// port is the bridge's end of the space's link.
	port string
	work chan func()
	once sync.Once
}

// netmask is the length of the prefix that all spaces share.
const netmask = 16

// openSpace makes a namespace with this address. The name of the port is that of
// a network interface, at most 15 bytes.
func openSpace(ctx context.Context, name, port string, addr netip.Addr) (*Space, error) {
	s := &Space{Name: name, Addr: addr, port: port, work: make(chan func())}
	thread := make(chan int)
	failed := make(chan error, 1)
	go s.serve(thread, failed)
	var tid int
	select {
	case tid = <-thread:
	case err := <-failed:
		return nil, fmt.Errorf("a network namespace for %s: %w", name, err)
	}
	outside := fmt.Sprintf("link add %[1]s type veth peer name eth0 netns %[2]d\nlink set %[1]s master %[3]s\nlink set %[1]s up\n", port, tid, bridge)
	inside := fmt.Sprintf("link set lo up\naddress add %s/%d dev eth0\nlink set eth0 up\n", addr, netmask)
	if err := batch(ctx, outside); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.Do(func() error { return batch(ctx, inside) }); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// serve does the space's work on a thread that leaves the lab's network. The
// thread ends with it, because no other work may ever run there.
func (s *Space) serve(thread chan<- int, failed chan<- error) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		failed <- err
		return
	}
	thread <- unix.Gettid()
	for f := range s.work {
		f()
	}
}

// Do calls f in the space. What f opens or starts belongs to the space.
func (s *Space) Do(f func() error) error {
	done := make(chan error, 1)
	s.work <- func() { done <- f() }
	return <-done
}

// Command runs a program in the space to its end.
func (s *Space) Command(ctx context.Context, name string, arguments ...string) error {
	return s.Do(func() error { return run(ctx, "", name, arguments...) })
}

// Close ends the space once nothing runs in it any more. It may be called again.
func (s *Space) Close() { s.once.Do(func() { close(s.work) }) }

// batch runs commands of ip(8), one a line.
func batch(ctx context.Context, commands string) error {
	return run(ctx, commands, "ip", "-batch", "-")
}

// run runs a program to its end and puts what it said into the error.
func run(ctx context.Context, input, name string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, name, arguments...)
	if input != "" {
		cmd.Stdin = strings.NewReader(input)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// bridge joins all spaces, and the lab's own process, which has its address.
const bridge = "lab0"

// bridgeMAC is fixed, because a bridge without one takes that of a port, and others
// would go on sending to it when the port is gone.
const bridgeMAC = "02:57:4c:00:00:01"

func openBridge(ctx context.Context, addr netip.Addr) error {
	return batch(ctx, fmt.Sprintf("link set lo up\nlink add %[1]s address %[4]s type bridge\naddress add %[2]s/%[3]d dev %[1]s\nlink set %[1]s up\n",
		bridge, addr, netmask, bridgeMAC))
}
