//go:build conform

// It downloads kubeconform and, for each release, some 20 MB; all of it stays in
// the caches of the user.

package chart

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// releases are one of each minor release that the chart is meant for.
var releases = []string{"v1.29.6", "v1.30.14", "v1.31.14", "v1.32.13", "v1.33.13", "v1.34.4"}

const kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"

// notOfKubernetes are kinds for which Kubernetes itself has no schema.
const notOfKubernetes = "Certificate,HTTPRoute,Issuer,PodMonitor,PrometheusRule,ServiceMonitor"

func TestConform(t *testing.T) {
	validator := installKubeconform(t)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			version := strings.TrimPrefix(release, "v")
			validate := func(manifests string) (string, error) {
				cmd := exec.Command(validator, "-strict", "-summary", "-kubernetes-version", version, "-skip", notOfKubernetes,
					"-schema-location", filepath.Join(schemas(t, release), "{{.ResourceKind}}{{.KindSuffix}}.json"))
				cmd.Stdin = strings.NewReader(manifests)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			for name, args := range scenarios {
				text := template(t, append([]string{"--kube-version", version}, args...)...)
				if out, err := validate(text); err != nil {
					t.Errorf("%s: %v\n%s", name, err, out)
				} else {
					t.Logf("%s: %s", name, strings.TrimSpace(out))
				}
			}
			manifests := template(t, "--kube-version", version)
			if policy := strings.Contains(manifests, "kind: ValidatingAdmissionPolicy\n"); policy != (release >= "v1.30") {
				t.Errorf("there is an admission policy: %v", policy)
			}
			for _, mistake := range [][2]string{{"      containers:\n", "      container:\n"}, {"replicas: 3", "replicas: three"}, {"kind: Deployment", "kind: Deploymend"}} {
				wrong := strings.Replace(manifests, mistake[0], mistake[1], 1)
				if out, err := validate(wrong); err == nil || wrong == manifests {
					t.Errorf("nothing is found wrong with %q:\n%s", mistake[1], out)
				}
			}
		})
	}
}

func installKubeconform(t *testing.T) string {
	t.Helper()
	dir := cacheDir(t, "bin")
	cmd := exec.Command("go", "install", kubeconform)
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", kubeconform, err, out)
	}
	return filepath.Join(dir, "kubeconform")
}

func cacheDir(t *testing.T, name ...string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(append([]string{cache, "windlass"}, name...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// schemas is a folder with a JSON schema for each kind of a release, made from
// its OpenAPI description once.
func schemas(t *testing.T, release string) string {
	t.Helper()
	dir := filepath.Join(cacheDir(t, "schemas"), release)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	var swagger struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	text, err := os.ReadFile(filepath.Join(moduleDir(t, "k8s.io/kubernetes@"+release), "api", "openapi-spec", "swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &swagger); err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	for name, definition := range swagger.Definitions {
		tighten(name, definition)
	}
	for name, definition := range swagger.Definitions {
		file, ok := schemaFile(definition)
		if !ok {
			continue
		}
		used := map[string]any{}
		collect(definition, swagger.Definitions, used)
		text, err := json.Marshal(map[string]any{"$ref": "#/definitions/" + name, "definitions": with(used, name, definition)})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(made, file), string(text))
	}
	if err := putInPlace(made, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// putInPlace copies a folder, and moves the copy into place when it is complete. A run that was interrupted may
// have left a part of one.
func putInPlace(made, dir string) error {
	if err := os.RemoveAll(dir + ".new"); err != nil {
		return err
	}
	if err := os.CopyFS(dir+".new", os.DirFS(made)); err != nil {
		return err
	}
	return os.Rename(dir+".new", dir)
}

func TestConformAfterAnInterruptedRun(t *testing.T) {
	made, dir := t.TempDir(), filepath.Join(t.TempDir(), "v1.34.4")
	write(t, filepath.Join(made, "pod-v1.json"), "{}")
	if err := os.Mkdir(dir+".new", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir+".new", "pod-v1.json"), "{")
	write(t, filepath.Join(dir+".new", "old-v1.json"), "{}")
	if err := putInPlace(made, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pod-v1.json"))
	if files, _ := os.ReadDir(dir); err != nil || string(text) != "{}" || len(files) != 1 {
		t.Errorf("the folder has %v, and in it %q (%v)", files, text, err)
	}
}

// moduleDir downloads a module and tells where it is.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if err != nil || json.Unmarshal(out, &answer) != nil || answer.Error != "" {
		t.Fatalf("go mod download %s: %v\n%s", module, err, out)
	}
	return answer.Dir
}

// schemaFile is the name under which kubeconform looks for a kind: in lower
// case, with the first part of the group.
func schemaFile(definition map[string]any) (string, bool) {
	kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
	if len(kinds) != 1 {
		return "", false // no kind, or an option of requests
	}
	of, _ := kinds[0].(map[string]any)
	group, _ := of["group"].(string)
	version, _ := of["version"].(string)
	kind, _ := of["kind"].(string)
	name := kind + "-" + version
	if group, _, _ = strings.Cut(group, "."); group != "" {
		name = kind + "-" + group + "-" + version
	}
	return strings.ToLower(name) + ".json", true
}

// tighten turns a definition of OpenAPI 2 into a schema that refuses fields
// which are not there, and admits numbers where the API server does.
func tighten(name string, definition map[string]any) {
	switch {
	case strings.HasSuffix(name, ".util.intstr.IntOrString"), strings.HasSuffix(name, ".api.resource.Quantity"):
		definition["type"] = []any{"string", "number"}
		delete(definition, "format")
	case definition["properties"] != nil && definition["additionalProperties"] == nil:
		definition["additionalProperties"] = false
	}
}

// collect gathers the definitions that a schema refers to, however far away.
func collect(node any, all map[string]map[string]any, used map[string]any) {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/definitions/")
			if used[name] == nil && all[name] != nil {
				used[name] = all[name]
				collect(all[name], all, used)
			}
		}
		for _, child := range node {
			collect(child, all, used)
		}
	case []any:
		for _, child := range node {
			collect(child, all, used)
		}
	}
}

func with(all map[string]any, name string, value any) map[string]any {
	all[name] = value
	return all
}
