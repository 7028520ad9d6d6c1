package instancelog

import (
	"path/filepath"
	"strings"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

const (
	functionSuffix = ".log"
	agentSuffix    = ".agent.log"
	timesSuffix    = ".times"
	logsFolder     = "logs"
)

// Dir is the folder of a function's logs below the runtime's data folder.
func Dir(dataDir string, key invoke.FunctionKey) string {
	return filepath.Join(dataDir, logsFolder, key.Namespace, key.Name)
}

// FunctionFile is the name of the file that an instance's function writes.
func FunctionFile(cid invoke.CID) string { return string(cid) + functionSuffix }

// AgentFile is the name of the file that an instance's agent writes.
func AgentFile(cid invoke.CID) string { return string(cid) + agentSuffix }

// TimesFile is the name of the file that says when an instance's function wrote its lines.
func TimesFile(cid invoke.CID) string { return string(cid) + timesSuffix }

// FileCID says whose instance's log a file is; ok is false for other files.
func FileCID(name string) (cid invoke.CID, ok bool) {
	for _, suffix := range []string{agentSuffix, functionSuffix} {
		if stem, found := strings.CutSuffix(name, suffix); found {
			return invoke.CID(stem), stem != ""
		}
	}
	return "", false
}

// functionFileCID is FileCID for the logs of functions only.
func functionFileCID(name string) (invoke.CID, bool) {
	if strings.HasSuffix(name, agentSuffix) {
		return "", false
	}
	return FileCID(name)
}
