package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// build builds one image into a new folder and returns the archive's path.
func build(t *testing.T, name string) string {
	t.Helper()
	switch name {
	case "runtime-python3.13":
		if _, err := os.Stat("/usr/bin/python3"); err != nil {
			t.Skip("there is no /usr/bin/python3: install the Debian package python3")
		}
	case "runtime-nodejs22.x":
		if _, err := exec.LookPath("node"); err != nil {
			t.Skip("node is not on PATH: install the Debian package nodejs")
		}
	}
	etcd := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(etcd, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "new")
	var said bytes.Buffer
	err := run(t.Context(), []string{"-out", out, "-tag", "v1.2.3", "-revision", "0123abc", "-etcd-binary", etcd, "-any-version", name}, &said, &said)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	archive := filepath.Join(out, name+".tar")
	fields := strings.Fields(said.String())
	if len(fields) != 3 || !strings.HasPrefix(fields[1], "sha256:") || fields[2] != archive {
		t.Errorf("it printed %q, want reference, image ID and %s", said.String(), archive)
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v (%v), want the archive only", left, err)
	}
	return archive
}

// read is the image in an archive, its reference and its files by path.
func read(t *testing.T, archive string) (string, *v1.ConfigFile, map[string]file) {
	t.Helper()
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil || len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
		t.Fatalf("the manifest is %v, %v", manifest, err)
	}
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{}
	layers := mutate.Extract(image)
	defer func() { _ = layers.Close() }()
	for r := tar.NewReader(layers); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return manifest[0].RepoTags[0], config, files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(h.Name, "/")] = file{h, content}
	}
}

type file struct {
	*tar.Header
	content []byte
}

func TestBuildingTwiceGivesTheSameBytes(t *testing.T) {
	for name := range recipes {
		t.Run(name, func(t *testing.T) {
			first, err := os.ReadFile(build(t, name))
			if err != nil {
				t.Fatal(err)
			}
			second, err := os.ReadFile(build(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, second) {
				t.Error("the two archives differ")
			}
			if limit := 150 << 20; len(first) > limit {
				t.Errorf("the archive has %d bytes, want at most %d", len(first), limit)
			}
		})
	}
}

func TestImagesAreMadeAsTheirDockerfilesSay(t *testing.T) {
	for name, want := range map[string]struct{ entrypoint, env, workdir string }{
		"windlass":           {"/windlass", "PATH=/", ""},
		"podagent":           {"/podagent", "PATH=/", ""},
		"test-functions":     {"/functions", "PATH=/", ""},
		"runtime-python3.13": {"python3 /runtime/bootstrap.py", "PATH=/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 HOME=/tmp", "/var/task"},
		"runtime-nodejs22.x": {"node /runtime/bootstrap.mjs", "PATH=/usr/local/bin:/usr/bin:/bin NODE_ENV=production HOME=/tmp", "/var/task"},
	} {
		t.Run(name, func(t *testing.T) {
			reference, config, files := read(t, build(t, name))
			if want := "windlass.test/" + name + ":v1.2.3"; reference != want {
				t.Errorf("the reference is %s, want %s", reference, want)
			}
			c := config.Config
			if c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != want.entrypoint ||
				strings.Join(c.Env, " ") != want.env || c.WorkingDir != want.workdir {
				t.Errorf("the configuration is %+v, want user 65532:65532 and %+v", c, want)
			}
			for label, want := range map[string]string{"title": name, "licenses": "Apache-2.0", "version": "v1.2.3", "revision": "0123abc",
				"source": "https://github.com/windlass-dev/windlass"} {
				if got := c.Labels["org.opencontainers.image."+label]; got != want {
					t.Errorf("the label %s is %q, want %q", label, got, want)
				}
			}
			if config.OS != "linux" || config.Created.Unix() != 0 {
				t.Errorf("OS %s, created %s", config.OS, config.Created)
			}
			checkFiles(t, files)
			if program, ok := files[strings.TrimPrefix(c.Entrypoint[0], "/")]; ok {
				checkStatic(t, program)
			}
			if name == "windlass" {
				checkStatic(t, files["windlass-node"])
			}
			if shim := c.Entrypoint[len(c.Entrypoint)-1]; len(files[shim[1:]].content) == 0 {
				t.Errorf("there is no %s", shim)
			}
		})
	}
}

// checkFiles checks what every image promises.
func checkFiles(t *testing.T, files map[string]file) {
	t.Helper()
	for name, f := range files {
		if f.Uid != 0 || f.Gid != 0 || (f.Typeflag != tar.TypeSymlink && f.Mode&0o022 != 0 && name != "tmp") {
			t.Errorf("%s belongs to %d:%d with mode %o, want 0:0 and that others cannot write it", name, f.Uid, f.Gid, f.Mode)
		}
	}
	if tmp, ok := files["tmp"]; !ok || tmp.Mode != 0o1777 {
		t.Errorf("/tmp is %+v, want mode 1777", tmp.Header)
	}
	if !strings.Contains(string(files["etc/passwd"].content), ":65532:65532:") {
		t.Errorf("/etc/passwd does not know the user 65532")
	}
	if !strings.Contains(string(files["etc/ssl/certs/ca-certificates.crt"].content), "BEGIN CERTIFICATE") {
		t.Error("there are no certificates of the public authorities")
	}
}

func checkStatic(t *testing.T, program file) {
	t.Helper()
	binary, err := elf.NewFile(bytes.NewReader(program.content))
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the program is not linked statically")
	}
}

