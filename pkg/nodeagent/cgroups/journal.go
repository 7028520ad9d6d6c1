package cgroups

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errGone is what the kernel says of a file whose group was removed.
var errGone = syscall.ENODEV

// Limits of a journal.
const (
	// longJournal is how many lines a journal has before it is rewritten.
	longJournal = 4096
	// lockPatience is how long OpenJournal waits for the guardian of a predecessor, and a guardian
	// for the end of its node agent; lockPause is between two tries.
	lockPatience = 2 * time.Second
	lockPause    = 5 * time.Millisecond
)

// Journal is the list of the groups that are low, with their weights, and of those that are held
// back, in a file that outlives the process. Who holds its lock sees to these groups. It is for several goroutines.
type Journal struct {
	path string
	lock *os.File
	mu   sync.Mutex
	file *os.File
	rows rows
	// held is what files of groups have when nothing is held back, by path; see Hold.
	held map[string]string
	// lines is how many lines the file has.
	lines int
}

// rows are the weights of the groups that are low, by folder.
type rows map[string]string

// OpenJournal sets the groups to normal that an earlier node agent left low, and begins a new
// journal. Groups that cannot be restored stay in it; the error of those is for the log, and the
// journal works.
func OpenJournal(path string) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("cgroups: the journal %s must be a file, and is a folder: move it away", path)
	}
	lock, err := lockFor(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, lock: lock}
	restored := j.restoreAll()
	if err := j.rewrite(); err != nil {
		return nil, errors.Join(err, restored, lock.Close())
	}
	return j, restored
}

// lockFor takes the lock of a journal, which ends with its process.
func lockFor(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Since(began) > lockPatience {
			return nil, errors.Join(fmt.Errorf("cgroups: the journal %s is in use: %w", path, err), lock.Close())
		}
	}
}

// Path is where the journal is.
func (j *Journal) Path() string { return j.path }

// Close gives the journal up. Groups that are low stay in it.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.rewrite(), j.file.Close(), j.lock.Close())
}

func (j *Journal) noteLow(dir, weight string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rows[dir] = weight
	err := j.append("low " + weight + " " + strconv.Quote(dir) + "\n")
	if err != nil {
		delete(j.rows, dir)
	}
	return err
}

// weightOf is the weight that a group had before it was low; "" if it is not low.
func (j *Journal) weightOf(dir string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rows[dir]
}

func (j *Journal) noteNormal(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.rows, dir)
	return j.append("normal " + strconv.Quote(dir) + "\n")
}

// append writes a line at once, without waiting for a disk: what is low ends with the machine.
func (j *Journal) append(line string) error {
	if j.lines >= longJournal {
		return j.rewrite()
	}
	j.lines++
	_, err := j.file.WriteString(line)
	if err != nil {
		j.lines = longJournal // a part of it may be there, which the next line must not continue
	}
	return err
}

// rewrite replaces the file by one that has the groups that are low and nothing else.
func (j *Journal) rewrite() error {
	var text strings.Builder
	for dir, weight := range j.rows {
		text.WriteString("low " + weight + " " + strconv.Quote(dir) + "\n")
	}
	for path, usual := range j.held {
		text.WriteString(heldLine(path, usual))
	}
	next := j.path + ".new"
	if err := os.WriteFile(next, []byte(text.String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(next, j.path); err != nil {
		return err
	}
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.lines = file, len(j.rows)+len(j.held)
	return nil
}

// readJournal reads a journal. A line that makes no sense is left out: the last one may have been
// cut short, and its group was not low yet.
func readJournal(path string) (low rows, held map[string]string, err error) {
	low, held = rows{}, map[string]string{}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return low, held, nil
	}
	if err != nil {
		return low, held, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		readRow(low, lines.Text())
		readHeld(held, lines.Text())
	}
	return low, held, lines.Err()
}

func readRow(low rows, line string) {
	kind, rest, _ := strings.Cut(line, " ")
	weight := ""
	if kind == "low" {
		weight, rest, _ = strings.Cut(rest, " ")
	}
	dir, err := strconv.Unquote(rest)
	switch _, number := strconv.ParseUint(weight, 10, 32); {
	case err != nil || !filepath.IsAbs(dir) || !mayBeLow(dir):
	case kind == "normal":
		delete(low, dir)
	case kind == "low" && number == nil:
		low[dir] = weight
	}
}

// restoreAll lets all groups of the journal go on as before, and keeps those that it could not.
func (j *Journal) restoreAll() error {
	var err error
	j.rows, j.held, err = readJournal(j.path)
	err = errors.Join(err, freeAll(j.held))
	for dir, weight := range j.rows {
		failed := restoreGroup(dir, weight)
		if failed == nil {
			delete(j.rows, dir)
			continue
		}
		err = errors.Join(err, fmt.Errorf("cgroups: cannot restore %s: %w", dir, failed))
	}
	return err
}

// restoreGroup sets one group to normal. One that is gone needs nothing.
func restoreGroup(dir, weight string) error {
	if err := restoreFile(filepath.Join(dir, idleFile), "0"); err != nil {
		return err
	}
	for _, v := range []*version{v1, v2} {
		if err := restoreFile(filepath.Join(dir, v.weight), weight); err != nil {
			return err
		}
	}
	return nil
}

// restoreFile writes a value into a file, if the file is there.
func restoreFile(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = errors.Join(putBack(file, path, value), file.Close())
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// empty reports whether nothing has to be restored.
func (j *Journal) empty() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.rows) == 0 && len(j.held) == 0
}

// Low returns the folders of the groups that are low.
func (j *Journal) Low() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	low := make([]string, 0, len(j.rows))
	for dir := range j.rows {
		low = append(low, dir)
	}
	slices.Sort(low)
	return low
}
