package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checksums writes the digests of all released files in the form of sha256sum, and signs
// them if there is a key: who trusts the key can check every file, and by the provenance
// the digests of images and chart.
func (r *release) checksums(context.Context) error {
	var content bytes.Buffer
	files := slices.DeleteFunc(slices.Clone(r.subjects), func(s subject) bool { return strings.Contains(s.Name, ":") })
	slices.SortFunc(files, func(a, b subject) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range files {
		fmt.Fprintf(&content, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	if err := r.write("checksums.txt", content.Bytes(), nil); err != nil || r.key == nil {
		return err
	}
	signature, err := sign(r.key, content.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "checksums.txt.sig"), signature, 0o644)
}

// readKey reads a private key as openssl writes it.
func readKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not in PEM")
	}
	if block.Type == "EC PARAMETERS" {
		return nil, errors.New(`it begins with EC PARAMETERS: make it by "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"`)
	}
	var key any
	var err error
	if block.Type == "EC PRIVATE KEY" {
		key, err = x509.ParseECPrivateKey(block.Bytes)
	} else {
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, err
	}
	if k, ok := key.(*ecdsa.PrivateKey); ok && k.Curve == elliptic.P256() {
		return k, nil
	}
	return nil, errors.New("it is no ECDSA key on the curve P-256, which cosign and openssl both verify")
}

// sign makes a signature as cosign sign-blob does: ECDSA over SHA-256, in ASN.1 and base64.
// It is deterministic (RFC 6979), so that a release made twice is the same to the last byte.
func sign(key *ecdsa.PrivateKey, content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	signature, err := key.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(signature) + "\n"), nil
}
