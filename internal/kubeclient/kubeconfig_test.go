package kubeclient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: CURRENT
clusters:
- {name: c, cluster: {server: "https://cluster.example:6443"}}
users:
- {name: u, user: {token: t}}
contexts:
- {name: here, context: {cluster: c, user: u, namespace: team}}
- {name: there, context: {cluster: c, user: u}}
`

func kubeconfigFile(t *testing.T, current string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(strings.Replace(kubeconfig, "CURRENT", current, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	file := kubeconfigFile(t, "here")
	missing := filepath.Join(t.TempDir(), "missing")
	for name, c := range map[string]struct {
		config             Config
		context, namespace string
	}{
		"the current context": {Config{Files: []string{missing, file}}, "here", "team"},
		"another context":     {Config{Files: []string{file}, Context: "there"}, "there", "default"},
		"a file by flag":      {Config{Kubeconfig: file, Files: []string{missing}}, "here", "team"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Load(c.config)
			if err != nil {
				t.Fatal(err)
			}
			if got.Context != c.context || got.Namespace != c.namespace || got.REST.Host != "https://cluster.example:6443" || !strings.HasPrefix(got.REST.UserAgent, "windlass/") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAKubeconfigThatDoesNotDo(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config Config
		want   []string
	}{
		"none":                 {Config{Files: []string{"nowhere"}}, []string{"no kubeconfig names a cluster", "--kubeconfig or $KUBECONFIG"}},
		"a file that is none":  {Config{Kubeconfig: "nowhere"}, []string{"nowhere: there is no such kubeconfig", "--kubeconfig"}},
		"garbage":              {Config{Kubeconfig: garbage}, []string{"cannot be read", "--kubeconfig"}},
		"no current context":   {Config{Files: []string{kubeconfigFile(t, `""`)}}, []string{"no current context", "[here there]", "--context"}},
		"an unknown context":   {Config{Files: []string{kubeconfigFile(t, "here")}, Context: "elsewhere"}, []string{"no context elsewhere", "[here there]", "--context"}},
		"a context by mistake": {Config{Files: []string{kubeconfigFile(t, "gone")}}, []string{"no context gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(c.config)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
		})
	}
}
