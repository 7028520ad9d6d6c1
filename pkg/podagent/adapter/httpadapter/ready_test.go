package httpadapter

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitReadyRetriesUntilTheFunctionAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const starting = 300 * time.Millisecond
		begin, attempts := time.Now(), 0
		a := New(Config{Addr: "127.0.0.1:8080"})
		a.dial = func(context.Context, string, string) (net.Conn, error) {
			attempts++
			if time.Since(begin) < starting {
				return nil, errors.New("refused")
			}
			c, _ := net.Pipe()
			return c, nil
		}
		if err := a.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(begin) - starting; late > lastRetry {
			t.Errorf("noticed %v late, want at most %v", late, lastRetry)
		}
		if attempts > 20 {
			t.Errorf("%d attempts in %v, want few", attempts, starting)
		}
	})
}

func TestWaitReadySaysWhereTheFunctionMustListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := New(Config{Addr: "127.0.0.1:8080"})
		a.dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		err := a.WaitReady(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a deadline error", err)
		}
		for _, part := range []string{"127.0.0.1:8080", "$PORT, which is 8080", "0.0.0.0", "refused"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	if err := (Config{Addr: "127.0.0.1:8080"}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (Config{Addr: "127.0.0.1"}).Validate(); err == nil || !strings.Contains(err.Error(), "addr") {
		t.Errorf("error %v does not name addr", err)
	}
}

func TestA15NothingListensIsSaidInPlainWords(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	a := New(Config{Addr: "127.0.0.1:8080"})
	a.dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	const want = "nothing accepts connections at 127.0.0.1:8080: the program must listen on $PORT, which is 8080, on 127.0.0.1 or 0.0.0.0; " +
		"if it needs more time, raise startupTimeout"
	if err := a.WaitReady(ctx); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
