package mtls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

const (
	// checkInterval is the shortest time between two looks at the files, and
	// logInterval that between two complaints about them.
	checkInterval = 5 * time.Second
	logInterval   = time.Minute
)

// Credentials are a role's certificate and the CA, kept up with their files. It
// is for concurrent use.
type Credentials struct {
	dir string
	log *slog.Logger

	mu         sync.Mutex
	set        *set
	checkedAt  time.Time
	complained time.Time
}

// Load reads a folder that holds ca.crt, tls.crt and tls.key in PEM, as a mounted
// Secret of type kubernetes.io/tls does. tls.crt begins with the role's own
// certificate, which must be of the CA and valid now.
func Load(dir string, log *slog.Logger) (*Credentials, error) {
	if log == nil {
		return nil, errors.New("mtls: log is nil: pass a logger")
	}
	f, err := readFiles(dir)
	if err != nil {
		return nil, err
	}
	s, err := f.parse(dir)
	if err != nil {
		return nil, err
	}
	return &Credentials{dir: dir, log: log, set: s, checkedAt: time.Now()}, nil
}

// ServerCredentials are for a server that takes clients with a certificate of
// the CA and clients without any.
func (c *Credentials) ServerCredentials() credentials.TransportCredentials {
	return transport{now: func() credentials.TransportCredentials { return c.current().server }}
}

// serverConfig is that of a handshake while a set is in use. Connections hold what they were made
// with, so those of a set share one.
func (s *set) serverConfig() *tls.Config {
	return &tls.Config{
		Certificates:           []tls.Certificate{s.cert},
		ClientCAs:              s.roots,
		ClientAuth:             tls.VerifyClientCertIfGiven,
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
	}
}

// ClientCredentials are for a client that shows its certificate to servers that
// have a certificate of the CA with the name serverName. If that is empty, no
// server is good enough.
func (c *Credentials) ClientCredentials(serverName string) credentials.TransportCredentials {
	return transport{serverName: serverName, now: func() credentials.TransportCredentials {
		s := c.current()
		return credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{s.cert},
			RootCAs:      s.roots,
			ServerName:   serverName,
			MinVersion:   tls.VersionTLS13,
		})
	}}
}

// Expires is when the certificate in use ends.
func (c *Credentials) Expires() time.Time { return c.current().cert.Leaf.NotAfter }

// CA is the CA in use, in PEM.
func (c *Credentials) CA() string { return string(c.current().files.ca) }

// current is the set to use now. It looks at the contents of the files, because
// a Secret is swapped by a link and its files may well keep their times.
func (c *Credentials) current() *set {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checkedAt) >= checkInterval {
		c.checkedAt = now
		c.refresh(now)
	}
	return c.set
}

// refresh takes over the files if they have changed and are in order.
func (c *Credentials) refresh(now time.Time) {
	f, err := readFiles(c.dir)
	if err == nil && f.equal(c.set.files) {
		return
	}
	var next *set
	if err == nil {
		next, err = f.parse(c.dir)
	}
	if err != nil {
		if now.Sub(c.complained) >= logInterval {
			c.complained = now
			c.log.Error("the TLS files cannot be used; those read before still count", "err", err, "expires", c.set.cert.Leaf.NotAfter)
		}
		return
	}
	c.set, c.complained = next, time.Time{}
	c.log.Info("the TLS files were replaced", "dir", c.dir, "expires", next.cert.Leaf.NotAfter)
}

// set is what the files say.
type set struct {
	files files
	cert  tls.Certificate
	roots *x509.CertPool
	// server is what servers of gRPC use, and calls what those of callwire do.
	server credentials.TransportCredentials
	calls  *tls.Config
}

// files are the contents of the files.
type files struct{ ca, cert, key []byte }

func readFiles(dir string) (files, error) {
	var f files
	for _, file := range []struct {
		name string
		into *[]byte
	}{{"ca.crt", &f.ca}, {"tls.crt", &f.cert}, {"tls.key", &f.key}} {
		content, err := os.ReadFile(filepath.Join(dir, file.name))
		if err != nil {
			return files{}, fmt.Errorf("mtls: read %s: mount the role's TLS Secret there: %w", file.name, err)
		}
		*file.into = content
	}
	return f, nil
}

func (f files) equal(g files) bool {
	return bytes.Equal(f.ca, g.ca) && bytes.Equal(f.cert, g.cert) && bytes.Equal(f.key, g.key)
}

// parse refuses what peers would refuse, so that files of two sets that were
// read together do not replace a good one.
func (f files) parse(dir string) (*set, error) {
	cert, err := tls.X509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("mtls: tls.crt and tls.key in %s do not go together: %w", dir, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(f.ca) {
		return nil, fmt.Errorf("mtls: there is no certificate in ca.crt in %s: put the CA's there as PEM", dir)
	}
	between := x509.NewCertPool()
	for _, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("mtls: tls.crt in %s: a certificate behind the first: %w", dir, err)
		}
		between.AddCert(c)
	}
	_, err = cert.Leaf.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: between,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return nil, fmt.Errorf("mtls: tls.crt in %s is not a valid certificate of ca.crt: renew it: %w", dir, err)
	}
	s := &set{files: f, cert: cert, roots: roots}
	s.server, s.calls = credentials.NewTLS(s.serverConfig()), forCalls(s.serverConfig())
	return s, nil
}
