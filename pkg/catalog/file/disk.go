package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	extension = ".yaml"
	// A file that is being written is hidden and ends with this.
	unfinished = ".tmp"
)

// writeFile makes path hold text, durably and all at once: the text is on the disk
// before it takes its name, and the name is before write returns. Manifests may
// hold secrets, so only the owner may read them.
func writeFile(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	if err := makeFolder(dir); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*"+unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(text)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

// removeFile removes a file durably. A file that is gone already is no error.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func makeFolder(dir string) error {
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
