package local

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/windlass-dev/windlass/internal/webguard"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestS8OtherPeoplesPagesAreRefusedClearly(t *testing.T) {
	w := &Windlass{config: Config{WebGuard: webguard.Guard{Origins: []string{"http://localhost:3000"}}}}
	ran := 0
	handler := w.guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
	ask := func(origin string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/function/hello", strings.NewReader("hi"))
		r.Header.Set("Origin", origin)
		to := httptest.NewRecorder()
		handler.ServeHTTP(to, r)
		return to
	}
	got := ask("https://attacker.example")
	if got.Code != http.StatusForbidden || got.Header().Get(invocation.HeaderExecuted) != "no" || ran != 0 {
		t.Errorf("answered with %d, executed %q, ran %d times", got.Code, got.Header().Get(invocation.HeaderExecuted), ran)
	}
	for _, want := range []string{"OriginNotAllowed", "https://attacker.example", "--allow-origin"} {
		if !strings.Contains(got.Body.String(), want) {
			t.Errorf("the answer lacks %q: %s", want, got.Body)
		}
	}
	if ask("http://localhost:3000"); ran != 1 {
		t.Errorf("an origin that may call ran %d calls", ran)
	}
}

func TestAPageThatMayCallAsksFirst(t *testing.T) {
	w := &Windlass{config: Config{WebGuard: webguard.Guard{Origins: []string{"http://localhost:3000"}}}}
	ran := 0
	handler := w.guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
	for origin, code := range map[string]int{"http://localhost:3000": http.StatusNoContent, "http://localhost:3001": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodOptions, "http://127.0.0.1:8080/function/hello", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Sec-Fetch-Site", "same-site")
		r.Header.Set("Access-Control-Request-Method", http.MethodPost)
		to := httptest.NewRecorder()
		handler.ServeHTTP(to, r)
		if may := to.Header().Get("Access-Control-Allow-Origin") == origin; to.Code != code || may != (code == http.StatusNoContent) || ran != 0 {
			t.Errorf("%s is answered with %d and %v, and runs %d calls", origin, to.Code, to.Header(), ran)
		}
	}
}

func TestAnAddressThatCannotBeHadComesWithTheRemedy(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.EADDRINUSE:    "another program listens there already; stop it, or choose another address with --listen",
		syscall.EACCES:        "choose a port from 1024 on with --listen",
		syscall.EADDRNOTAVAIL: syscall.EADDRNOTAVAIL.Error(),
	} {
		err := cannotListen("--listen", "127.0.0.1:80", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", cause)})
		if !strings.HasPrefix(err.Error(), "--listen 127.0.0.1:80: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
