//go:build linux

package rawtcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// ends are both ends of a connection.
func ends(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// awaitWait waits until a transfer waits, or has ended.
func (d *deadline) awaitWait(t *testing.T, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := sleep.Until(ctx, time.Millisecond, func() (bool, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.waiting || len(ended) > 0, nil
	})
	if err != nil {
		t.Fatal("nothing waits")
	}
}

// patience bounds what happens at once unless something is wrong.
const patience = 10 * time.Second

// What a deadline is, in the cases below. The other side sends when one that was soon would have passed.
const (
	past  = -time.Hour
	soon  = 200 * time.Millisecond
	late  = time.Hour
	never = time.Duration(0)
	sends = 3 * soon
)

// unlessSlow runs a test that puts a deadline off before it passes, and once more if the machine stood still
// meanwhile: put tells how long it took, and then whether anything was wrong.
func unlessSlow(t *testing.T, put func(t *testing.T) (took time.Duration, wrong error)) {
	t.Helper()
	for limit := time.Now().Add(patience); ; {
		took, wrong := put(t)
		if wrong == nil {
			return
		}
		if took < soon || time.Now().After(limit) {
			t.Fatalf("%v (after %v)", wrong, took)
		}
	}
}

func at(d time.Duration) time.Time {
	if d == never {
		return time.Time{}
	}
	return time.Now().Add(d)
}

func TestDeadlinesAreThoseOfAnyConnection(t *testing.T) {
	for name, c := range map[string]struct {
		// before are set in turn before the read, and meanwhile while it waits.
		before, meanwhile []time.Duration
		timeout           bool
	}{
		"none":                                  {},
		"over before the read":                  {before: []time.Duration{past}, timeout: true},
		"over, and taken back":                  {before: []time.Duration{past, never}},
		"over, and set again":                   {before: []time.Duration{past, late}},
		"set":                                   {before: []time.Duration{soon}, timeout: true},
		"taken back":                            {before: []time.Duration{soon, never}},
		"made later":                            {before: []time.Duration{soon, late}},
		"made earlier":                          {before: []time.Duration{late, soon}, timeout: true},
		"made earlier during the wait":          {before: []time.Duration{late}, meanwhile: []time.Duration{soon}, timeout: true},
		"set during the wait":                   {meanwhile: []time.Duration{soon}, timeout: true},
		"made later during the wait":            {before: []time.Duration{soon}, meanwhile: []time.Duration{late}},
		"taken back during the wait":            {before: []time.Duration{soon}, meanwhile: []time.Duration{never}},
		"over during the wait":                  {meanwhile: []time.Duration{past}, timeout: true},
		"taken back, and set during the wait":   {before: []time.Duration{soon, never}, meanwhile: []time.Duration{late, soon}, timeout: true},
		"made later, and earlier in the wait":   {before: []time.Duration{late}, meanwhile: []time.Duration{never, soon}, timeout: true},
		"set and taken back during the wait":    {meanwhile: []time.Duration{soon, never}},
		"set and made later during the wait":    {meanwhile: []time.Duration{soon, late}},
		"over before, and over again meanwhile": {before: []time.Duration{past, late}, meanwhile: []time.Duration{past}, timeout: true},
	} {
		for _, wraps := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				unlessSlow(t, func(t *testing.T) (time.Duration, error) {
					return readUntil(t, c.before, c.meanwhile, c.timeout, wraps)
				})
			})
		}
	}
}

// readUntil sets deadlines before and during a read, and says how long that took, and what is wrong.
func readUntil(t *testing.T, before, meanwhile []time.Duration, timeout, wraps bool) (took time.Duration, wrong error) {
	t.Helper()
	here, there := ends(t)
	if wraps {
		here = Wrap(here)
	}
	began := time.Now()
	for _, d := range before {
		_ = here.SetReadDeadline(at(d))
	}
	read := make(chan error, 1)
	go func() {
		_, err := here.Read(make([]byte, 1))
		read <- err
	}()
	if wraps && meanwhile != nil {
		here.(*Conn).in.until.awaitWait(t, read)
	}
	for _, d := range meanwhile {
		_ = here.SetReadDeadline(at(d))
	}
	took = time.Since(began)
	comes := sends
	if timeout {
		comes = patience // the read ends before that
	}
	defer time.AfterFunc(comes, func() { _, _ = there.Write([]byte("x")) }).Stop()
	if err := <-read; errors.Is(err, os.ErrDeadlineExceeded) != timeout || !timeout && err != nil {
		return took, fmt.Errorf("a read by %T: %w", here, err)
	}
	return took, nil
}

func TestNoDataComesAfterTheDeadline(t *testing.T) {
	here, there := ends(t)
	c := Wrap(here).(*Conn)
	if _, err := there.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for IsQuiet(c) {
	}
	_ = c.SetReadDeadline(at(time.Nanosecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestAWriteGoesOnWhenItsDeadlineIsMadeLater(t *testing.T) {
	data := make([]byte, 20<<20)
	unlessSlow(t, func(t *testing.T) (took time.Duration, wrong error) {
		here, there := ends(t)
		c := Wrap(here).(*Conn)
		began := time.Now()
		_ = c.SetWriteDeadline(at(soon))
		wrote := make(chan error, 1)
		go func() {
			_, err := c.Write(data)
			if err != nil {
				_ = c.Close() // nothing else comes
			}
			wrote <- err
		}()
		c.out.until.awaitWait(t, wrote)
		_ = c.SetWriteDeadline(at(late))
		took = time.Since(began)
		passed := make(chan struct{})
		time.AfterFunc(2*soon, func() { close(passed) })
		<-passed
		n, err := io.CopyN(io.Discard, there, int64(len(data)))
		if err := errors.Join(<-wrote, err); err != nil {
			return took, fmt.Errorf("%d bytes came: %w", n, err)
		}
		return took, nil
	})
}

func TestAWriteToASideThatDoesNotReadEndsAtItsDeadline(t *testing.T) {
	here, _ := ends(t)
	c, data := Wrap(here).(*Conn), make([]byte, 20<<20)
	_ = c.SetWriteDeadline(at(soon))
	if n, err := c.Write(data); !errors.Is(err, os.ErrDeadlineExceeded) || n == len(data) {
		t.Errorf("%d bytes were written, %v", n, err)
	}
}
