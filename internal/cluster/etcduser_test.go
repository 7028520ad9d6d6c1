package cluster

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// etcdOfUsers starts an etcd that wants a user, and returns its URL. Its user root has the same
// password.
func etcdOfUsers(t *testing.T, user, password string) (endpoint string) {
	t.Helper()
	anywhere, nowhere := url.URL{Scheme: "http", Host: "localhost:0"}, url.URL{Scheme: "unix", Host: "nowhere:0"}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.BcryptCost, cfg.UnsafeNoFsync = t.TempDir(), "panic", 4, true
	cfg.TickMs, cfg.ElectionMs = 20, 100
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = nil, []url.URL{nowhere}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{anywhere}, []url.URL{nowhere}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	admin := v3client.New(server.Server).Auth
	for _, name := range []string{"root", user} {
		if _, err := admin.UserAdd(t.Context(), name, password); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.UserGrantRole(t.Context(), name, "root"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.AuthEnable(t.Context()); err != nil {
		t.Fatal(err)
	}
	return "http://" + server.Clients[0].Addr().String()
}

// etcdUser makes a client of a user, and a way to change the password in its file.
func etcdUser(t *testing.T, endpoint, name, password string) (client *clientv3.Client, rotate func(password string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	rotate = func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotate(password)
	client, err := newEtcd(Etcd{Endpoints: []string{endpoint}, Username: name, PasswordFile: file}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, rotate
}

// A gateway must start while etcd is away, and ask schedulers for the slots.
func TestAUserOfEtcdNeedNoEtcdToStart(t *testing.T) {
	silent, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	etcdUser(t, "http://"+silent.Addr().String(), "windlass", "secret")
}

func TestAUserOfEtcdAuthenticatesWithThePasswordOfNow(t *testing.T) {
	endpoint := etcdOfUsers(t, "windlass", "old")
	unary, rotate := etcdUser(t, endpoint, "windlass", "old")
	if _, err := unary.Put(t.Context(), "/a", "1"); err != nil {
		t.Fatalf("the first request: %v", err)
	}
	watching, _ := etcdUser(t, endpoint, "windlass", "old")
	watch := watching.Watch(t.Context(), "/a", clientv3.WithRev(1))
	if got := <-watch; len(got.Events) != 1 {
		t.Errorf("a client that watches first sees %+v, %v", got.Events, got.Err())
	}

	root, _ := etcdUser(t, endpoint, "root", "old")
	if _, err := root.UserChangePassword(t.Context(), "windlass", "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := unary.Put(t.Context(), "/a", "2"); !errors.Is(err, rpctypes.ErrAuthFailed) {
		t.Errorf("with the password of before: %v", err)
	}
	rotate("new")
	if _, err := unary.Put(t.Context(), "/a", "3"); err != nil {
		t.Errorf("with the new password: %v", err)
	}
	lease, err := unary.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unary.KeepAliveOnce(t.Context(), lease.ID); err != nil {
		t.Errorf("renewing a lease: %v", err)
	}
}

func TestAnEmptyPasswordIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newEtcd(Etcd{Endpoints: []string{"http://localhost:1"}, Username: "windlass", PasswordFile: file}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a client without a password was made")
	}
}
