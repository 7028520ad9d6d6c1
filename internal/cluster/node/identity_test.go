package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

const thisPod, otherPod = "0a1b-22", "0a1b-33"

// issuer signs tokens as a cluster does.
type issuer struct {
	key    *ecdsa.PrivateKey
	broken bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{key: key}
}

// Keys implements jwks.KeySource.
func (i *issuer) Keys(context.Context) ([]byte, error) {
	if i.broken {
		return nil, os.ErrDeadlineExceeded
	}
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
}

// token is that of thisPod for node agents, with some claims replaced.
func (i *issuer) token(t *testing.T, replaced map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{
		"iss": "https://cluster", "aud": podtoken.NodeAudience, "sub": "system:serviceaccount:shop:default", "exp": time.Now().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{
			"namespace": "shop", "pod": map[string]any{"name": "cart-1", "uid": thisPod}, "serviceaccount": map[string]any{"name": "default", "uid": "s"},
		},
	}
	maps.Copy(claims, replaced)
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// plantPods makes a node with the groups of two pods of cgroup v2, as a container sees it.
func plantPods(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/self/mountinfo", "9 8 0:26 / /host/cgroup rw - cgroup2 cgroup rw")
	write("host/cgroup/cgroup.controllers", "cpu memory")
	for _, group := range []string{"", "/burstable/pod" + thisPod, "/burstable/pod" + otherPod} {
		for name, content := range map[string]string{"cpu.weight": "79", "cpu.idle": "0", "cpu.stat": "usage_usec 99"} {
			write("host/cgroup/kubepods"+group+"/"+name, content)
		}
	}
	return root
}

func newIdentifier(t *testing.T, keys *issuer, root string) *podIdentifier {
	t.Helper()
	settings := podtoken.DefaultConfig()
	settings.Audience = podtoken.NodeAudience
	verifier, err := podtoken.New(settings, podtoken.Deps{Keys: keys, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := cgroups.OpenJournal(filepath.Join(t.TempDir(), "bands"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	tree := cgroups.Detect(cgroups.Options{Root: root, Below: "/host/cgroup", Base: "/"})
	return &podIdentifier{verify: verifier.Verify, tree: tree, journal: journal}
}

func TestAPodIsWhatItsTokenSays(t *testing.T) {
	keys, root := newIssuer(t), plantPods(t)
	p := newIdentifier(t, keys, root)
	// The instance that it says it is belongs to another pod.
	is, err := p.Identify(t.Context(), nodeagent.Hello{Token: keys.token(t, nil), Namespace: "shop", Function: "cart", Name: otherPod}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if is.Namespace != "shop" || is.Function != "cart" || is.Name != "cart-1" || is.Key != thisPod {
		t.Errorf("it is %+v", is)
	}
	if err := is.Group.SetLow(true); err != nil {
		t.Fatal(err)
	}
	for pod, want := range map[string]string{thisPod: "1", otherPod: "0"} {
		text, err := os.ReadFile(filepath.Join(root, "host/cgroup/kubepods/burstable/pod"+pod, "cpu.idle"))
		if err != nil || strings.TrimSpace(string(text)) != want {
			t.Errorf("cpu.idle of %s is %q, %v; want %s", pod, text, err, want)
		}
	}
	if err := is.Group.Close(); err != nil {
		t.Error(err)
	}
}

// Work without a ticket is bounded where calls ask for tickets, and only if the agent says so: those
// of releases before do not.
func TestPodsWhoseCallsAskMustAsk(t *testing.T) {
	keys := newIssuer(t)
	p := newIdentifier(t, keys, plantPods(t))
	for concurrency, must := range map[uint32]bool{0: false, 1: true, 2: false, 1000: false} {
		hello := nodeagent.Hello{Token: keys.token(t, nil), Namespace: "shop", Function: "cart", Concurrency: concurrency}
		is, err := p.Identify(t.Context(), hello, nil)
		if err != nil || is.MustAsk != must {
			t.Errorf("with a concurrency of %d: must ask %t, %v", concurrency, is.MustAsk, err)
		}
	}
}

func TestWhoIsNoPodOfThisNodeIsRefused(t *testing.T) {
	keys := newIssuer(t)
	p := newIdentifier(t, keys, plantPods(t))
	kubernetes := func(pod any) map[string]any {
		return map[string]any{"kubernetes.io": map[string]any{"namespace": "shop", "pod": pod, "serviceaccount": map[string]any{"name": "default"}}}
	}
	for name, tt := range map[string]struct {
		token     string
		namespace string
		function  string
		code      codes.Code
		says      string
	}{
		"a token for schedulers":    {keys.token(t, map[string]any{"aud": podtoken.Audience}), "shop", "cart", codes.Unauthenticated, "windlass-node"},
		"a token for the API":       {keys.token(t, map[string]any{"aud": "https://cluster"}), "shop", "cart", codes.Unauthenticated, "windlass-node"},
		"an expired token":          {keys.token(t, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), "shop", "cart", codes.Unauthenticated, "expired"},
		"a token of another issuer": {newIssuer(t).token(t, nil), "shop", "cart", codes.Unauthenticated, "signature"},
		"a token of no pod":         {keys.token(t, kubernetes(nil)), "shop", "cart", codes.Unauthenticated, "not bound to a pod"},
		"no token":                  {"", "shop", "cart", codes.Unauthenticated, "JSON Web Token"},
		"another namespace":         {keys.token(t, nil), "bank", "cart", codes.PermissionDenied, "of the namespace shop"},
		"no function":               {keys.token(t, nil), "shop", "a\nb", codes.InvalidArgument, "name of a function"},
		"a pod of another node":     {keys.token(t, kubernetes(map[string]any{"name": "cart-9", "uid": "9-9"})), "shop", "cart", codes.NotFound, "shop/cart-9 has no control group"},
		"a UID that is a path":      {keys.token(t, kubernetes(map[string]any{"name": "x", "uid": "../pod" + otherPod})), "shop", "cart", codes.Unknown, "is not the UID"},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := p.Identify(t.Context(), nodeagent.Hello{Token: tt.token, Namespace: tt.namespace, Function: tt.function, Name: "x"}, nil)
			if err == nil || status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v, %v; want %v and %q", is, err, tt.code, tt.says)
			}
		})
	}
}

func TestANodeAgentServesOnlyNamespacesOfFunctions(t *testing.T) {
	keys := newIssuer(t)
	p := newIdentifier(t, keys, plantPods(t))
	hello := nodeagent.Hello{Token: keys.token(t, nil), Namespace: "shop", Function: "cart"}
	p.namespaces = []string{"bank"}
	if _, err := p.Identify(t.Context(), hello, nil); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a pod of another namespace: %v", err)
	}
	p.namespaces = []string{"bank", "shop"}
	if _, err := p.Identify(t.Context(), hello, nil); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeCheckedNowMayComeAgain(t *testing.T) {
	keys := newIssuer(t)
	keys.broken = true
	hello := nodeagent.Hello{Token: keys.token(t, nil), Namespace: "shop", Function: "cart"}
	if _, err := newIdentifier(t, keys, plantPods(t)).Identify(t.Context(), hello, nil); status.Code(err) != codes.Unavailable {
		t.Errorf("without keys: %v", err)
	}
	keys.broken = false
	if _, err := newIdentifier(t, keys, t.TempDir()).Identify(t.Context(), hello, nil); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "control groups of pods") {
		t.Errorf("without control groups: %v", err)
	}
}

func TestABatchPodIsStoppedWithoutItsAgent(t *testing.T) {
	keys, root := newIssuer(t), plantPods(t)
	pod := filepath.Join(root, "host/cgroup/kubepods/burstable/pod"+thisPod)
	for name, used := range map[string]string{"agent": "9000000", "function": "200000", "sandbox": "9"} {
		for file, content := range map[string]string{"cgroup.freeze": "0", "cpu.stat": "usage_usec " + used} {
			path := filepath.Join(pod, name, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content+"\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var agent syscall.Stat_t
	if err := syscall.Stat(filepath.Join(pod, "agent"), &agent); err != nil {
		t.Fatal(err)
	}
	p := newIdentifier(t, keys, root)
	hello := nodeagent.Hello{Token: keys.token(t, nil), Namespace: "shop", Function: "cart", Cgroup: agent.Ino}
	if is, err := p.Identify(t.Context(), hello, nil); err != nil || is.OpenHold != nil || is.Waited != nil {
		t.Errorf("without co-location: %+v, %v", is, err)
	}
	p.holds = true
	for cgroup, want := range map[uint64]string{0: "0", agent.Ino: "1"} { // 0 is what agents of older releases say
		hello.Cgroup = cgroup
		is, err := p.Identify(t.Context(), hello, nil)
		if err != nil {
			t.Fatal(err)
		}
		hold, err := is.OpenHold()
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.SetFrozen(true); want == "0" && !errors.Is(err, errors.ErrUnsupported) || want == "1" && err != nil {
			t.Error(err)
		}
		for name, want := range map[string]string{"agent": "0", "sandbox": "0", "function": want} {
			if text, err := os.ReadFile(filepath.Join(pod, name, "cgroup.freeze")); err != nil || string(text) != want+"\n" {
				t.Errorf("an agent that says %d: the container %s is frozen: %q, %v; want %s", cgroup, name, text, err, want)
			}
		}
		if err := hold.Close(); err != nil {
			t.Error(err)
		}
	}
}
