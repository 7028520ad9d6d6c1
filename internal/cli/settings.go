package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// settings replace flags that a user would repeat. Flags and the environment take precedence.
type settings struct {
	// Namespace is that of functions which are named without one.
	Namespace string `json:"namespace,omitempty"`
	// Gateway is the URL of a cluster's gateway.
	Gateway string `json:"gateway,omitempty"`
	// DataDir is the folder of the Windlass on this machine, and Context names a
	// cluster; not both.
	DataDir string `json:"dataDir,omitempty"`
	Context string `json:"context,omitempty"`
}

// settingsFile is where settings are; empty if nothing says.
func settingsFile(getenv func(string) string) string {
	// The XDG specification has relative paths ignored.
	if config := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(config) {
		return filepath.Join(config, "windlass.yaml")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "windlass.yaml")
	}
	return ""
}

// settings reads the user's settings; there may be none.
func (h *host) settings() (settings, error) {
	var s settings
	path := settingsFile(h.getenv)
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &s)
	}
	switch {
	case err != nil:
		return s, inputError(fmt.Errorf("%s: %w; its fields are namespace, gateway, dataDir and context", path, err))
	case s.DataDir != "" && s.Context != "":
		return s, inputError(fmt.Errorf("%s: context means a cluster, and dataDir a Windlass on this machine; remove one of the two", path))
	case s.DataDir != "" && !filepath.IsAbs(s.DataDir):
		return s, inputError(fmt.Errorf("%s: dataDir %q is a relative path; write an absolute one", path, s.DataDir))
	}
	return s, nil
}

// resolveDataDir is the absolute data folder that flag, environment or settings name.
func (f *finder) resolveDataDir() (string, error) {
	settings, err := f.settings()
	if err != nil {
		return "", err
	}
	dir := settings.DataDir
	if dir == "" || f.dataDir != "" || f.getenv("WINDLASS_DATA_DIR") != "" {
		dir = chooseDataDir(f.dataDir, f.getenv)
	}
	if dir == "" {
		return "", usagef("no data folder: neither WINDLASS_DATA_DIR, XDG_STATE_HOME nor HOME is set; name a folder with --data-dir")
	}
	return filepath.Abs(dir)
}

// suggestDataDir has the commands that this one suggests reach the Windlass of a data folder from
// another terminal. That may know neither the variable nor the folder, and settings with a context
// would lead it to a cluster.
func (f *finder) suggestDataDir(dir string) error {
	settings, err := f.settings()
	if err != nil {
		return err
	}
	if settings.Context != "" || dir != chooseDataDir("", func(name string) string { return f.getenvBut("WINDLASS_DATA_DIR", name) }) {
		f.dataDir = dir
	}
	return nil
}

// chooseDataDir is where Windlass keeps its data; empty if nothing says.
func chooseDataDir(flag string, getenv func(string) string) string {
	if flag != "" {
		return flag
	}
	if dir := getenv("WINDLASS_DATA_DIR"); dir != "" {
		return dir
	}
	// The XDG specification has relative paths ignored.
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "windlass")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "windlass")
	}
	return ""
}
