// Command build makes the images of Windlass without Docker, for clusters on
// this machine:
//
//	go run . -out DIR -tag TAG windlass podagent runtime-python3.13 ...
//
// It writes DIR/NAME.tar for each image, an archive that `docker load` and
// `ctr images import` take, and prints a line with reference, image ID and path.
// With -layout it writes DIR/NAME, an OCI image layout with one image for each of
// the architectures, and prints the digest of its index.
// What runs, as whom and with which labels is read from the image's
// Dockerfile, of which it is the second reader. The file system is made of
// what this machine has: binaries from its Go toolchain, and for the language
// runtimes its own interpreters, so those two images are for tests.
//
// The same sources and the same machine give the same bytes: no clock, name
// of a folder or order of a file system gets into an image.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// options are what the command line says.
type options struct {
	out, tag, registry string
	// source is the top of the checkout of Windlass.
	source string
	// revision is the git commit that the labels name; empty if unknown.
	revision string
	// version is what the programs report.
	version string
	arch    string
	// layout says that each image becomes an OCI layout, with these architectures.
	layout bool
	archs  []string
	// etcdBinary, python and node are programs of this machine.
	etcdBinary, python, node string
	// anyVersion accepts interpreters of another version than the image's name says.
	anyVersion bool
	images     []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("-out cannot be made: %w", err)
	}
	for _, name := range o.images {
		write := writeArchive
		if o.layout {
			write = writeLayout
		}
		said, err := write(ctx, o, name)
		if err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
		fmt.Fprintln(stdout, said)
	}
	return nil
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	known := strings.Join(slices.Sorted(maps.Keys(recipes)), " ")
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: build -out DIR -tag TAG IMAGE...\nimages: %s\n", known)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.out, "out", "", "`folder` for the archives (required)")
	flags.StringVar(&o.tag, "tag", "", "`tag` of the images (required)")
	flags.StringVar(&o.version, "version", "", "`version` that the programs report (default: the tag)")
	flags.BoolVar(&o.layout, "layout", false, "write OCI image layouts instead of archives")
	flags.StringVar(&o.registry, "registry", "windlass.test", "what stands before the images' names: `host[/path]`")
	flags.StringVar(&o.source, "source", "", "top `folder` of the checkout (default: above the working directory)")
	flags.StringVar(&o.revision, "revision", "", "git `commit` for the labels")
	archs := flags.String("arch", runtime.GOARCH, "`architecture` of the images of Go programs; with -layout several, as in amd64,arm64")
	flags.StringVar(&o.etcdBinary, "etcd-binary", cachedEtcd(), "etcd `program` for the image etcd")
	flags.StringVar(&o.python, "python", "/usr/bin/python3", "interpreter `program` for the images runtime-python...")
	flags.StringVar(&o.node, "node", "node", "interpreter `program` for the images runtime-nodejs...")
	flags.BoolVar(&o.anyVersion, "any-version", false, "accept interpreters of another version than the images' names say: for tests")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.images = flags.Args()
	o.archs = strings.Split(*archs, ",")
	o.arch = o.archs[0]
	if o.version == "" {
		o.version = o.tag
	}
	switch {
	case o.out == "":
		return options{}, fmt.Errorf("-out is missing: say where the archives shall be")
	case o.tag == "":
		return options{}, fmt.Errorf("-tag is missing: for example -tag dev")
	case len(o.archs) > 1 && !o.layout:
		return options{}, fmt.Errorf("an archive is of one architecture: give one -arch, or -layout")
	case len(o.images) == 0:
		return options{}, fmt.Errorf("no image is named: use some of %s", known)
	}
	for _, name := range o.images {
		if recipes[name] == nil {
			return options{}, fmt.Errorf("there is no image %q: use some of %s", name, known)
		}
	}
	if o.source == "" {
		top, err := checkout()
		if err != nil {
			return options{}, err
		}
		o.source = top
	}
	return o, nil
}

// checkout finds the module of Windlass at or above the working directory.
func checkout() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module github.com/windlass-dev/windlass\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no checkout of Windlass at or above %s: give -source", wd)
		}
	}
}

// cachedEtcd is where the tests of the cluster keep their etcd.
func cachedEtcd() string {
	if dir := os.Getenv("WINDLASS_KUBERNETES_BIN"); dir != "" {
		return filepath.Join(dir, "etcd")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "windlass", "kubernetes-v1.34.4", "etcd")
}
