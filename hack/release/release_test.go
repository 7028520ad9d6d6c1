package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	spdxjson "github.com/spdx/tools-golang/json"
	"sigs.k8s.io/yaml"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestAnArchiveDependsOnItsFilesAndTheTimeOnly(t *testing.T) {
	files := []file{{"LICENSE", 0o644, []byte("free")}, {"windlass", 0o755, []byte("program")}}
	first, err := archiveOf(files, noon)
	if err != nil {
		t.Fatal(err)
	}
	second, err := archiveOf(files, noon)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second archive differs: %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil || !z.ModTime.IsZero() {
		t.Fatalf("compressed at %v: %v", z.ModTime, err)
	}
	r := tar.NewReader(z)
	for _, want := range files {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != want.name || h.Mode != want.mode || !h.ModTime.Equal(noon) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("got %+v, want %+v of %v", h, want, noon)
		}
	}
}

func TestTheChartLeavesOutWhatHelmIgnores(t *testing.T) {
	skip := ignoring("# tests\ndashboards/*.yaml\n*.swp\n.git/\n")
	for below, want := range map[string]bool{
		"dashboards/a.yaml": true, "dashboards/a.json": false, "more/dashboards/a.yaml": false,
		"templates/x.swp": true, "files/.git/config": true, ".github/x": false, "Chart.yaml": false,
	} {
		if got := skip(below); got != want {
			t.Errorf("%s: skipped %v, want %v", below, got, want)
		}
	}
}

func TestTheChartIsOfTheReleasesVersion(t *testing.T) {
	files := []file{{"Chart.yaml", 0o644, []byte("name: windlass\nversion: 0.1.0\nappVersion: \"0.1.0\"\n")}}
	if _, _, err := chartOf(files, "0.2.0"); err == nil || !strings.Contains(err.Error(), "make both 0.2.0") {
		t.Errorf("a chart of 0.1.0 for 0.2.0: %v", err)
	}
	packed, _, err := chartOf(files, "0.1.0")
	if err != nil || packed[0].name != "windlass/Chart.yaml" {
		t.Errorf("got %+v, %v", packed, err)
	}
}

func TestARegistryKeepsTheChartAsItIs(t *testing.T) {
	r, content := pushedChart(t)
	pulled, err := remote.Image(tagOf(t, r.registry+"/charts/windlass:0.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := r.artefact.Digest()
	if got, err := pulled.Digest(); err != nil || got != want {
		t.Errorf("the digest is %v (%v), want %v", got, err, want)
	}
	layers, err := pulled.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("it has the layers %v (%v), want one", layers, err)
	}
	layer, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(layer); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the content is %q (%v)", got, err)
	}
	if manifest, err := pulled.Manifest(); err != nil || manifest.Config.MediaType != chartConfig || manifest.Layers[0].MediaType != chartContent {
		t.Errorf("the manifest is %+v (%v)", manifest, err)
	}
}

func TestATagThatIsThereIsNotMoved(t *testing.T) {
	r, content := pushedChart(t)
	before, _ := r.artefact.Digest()
	if err := r.push(t.Context()); err != nil {
		t.Errorf("the same again, as after a push that broke off: %v", err)
	}
	changed, err := artefactOf([]byte("name: windlass\nversion: 0.1.0\ndescription: y\n"), content)
	if err != nil {
		t.Fatal(err)
	}
	r.artefact = changed
	if err := r.push(t.Context()); err == nil || !strings.Contains(err.Error(), "/charts/windlass:0.1.0 names "+before.String()) {
		t.Errorf("another chart of the same version: %v", err)
	}
	if found, err := remote.Head(tagOf(t, r.registry+"/charts/windlass:0.1.0")); err != nil || found.Digest != before {
		t.Errorf("the tag names %v (%v), want %v", found, err, before)
	}
}

// pushedChart pushes a chart with its signature into a registry of the test.
func pushedChart(t *testing.T) (r *release, content []byte) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	key, _ := newKey(t)
	meta, content := []byte("name: windlass\nversion: 0.1.0\ndescription: x\n"), []byte("packed")
	artefact, err := artefactOf(meta, content)
	if err != nil {
		t.Fatal(err)
	}
	r = &release{version: "v0.1.0", registry: strings.TrimPrefix(server.URL, "http://"), key: key, artefact: artefact, work: t.TempDir()}
	if err := r.push(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, content
}

