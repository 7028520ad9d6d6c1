package process

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

const (
	// tailLines, tailLineBytes and tailReadBytes bound an Exit's LogTail.
	tailLines     = 20
	tailLineBytes = 500
	tailReadBytes = 64 << 10
)

// logs are one instance's open logs.
type logs struct {
	function, agent *os.File
	// start is the size of the function's log before this instance, and noteOffset that
	// before the note behind it; -1 if there is none.
	start, noteOffset int64
}

func openLogs(dataDir string, key invocation.FunctionKey, cid invocation.CID) (*logs, error) {
	dir := instancelog.Dir(dataDir, key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	function, err := openLog(filepath.Join(dir, instancelog.FunctionFile(cid)))
	if err != nil {
		return nil, err
	}
	agent, err := openLog(filepath.Join(dir, instancelog.AgentFile(cid)))
	if err != nil {
		return nil, errors.Join(err, function.Close())
	}
	info, err := function.Stat()
	if err != nil {
		return nil, errors.Join(err, function.Close(), agent.Close())
	}
	return &logs{function: function, agent: agent, start: info.Size(), noteOffset: -1}, nil
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
}

func (l *logs) close() {
	// The children have descriptors of their own; nothing is lost here.
	_ = l.function.Close()
	_ = l.agent.Close()
}

// tail is the end of what the function has written.
func (l *logs) tail() ([]string, error) {
	info, err := l.function.Stat()
	if err != nil {
		return nil, err
	}
	end := info.Size()
	if l.noteOffset >= 0 {
		end = l.noteOffset
	}
	from := max(l.start, end-tailReadBytes)
	data := make([]byte, max(0, end-from))
	n, err := l.function.ReadAt(data, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return lastLines(data[:n], from > l.start), nil
}

// appendNote ends the function's log with a line of ours, which is none of its tail.
func (l *logs) appendNote(line string) {
	info, err := l.function.Stat()
	if err != nil {
		return
	}
	l.noteOffset = info.Size()
	last := []byte{'\n'}
	if l.noteOffset > l.start {
		_, _ = l.function.ReadAt(last, l.noteOffset-1)
	}
	line = "windlass: " + line + "\n"
	if last[0] != '\n' {
		line = "\n" + line
	}
	// A log that takes no more is complete without it.
	_, _ = l.function.WriteString(line)
}

// lastLines is the LogTail of a log that ends with data; cut says that data
// begins in the middle of a line.
func lastLines(data []byte, cut bool) []string {
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if cut && len(lines) > 1 {
		lines = lines[1:]
	}
	if len(lines) == 1 && len(lines[0]) == 0 {
		return nil
	}
	lines = lines[max(0, len(lines)-tailLines):]
	tail := make([]string, len(lines))
	for i, line := range lines {
		tail[i] = readable(line)
	}
	return tail
}

// readable is a line of at most tailLineBytes bytes of valid UTF-8.
func readable(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > tailLineBytes {
		end := tailLineBytes
		for end > tailLineBytes-utf8.UTFMax && !utf8.RuneStart(line[end]) {
			end--
		}
		line = line[:end]
	}
	return strings.ToValidUTF8(string(line), "?")
}
