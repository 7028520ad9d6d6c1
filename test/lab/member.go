package lab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Member is one program of the lab that stays the same when it is killed and
// started again: its name, its address and what it is told.
type Member struct {
	*Space
	program Program
	// ready is the URL that answers with 200 once the member works.
	ready string
	api   *http.Client

	mu      sync.Mutex
	process *Process
}

// Process is the member's program as it runs now, or as it ran last.
func (m *Member) Process() *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

// Alive says whether the member's program runs.
func (m *Member) Alive() bool {
	p := m.Process()
	return p != nil && p.Alive()
}

// Start starts the member, unless it runs.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil && m.process.Alive() {
		return nil
	}
	process, err := m.Space.Start(m.program)
	if err == nil {
		m.process = process
	}
	return err
}

// Use has the member run another program from its next start on.
func (m *Member) Use(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program.Path = path
}

// Kill ends the member without a word.
func (m *Member) Kill() { m.Process().Kill() }

// Pause stops all its threads until Resume.
func (m *Member) Pause() { m.Process().Signal(syscall.SIGSTOP) }

// Resume lets a paused member go on.
func (m *Member) Resume() { m.Process().Signal(syscall.SIGCONT) }

// Stop tells the member to end, and kills it when ctx ends first.
func (m *Member) Stop(ctx context.Context) error {
	if err := m.Process().Stop(ctx); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return nil
}

// Restart stops the member and starts it again, and returns when it is ready.
func (m *Member) Restart(ctx context.Context) error {
	if err := m.Stop(ctx); err != nil {
		return err
	}
	return m.Revive(ctx)
}

// Revive starts the member if it does not run, and returns when it is ready. One
// that ends again is started again, as in a cluster.
func (m *Member) Revive(ctx context.Context) error {
	var last error
	err := sleep.Until(ctx, askEvery, func() (bool, error) {
		if !m.Alive() {
			if last = m.Start(); last != nil {
				return false, nil
			}
			sleep.For(ctx, restartAfter)
		}
		last = m.Ready(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s does not become ready: %w", m.Name, cmp.Or(last, err))
	}
	return nil
}

// askEvery is how often a member is asked whether it is ready.
const askEvery = 50 * time.Millisecond

// restartAfter is the least time between two starts of a member.
const restartAfter = 200 * time.Millisecond

// readyWithin bounds one question whether a member is ready.
const readyWithin = 2 * time.Second

// Ready is nil if the member says that it works.
func (m *Member) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.ready, nil)
	if err != nil {
		return err
	}
	answer, err := m.api.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", m.Name, answer.Status)
	}
	return nil
}
