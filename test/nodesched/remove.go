package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// A measurement may be interrupted, or killed. All that it has started ends then with its standard input
// or with its parent, and this file removes the groups and the folder that are left.

// groupOf is the name of the groups of a process of this program.
func groupOf(pid int) string { return fmt.Sprintf("nodesched-%d", pid) }

// removeWithin is how long what a measurement has started may take to end.
const removeWithin = 30 * time.Second

// ignoreInterrupts is for programs that end with their standard input: a terminal interrupts them, too, and
// they would leave their own groups.
func ignoreInterrupts() { signal.Notify(make(chan os.Signal, 1), os.Interrupt) }

// startRemover starts a process that removes a folder and the groups of this process once remove is called,
// or this process has ended.
func startRemover(self, folder string) (remove func() error, err error) {
	cmd := exec.Command(self, "-remove", groupOf(os.Getpid()), "-dir", folder)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(stdin.Close(), cmd.Wait()) }, cmd.Start()
}

// removeAfter removes a folder and groups when nothing more can be read. Without the folder no instance is
// put into a group any more, and the Windlass that ends meanwhile may write into it.
func removeAfter(group, folder string, until io.Reader) (err error) {
	parent := os.Getppid()
	_, _ = io.Copy(io.Discard, until)
	if os.Getppid() != parent {
		time.Sleep(time.Second) // what was interrupted ends
	}
	for deadline := time.Now().Add(removeWithin); ; time.Sleep(100 * time.Millisecond) {
		err = os.RemoveAll(folder)
		for _, h := range hierarchies {
			err = errors.Join(err, removeGroups(filepath.Join(h, group)))
		}
		cgroups.Detect(cgroups.Options{Create: true}) // which removes those that it made for processes that are gone
		if err == nil || time.Now().After(deadline) {
			return errors.Join(err, os.RemoveAll(folder))
		}
	}
}
