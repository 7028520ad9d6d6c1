package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
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
	s.run(t, "scale", "g", "--min", "1").expect(t, exitOK, "err", "using the cluster of the context there, because the settings name it\n")
	if got := s.run(t, "scale", "g", "--min", "1", "--context", "there"); strings.Contains(got.err, "using the cluster") {
		t.Errorf("of a context that a flag names it says %q", got.err)
	}
	if want := []string{"there", "there", "here"}; len(s.connected) != 5 || s.connected[0] != want[0] || s.connected[2] != want[2] {
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

func TestUpAndDevPutFunctionsWhereDeployWould(t *testing.T) {
	dir := write(t, map[string]string{
		".config/windlass.yaml": "namespace: mine\n",
		"f.yaml":                yamlOf("f", "template: {command: [./server]}"),
		"g.yaml":                strings.Replace(yamlOf("g", "template: {command: [./server]}"), "{name: g}", "{name: g, namespace: theirs}", 1),
	})
	th := quiet(t)
	play := func(home string, args ...string) (outcome, string) {
		var out, errs bytes.Buffer
		var namespaces []string
		a := newApp(Streams{Out: &out, Err: &errs}, Programs{Up: func(_ context.Context, config UpConfig) error {
			for _, fn := range config.Functions {
				namespaces = append(namespaces, fn.Namespace)
			}
			return nil
		}})
		a.getenv = func(name string) string { return map[string]string{"WINDLASS_DATA_DIR": th.dir, "HOME": home}[name] }
		code := a.main(append(args, "--agent", fakeAgent(t)))
		return outcome{code, out.String(), errs.String()}, strings.Join(namespaces, " ")
	}
	for _, c := range []struct {
		args, home, want string
	}{
		{"up -f " + dir, "", "default theirs"},
		{"up -f " + dir, dir, "mine theirs"},
		{"dev -f " + dir, dir, "mine theirs"},
		{"dev -n team -f " + filepath.Join(dir, "f.yaml"), dir, "team"},
	} {
		got, namespaces := play(c.home, strings.Fields(c.args)...)
		if got.expect(t, exitOK, "err"); namespaces != c.want {
			t.Errorf("%s with the settings of %q deploys to %s, want %s", c.args, c.home, namespaces, c.want)
		}
	}
	got, _ := play(dir, "dev", "-n", "team", "-f", dir)
	got.expect(t, exitUsage, "err", "function g is in the namespace theirs, but --namespace says team")
}

// once ends a context at the first word.
type once context.CancelFunc

func (o once) Write(text []byte) (int, error) {
	o()
	return len(text), nil
}

func TestDevDeploysWhereTheSettingsSayToAWindlassThatRuns(t *testing.T) {
	dir := write(t, map[string]string{".config/windlass.yaml": "namespace: mine\n", "f.yaml": yamlOf("f", "template: {command: [./server]}")})
	th := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	a := newApp(Streams{Out: once(cancel), Err: once(cancel)}, Programs{})
	a.getenv = func(name string) string { return map[string]string{"WINDLASS_DATA_DIR": th.dir, "HOME": dir}[name] }
	d := &developer{deployer: deployer{reporter{a.finder}}}
	if err := d.dev(ctx, upFlags{files: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	if _, there := th.catalog.Get(invocation.FunctionKey{Namespace: "mine", Name: "f"}); !there || d.home != "mine" {
		t.Errorf("in mine: %t; functions without a namespace are those of %s", there, d.home)
	}
}