func TestTheBillOfMaterialsNamesEachModuleOnce(t *testing.T) {
	contents := map[string]map[module]bool{
		"windlass": {{"stdlib", "go1.26.0"}: true, {"example.com/a/b", "v1.0.0+incompatible"}: true},
		"podagent": {{"stdlib", "go1.26.0"}: true},
	}
	first, err := documentOf("v0.1.0", "0123abc", noon, contents)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := documentOf("v0.1.0", "0123abc", noon, contents)
	if !bytes.Equal(first, second) {
		t.Error("written twice it differs")
	}
	doc, err := spdxjson.Read(bytes.NewReader(first))
	if err != nil {
		t.Fatalf("SPDX's own reader: %v", err)
	}
	ids := map[string]bool{}
	for _, p := range doc.Packages {
		ids[string(p.PackageSPDXIdentifier)] = true
	}
	if len(doc.Packages) != 4 || len(ids) != 4 {
		t.Errorf("the packages are %v, want two programs and two modules", ids)
	}
	if len(doc.Relationships) != 5 {
		t.Errorf("there are %d relationships, want 2 of the document and 3 of programs", len(doc.Relationships))
	}
	for _, r := range doc.Relationships {
		if a, b := string(r.RefA.ElementRefID), string(r.RefB.ElementRefID); a != "DOCUMENT" && !ids[a] || !ids[b] {
			t.Errorf("%s %s %s is about something that is not there", a, r.Relationship, b)
		}
	}
	for _, purl := range []string{"pkg:golang/stdlib@1.26.0", "pkg:golang/example.com/a/b@v1.0.0%2Bincompatible"} {
		if !strings.Contains(string(first), `"`+purl+`"`) {
			t.Errorf("there is no %s", purl)
		}
	}
}

// The bill of materials has the programs that are built here; images/build builds those of images again.
func TestEveryProgramOfAnImageIsInTheBillOfMaterials(t *testing.T) {
	named := regexp.MustCompile(`"\./cmd/([a-z-]+)"`).FindAllStringSubmatch(string(readFile(t, "../../images/build", "recipes.go")), -1)
	if len(named) < 3 {
		t.Fatalf("images/build builds %v, want at least three programs", named)
	}
	for _, m := range named {
		found := false
		for _, main := range mains {
			found = found || main.name == m[1]
		}
		if !found {
			t.Errorf("an image has %s, and no bill of materials", m[1])
		}
	}
}

func TestNoSettingForGoChangesWhatIsBuilt(t *testing.T) {
	config := t.TempDir()
	if err := os.Mkdir(filepath.Join(config, "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	// What go env -w writes, where it does on Linux.
	file := filepath.Join(config, "go", "env")
	if err := os.WriteFile(file, []byte("GOFIPS140=latest\nGOPROXY=https://proxy.example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	for name, value := range map[string]string{"XDG_CONFIG_HOME": config, "GOENV": file, "GOCACHE": cache} {
		t.Setenv(name, value)
	}
	r := &release{}
	if err := r.lookAtGo(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "off\nhttps://proxy.example.com\n" + cache
	if got, err := r.command(t.Context(), t.TempDir(), "go", "env", "GOFIPS140", "GOPROXY", "GOCACHE"); err != nil || got != want {
		t.Errorf("Go's settings are\n%s\n(%v), want\n%s", got, err, want)
	}
}

func TestChecksumsAreSignedAsCosignDoes(t *testing.T) {
	key, text := newKey(t)
	read, err := readKey(text)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{out: t.TempDir(), key: read, subjects: []subject{subjectOf("b", []byte("2")), subjectOf("image:windlass", nil), subjectOf("a", []byte("1"))}}
	if err := r.checksums(t.Context()); err != nil {
		t.Fatal(err)
	}
	sums, signature := readFile(t, r.out, "checksums.txt"), readFile(t, r.out, "checksums.txt.sig")
	if lines := strings.Split(string(sums), "\n"); len(lines) != 3 || !strings.HasSuffix(lines[0], "  a") || !strings.HasSuffix(lines[1], "  b") {
		t.Errorf("the checksums are %q, want those of a and b", sums)
	}
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signature)))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(sums)
	if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], der) {
		t.Error("the signature is not valid")
	}
	if again, err := sign(read, sums); err != nil || !bytes.Equal(again, signature) {
		t.Errorf("signed again it is %s (%v), want %s", again, err, signature)
	}
}

