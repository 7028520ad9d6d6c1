package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// clients call functions at the gateway.
type clients struct {
	world  *harness
	server *http.Server
	client *http.Client
	calls  sync.WaitGroup

	mu      sync.Mutex
	hangUps map[int]context.CancelFunc
}

func newClients(w *harness, gateway http.Handler) *clients {
	l := bufconn.Listen(1 << 20)
	c := &clients{
		world: w, server: &http.Server{Handler: gateway, ReadHeaderTimeout: time.Minute}, hangUps: make(map[int]context.CancelFunc),
		client: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.DialContext(ctx) },
		}},
	}
	w.running.Go(func() { _ = c.server.Serve(l) })
	return c
}

func (c *clients) end() {
	if c == nil {
		return
	}
	c.mu.Lock()
	for _, hangUp := range c.hangUps {
		hangUp()
	}
	c.mu.Unlock()
	c.calls.Wait()
	c.client.CloseIdleConnections()
	_ = c.server.Close()
}

// call calls a function. A body that is uploaded comes in two parts, and without a
// length.
func (c *clients) call(n int, function, body string, upload bool) {
	ctx, hangUp := context.WithCancel(context.Background())
	c.mu.Lock()
	c.hangUps[n] = hangUp
	c.mu.Unlock()
	var from io.Reader = strings.NewReader(body)
	if upload {
		from = io.MultiReader(strings.NewReader(body), laterReader{strings.NewReader(body)})
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway/function/"+function+".ns/path?query=1", from)
	if err != nil {
		c.world.t.Fatal(err)
	}
	r.Header.Set(callHeader, fmt.Sprint(n))
	c.calls.Go(func() {
		response, err := c.client.Do(r)
		if err != nil {
			return // it hung up itself
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		said := fmt.Sprintf("%d %s", response.StatusCode, response.Header.Get(invocation.HeaderExecuted))
		if response.StatusCode == http.StatusOK {
			said += fmt.Sprintf(" %q", text)
		}
		if err != nil {
			said += " cut short"
		}
		c.world.did(action{Role: theGateway, What: answered, Call: n, Said: said})
	})
}

func (c *clients) hangUp(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangUps[n]()
}

// laterReader takes its time.
type laterReader struct{ io.Reader }

func (r laterReader) Read(p []byte) (int, error) {
	<-time.After(100 * time.Millisecond)
	return r.Reader.Read(p)
}
