package mtls_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// domain is that of the certificates of tests.
const domain mtls.Domain = "windlass.tests.windlass"

func load(t *testing.T, dir string) *mtls.Credentials {
	t.Helper()
	c, err := mtls.Load(dir, silent())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// role is the credentials of a new certificate.
func role(t *testing.T, ca *testca.CA, names ...string) *mtls.Credentials {
	t.Helper()
	return load(t, ca.Folder(t, names...))
}

func agent(t *testing.T, ca *testca.CA, serverName string) credentials.TransportCredentials {
	t.Helper()
	creds, err := mtls.AgentCredentials(ca.PEM(), serverName)
	if err != nil {
		t.Fatal(err)
	}
	return creds
}

// connect makes a connection, says what each end saw of the other, and closes
// it. An end that refuses tells the other by closing.
func connect(ctx context.Context, server, client credentials.TransportCredentials) (atServer, atClient tls.ConnectionState, err error) {
	near, far := net.Pipe()
	defer near.Close()
	refused := make(chan error, 1)
	go func() {
		defer far.Close()
		conn, info, err := server.ServerHandshake(far)
		if err == nil {
			atServer = info.(credentials.TLSInfo).State
			_, err = conn.Write([]byte("!"))
		}
		refused <- err
	}()
	conn, info, clientErr := client.ClientHandshake(ctx, "an.authority", near)
	if clientErr == nil {
		atClient = info.(credentials.TLSInfo).State
		_, clientErr = io.ReadFull(conn, make([]byte, 1))
	}
	near.Close()
	return atServer, atClient, errors.Join(<-refused, clientErr)
}

func wantConnects(t *testing.T, server, client credentials.TransportCredentials) {
	t.Helper()
	if _, _, err := connect(t.Context(), server, client); err != nil {
		t.Errorf("there is no connection: %v", err)
	}
}

// wantRefused fails unless there is no connection for a reason that mentions why.
func wantRefused(t *testing.T, server, client credentials.TransportCredentials, why string) {
	t.Helper()
	_, _, err := connect(t.Context(), server, client)
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("the error is %v, want one about %q", err, why)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
