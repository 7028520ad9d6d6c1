package podagent

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// dialled lets the agent reach owners, and keeps whom it dialled.
func (w *harness) dialled() *[]string {
	var addrs []string
	w.agent.dialScheduler = func(addr string) (conn, error) {
		addrs = append(addrs, cmp.Or(addr, "any"))
		return w.conn, nil
	}
	return &addrs
}

func (w *harness) expectDialled(addrs *[]string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	if diff := gocmp.Diff(want, *addrs); diff != "" {
		w.t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

func TestAgentGoesToTheNewOwnerAndKeepsItsCall(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		addrs := w.dialled()
		p := w.begin()
		claim, call := w.call(p, "one")
		p.moved("owner:2")
		next := w.stream()
		next.hear(helloText, "pull 1")
		w.expectDialled(addrs, "any", "owner:2")
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		next.hear("pull 1 done one")
		next.retire("enough")
		w.ended(nil)
	})
}

func TestAgentAsksAnySchedulerWhenItsOwnerIsGone(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) { c.Owner = "owner:1" }, func(w *harness) {
		addrs := w.dialled()
		p := w.begin()
		w.expectDialled(addrs, "owner:1")
		p.lose()
		anyone := w.stream()
		anyone.hear(helloText, "pull 2")
		w.expectDialled(addrs, "owner:1", "any")
		anyone.moved("owner:3")
		w.stream().hear(helloText, "pull 2")
		w.expectDialled(addrs, "owner:1", "any", "owner:3")
		w.signal(nil)
		w.ended(nil)
	})
}

func TestAgentAsksAFewTimesASecondWhileNobodyOwnsItsFunction(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.begin().moved("")
		begun, asked := time.Now(), 0
		for time.Since(begun) < 10*time.Second {
			p := w.stream()
			p.hear(helloText, "pull 2")
			p.moved("")
			asked++
		}
		if asked > 45 {
			t.Errorf("asked %d times in 10 s", asked)
		}
		w.stream().retire("enough")
		w.ended(nil)
	})
}

func TestAgentReadsItsTokenAnewAtEachHello(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	withHarness(t, func(c *agentenv.Config) { c.Token, c.TokenFile = "", file }, func(w *harness) {
		w.run()
		p := w.stream()
		p.hear("hello uid/3 cid first")
		write("second")
		p.lose()
		p = w.stream()
		p.hear("hello uid/3 cid second")
		p.retire("enough")
		w.ended(nil)
	})
}

func TestDrainedIsAnsweredWhenTheLastCallHasEnded(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		claim, call := w.call(p, "one")
		near, far := net.Pipe()
		serving, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- w.agent.ServeDrained(serving, &onePipe{conn: far, closed: make(chan struct{})}) }()
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}}
		answered := make(chan int, 1)
		go func() {
			response, err := client.Get("http://agent/drained")
			if err != nil {
				t.Error(err)
				answered <- 0
				return
			}
			_ = response.Body.Close()
			answered <- response.StatusCode
		}()
		w.signal(nil)
		synctest.Wait()
		if len(answered) != 0 {
			t.Error("answered while a call runs")
		}
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		if got := <-answered; got != http.StatusOK {
			t.Errorf("status %d", got)
		}
		w.ended(nil)
		client.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// onePipe is a listener for one connection.
type onePipe struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *onePipe) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *onePipe) Close() error   { close(l.closed); return nil }
func (l *onePipe) Addr() net.Addr { return &net.UnixAddr{} }
