package rawtcp_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// pair is a wrapped connection and its other end.
func pair(t *testing.T) (wrapped, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return rawtcp.Wrap(dialled), accepted
}

func TestLargeDataPassesBothWays(t *testing.T) {
	c, other := pair(t)
	data := make([]byte, 20<<20)
	_, _ = rand.Read(data)
	go func() { _, _ = io.Copy(other, other) }()
	sent := make(chan error, 1)
	go func() {
		n, err := c.Write(data)
		if n != len(data) && err == nil {
			err = io.ErrShortWrite
		}
		sent <- err
	}()
	got := make([]byte, len(data))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
		t.Errorf("what came back differs, %v", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestTheEndAndTheBreakOfTheOtherSideAreSeen(t *testing.T) {
	c, other := pair(t)
	if err := other.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 8)); n != 0 || err != io.EOF {
		t.Errorf("read %d, %v at the end", n, err)
	}
	_ = other.(*net.TCPConn).SetLinger(0)
	other.Close()
	var err error
	for deadline := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(deadline); {
		_, err = c.Write([]byte("x"))
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a write to a peer that is gone: %v", err)
	}
}

func TestDeadlinesAndCloseEndAWait(t *testing.T) {
	c, _ := pair(t)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	var timeout net.Error
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a read beyond its deadline: %v", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	time.AfterFunc(10*time.Millisecond, func() { c.Close() })
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read of a closed connection: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write to a closed connection: %v", err)
	}
}

func TestReadsAndWritesAllocateNothing(t *testing.T) {
	c, other := pair(t)
	go func() { _, _ = io.Copy(other, other) }()
	buffer := make([]byte, 64)
	allocs := testing.AllocsPerRun(200, func() {
		if _, err := c.Write(buffer); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, buffer); err != nil {
			t.Fatal(err)
		}
	})
	if allocs >= 1 {
		t.Errorf("%v allocations for a write and a read", allocs)
	}
}

func TestAConnectionIsQuietUntilSomethingComes(t *testing.T) {
	c, other := pair(t)
	if !rawtcp.IsQuiet(c) {
		t.Error("a new connection is not quiet")
	}
	if _, err := other.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the byte is seen", func() bool { return !rawtcp.IsQuiet(c) })
	if n, err := c.Read(make([]byte, 8)); n != 1 || err != nil || !rawtcp.IsQuiet(c) {
		t.Errorf("read %d, %v; looking took something, or it is not quiet again", n, err)
	}
	other.Close()
	eventually(t, "the end is seen", func() bool { return !rawtcp.IsQuiet(c) })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if sleep.Until(ctx, time.Millisecond, func() (bool, error) { return is(), nil }) != nil {
		t.Fatalf("not in time: %s", what)
	}
}
