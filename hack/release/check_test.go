//go:build release

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"
)

// check is a release that was made to be looked at.
type check struct {
	version string
	// registry is where it was pushed, and repositories what it pushed there.
	registry     *localRegistry
	repositories []string
	// out is the folder with its files.
	out string
	// key is its private key; release.pub, which is in out too, the public one.
	key string
	// path has the programs that docs/releasing.md uses.
	path string
}

// TestRelease makes a release from two clones in different folders, and uses it as
// docs/releasing.md says, by the commands of that page. It is run by make release-check.
func TestRelease(t *testing.T) {
	version := os.Getenv("WINDLASS_RELEASE")
	if version == "" {
		t.Fatal("WINDLASS_RELEASE is missing: run make release-check")
	}
	c := &check{
		version: version, registry: newLocalRegistry(t), key: filepath.Join(t.TempDir(), "release.pem"), path: checkPath(t),
		repositories: []string{"windlass", "podagent", "charts/windlass"},
	}
	if os.Geteuid() != 0 {
		t.Fatal("it starts a cluster: run it as root")
	}
	c.run(t, filepath.Dir(c.key), c.page(t, "openssl genpkey"))
	if !t.Run("twice", c.twice) {
		return
	}
	do(t, "cp", filepath.Join(filepath.Dir(c.key), "release.pub"), c.out)
	t.Run("files", c.files)
	t.Run("signatures", c.signatures)
	t.Run("chart", c.chartAsHelmMakesIt)
	t.Run("programs", c.programsSayTheirVersion)
	t.Run("krew", c.krewFindsTheArchives)
	t.Run("install", c.install)
}

// twice makes the release twice. The second time nothing is the same but the commit and the
// machine: not the folder, the time zone, the mask of new files, or what Go has in its cache.
func (c *check) twice(t *testing.T) {
	platforms := "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"
	quick := os.Getenv("WINDLASS_RELEASE_QUICK") != ""
	if quick {
		platforms = "linux/" + runtime.GOARCH
	}
	var outs [2]string
	var said [2]bytes.Buffer
	var pushed [2]map[string]string
	for i, folder := range []string{"a", "another/folder"} {
		if i == 1 {
			t.Setenv("TZ", "Pacific/Kiritimati")
			t.Setenv("LC_ALL", "C")
			if !quick {
				t.Setenv("GOCACHE", t.TempDir())
			}
			defer syscall.Umask(syscall.Umask(0o077))
		}
		source := filepath.Join(t.TempDir(), folder)
		outs[i] = filepath.Join(filepath.Dir(c.key), "dist"+fmt.Sprint(i))
		do(t, "git", "clone", "--quiet", "../..", source)
		do(t, "git", "-C", source, "tag", "--force", c.version)
		c.registry.clear()
		if err := run(t.Context(), []string{"-source", source, "-out", outs[i], "-version", c.version, "-platforms", platforms,
			"-key", c.key, "-registry", c.registry.address + "/windlass"}, &said[i], io.Discard); err != nil {
			t.Fatal(err)
		}
		pushed[i] = c.registry.digests(t)
	}
	c.out = outs[0]
	if said[0].String() != said[1].String() {
		t.Errorf("the digests differ:\n%s\n%s", &said[0], &said[1])
	}
	same, files := sameFiles(t, outs[0], outs[1])
	figure("release_files_same=%d/%d", same, files)
	if same != files || files == 0 {
		t.Errorf("%d of %d files are the same", same, files)
	}
	same = 0
	for tag, digest := range pushed[0] {
		if pushed[1][tag] == digest {
			same++
		}
	}
	figure("release_tags_same=%d/%d", same, len(pushed[1]))
	if want := 2 * len(c.repositories); same != want || len(pushed[0]) != want || len(pushed[1]) != want {
		t.Errorf("the tags in the registry are\n%v\nand\n%v\nwant the same %d: what was pushed, and a signature of each", pushed[0], pushed[1], want)
	}
	c.asSaid(t, said[0].String(), pushed[0])
}

// asSaid compares what is in the registry with the digests that the release prints, which are those of
// its provenance.
func (c *check) asSaid(t *testing.T, said string, pushed map[string]string) {
	t.Helper()
	found := 0
	for line := range strings.Lines(said) {
		digest, what, _ := strings.Cut(strings.TrimSpace(line), "  ")
		kind, repository, ok := strings.Cut(what, ":")
		if !ok {
			continue
		}
		if kind == "chart" {
			repository = "charts/" + repository
		}
		if got := pushed["windlass/"+repository+":"+c.plain()]; got != "sha256:"+digest {
			t.Errorf("the registry has %q for %s, want %s", got, what, digest)
			continue
		}
		found++
	}
	figure("release_digests_in_registry=%d/%d", found, len(c.repositories))
	if found != len(c.repositories) {
		t.Errorf("%d digests are as the provenance says, want %d", found, len(c.repositories))
	}
}

