package cluster

import (
	"archive/tar"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestACertificateServesItsNamesAndNoOthers(t *testing.T) {
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := ca.issue(identity{
		user: "kubelet", groups: []string{"system:nodes"}, names: []string{"a"}, addresses: []netip.Addr{addresses(200).node(0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	der, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(der.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.pem)
	for name, want := range map[string]bool{"a": true, "10.200.4.1": true, "b": false, "10.200.8.1": false} {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		if (err == nil) != want {
			t.Errorf("%s: valid is %t, want %t: %v", name, err == nil, want, err)
		}
	}
	if certificate.Subject.CommonName != "kubelet" || !slices.Equal(certificate.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("the certificate is for %v", certificate.Subject)
	}
}

func TestAKubeconfigIsReadable(t *testing.T) {
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(path, 200, ca, identity{user: "admin"}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://10.200.0.1:6443" || len(config.CertData) == 0 || len(config.CAData) == 0 {
		t.Errorf("the kubeconfig gives %v", config)
	}
}

func TestAnImageHoldsItsProgram(t *testing.T) {
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "p"), filepath.Join(dir, "p.tar")
	if err := os.WriteFile(program, []byte("machine code"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteImage(archive, "localhost/p:1", "p", program); err != nil {
		t.Fatal(err)
	}
	image := entries(t, open(t, archive))
	var manifest []struct {
		RepoTags, Layers []string
		Config           string
	}
	if err := json.Unmarshal(image["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || manifest[0].RepoTags[0] != "localhost/p:1" || image[manifest[0].Config] == nil || image[manifest[0].Layers[0]] == nil {
		t.Errorf("the manifest is %s", image["manifest.json"])
	}
}

func open(t *testing.T, path string) *tar.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return tar.NewReader(f)
}

func entries(t *testing.T, r *tar.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProcessIsKnownByItsStart(t *testing.T) {
	p, err := identify("test", os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !p.alive() {
		t.Error("this process is not alive")
	}
	other := p
	other.Start += "0"
	if other.alive() {
		t.Error("a process of the same PID with another start is taken for it")
	}
}

func TestStatSurvivesAnyName(t *testing.T) {
	got, err := parseStat("12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21")
	if err != nil || got != (stat{state: "S", start: "4711"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseStat("12 (a) S"); err == nil {
		t.Error("half a line is taken for a whole one")
	}
}

func TestARecordComesBack(t *testing.T) {
	l := layout{t.TempDir()}
	if r, err := readRecord(l); r != nil || err != nil {
		t.Fatalf("an empty folder holds %v, %v", r, err)
	}
	want := record{Range: 201, Nodes: Nodes(1)}
	want.set(process{Name: "etcd", PID: 1})
	want.set(process{Name: "etcd", PID: 2})
	if err := want.write(l); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(l)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := got.find("etcd"); !ok || p.PID != 2 || len(got.Processes) != 1 || got.Range != 201 {
		t.Errorf("got %+v", got)
	}
	if err := os.WriteFile(l.record(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(l); err == nil {
		t.Error("half a record is taken for a whole one")
	}
}

func TestAFolderWithSomethingElseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "diary"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCluster(layout{dir}, Config{}.log(), false)
	defer c.launcher.close()
	if err := c.claim(t.Context()); err == nil {
		t.Error("a cluster would move into somebody's folder")
	}
	if _, err := os.Stat(filepath.Join(dir, "diary")); err != nil {
		t.Error(err)
	}
}
