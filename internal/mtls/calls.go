package mtls

import (
	"crypto/tls"
	"fmt"

	"github.com/windlass-dev/windlass/internal/callwire"
)

// CallServer is for a gateway's connections with agents. Like ServerCredentials it takes clients
// with a certificate of the CA and clients without any, and each handshake uses the files as they
// are then.
func (c *Credentials) CallServer() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current().calls, nil
		},
	}
}

// AgentCalls is for an agent's connections with gateways: a client without a certificate that
// trusts the CAs in caPEM. serverName is the name that the gateway must have.
func AgentCalls(caPEM []byte, serverName string) (*tls.Config, error) {
	config, err := agentConfig(caPEM, serverName)
	if err != nil {
		return nil, err
	}
	return forCalls(config), nil
}

// forCalls lets a configuration agree on callwire and nothing else. TLS by itself would let a
// side pass that names no protocol.
func forCalls(config *tls.Config) *tls.Config {
	config.NextProtos = []string{callwire.ALPN}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != callwire.ALPN {
			return fmt.Errorf("mtls: the other side speaks %q, not %s", state.NegotiatedProtocol, callwire.ALPN)
		}
		return nil
	}
	return config
}
