package instancelog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	functionSuffix = ".log"
	agentSuffix    = ".agent.log"
	timesSuffix    = ".times"
	logsFolder     = "logs"
)

// Dir is the folder of a function's logs below the runtime's data folder.
func Dir(dataDir string, key invocation.FunctionKey) string {
	return filepath.Join(dataDir, logsFolder, key.Namespace, key.Name)
}

// FunctionFile is the name of the file that an instance's function writes.
func FunctionFile(cid invocation.CID) string { return string(cid) + functionSuffix }

// AgentFile is the name of the file that an instance's agent writes.
func AgentFile(cid invocation.CID) string { return string(cid) + agentSuffix }

// TimesFile is the name of the file that says when an instance's function wrote its lines.
func TimesFile(cid invocation.CID) string { return string(cid) + timesSuffix }

// FileCID says whose instance's log a file is; ok is false for other files.
func FileCID(name string) (cid invocation.CID, ok bool) {
	for _, suffix := range []string{agentSuffix, functionSuffix} {
		if stem, found := strings.CutSuffix(name, suffix); found {
			return invocation.CID(stem), stem != ""
		}
	}
	return "", false
}

// functionFileCID is FileCID for the logs of functions only.
func functionFileCID(name string) (invocation.CID, bool) {
	if strings.HasSuffix(name, agentSuffix) {
		return "", false
	}
	return FileCID(name)
}

// LastEpoch is the highest epoch in which an instance was named that has a log below the runtime's
// data folder; 0 if there is none. It passes over folders that cannot be read, and its error names
// them.
func LastEpoch(dataDir string) (last uint64, err error) {
	var errs []error
	_ = filepath.WalkDir(filepath.Join(dataDir, logsFolder), func(path string, _ fs.DirEntry, err error) error {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		if cid, ok := FileCID(filepath.Base(path)); ok {
			epoch, _ := cid.Epoch()
			last = max(last, epoch)
		}
		return nil
	})
	return last, errors.Join(errs...)
}
