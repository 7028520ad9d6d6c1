//go:build apiserver

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// notes are what helm prints after an installation. helm template leaves them
// out, so they are put into an object.
func notes(t *testing.T, args ...string) string {
	t.Helper()
	chart := copyChart(t, func(text string) string { return text })
	text, err := os.ReadFile(filepath.Join(chart, "templates", "NOTES.txt"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(chart, "notes.txt"), string(text))
	write(t, filepath.Join(chart, "templates", "notes.yaml"), "kind: Notes\ntext: {{ tpl (.Files.Get \"notes.txt\") . | toJson }}\n")
	out, stderr, err := run(t, binary(t, "helm"), templateArgs(chart, append(args, "--show-only", "templates/notes.yaml"))...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	shown, _ := parse(t, out)[0].Object["text"].(string)
	return shown
}

func TestNotesFollowValues(t *testing.T) {
	for name, test := range map[string]struct {
		args       []string
		want, none []string
	}{
		"defaults": {nil,
			[]string{"kubectl -n windlass port-forward service/windlass-gateway 8080:80", "http://127.0.0.1:8080/function/hello", "namespace: default",
				"WARNING: everybody who reaches the gateways may call every function"},
			[]string{"persistence", "WINDLASS_KEY"}},
		"S15: an Ingress that is not trusted": {[]string{"--set", "gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com}"},
			[]string{"WARNING: functions see the Ingress controller as the client"}, nil},
		"S15: an HTTPRoute that is not trusted": {[]string{"--set", "gateway.httpRoute.enabled=true,gateway.httpRoute.parentRefs[0].name=public"},
			[]string{"WARNING: functions see the proxy of the HTTPRoute as the client"}, nil},
		"S15: an Ingress that is trusted": {[]string{"--set", "gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com},gateway.trustedProxies={10.42.0.0/16}"},
			nil, []string{"functions see the Ingress controller"}},
		"callers who prove who they are": {[]string{"--set", "gateway.auth.default.mode=Required"},
			[]string{"export WINDLASS_KEY=$(kubectl windlass keys create default --windlass-namespace windlass)", `curl -H "Authorization: Bearer $WINDLASS_KEY" -d`},
			[]string{"WARNING"}},
		"namespaces": {[]string{"--set", "watchNamespaces={team-a,team-b}"},
			[]string{"namespace: team-a", "/function/hello.team-a", "only: team-a, team-b"}, []string{"persistence"}},
		"an Ingress": {[]string{"--set", "gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com}"},
			[]string{"http://fn.example.com/function/hello"}, []string{"port-forward"}},
		"an Ingress whose path nobody removes": {[]string{"--set", "gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com},gateway.ingress.path=/fn"},
			[]string{"WARNING: functions have URLs below /fn, and gateways answer these with 404"}, nil},
		"an Ingress that removes its path": {[]string{"--set", "gateway.ingress.enabled=true,gateway.ingress.hosts={fn.example.com},gateway.ingress.path=/fn,gateway.ingress.annotations.rewrite=yes"},
			nil, []string{"with 404"}},
		"images that no release has": {[]string{"--set", "runtimes.python313.image.registry=registry.example.com"},
			[]string{"The images of the ClusterRuntimes nodejs22.x are in no release"}, nil},
		"images of one's own": {[]string{"--set", "global.imageRegistry=registry.example.com"}, nil, []string{"in no release"}},
		"members that forget": {[]string{"--set", "etcd.persistence.enabled=false"},
			[]string{"WARNING: etcd.persistence.enabled is false"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := notes(t, test.args...)
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("the notes lack %q:\n%s", want, text)
				}
			}
			for _, none := range test.none {
				if strings.Contains(text, none) {
					t.Errorf("the notes contain %q:\n%s", none, text)
				}
			}
		})
	}
}

// kubectl watches one kind at a time, and refuses the whole command otherwise.
func TestA8TheNotesWatchOneKindAtATime(t *testing.T) {
	gets := 0
	for line := range strings.Lines(notes(t)) {
		if !strings.Contains(line, " get ") {
			continue
		}
		gets++
		if strings.Contains(line, "functions,pods") && (strings.Contains(line, "--watch") || strings.Contains(line, " -w")) {
			t.Errorf("kubectl refuses %q", strings.TrimSpace(line))
		}
	}
	if gets == 0 {
		t.Error("the notes no longer show functions and pods")
	}
}

func TestTheFirstFunctionIsValid(t *testing.T) {
	_, rest, _ := strings.Cut(notes(t), "<<'END'\n")
	manifest, _, found := strings.Cut(rest, "   END\n")
	if !found {
		t.Fatal("there is no manifest in the notes")
	}
	var unindented strings.Builder
	for line := range strings.Lines(manifest) {
		unindented.WriteString(strings.TrimPrefix(line, "   "))
	}
	functions, err := v1alpha1.Decode([]byte(unindented.String()), "NOTES.txt")
	if err != nil || len(functions) != 1 || functions[0].Name != "hello" {
		t.Errorf("the manifest decodes to %v, %v", functions, err)
	}
}
