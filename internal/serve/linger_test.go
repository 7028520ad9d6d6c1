package serve

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// It reads nothing before it has sent all, and does not end its side.
func TestAClientThatStillSendsReadsTheAnswerOfAConnectionThatLingers(t *testing.T) {
	const size = 16 << 20
	handled := make(chan time.Duration, 1)
	addr, _ := calls(t, func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "enough")
		_ = http.NewResponseController(w).Flush()
		Linger(r, time.Now().Add(2*time.Second))
		handled <- time.Since(begun)
	})
	conn := dial(t, addr)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: "+strconv.Itoa(size)+"\r\n\r\n"+strings.Repeat("x", size)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != "enough" || err != nil {
		t.Errorf("read %q, %v", body, err)
	}
	if took := <-handled; took > time.Second {
		t.Errorf("the handler waited for %v", took)
	}
	// It ends before the deadline of the connection, which fails writes, too.
	limit, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	err = sleep.Until(limit, 10*time.Millisecond, func() (bool, error) {
		_, err := io.WriteString(conn, "x")
		return err != nil, nil
	})
	if err != nil {
		t.Errorf("it lingers for too long: %v", err)
	}
}