func TestTheKrewManifestHasTheArchivesDigests(t *testing.T) {
	p := platform{"linux", "arm64"}
	r := &release{version: "v0.1.0", out: t.TempDir(), platforms: []platform{p}}
	if err := r.krew(t.Context()); err == nil {
		t.Error("a manifest without its archives was written")
	}
	archive := subjectOf(r.archiveName("kubectl-windlass", p), []byte("archive"))
	r.subjects = []subject{archive}
	if err := r.krew(t.Context()); err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256 string }
		}
	}
	if err := yaml.Unmarshal(readFile(t, r.out, "windlass-krew_v0.1.0.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	got := manifest.Spec.Platforms
	if len(got) != 1 || got[0].SHA256 != archive.Digest["sha256"] || !strings.HasSuffix(got[0].URI, "/v0.1.0/kubectl-windlass_v0.1.0_linux_arm64.tar.gz") {
		t.Errorf("got %+v", got)
	}
}

func TestMistakesAreNamedWithTheRemedy(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, text := newKey(t)
	keyFile := filepath.Join(t.TempDir(), "release.pem")
	if err := os.WriteFile(keyFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"-out x", "-version is"},
		{"-version 0.1.0 -out x", "such as v0.1.0"},
		{"-version v0.1.0", "-out is missing"},
		{"-version v0.1.0 -out " + full, "is not empty"},
		{"-version v0.1.0 -out x -platforms linux", "such as linux/amd64"},
		{"-version v0.1.0 -out x -key release_test.go", "not in PEM"},
		{"-version v0.1.0 -out x -registry localhost:5000", "-registry needs -key"},
		{"-version v0.1.0 -out x -registry Example.com/Upper -key " + keyFile, "-registry is"},
	} {
		if _, err := parse(strings.Fields(c.args), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
}

func TestNothingIsReleasedThatIsNotCommitted(t *testing.T) {
	r := &release{source: t.TempDir()}
	git := gitIn(t, r.source)
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "x")
	if err := r.look(t.Context()); err != nil || len(r.commit) != 40 || r.at.IsZero() {
		t.Errorf("got %q of %v: %v", r.commit, r.at, err)
	}
	if err := os.WriteFile(filepath.Join(r.source, "stray.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.look(t.Context()); err == nil || !strings.Contains(err.Error(), "stray.go") {
		t.Errorf("with a file that git does not know: %v", err)
	}
}

func TestASignedReleaseIsOfTheCommitThatItsVersionTags(t *testing.T) {
	r := &release{version: "v0.1.0", source: t.TempDir()}
	git := gitIn(t, r.source)
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "x")
	if err := r.look(t.Context()); err != nil {
		t.Errorf("without a key: %v", err)
	}
	r.key, _ = newKey(t)
	if err := r.look(t.Context()); err == nil || !strings.Contains(err.Error(), "no such tag") {
		t.Errorf("without a tag: %v", err)
	}
	git("tag", "-a", "-m", "release", "v0.1.0")
	if err := r.look(t.Context()); err != nil {
		t.Errorf("at the tag: %v", err)
	}
	git("commit", "--quiet", "--allow-empty", "-m", "y")
	if err := r.look(t.Context()); err == nil || !strings.Contains(err.Error(), "check out the tag") {
		t.Errorf("after the tag: %v", err)
	}
}

func TestNothingIsReleasedThatGitIgnores(t *testing.T) {
	r := &release{version: "v0.1.0", source: t.TempDir(), out: t.TempDir(), work: t.TempDir()}
	chart := filepath.Join(r.source, "charts", "windlass")
	if err := os.MkdirAll(chart, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		filepath.Join(r.source, ".gitignore"): "*.pem\n", filepath.Join(chart, ".helmignore"): "*.swp\n",
		filepath.Join(chart, "Chart.yaml"): "name: windlass\nversion: 0.1.0\nappVersion: 0.1.0\n", filepath.Join(chart, "x.pem"): "secret",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := gitIn(t, r.source)
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "-m", "x")
	for _, step := range []func(context.Context) error{r.look, r.clone, r.chart} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if packed := do(t, "tar", "-tzf", filepath.Join(r.out, "windlass-0.1.0.tgz")); packed != "windlass/.helmignore\nwindlass/Chart.yaml" {
		t.Errorf("the chart has the files\n%s", packed)
	}
}

// gitIn runs git in a folder as somebody.
func gitIn(t *testing.T, folder string) func(args ...string) {
	t.Helper()
	return func(args ...string) {
		t.Helper()
		do(t, "git", append([]string{"-C", folder, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	}
}

func newKey(t *testing.T) (key *ecdsa.PrivateKey, text []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func readFile(t *testing.T, folder, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// do runs a program and returns what it prints.
func do(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, said, complaint.String())
	}
	return strings.TrimSpace(string(said))
}