func TestEtcdBearsTheNameOfTheOfficialImage(t *testing.T) {
	reference, config, files := read(t, build(t, "etcd"))
	if reference != etcdImage {
		t.Errorf("the reference is %s, want %s", reference, etcdImage)
	}
	program := files["usr/local/bin/etcd"]
	if string(program.content) != "a program" || program.Mode != 0o755 || config.Config.Cmd[0] != "/usr/local/bin/etcd" {
		t.Errorf("got %+v and %v", program.Header, config.Config.Cmd)
	}
}

func TestThePythonShimIsCompiled(t *testing.T) {
	_, _, files := read(t, build(t, "runtime-python3.13"))
	found := 0
	for name := range files {
		if strings.HasPrefix(name, "runtime/__pycache__/") && strings.HasSuffix(name, ".pyc") {
			found++
			if flags := files[name].content[4:8]; !bytes.Equal(flags, []byte{1, 0, 0, 0}) {
				t.Errorf("%s has the flags %v: Python would compare the time of its source", name, flags)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d modules are compiled, want all", found)
	}
}

func TestALayoutHasOneIndexOverAllArchitectures(t *testing.T) {
	out := t.TempDir()
	digests := map[string]bool{}
	for range 2 {
		var said bytes.Buffer
		err := run(t.Context(), []string{"-layout", "-arch", "amd64,arm64", "-out", out, "-tag", "1.2.3", "-version", "v1.2.3", "test-functions"}, &said, &said)
		if err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		digests[strings.Fields(said.String())[1]] = true
	}
	if len(digests) != 1 {
		t.Errorf("two builds gave the digests %v", digests)
	}
	top, err := layout.ImageIndexFromPath(filepath.Join(out, "test-functions"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || !digests[manifest.Manifests[0].Digest.String()] {
		t.Fatalf("the layout has %+v (%v), want one index with the digest of %v", manifest, err, digests)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("the index has %+v (%v), want two images", manifest, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		image, err := index.Image(manifest.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != arch || config.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
			t.Errorf("image %d is %+v (%v), want %s of v1.2.3", i, config, err, arch)
		}
		if err := validate.Image(image); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

func TestMistakesAreNamedWithTheRemedy(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-tag v1 windlass", "-out is missing"},
		{"-out DIR windlass", "-tag is missing"},
		{"-out DIR -tag v1 -arch amd64,arm64 windlass", "give one -arch, or -layout"},
		{"-out DIR -tag v1", "no image is named: use some of etcd podagent"},
		{"-out DIR -tag v1 sails", `there is no image "sails": use some of etcd`},
		{"-out DIR -tag v1 -etcd-binary /no/such etcd", "give -etcd-binary"},
		{"-out DIR -tag v1 -python /no/such runtime-python3.13", "install the Debian package python3"},
		{"-out DIR -tag v1 -node /no/such runtime-nodejs22.x", "install the Debian package nodejs"},
		{"-out DIR -tag v1 -arch s390x runtime-nodejs22.x", "not for s390x; use its Dockerfile"},
		{"-out DIR -tag v1 -source /no/such windlass", "/no/such/images/windlass/Dockerfile"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "DIR", t.TempDir()))
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
}
