package lab

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// authority signs the lab's certificates, which hold for a day.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// identity is who a certificate speaks for.
type identity struct {
	user   string
	groups []string
	names  []string
	addrs  []netip.Addr
	// life is certificateLife if it is 0.
	life time.Duration
}

// certificateLife is longer than any run, and long enough that no alert speaks of it.
const certificateLife = 90 * 24 * time.Hour

func (id identity) template() *x509.Certificate {
	t := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: id.user, Organization: id.groups},
		DNSNames:     id.names,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(cmp.Or(id.life, certificateLife)),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, addr := range id.addrs {
		t.IPAddresses = append(t.IPAddresses, net.IP(addr.AsSlice()))
	}
	return t
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := identity{user: name}.template()
	t.IsCA, t.BasicConstraintsValid, t.ExtKeyUsage = true, true, nil
	t.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key}, err
}

// folder makes a folder with ca.crt, tls.crt and tls.key.
func (a *authority) folder(dir string, id identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, id.template(), a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	private, err := privatePEM(key)
	if err != nil {
		return err
	}
	return writeAll(dir, map[string][]byte{
		"ca.crt": block("CERTIFICATE", a.certificate.Raw), "tls.crt": block("CERTIFICATE", der), "tls.key": private,
	})
}

// tokenKeys makes a folder with the keys of service account tokens. They are RSA,
// as in most clusters.
func tokenKeys(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	private, err := privatePEM(key)
	if err != nil {
		return err
	}
	return writeAll(dir, map[string][]byte{"tokens.pub": block("PUBLIC KEY", public), "tokens.key": private})
}

func privatePEM(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return block("PRIVATE KEY", der), err
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func writeAll(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
