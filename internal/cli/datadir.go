package cli

import (
	"path/filepath"
)

// resolveDataDir is the absolute data folder that flag and environment name.
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

// chooseDataDir is where Windlass keeps its data, or nothing if nothing says.
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
