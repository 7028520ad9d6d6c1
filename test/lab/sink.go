package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Sink is another place for a member's log than its file. The zero Sink is that
// file.
type Sink struct{ write, read *os.File }

// Close lets go of it.
func (s Sink) Close() {
	for _, file := range []*os.File{s.write, s.read} {
		if file != nil {
			_ = file.Close()
		}
	}
}

// LogTo says where the member logs when it is started next.
func (m *Member) LogTo(sink Sink) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program.Sink = sink
}

// FullPipe is a pipe that is full, and that nobody reads.
func FullPipe() (Sink, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return Sink{}, err
	}
	for {
		_, err := unix.Write(fds[1], make([]byte, 4096))
		if errors.Is(err, unix.EAGAIN) {
			break
		} else if err != nil {
			return Sink{}, err
		}
	}
	// A process that writes to it now waits, as with every other pipe.
	if err := unix.SetNonblock(fds[1], false); err != nil {
		return Sink{}, err
	}
	return Sink{write: os.NewFile(uintptr(fds[1]), "full pipe"), read: os.NewFile(uintptr(fds[0]), "unread pipe")}, nil
}

// FullDisk is a file on a disk of its own that is full.
func (l *Lab) FullDisk() (Sink, error) {
	dir := l.Config.data("full")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Sink{}, err
	}
	if err := mountMemory(dir, 64<<10); err != nil {
		return Sink{}, err
	}
	file, err := os.OpenFile(dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Sink{}, err
	}
	for {
		if _, err := file.Write(make([]byte, 4096)); errors.Is(err, unix.ENOSPC) {
			return Sink{write: file}, nil
		} else if err != nil {
			return Sink{}, err
		}
	}
}

// LimitFiles lets the process open only so many more files than it has, until
// restore is called.
func (p *Process) LimitFiles(more uint64) (restore func() error, err error) {
	open, err := os.ReadDir("/proc/" + strconv.Itoa(p.PID) + "/fd")
	if err != nil {
		return nil, err
	}
	var old unix.Rlimit
	limit := unix.Rlimit{Cur: uint64(len(open)) + more}
	if err := unix.Prlimit(p.PID, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		return nil, fmt.Errorf("the limit on files of pid %d: %w", p.PID, err)
	}
	limit.Max = old.Max
	if err := unix.Prlimit(p.PID, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		return nil, fmt.Errorf("limiting the files of pid %d: %w", p.PID, err)
	}
	return func() error {
		if !p.Alive() {
			return nil
		}
		return unix.Prlimit(p.PID, unix.RLIMIT_NOFILE, &old, nil)
	}, nil
}
