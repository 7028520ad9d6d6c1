package measure

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/bench/peers"
)

// stopWithin is how long a program may take to end by itself.
const stopWithin = 20 * time.Second

// child is a program that the bench has started.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	errors *tail
	ended  chan struct{}
}

// spawner starts programs on one thread, with which they would end: the signal for that is
// bound to the thread, and others come and go.
type spawner chan func()

func (s spawner) run() {
	runtime.LockOSThread()
	for start := range s {
		start()
	}
}

// start starts a program. Its caller must stop it.
func (s spawner) start(program string, args ...string) (*child, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = environment()
	cmd.SysProcAttr = childAttr()
	c := &child{cmd: cmd, errors: new(tail), ended: make(chan struct{})}
	cmd.Stderr, cmd.WaitDelay = c.errors, time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdin, c.stdout = stdin, bufio.NewReader(stdout)
	started := make(chan error)
	s <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		// Its exit code says nothing that its output does not.
		_ = cmd.Wait()
	}()
	return c, nil
}

// environment is this process' without what would change how Windlass runs.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "WINDLASS_") && !strings.HasPrefix(kv, "OTEL_") {
			env = append(env, kv)
		}
	}
	return env
}

// worker starts a worker, and returns when it can be used.
func (s spawner) worker(ctx context.Context, self string, args ...string) (*child, peers.Ready, error) {
	var ready peers.Ready
	c, err := s.start(self, args...)
	if err != nil {
		return nil, ready, err
	}
	line, err := c.readLine(ctx)
	if err == nil {
		err = json.Unmarshal([]byte(line), &ready)
	}
	if err != nil {
		c.stop()
		return nil, ready, fmt.Errorf("%s did not start: %w%s", args[0], err, c.errors)
	}
	return c, ready, nil
}

// readLine reads a line of what the program prints. If ctx ends before, the program is killed.
func (c *child) readLine(ctx context.Context) (string, error) {
	defer context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })()
	line, err := c.stdout.ReadString('\n')
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return line, err
}

// stop ends the program, and returns when it has ended.
func (c *child) stop() {
	_ = c.stdin.Close()
	// A local Windlass does not read its input.
	_ = c.cmd.Process.Signal(os.Interrupt)
	kill := time.AfterFunc(stopWithin, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	<-c.ended
}

// tail keeps the last output of a program.
type tail struct {
	mu   sync.Mutex
	last []byte
}

const tailBytes = 2000

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-tailBytes):]
	return len(p), nil
}

// String is the output on lines of its own; empty if there is none.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := bytes.TrimSpace(t.last); len(text) > 0 {
		return "\n" + string(text)
	}
	return ""
}
