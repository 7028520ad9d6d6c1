package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file, folder or symbolic link in an image. All belong to root, so
// that no program can change its own image.
type entry struct {
	mode    fs.FileMode // permissions, type and sticky bit
	content []byte
	link    string // where a symbolic link points to
	// modified is the beginning of 1970 if it is zero.
	modified time.Time
}

// tree maps slash-separated paths without leading slash to what is there.
type tree map[string]entry

// add puts an entry at an absolute path, and the folders above it.
func (t tree) add(name string, e entry) {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" {
		return
	}
	t[name] = e
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := t[dir]; !ok {
			t[dir] = entry{mode: fs.ModeDir | 0o755}
		}
	}
}

// addFile copies a file of this machine, with its content only: symbolic
// links are followed, and the permissions say no more than mode.
func (t tree) addFile(name, from string, mode fs.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	t.add(name, entry{mode: mode, content: content})
	return nil
}

// addFolder copies a folder of this machine, with the times of its files and
// its symbolic links, except for what skip says of paths below it. All of it
// can be read by everybody.
func (t tree) addFolder(name, from string, skip func(below string) bool) error {
	return filepath.WalkDir(from, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, full)
		if err != nil {
			return err
		}
		if skip(filepath.ToSlash(below)) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		e, err := entryOf(full)
		if err != nil {
			return err
		}
		t.add(path.Join(name, filepath.ToSlash(below)), e)
		return nil
	})
}

func entryOf(full string) (entry, error) {
	info, err := os.Lstat(full)
	if err != nil {
		return entry{}, err
	}
	switch {
	case info.IsDir():
		return entry{mode: fs.ModeDir | 0o755}, nil
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(full)
		return entry{mode: fs.ModeSymlink | 0o777, link: to}, err
	case !info.Mode().IsRegular():
		return entry{}, fmt.Errorf("%s is neither file, folder nor symbolic link", full)
	}
	content, err := os.ReadFile(full)
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return entry{mode: mode, content: content, modified: info.ModTime().Truncate(time.Second)}, err
}

// archive is the tree as a tar archive, in the order of the paths.
func (t tree) archive() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		e := t[name]
		h := &tar.Header{Name: name, Mode: int64(e.mode.Perm()), ModTime: e.modified, Format: tar.FormatPAX}
		if e.modified.IsZero() {
			h.ModTime = time.Unix(0, 0)
		}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		switch {
		case e.mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
		case e.mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case e.mode.IsRegular():
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.content))
		default:
			return nil, fmt.Errorf("%s: an image cannot hold a file of mode %s", name, e.mode)
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Bytes(), errors.Join(w.Close())
}
