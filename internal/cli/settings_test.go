package cli

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestSettingsStandInForFlagsThatAreLeftOut(t *testing.T) {
	s := newClusterHarness(t, clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted), clusterFunction("mine", "g", metav1.ConditionTrue, v1alpha1.ReasonStarted))
	settle := func(text string) {
		t.Helper()
		path := filepath.Join(s.env["HOME"], ".config", "windlass.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settle("context: there\nnamespace: mine\n")
	s.run(t, "list", "-o", "name").expect(t, exitOK, "out", "g\n")
	s.run(t, "list", "-o", "name", "-n", "team").expect(t, exitOK, "out", "team/f\n")
	s.run(t, "list", "--context", "here").expect(t, exitOK, "out", "g ")
	if want := []string{"there", "there", "here"}; len(s.connected) != 3 || s.connected[0] != want[0] || s.connected[2] != want[2] {
		t.Errorf("the contexts are %v, want %v", s.connected, want)
	}

	th := open(t)
	th.put(t, "default/near", nil)
	settle("dataDir: " + th.dir + "\n")
	s.run(t, "list").expect(t, exitOK, "out", "near")
	s.run(t, "list", "--context", "here").expect(t, exitOK, "out", "f ")
	other := open(t)
	other.put(t, "default/other", nil)
	s.env["WINDLASS_DATA_DIR"] = other.dir
	s.run(t, "list").expect(t, exitOK, "out", "other")
	delete(s.env, "WINDLASS_DATA_DIR")

	settle("gateway: http://127.0.0.1:1\n")
	s.run(t, "invoke", "f").expect(t, exitPlatform, "err", "http://127.0.0.1:1")
	for text, want := range map[string]string{
		"dataDir: /a\ncontext: b\n": "remove one of the two",
		"dataDir: a\n":              "write an absolute one",
		"namespaze: a\n":            "its fields are namespace, gateway, dataDir and context",
	} {
		settle(text)
		s.run(t, "list").expect(t, exitUsage, "err", "windlass.yaml: ", want)
	}
	settle("gateway: nonsense\n")
	s.run(t, "check").expect(t, exitUsage, "err", "is no URL")

	s.env["XDG_CONFIG_HOME"] = t.TempDir()
	s.run(t, "list").expect(t, exitOK, "out", "f ")
}
