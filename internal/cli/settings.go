package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// settings are what a user writes once instead of a flag each time. Flags and the
// environment beat them.
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
