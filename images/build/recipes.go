package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// etcdImage is the official image that the chart runs; the image made here
// only bears its name.
const etcdImage = "gcr.io/etcd-development/etcd:v3.7.3"

// certificates is where Debian and most others keep those of the public
// authorities.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

var recipes = map[string]func(context.Context, options) (image, error){
	"windlass":           ours("windlass", both(program("./cmd/windlass", "/windlass"), program("./cmd/windlass-node", "/windlass-node", "-tags", "grpcnotrace"))),
	"podagent":           ours("podagent", program("./cmd/podagent", "/podagent", "-tags", "grpcnotrace")),
	"test-functions":     ours("test-functions", program("./test/images/functions", "/functions")),
	"runtime-python3.13": ours("runtime-python3.13", python("3.13")),
	"runtime-nodejs22.x": ours("runtime-nodejs22.x", nodejs("22")),
	"etcd":               etcd,
}

// content adds to an image what it is for.
type content func(context.Context, options, *image) error

// ours is the recipe of an image that has a Dockerfile.
func ours(name string, add content) func(context.Context, options) (image, error) {
	return func(ctx context.Context, o options) (image, error) {
		text, err := os.ReadFile(filepath.Join(o.source, "images", name, "Dockerfile"))
		if err != nil {
			return image{}, err
		}
		config, err := configOf(string(text), map[string]string{"VERSION": o.version, "REVISION": o.revision})
		if err != nil {
			return image{}, fmt.Errorf("its Dockerfile: %w", err)
		}
		im := image{reference: fmt.Sprintf("%s/%s:%s", o.registry, name, o.tag), config: config}
		if im.files, err = base(o); err != nil {
			return image{}, err
		}
		return im, add(ctx, o, &im)
	}
}

// base is what every image has.
func base(o options) (tree, error) {
	t := tree{}
	t.add("/tmp", entry{mode: fs.ModeDir | fs.ModeSticky | 0o777})
	for _, name := range []string{"passwd", "group", "nsswitch.conf"} {
		if err := t.addFile("/etc/"+name, filepath.Join(o.source, "images", "etc", name), 0o644); err != nil {
			return nil, err
		}
	}
	if err := t.addFile(certificates, certificates, 0o644); err != nil {
		return nil, fmt.Errorf("the certificates of the public authorities: %w: install the Debian package ca-certificates", err)
	}
	return t, nil
}

// both is the content of an image that has two.
func both(first, second content) content {
	return func(ctx context.Context, o options, im *image) error {
		return errors.Join(first(ctx, o, im), second(ctx, o, im))
	}
}

// program is one static Go program.
func program(pkg, path string, flags ...string) content {
	return func(ctx context.Context, o options, im *image) error {
		out, err := os.MkdirTemp("", "windlass-image-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(out) }()
		binary := filepath.Join(out, "program")
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", binary,
			"-ldflags", "-s -w -X github.com/windlass-dev/windlass/internal/buildinfo.Version=" + o.version}, flags...)
		cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
		cmd.Dir = o.source
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.arch, "GOFLAGS=-trimpath", "GOWORK=off")
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said)
		}
		return im.files.addFile(path, binary, 0o755)
	}
}

func etcd(_ context.Context, o options) (image, error) {
	files, err := base(o)
	if err != nil {
		return image{}, err
	}
	if err := files.addFile("/usr/local/bin/etcd", o.etcdBinary, 0o755); err != nil {
		return image{}, fmt.Errorf("the program: %w: give -etcd-binary", err)
	}
	return image{
		reference: etcdImage,
		config: v1.Config{
			Env:        []string{"PATH=/usr/local/bin"},
			Cmd:        []string{"/usr/local/bin/etcd"},
			WorkingDir: "/var/etcd/",
		},
		files: files,
	}, nil
}
