package mtls_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

// agentCalls is an agent's side of the connections with gateways.
func agentCalls(t *testing.T, ca *testca.CA, serverName string) *tls.Config {
	t.Helper()
	config, err := mtls.AgentCalls(ca.PEM(), serverName)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// meet makes a connection, says what each end saw of the other, and closes it. The connection has
// buffers, because an end that refuses says so while the other may still be writing.
func meet(t *testing.T, server, client *tls.Config) (atServer, atClient tls.ConnectionState, err error) {
	t.Helper()
	near, far := loopback(t)
	defer near.Close()
	refused := make(chan error, 1)
	go func() {
		defer far.Close()
		conn := tls.Server(far, server)
		err := conn.Handshake()
		if err == nil {
			atServer = conn.ConnectionState()
			_, err = conn.Write([]byte("!"))
		}
		refused <- err
	}()
	conn := tls.Client(near, client)
	clientErr := conn.Handshake()
	if clientErr == nil {
		atClient = conn.ConnectionState()
		_, clientErr = io.ReadFull(conn, make([]byte, 1))
	}
	near.Close()
	return atServer, atClient, errors.Join(<-refused, clientErr)
}

func loopback(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

func wantMet(t *testing.T, server, client *tls.Config) {
	t.Helper()
	if _, _, err := meet(t, server, client); err != nil {
		t.Errorf("there is no connection: %v", err)
	}
}

// wantAvoided fails unless there is no connection for a reason that mentions why.
func wantAvoided(t *testing.T, server, client *tls.Config, why string) {
	t.Helper()
	_, _, err := meet(t, server, client)
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("the error is %v, want one about %q", err, why)
	}
}

func TestAgentsConnectToGateways(t *testing.T) {
	ca := testca.New(t)
	gateway := role(t, ca, domain.Gateway()).CallServer()
	atServer, atClient, err := meet(t, gateway, agentCalls(t, ca, domain.Gateway()))
	if err != nil {
		t.Fatal(err)
	}
	if atServer.Version != tls.VersionTLS13 || atServer.NegotiatedProtocol != callwire.ALPN || atClient.NegotiatedProtocol != callwire.ALPN {
		t.Errorf("the connection is %s, %q and %q", tls.VersionName(atServer.Version), atServer.NegotiatedProtocol, atClient.NegotiatedProtocol)
	}
	if len(atServer.PeerCertificates) != 0 {
		t.Error("the agent showed a certificate")
	}
}

func TestAgentsCallOnlyGatewaysOfTheirs(t *testing.T) {
	ca, foreign := testca.New(t), testca.New(t)
	gateway := role(t, ca, domain.Gateway()).CallServer()
	wantAvoided(t, role(t, ca, domain.Scheduler()).CallServer(), agentCalls(t, ca, domain.Gateway()), "not "+domain.Gateway())
	wantAvoided(t, gateway, agentCalls(t, ca, mtls.Domain("windlass.team-b.windlass").Gateway()), "not gateway.windlass.team-b")
	wantAvoided(t, gateway, agentCalls(t, foreign, domain.Gateway()), "unknown authority")
	stranger := agentCalls(t, ca, domain.Gateway())
	stranger.Certificates = []tls.Certificate{pair(t, foreign.Folder(t, domain.Gateway()))}
	wantAvoided(t, gateway, stranger, "unknown authority")
	old := agentCalls(t, ca, domain.Gateway())
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	wantAvoided(t, gateway, old, "version")
}

func TestAgentCallsNeedACAAndAName(t *testing.T) {
	if _, err := mtls.AgentCalls([]byte("no PEM"), domain.Gateway()); err == nil || !strings.Contains(err.Error(), "caPEM") {
		t.Errorf("without a CA the error is %v", err)
	}
	if _, err := mtls.AgentCalls(testca.New(t).PEM(), ""); err == nil || !strings.Contains(err.Error(), "serverName") {
		t.Errorf("without a name the error is %v", err)
	}
}

// What carries calls is not taken for gRPC, nor the other way round.
func TestBothSidesOfCallsSpeakTheSame(t *testing.T) {
	ca := testca.New(t)
	gateway, agent := role(t, ca, domain.Gateway()).CallServer(), agentCalls(t, ca, domain.Gateway())
	for why, protocols := range map[string][]string{"speaks \"\"": nil, "no application protocol": {"h2"}} {
		client := agentCalls(t, ca, domain.Gateway())
		client.NextProtos, client.VerifyConnection = protocols, nil
		wantAvoided(t, gateway, client, why)
		server := &tls.Config{Certificates: []tls.Certificate{pair(t, ca.Folder(t, domain.Gateway()))}, NextProtos: protocols}
		wantAvoided(t, server, agent, why)
	}
}

func TestNoSessionOfCallsIsKept(t *testing.T) {
	ca := testca.New(t)
	client := agentCalls(t, ca, domain.Gateway())
	client.ClientSessionCache = noSessions{t}
	wantMet(t, role(t, ca, domain.Gateway()).CallServer(), client)
}

func TestCallsUseFilesThatWereReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := testca.New(t), testca.New(t)
		dir := before.Folder(t, domain.Gateway())
		gateway := load(t, dir).CallServer()
		wantMet(t, gateway, agentCalls(t, before, domain.Gateway()))
		after.Write(t, dir, testca.Certificate{Names: []string{domain.Gateway()}})
		time.Sleep(later)
		wantMet(t, gateway, agentCalls(t, after, domain.Gateway()))
		wantAvoided(t, gateway, agentCalls(t, before, domain.Gateway()), "unknown authority")
	})
}
