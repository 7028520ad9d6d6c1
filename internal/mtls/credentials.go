package mtls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Domain is what the names in the certificates of one Windlass have in common, such as
// RELEASE.NAMESPACE.windlass, so that two of one CA do not trust each other.
type Domain string

// Gateway is the name in the certificate of a gateway.
func (d Domain) Gateway() string { return d.role("gateway") }

// Scheduler is the name in the certificate of a scheduler.
func (d Domain) Scheduler() string { return d.role("scheduler") }

// Controller is the name in the certificate of a controller.
func (d Domain) Controller() string { return d.role("controller") }

// Node is the name in the certificate of a node agent.
func (d Domain) Node() string { return d.role("node") }

// role is empty without a domain, which no certificate is good enough for.
func (d Domain) role(name string) string {
	if d == "" {
		return ""
	}
	return name + "." + string(d)
}

// AgentCredentials are for a client without a certificate that trusts the CAs in caPEM.
// serverName is the name that the server must have.
func AgentCredentials(caPEM []byte, serverName string) (credentials.TransportCredentials, error) {
	config, err := agentConfig(caPEM, serverName)
	if err != nil {
		return nil, err
	}
	fixed := credentials.NewTLS(config)
	return transport{serverName: serverName, now: func() credentials.TransportCredentials { return fixed }}, nil
}

// agentConfig is for a client without a certificate.
func agentConfig(caPEM []byte, serverName string) (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caPEM) {
		return nil, errors.New("mtls: there is no certificate in caPEM: give the CA's as PEM")
	}
	if serverName == "" {
		return nil, errors.New("mtls: serverName is empty: say which role the server must have")
	}
	return &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS13}, nil
}

// PeerName returns the DNS names in the certificate that the client of a call
// has shown. It is false if the client has shown none, or the connection is not
// secured by TLS.
func PeerName(ctx context.Context) (names []string, ok bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil, false
	}
	return info.State.VerifiedChains[0][0].DNSNames, true
}

// transport makes each handshake with the credentials of that moment.
type transport struct {
	// serverName is empty for a server.
	serverName string
	now        func() credentials.TransportCredentials
}

func (t transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// ClientHandshake ignores the authority: an address or an option of the
// connection must not choose which name is enough.
func (t transport) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return t.now().ClientHandshake(ctx, t.serverName, conn)
}

func (t transport) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return t.now().ServerHandshake(conn)
}

func (t transport) Clone() credentials.TransportCredentials { return t }

func (t transport) OverrideServerName(string) error {
	return errors.New("mtls: the server's name is fixed: make other credentials")
}
