package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates. It is valid for a day, from an hour ago.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is what may be said of a certificate.
type Certificate struct {
	// Names are its DNS names.
	Names []string
	// NotBefore and NotAfter are an hour ago and in an hour if they are zero.
	NotBefore, NotAfter time.Time
	// Usages are those of a server and of a client if they are nil.
	Usages []x509.ExtKeyUsage
}

// New makes a CA.
func New(t testing.TB) *CA {
	t.Helper()
	now := time.Now()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "test CA"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(23 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	key := newKey(t)
	return &CA{cert: sign(t, template, template, key, key), key: key}
}

// PEM is the certificate of the CA.
func (ca *CA) PEM() []byte { return encode("CERTIFICATE", ca.cert.Raw) }

// Folder makes a folder with a certificate for a server and client that has
// these DNS names.
func (ca *CA) Folder(t testing.TB, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	ca.Write(t, dir, Certificate{Names: names})
	return dir
}

// Write makes ca.crt, tls.crt and tls.key in a folder that exists.
func (ca *CA) Write(t testing.TB, dir string, c Certificate) {
	t.Helper()
	if c.NotBefore.IsZero() {
		c.NotBefore = time.Now().Add(-time.Hour)
	}
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	if c.Usages == nil {
		c.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	key := newKey(t)
	cert := sign(t, &x509.Certificate{
		DNSNames:    c.Names,
		NotBefore:   c.NotBefore,
		NotAfter:    c.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: c.Usages,
	}, ca.cert, key, ca.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"ca.crt":  ca.PEM(),
		"tls.crt": encode("CERTIFICATE", cert.Raw),
		"tls.key": encode("PRIVATE KEY", der),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate of template for the owner of key.
func sign(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
