package terminal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Size of a terminal until it is changed: rows enough that nothing has to be scrolled.
const (
	Columns = 150
	Rows    = 60
)

// Terminal is a pseudo-terminal that a program runs on.
type Terminal struct {
	keys, tty *os.File
	fresh     *unix.Termios
	cmd       *exec.Cmd
	ended     chan error
	copied    chan struct{}

	mu    sync.Mutex
	shown bytes.Buffer
}

// Start starts a program on a terminal of its own. Close must be called afterwards.
func Start(cmd *exec.Cmd) (*Terminal, error) {
	keys, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	t := &Terminal{keys: keys, tty: tty, cmd: cmd, ended: make(chan error, 1), copied: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err = t.resize(Columns); err == nil {
		t.fresh, err = t.Modes()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, tty.Close(), keys.Close())
	}
	go func() {
		defer close(t.copied)
		_, _ = io.Copy(t, keys) // until Close
	}()
	go func() { t.ended <- cmd.Wait() }()
	return t, nil
}

// Close ends the program, if it runs, and the terminal.
func (t *Terminal) Close() {
	_ = t.cmd.Process.Kill()
	_ = t.tty.Close()
	_ = t.keys.Close()
	<-t.copied
}

// Ended tells once how the program ended.
func (t *Terminal) Ended() <-chan error { return t.ended }

// Write is where the program's output goes.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.Write(p)
}

// Shown is all that the program has written, with its escape sequences.
func (t *Terminal) Shown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.String()
}

// Text is all that the program has written, without escape sequences.
func (t *Terminal) Text() string { return ansi.Strip(t.Shown()) }

// Type presses keys.
func (t *Terminal) Type(keys string) error {
	_, err := t.keys.WriteString(keys)
	return err
}

// After presses keys; what it returns tells what is shown from then on. Only what
// changes is written to a terminal, so the size changes with each look, after which all
// of it is.
func (t *Terminal) After(keys string) func() (string, error) {
	before := len(t.Shown())
	typed := t.Type(keys)
	columns := uint16(Columns)
	return func() (string, error) {
		columns ^= 1
		return ansi.Strip(t.Shown()[before:]), errors.Join(typed, t.resize(columns))
	}
}

// Modes are how the terminal treats keys and output now.
func (t *Terminal) Modes() (*unix.Termios, error) {
	return unix.IoctlGetTermios(int(t.tty.Fd()), unix.TCGETS)
}

// Fresh are the modes before the program began.
func (t *Terminal) Fresh() *unix.Termios { return t.fresh }

func (t *Terminal) resize(columns uint16) error {
	return pty.Setsize(t.keys, &pty.Winsize{Cols: columns, Rows: Rows})
}
