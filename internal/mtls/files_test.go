package mtls_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

// later is when files that have changed must be in use.
const later = 6 * time.Second

func TestLoadSaysWhatIsWrong(t *testing.T) {
	ca := testca.New(t)
	for _, c := range []struct {
		name    string
		corrupt func(dir string)
		want    string
	}{
		{"no CA", func(dir string) { remove(t, dir, "ca.crt") }, "read ca.crt"},
		{"no certificate", func(dir string) { remove(t, dir, "tls.crt") }, "read tls.crt"},
		{"no key", func(dir string) { remove(t, dir, "tls.key") }, "read tls.key"},
		{"empty CA", func(dir string) { write(t, filepath.Join(dir, "ca.crt"), "") }, "no certificate in ca.crt"},
		{"empty certificate", func(dir string) { write(t, filepath.Join(dir, "tls.crt"), "") }, "tls.crt and tls.key"},
		{"another key", func(dir string) { copyFile(t, ca.Folder(t, domain.Gateway()), dir, "tls.key") }, "do not go together"},
		{"another CA", func(dir string) { copyFile(t, testca.New(t).Folder(t), dir, "ca.crt") }, "not a valid certificate of ca.crt"},
		{"not yet valid", func(dir string) {
			ca.Write(t, dir, testca.Certificate{NotBefore: time.Now().Add(time.Minute)})
		}, "not a valid certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := ca.Folder(t, domain.Gateway())
			c.corrupt(dir)
			if _, err := mtls.Load(dir, silent()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one about %q", err, c.want)
			}
		})
	}
	if _, err := mtls.Load(ca.Folder(t, domain.Gateway()), nil); err == nil {
		t.Error("it loads without a logger")
	}
}

// TestASecretIsSwapped replaces a certificate and its CA the way that kubelet
// does: by a link to another folder.
func TestASecretIsSwapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := testca.New(t), testca.New(t)
		mount := t.TempDir()
		swap(t, mount, before.Folder(t, domain.Scheduler()))
		for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
			link(t, filepath.Join("..data", name), filepath.Join(mount, name))
		}
		var log bytes.Buffer
		scheduler, err := mtls.Load(mount, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		server, client := scheduler.ServerCredentials(), scheduler.ClientCredentials(domain.Scheduler())
		time.Sleep(later)
		wantConnects(t, server, agent(t, before, domain.Scheduler()))
		if log.Len() != 0 {
			t.Errorf("nothing happened, and the log says %s", &log)
		}
		if scheduler.CA() != string(before.PEM()) {
			t.Error("the CA is not the one in the files")
		}

		swap(t, mount, after.Folder(t, domain.Scheduler()))
		time.Sleep(later)
		if scheduler.CA() != string(after.PEM()) {
			t.Error("the CA is not the one that replaced the other")
		}
		wantConnects(t, server, agent(t, after, domain.Scheduler()))
		wantRefused(t, server, agent(t, before, domain.Scheduler()), "unknown authority")
		wantRefused(t, server, role(t, before, domain.Gateway()).ClientCredentials(domain.Scheduler()), "unknown authority")
		wantConnects(t, server, role(t, after, domain.Gateway()).ClientCredentials(domain.Scheduler()))
		wantConnects(t, role(t, after, domain.Scheduler()).ServerCredentials(), client)
		wantRefused(t, role(t, before, domain.Scheduler()).ServerCredentials(), client, "unknown authority")
		if n := strings.Count(log.String(), "were replaced"); n != 1 {
			t.Errorf("the log tells of %d replacements, want one:\n%s", n, &log)
		}
	})
}

func TestABrokenSetChangesNothing(t *testing.T) {
	ca := testca.New(t)
	for name, corrupt := range map[string]func(t *testing.T, dir string){
		"half a swap":   func(t *testing.T, dir string) { copyFile(t, ca.Folder(t, domain.Scheduler()), dir, "tls.crt") },
		"half a file":   func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "tls.crt")) },
		"another's CA":  func(t *testing.T, dir string) { copyFile(t, testca.New(t).Folder(t), dir, "ca.crt") },
		"a missing key": func(t *testing.T, dir string) { remove(t, dir, "tls.key") },
		"an expired certificate": func(t *testing.T, dir string) {
			ca.Write(t, dir, testca.Certificate{Names: []string{domain.Scheduler()}, NotAfter: time.Now().Add(-time.Minute)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The bubble has a time of its own.
				ca = testca.New(t)
				dir := ca.Folder(t, domain.Scheduler())
				var log bytes.Buffer
				scheduler, err := mtls.Load(dir, slog.New(slog.NewTextHandler(&log, nil)))
				if err != nil {
					t.Fatal(err)
				}
				server := scheduler.ServerCredentials()
				corrupt(t, dir)
				for range 5 {
					time.Sleep(later)
					wantConnects(t, server, agent(t, ca, domain.Scheduler()))
				}
				if n := strings.Count(log.String(), "cannot be used"); n != 1 {
					t.Errorf("it complained %d times within half a minute, want once", n)
				}
				time.Sleep(time.Minute)
				wantConnects(t, server, agent(t, ca, domain.Scheduler()))
				if n := strings.Count(log.String(), "cannot be used"); n != 2 {
					t.Errorf("it complained %d times within two minutes, want twice", n)
				}

				mended := testca.New(t)
				mended.Write(t, dir, testca.Certificate{Names: []string{domain.Scheduler()}})
				time.Sleep(later)
				wantConnects(t, server, agent(t, mended, domain.Scheduler()))
			})
		})
	}
}

func swap(t *testing.T, mount, to string) {
	t.Helper()
	link(t, to, filepath.Join(mount, "..next"))
	if err := os.Rename(filepath.Join(mount, "..next"), filepath.Join(mount, "..data")); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to, name string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(to, name), string(content))
}

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
}
