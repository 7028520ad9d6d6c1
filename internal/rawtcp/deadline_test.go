//go:build linux

package rawtcp

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
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

// awaitWait waits until a transfer waits.
func (d *deadline) awaitWait(t *testing.T) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); ; {
		d.mu.Lock()
		waits := d.waiting
		d.mu.Unlock()
		switch {
		case waits:
			return
		case time.Now().After(limit):
			t.Fatal("nothing waits")
		}
	}
}

// What a deadline is, in the cases below. Those that pass do so before the other side sends.
const (
	past  = -time.Hour
	soon  = 200 * time.Millisecond // a read waits before that, also on a busy machine
	late  = time.Hour
	never = time.Duration(0)
	sends = 3 * soon
)

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
		"over, and set anew":                    {before: []time.Duration{past, late}},
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
				here, there := ends(t)
				if wraps {
					here = Wrap(here)
				}
				for _, d := range c.before {
					_ = here.SetReadDeadline(at(d))
				}
				read := make(chan error, 1)
				go func() {
					_, err := here.Read(make([]byte, 1))
					read <- err
				}()
				if wraps && c.meanwhile != nil {
					here.(*Conn).in.until.awaitWait(t)
				}
				for _, d := range c.meanwhile {
					_ = here.SetReadDeadline(at(d))
				}
				time.AfterFunc(sends, func() { _, _ = there.Write([]byte("x")) })
				if err := <-read; errors.Is(err, os.ErrDeadlineExceeded) != c.timeout || !c.timeout && err != nil {
					t.Errorf("a read by %T: %v", here, err)
				}
			})
		}
	}
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
	here, there := ends(t)
	c, data := Wrap(here).(*Conn), make([]byte, 20<<20)
	_ = c.SetWriteDeadline(at(soon))
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write(data)
		wrote <- err
	}()
	c.out.until.awaitWait(t)
	_ = c.SetWriteDeadline(at(late))
	passed := make(chan struct{})
	time.AfterFunc(2*soon, func() { close(passed) })
	<-passed
	if n, err := io.CopyN(io.Discard, there, int64(len(data))); err != nil {
		t.Errorf("%d bytes came, %v", n, err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	_ = c.SetWriteDeadline(at(soon))
	if n, err := c.Write(data); !errors.Is(err, os.ErrDeadlineExceeded) || n == len(data) {
		t.Errorf("%d bytes were written to a side that does not read, %v", n, err)
	}
}
