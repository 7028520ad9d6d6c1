package cli

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminalWait is how long a terminal may take to show what was written, in milliseconds.
const terminalWait = 10_000

// onTerminal is a command's output on a terminal, and what the terminal shows.
func onTerminal(t *testing.T) (out, shown *os.File) {
	t.Helper()
	shown, out, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		out.Close()
		shown.Close()
	})
	return out, shown
}

// parts is a body that comes in parts. before is called before each.
type parts struct {
	left   []string
	before func(part string)
}

func (p *parts) Read(into []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	next := p.left[0]
	p.left = p.left[1:]
	p.before(next)
	return copy(into, next), nil
}

func (*parts) Close() error { return nil }

func TestATerminalShowsAStreamAsItComes(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		length int64
		shown  bool // before the body is whole
	}{
		"events":                     {"text/event-stream", -1, true},
		"text":                       {"text/plain; charset=utf-8", 22, true},
		"JSON of unknown length":     {"application/json", -1, true},
		"JSON that is large":         {"application/json", maxPretty + 1, true},
		"JSON that is small":         {"application/json; charset=utf-8", 22, false},
		"JSON that describes errors": {"application/problem+json", 22, false},
	} {
		t.Run(name, func(t *testing.T) {
			out, shown := onTerminal(t)
			body := &parts{left: []string{`{"a": [1,`, ` 2]}`}}
			body.before = func(part string) {
				if strings.HasPrefix(part, "{") {
					return
				}
				within := 0
				if c.shown {
					within = terminalWait
				}
				fds := []unix.PollFd{{Fd: int32(shown.Fd()), Events: unix.POLLIN}}
				if n, err := unix.Poll(fds, within); (n == 1) != c.shown || err != nil {
					t.Errorf("the terminal shows the first part: %t, %v", n == 1, err)
				}
			}
			i := &invoker{newApp(Streams{Out: out}, Programs{}).finder}
			response := &http.Response{Header: http.Header{"Content-Type": {c.kind}}, ContentLength: c.length, Body: body}
			if err := i.printBody(response); err != nil {
				t.Fatal(err)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(shown) // The other side is closed, which Linux reports as an error.
			want := "{\"a\": [1, 2]}\r\n"
			if !c.shown {
				want = "{\r\n  \"a\": [\r\n    1,\r\n    2\r\n  ]\r\n}\r\n"
			}
			if string(text) != want {
				t.Errorf("it shows %q, want %q", text, want)
			}
		})
	}
}
