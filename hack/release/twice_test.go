//go:build twice

package main

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestReleaseTwice makes a release from two clones in different folders, pushes it to a
// registry on this machine, and uses it as people do. It is run by make release-check.
func TestReleaseTwice(t *testing.T) {
	version := os.Getenv("WINDLASS_RELEASE")
	if version == "" {
		t.Fatal("WINDLASS_RELEASE is missing: run make release-check")
	}
	platforms := cmp.Or(os.Getenv("WINDLASS_PLATFORMS"), "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64")
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	key, text := newKey(t)
	keyFile := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(keyFile, text, 0o600); err != nil {
		t.Fatal(err)
	}

	var outs []string
	var said [2]bytes.Buffer
	for i, folder := range []string{"a", "another/folder"} {
		source, out := filepath.Join(t.TempDir(), folder), filepath.Join(t.TempDir(), "dist")
		do(t, "git", "clone", "--quiet", "../..", source)
		if err := run(t.Context(), []string{"-source", source, "-out", out, "-version", version, "-platforms", platforms,
			"-key", keyFile, "-registry", fmt.Sprintf("%s/%d", at, i)}, &said[i], io.Discard); err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	if said[0].String() != said[1].String() {
		t.Errorf("the digests differ:\n%s\n%s", &said[0], &said[1])
	}
	same, files := sameFiles(t, outs[0], outs[1])
	fmt.Printf("release_files_same=%d/%d\n", same, files)
	if same != files || files == 0 {
		t.Errorf("%d of %d files are the same", same, files)
	}

	do(t, "bash", "-c", `cd "$0" && sha256sum --quiet -c checksums.txt`, outs[0])
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	publicFile := filepath.Join(t.TempDir(), "key.pub")
	if err := os.WriteFile(publicFile, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Println("release_signature=" + do(t, "bash", "-c",
		`base64 -d "$0/checksums.txt.sig" | openssl dgst -sha256 -verify "$1" -signature /dev/stdin "$0/checksums.txt"`, outs[0], publicFile))
	imagesAsSaid(t, at, said[0].String(), version)
	chartAsHelmMakesIt(t, at, outs[0], version)
	programsSayTheirVersion(t, outs[0], version)
}

// sameFiles counts the files of which both folders have the same.
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

// imagesAsSaid pulls the digests that the release names.
func imagesAsSaid(t *testing.T, at, said, version string) {
	t.Helper()
	pulled := 0
	for line := range strings.Lines(said) {
		digest, what, _ := strings.Cut(strings.TrimSpace(line), "  ")
		kind, image, ok := strings.Cut(what, ":")
		if !ok {
			continue
		}
		if kind == "chart" {
			image = "charts/" + image
		}
		ref, err := name.NewTag(at + "/0/" + image + ":" + strings.TrimPrefix(version, "v"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Head(ref)
		if err != nil || got.Digest.Hex != digest {
			t.Errorf("the registry has %v for %s (%v), want %s", got, what, err, digest)
			continue
		}
		pulled++
	}
	fmt.Printf("release_digests_in_registry=%d\n", pulled)
	if pulled < 3 {
		t.Errorf("%d digests are in the registry, want those of two images and the chart", pulled)
	}
}

// chartAsHelmMakesIt pulls the chart by helm, and compares its list of files with that of
// helm package.
func chartAsHelmMakesIt(t *testing.T, at, out, version string) {
	t.Helper()
	helm, plain := helmProgram(t), strings.TrimPrefix(version, "v")
	pulled, packaged := t.TempDir(), t.TempDir()
	do(t, helm, "pull", "oci://"+at+"/0/charts/windlass", "--version", plain, "--plain-http", "-d", pulled)
	archive := "windlass-" + plain + ".tgz"
	if !bytes.Equal(readFile(t, pulled, archive), readFile(t, out, archive)) {
		t.Error("helm pulled another chart than was released")
	}
	do(t, helm, "package", "../../charts/windlass", "-d", packaged)
	ours, theirs := listed(t, filepath.Join(pulled, archive)), listed(t, filepath.Join(packaged, archive))
	if !slices.Equal(ours, theirs) {
		t.Errorf("the chart has the files\n%v\nand helm package's\n%v", ours, theirs)
	}
	do(t, helm, "template", "windlass", filepath.Join(pulled, archive), "--kube-version", "1.34.0")
	fmt.Printf("release_chart_files=%d\n", len(ours))
}

func listed(t *testing.T, archive string) []string {
	t.Helper()
	files := strings.Split(do(t, "tar", "-tzf", archive), "\n")
	slices.Sort(files)
	return files
}

// helmProgram is helm as make cluster-binaries builds it, or that of the PATH.
func helmProgram(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cached, _ := filepath.Glob(filepath.Join(cache, "windlass", "kubernetes-*", "helm"))
	if len(cached) > 0 {
		return cached[0]
	}
	helm, err := exec.LookPath("helm")
	if err != nil {
		t.Fatal("there is no helm: run make cluster-binaries")
	}
	return helm
}

// programsSayTheirVersion runs those of this machine's system.
func programsSayTheirVersion(t *testing.T, out, version string) {
	t.Helper()
	folder := t.TempDir()
	for _, archive := range []string{"windlass", "kubectl-windlass"} {
		file := fmt.Sprintf("%s_%s_%s_%s.tar.gz", archive, version, runtime.GOOS, runtime.GOARCH)
		do(t, "tar", "-C", folder, "-xzf", filepath.Join(out, file))
		if said := do(t, filepath.Join(folder, archive), "version"); !strings.Contains(said, version) {
			t.Errorf("%s says it is %q, want %s", archive, said, version)
		}
	}
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
