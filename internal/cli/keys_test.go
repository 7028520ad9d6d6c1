package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// idOf is the id in an API key.
func idOf(t *testing.T, key string) string {
	t.Helper()
	parts := strings.Split(strings.TrimSpace(key), "_")
	if len(parts) != 3 || parts[0] != "wl" || len(parts[2]) != 64 {
		t.Fatalf("%q is no API key", key)
	}
	return parts[1]
}

func TestKeysOfThisMachine(t *testing.T) {
	th := quiet(t)
	th.run(t, "keys", "list").expect(t, exitOK, "err", "there are no API keys; windlass keys create makes one")
	first := th.run(t, "keys", "create", "team-a", "team-b/f", "--expires", "720h")
	first.expect(t, exitOK, "err", "may call team-a, team-b/f until 2026-03-31T12:00:00Z; it is not shown again")
	second := th.run(t, "keys", "create", "-n", "team-c")
	second.expect(t, exitOK, "err", "may call team-c until it is revoked")

	file := filepath.Join(th.dir, auth.KeysFileName)
	kept, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(kept), strings.Split(strings.TrimSpace(first.out), "_")[2]) {
		t.Fatalf("%v; kept is\n%s", err, kept)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	a, b := idOf(t, first.out), idOf(t, second.out)
	th.run(t, "keys", "list").expect(t, exitOK, "out", "ID             NAME   ALLOW             AGE   EXPIRES\n",
		a+"   -      team-a,team-b/f   0s    2026-03-31T12:00:00Z\n", b+"   -      team-c            0s    never\n")

	th.run(t, "keys", "revoke", a, "nobody").expect(t, exitUsage, "err", "there is no key nobody; windlass keys list")
	th.run(t, "keys", "revoke", a).expect(t, exitOK, "out", "key "+a+" revoked\n")
	if got := th.run(t, "keys", "list"); strings.Contains(got.out, a) || !strings.Contains(got.out, b) {
		t.Errorf("after the first was revoked:\n%s", got.out)
	}
}

func TestA20KeysHaveNames(t *testing.T) {
	th := quiet(t)
	made := th.run(t, "keys", "create", "team-a", "--name", "laptop")
	id := idOf(t, made.out)
	made.expect(t, exitOK, "err", "key laptop ("+id+") may call team-a")
	th.run(t, "keys", "create", "team-b").expect(t, exitOK, "err", "may call team-b")
	th.run(t, "keys", "list").expect(t, exitOK, "out", id+"   laptop   team-a")
	th.run(t, "keys", "list", "-o", "json").expect(t, exitOK, "out", `"name": "laptop"`)
	th.run(t, "keys", "create", "team-c", "--name", "laptop").expect(t, exitUsage, "err", "there is a key named laptop already")
	for _, name := range []string{"", "a b", "0123456789ab", strings.Repeat("a", 64)} {
		th.run(t, "keys", "create", "team-c", "--name", name).expect(t, exitUsage, "err", "--name: the name")
	}
	th.run(t, "keys", "revoke", "laptop").expect(t, exitOK, "out", "key laptop ("+id+") revoked")
	if got := th.run(t, "keys", "list"); strings.Contains(got.out, id) || !strings.Contains(got.out, "team-b") {
		t.Errorf("after it was revoked:\n%s", got.out)
	}
}

