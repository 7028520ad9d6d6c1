package kubeclient

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func connect(t *testing.T, config *rest.Config) *Client {
	t.Helper()
	c, err := New(&Access{Context: "test", Namespace: "default", REST: config}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func key(namespace, name string) invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: namespace, Name: name}
}

func wantError(t *testing.T, err error, reason Reason, words ...string) {
	t.Helper()
	if !Is(err, reason) {
		t.Fatalf("the error is %v, want one with the reason %s", err, reason)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q:\n%v", word, err)
		}
	}
}

func TestAClusterThatIsNotThere(t *testing.T) {
	c := connect(t, &rest.Config{Host: "https://127.0.0.1:1"})
	_, err := c.List(t.Context(), "default")
	wantError(t, err, ReasonUnreachable, "the cluster of the context test at https://127.0.0.1:1 does not answer", "connection refused", "kubectl version --context test")
}
