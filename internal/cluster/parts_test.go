package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

func TestEtcdIsTrustedByTheCAOfNow(t *testing.T) {
	before, after := testca.New(t), testca.New(t)
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	dir := before.Folder(t, "gateway")
	client, err := newEtcd(Etcd{Endpoints: []string{"https://localhost:" + port}, TLSDir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	after.Write(t, dir, testca.Certificate{Names: []string{"gateway"}})

	member := after.Folder(t, "localhost")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(member, "tls.crt"), filepath.Join(member, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(after.PEM())
	client.ActiveConnection().Connect()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server := tls.Server(conn, &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	})
	if err := server.Handshake(); err != nil {
		t.Errorf("a member with a certificate of the new CA: %v", err)
	}
}