func TestKeysAreAskedForRightly(t *testing.T) {
	th := quiet(t)
	for says, args := range map[string][]string{
		"write windlass keys create, list or revoke":                        {"keys"},
		"what may the key call?":                                            {"keys", "create"},
		"neither a namespace nor NAMESPACE/NAME":                            {"keys", "create", "Team_A"},
		"--expires -1s must be more than 0":                                 {"keys", "create", "a", "--expires", "-1s"},
		"--namespace has no effect beside f; remove it, or write team/NAME": {"keys", "create", "f", "-n", "team"},
		"--expires 0s must be more than 0":                                  {"keys", "create", "a", "--expires", "0s"},
		"which key? windlass keys list shows IDs and names":                 {"keys", "revoke"},
	} {
		th.run(t, args...).expect(t, exitUsage, "err", says)
	}
	if err := os.WriteFile(filepath.Join(th.dir, auth.KeysFileName), []byte("keys: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	th.run(t, "keys", "create", "a").expect(t, exitUsage, "err", "correct it by hand")
	th.run(t, "keys", "list").expect(t, exitUsage, "err", "the list of keys")
}

func TestKeysOfACluster(t *testing.T) {
	gateway := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "gateway-0",
		Labels: map[string]string{"app.kubernetes.io/part-of": "windlass", "app.kubernetes.io/component": "gateway"}}}
	gateway.Spec.Containers = []corev1.Container{{Name: "gateway", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}
	gateway.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s := newClusterHarness(t, gateway)
	first := s.run(t, "--context", "here", "keys", "create", "team")
	first.expect(t, exitOK, "err", "may call team until it is revoked")
	second := s.run(t, "--context", "here", "keys", "create", "*", "--windlass-namespace", "platform")
	second.expect(t, exitOK, "err", "may call *")

	var secret corev1.Secret
	if err := s.kube.Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: kubeclient.KeysSecret}, &secret); err != nil {
		t.Fatal(err)
	}
	list, err := auth.ParseKeys(secret.Data[auth.KeysFileName])
	if err != nil || len(list.Keys) != 2 || list.Keys[0].ID != idOf(t, first.out) || list.Keys[1].ID != idOf(t, second.out) {
		t.Fatalf("%+v, %v", list, err)
	}
	s.run(t, "--context", "here", "keys", "revoke", idOf(t, first.out)).expect(t, exitOK, "out", "revoked")
	s.run(t, "--context", "here", "keys", "list").expect(t, exitOK, "out", idOf(t, second.out)+"   -      *       0s    never")
	s.run(t, "--context", "here", "keys", "list", "--windlass-namespace", "other").expect(t, exitOK, "err", "there are no API keys")
}

func TestInvokeShowsAKey(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	th.answer(t, func(w http.ResponseWriter, r *http.Request) {
		ran(w)
		_, _ = w.Write([]byte(r.Header.Get(invocation.HeaderKey)))
	})
	if got := th.run(t, "invoke", "f"); got.out != "wl_session" {
		t.Errorf("to its own gateway it shows %q", got.out)
	}
	if got := th.run(t, "invoke", "f", "--gateway", th.gatewayURL); got.out != "" {
		t.Errorf("to any gateway it shows %q", got.out)
	}
	th.key = "wl_mine"
	for _, args := range [][]string{{"invoke", "f"}, {"invoke", "f", "--gateway", th.gatewayURL}} {
		if got := th.run(t, args...); got.out != "wl_mine" {
			t.Errorf("%v shows %q", args, got.out)
		}
	}
	if got := th.run(t, "invoke", "f", "-H", "Windlass-Key: wl_other"); got.out != "wl_other" {
		t.Errorf("instead of what was given it shows %q", got.out)
	}
	th.answer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(invocation.HeaderExecuted, "no")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"reason": "CredentialsInvalid", "detail": "no"}`))
	})
	th.run(t, "invoke", "f").expect(t, exitPlatform, "err", "put an API key for it into $WINDLASS_KEY; windlass keys create makes one")
}

func TestEditsOfKeysAtTheSameTimeAllCount(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	const editors, edits = 8, 20
	var editing sync.WaitGroup
	for range editors {
		editing.Go(func() {
			keys := localTarget(dir)
			for range edits {
				if err := keys.EditKeys(t.Context(), func(list []byte) ([]byte, error) { return append(list, 'x'), nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	editing.Wait()
	if list, err := localTarget(dir).ReadKeys(t.Context()); err != nil || len(list) != editors*edits {
		t.Errorf("%d of %d edits are left, %v", len(list), editors*edits, err)
	}
}

func TestAnEditOfKeysThatIsStoppedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		edit := func(list []byte) ([]byte, error) { return append(list, 'x'), nil }
		stopped, others := make(chan struct{}), make(chan error)
		go func() {
			others <- localTarget(dir).EditKeys(t.Context(), func(list []byte) ([]byte, error) {
				<-stopped
				return edit(list)
			})
		}()
		synctest.Wait()
		began := time.Now()
		err := localTarget(dir).EditKeys(t.Context(), edit)
		if want := fmt.Sprintf("process %d has had it locked", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "kill -9") {
			t.Errorf("got %v, want %q and a remedy", err, want)
		}
		if took := time.Since(began); took > lockTime+lockEvery {
			t.Errorf("it waited for %s", took)
		}
		close(stopped)
		if err := <-others; err != nil {
			t.Error(err)
		}
		if err := localTarget(dir).EditKeys(t.Context(), edit); err != nil {
			t.Errorf("after that: %v", err)
		}
	})
}
