package mtls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

func TestRolesAndAgentsConnect(t *testing.T) {
	ca := testca.New(t)
	server := role(t, ca, "windlass-scheduler.windlass-system.svc", domain.Scheduler()).ServerCredentials()

	atServer, atClient, err := connect(t.Context(), server, role(t, ca, domain.Gateway()).ClientCredentials(domain.Scheduler()))
	if err != nil {
		t.Fatal(err)
	}
	if atServer.Version != tls.VersionTLS13 || atClient.NegotiatedProtocol != "h2" {
		t.Errorf("the connection is %s and %q, want TLS 1.3 and h2", tls.VersionName(atServer.Version), atClient.NegotiatedProtocol)
	}
	if got := atServer.VerifiedChains[0][0].DNSNames; !cmp.Equal(got, []string{domain.Gateway()}) {
		t.Errorf("the server saw a client named %q", got)
	}

	atServer, _, err = connect(t.Context(), server, agent(t, ca, domain.Scheduler()))
	if err != nil {
		t.Fatal(err)
	}
	if len(atServer.PeerCertificates) != 0 {
		t.Error("the agent showed a certificate")
	}
}

func TestClientsInsistOnTheServersName(t *testing.T) {
	ca := testca.New(t)
	gateway := role(t, ca, domain.Gateway())
	wantRefused(t, gateway.ServerCredentials(), gateway.ClientCredentials(domain.Scheduler()), "not "+domain.Scheduler())
	wantRefused(t, gateway.ServerCredentials(), agent(t, ca, domain.Scheduler()), "not "+domain.Scheduler())
	wantRefused(t, gateway.ServerCredentials(), gateway.ClientCredentials(""), "ServerName")
	// connect's authority is this server's name, and yet not what is asked for.
	other := role(t, ca, "an.authority")
	wantRefused(t, other.ServerCredentials(), agent(t, ca, domain.Scheduler()), "not "+domain.Scheduler())
}

func TestACertificateServesOnlyItsUsages(t *testing.T) {
	ca := testca.New(t)
	with := func(usage x509.ExtKeyUsage) *mtls.Credentials {
		dir := t.TempDir()
		ca.Write(t, dir, testca.Certificate{Names: []string{domain.Scheduler()}, Usages: []x509.ExtKeyUsage{usage}})
		return load(t, dir)
	}
	server, client := with(x509.ExtKeyUsageServerAuth), with(x509.ExtKeyUsageClientAuth)
	wantConnects(t, server.ServerCredentials(), client.ClientCredentials(domain.Scheduler()))
	wantRefused(t, server.ServerCredentials(), server.ClientCredentials(domain.Scheduler()), "incompatible key usage")
	wantRefused(t, client.ServerCredentials(), client.ClientCredentials(domain.Scheduler()), "incompatible key usage")
}

func TestNoSessionIsKept(t *testing.T) {
	ca := testca.New(t)
	client := raw(&tls.Config{
		RootCAs: pool(t, ca), ServerName: domain.Scheduler(), NextProtos: []string{"h2"},
		ClientSessionCache: noSessions{t},
	})
	wantConnects(t, role(t, ca, domain.Scheduler()).ServerCredentials(), client)
}

// noSessions fails a test whose server offers to resume a session.
type noSessions struct{ t *testing.T }

func (noSessions) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

func (n noSessions) Put(string, *tls.ClientSessionState) {
	n.t.Error("the server offers to resume the session")
}

func TestAnotherCAIsRefused(t *testing.T) {
	ours, theirs := testca.New(t), testca.New(t)
	scheduler := role(t, ours, domain.Scheduler())
	wantRefused(t, scheduler.ServerCredentials(), agent(t, theirs, domain.Scheduler()), "unknown authority")
	wantRefused(t, scheduler.ServerCredentials(), role(t, theirs, domain.Gateway()).ClientCredentials(domain.Scheduler()), "unknown authority")

	// It trusts our CA, but its own certificate is of another.
	stranger := raw(&tls.Config{
		RootCAs: pool(t, ours), ServerName: domain.Scheduler(), NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{pair(t, theirs.Folder(t, domain.Gateway()))},
	})
	wantRefused(t, scheduler.ServerCredentials(), stranger, "unknown authority")
}

func TestOldTLSIsRefused(t *testing.T) {
	ca := testca.New(t)
	folder := ca.Folder(t, domain.Scheduler())
	scheduler := load(t, folder)
	old := raw(&tls.Config{
		Certificates: []tls.Certificate{pair(t, folder)}, RootCAs: pool(t, ca), ServerName: domain.Scheduler(),
		NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12,
	})
	wantConnects(t, old, old)
	wantRefused(t, scheduler.ServerCredentials(), old, "version")
	wantRefused(t, old, scheduler.ClientCredentials(domain.Scheduler()), "version")
	wantRefused(t, old, agent(t, ca, domain.Scheduler()), "version")
}

func TestExpiredCertificatesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testca.New(t)
		lasting := role(t, ca, domain.Scheduler())
		folder := t.TempDir()
		ca.Write(t, folder, testca.Certificate{Names: []string{domain.Scheduler()}, NotAfter: time.Now().Add(time.Minute)})
		brief := load(t, folder)
		if want := time.Now().Add(time.Minute); !brief.Expires().Equal(want) {
			t.Errorf("it expires at %v, want %v", brief.Expires(), want)
		}
		wantConnects(t, brief.ServerCredentials(), lasting.ClientCredentials(domain.Scheduler()))
		wantConnects(t, lasting.ServerCredentials(), brief.ClientCredentials(domain.Scheduler()))
		time.Sleep(2 * time.Minute)
		wantRefused(t, brief.ServerCredentials(), lasting.ClientCredentials(domain.Scheduler()), "expired")
		wantRefused(t, lasting.ServerCredentials(), brief.ClientCredentials(domain.Scheduler()), "expired")
		if _, err := mtls.Load(folder, silent()); err == nil || !strings.Contains(err.Error(), "renew it") {
			t.Errorf("loading an expired certificate says %v", err)
		}
	})
}

func TestAgentCredentialsNeedACAAndAName(t *testing.T) {
	if _, err := mtls.AgentCredentials([]byte("no PEM"), domain.Scheduler()); err == nil || !strings.Contains(err.Error(), "caPEM") {
		t.Errorf("without a CA the error is %v", err)
	}
	if _, err := mtls.AgentCredentials(testca.New(t).PEM(), ""); err == nil || !strings.Contains(err.Error(), "serverName") {
		t.Errorf("without a name the error is %v", err)
	}
}

// raw are credentials without anything that mtls adds.
func raw(config *tls.Config) credentials.TransportCredentials {
	return named{credentials.NewTLS(config), config.ServerName}
}

// named is a client that asks for its own server's name instead of the authority.
type named struct {
	credentials.TransportCredentials
	name string
}

func (n named) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return n.TransportCredentials.ClientHandshake(ctx, n.name, conn)
}

func pool(t *testing.T, ca *testca.CA) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("the CA has no certificate")
	}
	return p
}

func pair(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