func (c *check) plain() string { return strings.TrimPrefix(c.version, "v") }

// tag is where the release pushed to, or below another prefix.
func (c *check) tag(t *testing.T, prefix, repository string) name.Tag {
	t.Helper()
	return tagOf(t, c.registry.address+"/"+prefix+"/"+repository+":"+c.plain())
}

// sameFiles counts the files that are the same in both folders.
func sameFiles(t *testing.T, a, b string) (same, files int) {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range []string{a, b} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
	}
	for name := range names {
		first, _ := os.ReadFile(filepath.Join(a, name))
		second, _ := os.ReadFile(filepath.Join(b, name))
		if len(first) > 0 && bytes.Equal(first, second) {
			same++
		} else {
			t.Errorf("%s differs, or is missing in one", name)
		}
	}
	return same, len(names)
}

// files checks the files as the page says, and that it notices what was changed.
func (c *check) files(t *testing.T) {
	commands := c.page(t, "sha256sum --ignore-missing", "-signature checksums.der")
	c.run(t, c.out, commands)
	c.run(t, c.out, c.page(t, "cosign verify-blob"))
	refused, changes := 0, []string{
		"windlass_" + c.version + ".spdx.json", "windlass-" + c.plain() + ".tgz", "checksums.txt", "checksums.txt.sig",
	}
	for _, changed := range changes {
		folder := filepath.Join(t.TempDir(), "dist")
		do(t, "cp", "-r", c.out, folder)
		content := readFile(t, folder, changed)
		content[len(content)/2] ^= 1
		if err := os.WriteFile(filepath.Join(folder, changed), content, 0o644); err != nil {
			t.Fatal(err)
		}
		if said, err := c.try(t, folder, commands); err != nil {
			refused++
		} else {
			t.Errorf("with a changed %s the check says\n%s", changed, said)
		}
	}
	figure("release_changed_files_refused=%d/%d", refused, len(changes))
}

// chartAsHelmMakesIt pulls the chart as the page says, and compares its list of files with
// that of helm package.
func (c *check) chartAsHelmMakesIt(t *testing.T) {
	said := c.run(t, c.out, c.page(t, "helm pull"))
	if lines := strings.Split(said, "\n"); len(lines) < 3 || !strings.HasSuffix(said, "  chart:windlass") {
		t.Errorf("the commands say\n%s\nwant the digests of images and chart at the end", said)
	}
	packaged := t.TempDir()
	archive := "windlass-" + c.plain() + ".tgz"
	do(t, clusterProgram(t, "helm"), "package", "../../charts/windlass", "-d", packaged)
	ours, theirs := listed(t, filepath.Join(c.out, archive)), listed(t, filepath.Join(packaged, archive))
	if !slices.Equal(ours, theirs) {
		t.Errorf("the chart has the files\n%v\nand helm package's\n%v", ours, theirs)
	}
	do(t, clusterProgram(t, "helm"), "template", "windlass", filepath.Join(c.out, archive), "--kube-version", "1.34.0")
	figure("release_chart_files=%d", len(ours))
}

func listed(t *testing.T, archive string) []string {
	t.Helper()
	files := strings.Split(do(t, "tar", "-tzf", archive), "\n")
	slices.Sort(files)
	return files
}

// programsSayTheirVersion runs those of this machine's system.
func (c *check) programsSayTheirVersion(t *testing.T) {
	folder := t.TempDir()
	for _, archive := range []string{"windlass", "kubectl-windlass"} {
		file := fmt.Sprintf("%s_%s_%s_%s.tar.gz", archive, c.version, runtime.GOOS, runtime.GOARCH)
		do(t, "tar", "-C", folder, "-xzf", filepath.Join(c.out, file))
		if said := do(t, filepath.Join(folder, archive), "version"); !strings.Contains(said, c.version) {
			t.Errorf("%s says it is %q, want %s", archive, said, c.version)
		}
	}
}

