package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

func (l *localWindlass) keysFile() string { return filepath.Join(l.dataDir, auth.KeysFileName) }

// ReadKeys reads the data folder; Windlass need not run.
func (l *localWindlass) ReadKeys(context.Context) ([]byte, error) {
	list, err := os.ReadFile(l.keysFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, inputError(fmt.Errorf("cannot read the list of keys: %w; check the rights of the data folder", err))
	}
	return list, nil
}

// EditKeys puts a whole new file into the place of the old one: whoever reads it
// sees either.
func (l *localWindlass) EditKeys(ctx context.Context, edit func([]byte) ([]byte, error)) error {
	list, err := l.ReadKeys(ctx)
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	if err := replaceFile(l.keysFile(), list); err != nil {
		return inputError(fmt.Errorf("cannot write the list of keys: %w; check the rights of the data folder", err))
	}
	return nil
}

// replaceFile writes a file that only its owner may read.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(content)
	if err := errors.Join(err, next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
