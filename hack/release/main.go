// Command release makes what a release of Windlass consists of, without a network:
//
//	go run . -version v0.1.0 -out DIR [-key KEY.pem [-registry localhost:5000/windlass]]
//
// It writes archives of the programs, OCI layouts of the images, the chart, a bill of
// materials (SPDX), a statement of provenance (in-toto, SLSA), a krew manifest and
// checksums of all of these. With a key it signs the checksums, and with a registry it
// pushes images and chart, each with a signature beside it.
//
// The same commit, Go release and public certificates give the same bytes, wherever the
// checkout is and whenever it is built. docs/releasing.md says how to use and check a
// release.
package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// release is what is made, and of what.
type release struct {
	// source is the top of the checkout, then that of a clone of its commit; out is the folder for the files.
	source, out string
	// version has a leading v.
	version string
	// platforms are those of the archives, and archs those of the images.
	platforms []platform
	archs     []string
	// registry is where images and chart are pushed, host[/path]; empty for nowhere.
	registry string
	key      *ecdsa.PrivateKey

	commit string
	// at is the time of the commit, and of all that is made.
	at time.Time
	// settings are those for Go that are handed on, NAME=value.
	settings []string
	// work is a folder for what is not released itself.
	work string
	// programs are the executables that were built; subjects what the provenance is about.
	programs []program
	subjects []subject
	// imageNames are the folders in work/images, an OCI layout each.
	imageNames []string
	// artefact is the chart as a registry keeps it.
	artefact v1.Image
}

// platform is a system and a processor, by the names of Go.
type platform struct{ os, arch string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	r, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if err := errors.Join(r.look(ctx), r.lookAtGo(ctx)); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "windlass-release-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.work) }()
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("-out cannot be made: %w", err)
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"clone of the commit", r.clone},
		{"programs and archives", r.archives},
		{"images", r.images},
		{"chart", r.chart},
		{"bill of materials", r.materials},
		{"krew manifest", r.krew},
		{"provenance", r.provenance},
		{"checksums", r.checksums},
		{"push", r.push},
	} {
		fmt.Fprintln(stderr, step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	for _, s := range r.subjects {
		fmt.Fprintf(stdout, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	return nil
}

var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$`)

func parse(args []string, stderr io.Writer) (*release, error) {
	r := &release{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&r.version, "version", "", "`version`, such as v0.1.0 (required)")
	flags.StringVar(&r.out, "out", "", "new or empty `folder` for the files (required)")
	flags.StringVar(&r.source, "source", "../..", "top `folder` of the checkout")
	flags.StringVar(&r.registry, "registry", "", "where to push images and chart, signed with the key: `host[/path]`")
	key := flags.String("key", "", "`file` with a private ECDSA key in PEM, which signs the checksums and what is pushed")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "`systems` of the archives; images are made for those of linux")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if !semver.MatchString(r.version) {
		return nil, fmt.Errorf("-version is %q: give one such as v0.1.0", r.version)
	}
	if r.out == "" {
		return nil, errors.New("-out is missing: say where the files shall be")
	}
	if left, err := os.ReadDir(r.out); err == nil && len(left) > 0 {
		return nil, fmt.Errorf("%s is not empty, and what is in it would look released: remove it", r.out)
	}
	for p := range strings.SplitSeq(*platforms, ",") {
		system, arch, ok := strings.Cut(p, "/")
		if !ok {
			return nil, fmt.Errorf("-platforms has %q: give a system and a processor, such as linux/amd64", p)
		}
		r.platforms = append(r.platforms, platform{system, arch})
		if system == "linux" {
			r.archs = append(r.archs, arch)
		}
	}
	err := r.parseKey(*key)
	if err != nil {
		return nil, err
	}
	if r.source, err = filepath.Abs(r.source); err != nil {
		return nil, err
	}
	r.out, err = filepath.Abs(r.out)
	return r, err
}

// parseKey reads the key, if there is one, and sees that there is one for what is pushed.
func (r *release) parseKey(file string) error {
	if file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("-key: %w", err)
		}
		if r.key, err = readKey(pem); err != nil {
			return fmt.Errorf("-key %s: %w", file, err)
		}
	}
	if r.registry == "" {
		return nil
	}
	if r.key == nil {
		return errors.New("-registry needs -key: nobody could check what is pushed without a signature")
	}
	if _, err := name.NewRepository(r.registry + "/windlass"); err != nil {
		return fmt.Errorf("-registry is %q: give one such as registry.example.com/windlass: %w", r.registry, err)
	}
	return nil
}

// look reads commit and time of the checkout, which must be as it was committed.
func (r *release) look(ctx context.Context) error {
	// A file that git does not know may be a part of a program or of the chart, too.
	changed, err := r.command(ctx, r.source, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the checkout has changes, which no commit would name: commit or remove them\n%s", changed)
	}
	told, err := r.command(ctx, r.source, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(told, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.commit, r.at = commit, time.Unix(at, 0).UTC()
	return r.lookAtTag(ctx)
}

// lookAtTag is an error if a release that is signed would not be of the commit that its version tags:
// nobody could build it again from the tag.
func (r *release) lookAtTag(ctx context.Context) error {
	if r.key == nil {
		return nil
	}
	tagged, err := r.command(ctx, r.source, "git", "rev-parse", "--verify", "refs/tags/"+r.version+"^{commit}")
	if err != nil {
		return fmt.Errorf("-key signs what the tag %s names, and there is no such tag: tag the commit first: %w", r.version, err)
	}
	if tagged != r.commit {
		return fmt.Errorf("-key signs what the tag %s names, which is the commit %s, and the checkout is at %s: check out the tag", r.version, tagged, r.commit)
	}
	return nil
}

// clone makes a clone of the commit the source of all that follows: what git ignores in the
// checkout, such as keys, would be packed into the chart, or be embedded in a program.
func (r *release) clone(ctx context.Context) error {
	clone := filepath.Join(r.work, "source")
	if _, err := r.command(ctx, r.work, "git", "clone", "--quiet", "--shared", "--no-checkout", r.source, clone); err != nil {
		return err
	}
	_, err := r.command(ctx, clone, "git", "checkout", "--quiet", "--detach", r.commit)
	r.source = clone
	return err
}

// plain is the version without the v, as charts and tags of images have it.
func (r *release) plain() string { return strings.TrimPrefix(r.version, "v") }

// handedOn are the settings for Go that reach it: where its caches are, and from where and how it gets
// modules. None changes what is built.
var handedOn = []string{
	"GOCACHE", "GOMODCACHE", "GOPATH", "GOTMPDIR", "GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOVCS", "GOAUTH",
}

// lookAtGo reads those settings, be they in the environment or from go env -w.
func (r *release) lookAtGo(ctx context.Context) error {
	said, err := exec.CommandContext(ctx, "go", append([]string{"env"}, handedOn...)...).Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(said), "\n"), "\n") {
		r.settings = append(r.settings, handedOn[i]+"="+value)
	}
	return nil
}

// command runs a program in a folder and returns what it prints, without the last newline.
// No setting of the caller's for Go reaches it but those that are handed on.
func (r *release) command(ctx context.Context, dir, name string, args ...string) (string, error) {
	return r.commandWith(ctx, dir, nil, name, args...)
}

func (r *release) commandWith(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GO") || strings.HasPrefix(v, "CGO_") })
	cmd.Env = append(cmd.Env, r.settings...)
	cmd.Env = append(cmd.Env, "GOENV=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off", "GOTOOLCHAIN=local", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Env = append(cmd.Env, env...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, complaint.String())
	}
	return strings.TrimSuffix(string(said), "\n"), nil
}