// krewFindsTheArchives compares krew's manifest with the archives: digests, and the files to install.
func (c *check) krewFindsTheArchives(t *testing.T) {
	var manifest struct {
		Spec struct {
			Platforms []struct {
				URI, SHA256, Bin string
				Files            []struct{ From string }
			}
		}
	}
	if err := yaml.Unmarshal(readFile(t, c.out, "windlass-krew_"+c.version+".yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(c.out, "kubectl-windlass_*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range manifest.Spec.Platforms {
		archive := path.Base(p.URI)
		if got := subjectOf("", readFile(t, c.out, archive)).Digest["sha256"]; got != p.SHA256 {
			t.Errorf("%s has the digest %s, and the manifest says %s", archive, got, p.SHA256)
			continue
		}
		inside := listed(t, filepath.Join(c.out, archive))
		for _, f := range p.Files {
			if !slices.Contains(inside, f.From) || !slices.Contains(inside, p.Bin) {
				t.Errorf("%s has the files %v, without %s or %s", archive, inside, f.From, p.Bin)
			}
		}
		found++
	}
	figure("release_krew_archives=%d/%d", found, len(archives))
	if found != len(archives) || found == 0 {
		t.Errorf("the manifest has %d archives, want %d", found, len(archives))
	}
}

// page is the only block of commands in docs/releasing.md that has all these parts, with our registry
// and version in place of those of the examples.
func (c *check) page(t *testing.T, parts ...string) string {
	t.Helper()
	var found []string
	blocks := strings.Split(string(readFile(t, "../../docs", "releasing.md")), "\n```")
	for _, block := range blocks {
		commands, ok := strings.CutPrefix(block, "sh\n")
		if ok && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(commands, part) }) {
			found = append(found, commands)
		}
	}
	if len(found) != 1 {
		t.Fatalf("docs/releasing.md has %d blocks of commands with %q, want one", len(found), parts)
	}
	return strings.NewReplacer("registry.example.com/windlass", c.registry.address+"/windlass", "0.1.0", c.plain()).Replace(found[0])
}

// run runs commands in a folder. Each must succeed.
func (c *check) run(t *testing.T, folder, commands string, env ...string) string {
	t.Helper()
	said, err := c.try(t, folder, "set -eo pipefail\n"+commands, env...)
	if err != nil {
		t.Fatalf("%s\n%v\n%s", commands, err, said)
	}
	return strings.TrimSpace(said)
}

// try runs commands as they are, and returns what they print and complain.
func (c *check) try(t *testing.T, folder, commands string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", commands)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), append(env, "PATH="+c.path, "HOME="+filepath.Dir(c.key))...)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// checkPath is the PATH for the commands of the page: with cosign, and a helm that speaks
// HTTP to the registry of the check.
func checkPath(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	cosign := cmp.Or(os.Getenv("COSIGN"), "cosign")
	if _, err := exec.LookPath(cosign); err != nil {
		t.Fatalf("there is no cosign: run make release-check (%v)", err)
	}
	for name, command := range map[string]string{
		"cosign": cosign + ` "$@"`,
		"helm":   clusterProgram(t, "helm") + ` "$@" --plain-http`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\nexec "+command+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder + ":" + os.Getenv("PATH")
}

// clusterProgram is a program as make cluster-binaries builds it.
func clusterProgram(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := cmp.Or(os.Getenv("WINDLASS_KUBERNETES_BIN"), filepath.Join(cache, "windlass", "kubernetes-*"))
	if found, _ := filepath.Glob(filepath.Join(folder, name)); len(found) > 0 {
		return found[0]
	}
	t.Fatalf("there is no %s: run make cluster-binaries", name)
	return ""
}

// figure prints a line of what the check has found.
func figure(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// localRegistry is a registry on this machine's loopback interface.
type localRegistry struct {
	// address is host:port.
	address string
	content atomic.Pointer[http.Handler]
}

func newLocalRegistry(t *testing.T) *localRegistry {
	t.Helper()
	r := &localRegistry{}
	r.clear()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.address = server.Listener.Addr().String()
	return r
}

func (r *localRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	(*r.content.Load()).ServeHTTP(w, request)
}

// clear makes it a registry in which there is nothing.
func (r *localRegistry) clear() {
	empty := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.content.Store(&empty)
}

// digests are those of all tags, by repository:tag.
func (r *localRegistry) digests(t *testing.T) map[string]string {
	t.Helper()
	host, err := name.NewRegistry(r.address)
	if err != nil {
		t.Fatal(err)
	}
	repositories, err := remote.Catalog(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, repository := range repositories {
		tags, err := remote.List(host.Repo(repository))
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range tags {
			digests[repository+":"+tag] = get(t, host.Repo(repository).Tag(tag)).Digest.String()
		}
	}
	if len(digests) == 0 {
		t.Fatalf("nothing is in the registry: %v", slices.Collect(maps.Keys(digests)))
	}
	return digests
}
