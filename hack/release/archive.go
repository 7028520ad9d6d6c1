package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// program is an executable that was built.
type program struct {
	name string
	platform
	file string
}

// subject is something that is released. The names of the fields are those of in-toto.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// file is a file in an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// mains are the programs, with the flags for building them that make build has too, and
// the archive that each is in. One without is only in an image.
var mains = []struct {
	name, archive string
	flags         []string
}{
	{name: "windlass", archive: "windlass"},
	// Local mode looks for it beside windlass.
	{name: "podagent", archive: "windlass", flags: []string{"-tags", "grpcnotrace"}},
	// So does windlass bench.
	{name: "benchpeer", archive: "windlass"},
	{name: "kubectl-windlass", archive: "kubectl-windlass"},
	// Node agents run it from the image windlass. It is built for the bill of materials.
	{name: "windlass-node", flags: []string{"-tags", "grpcnotrace"}},
}

// archives builds the programs for each platform and packs them.
func (r *release) archives(ctx context.Context) error {
	licence, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		packed := map[string][]file{}
		for _, m := range mains {
			if m.archive == "" && p.os != "linux" {
				continue
			}
			built, err := r.build(ctx, p, m.name, m.flags)
			if err != nil {
				return err
			}
			if m.archive == "" {
				continue
			}
			if packed[m.archive] == nil {
				packed[m.archive] = []file{{"LICENSE", 0o644, licence}}
			}
			packed[m.archive] = append(packed[m.archive], file{m.name, 0o755, built})
		}
		for _, archive := range []string{"windlass", "kubectl-windlass"} {
			content, err := archiveOf(packed[archive], r.at)
			if err := r.write(r.archiveName(archive, p), content, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) archiveName(archive string, p platform) string {
	return fmt.Sprintf("%s_%s_%s_%s.tar.gz", archive, r.version, p.os, p.arch)
}

func (r *release) build(ctx context.Context, p platform, name string, flags []string) ([]byte, error) {
	built := filepath.Join(r.work, p.os+"_"+p.arch, name)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", built,
		"-ldflags", "-s -w -X github.com/windlass-dev/windlass/internal/buildinfo.Version=" + r.version}, flags...)
	if _, err := r.commandWith(ctx, r.source, []string{"GOOS=" + p.os, "GOARCH=" + p.arch}, "go", append(args, "./cmd/"+name)...); err != nil {
		return nil, err
	}
	r.programs = append(r.programs, program{name, p, built})
	return os.ReadFile(built)
}

// images builds the images whose content is all ours as OCI layouts for the architectures.
func (r *release) images(ctx context.Context) error {
	if len(r.archs) == 0 {
		return nil
	}
	said, err := r.command(ctx, filepath.Join(r.source, "images", "build"), "go", "run", ".", "-layout",
		"-out", filepath.Join(r.work, "images"), "-source", r.source, "-arch", strings.Join(r.archs, ","),
		"-registry", "registry.invalid", "-tag", r.plain(), "-version", r.version, "-revision", r.commit, "windlass", "podagent")
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(said, "\n") {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("images/build printed %q, want reference, digest and path", line)
		}
		name := path.Base(fields[2])
		files, err := filesIn(fields[2], func(string) bool { return false })
		if err != nil {
			return err
		}
		packed, err := tarOf(files, r.at)
		if err := r.write(fmt.Sprintf("%s-image_%s.tar", name, r.version), packed, err); err != nil {
			return err
		}
		r.imageNames = append(r.imageNames, name)
		r.subjects = append(r.subjects, subject{"image:" + name, map[string]string{"sha256": strings.TrimPrefix(fields[1], "sha256:")}})
	}
	return nil
}

// write writes a released file. Its last argument is the error of making the content.
func (r *release) write(name string, content []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.subjects = append(r.subjects, subjectOf(name, content))
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

func subjectOf(name string, content []byte) subject {
	sum := sha256.Sum256(content)
	return subject{name, map[string]string{"sha256": hex.EncodeToString(sum[:])}}
}

// archiveOf is a compressed tar archive of files in the given order, which depends on
// nothing but them and the time.
func archiveOf(files []file, at time.Time) ([]byte, error) {
	packed, err := tarOf(files, at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(packed)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

func tarOf(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := io.Copy(w, bytes.NewReader(f.content)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// filesIn are all files below a folder but those to skip, in the order of their paths.
func filesIn(folder string, skip func(below string) bool) (files []file, err error) {
	err = filepath.WalkDir(folder, func(full string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(folder, full)
		if err != nil || skip(filepath.ToSlash(below)) {
			return err
		}
		content, err := os.ReadFile(full)
		files = append(files, file{filepath.ToSlash(below), 0o644, content})
		return err
	})
	return files, err
}
