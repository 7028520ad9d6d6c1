package process

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// id names an instance.
type id struct {
	functionUID string
	cid         invocation.CID
}

// instance is one Start that has not been answered by its Exit.
type instance struct {
	id   id
	key  invocation.FunctionKey
	spec provisioner.InstanceSpec
	log  *slog.Logger
	// stop is closed when the instance shall end.
	stop chan struct{}
	// stopping says that it is closed; the Driver's lock guards it.
	stopping bool
	// ended says that it has ended and only its Exit is left; the Driver's lock
	// guards it.
	ended bool
	// created is when its processes were started; the Driver's lock guards it.
	created time.Time
}

// superviseToExit runs an instance from its start to its Exit.
func (d *Driver) superviseToExit(in *instance) {
	exit := provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid}
	if err := checkNames(in.spec); err != nil {
		exit.Reason = preparing(err).Error()
	} else {
		exit.Reason, exit.LogTail, exit.LogEmpty = d.run(in)
		d.markEnded(in)
		d.prune(in)
	}
	in.log.Info("instance ended", "reason", exit.Reason)
	d.sendExit(exit)
	d.removeInstance(in)
}

// run returns when the instance has ended and nothing is left of it but logs.
func (d *Driver) run(in *instance) (reason string, tail []string, empty bool) {
	if in.stopped() {
		return reasonStopped, nil, false
	}
	p, err := d.prepare(in.spec)
	if err != nil {
		return err.Error(), nil, false
	}
	name := logName{in.key, in.id.cid}
	d.logSizes.track(name, p.logs.function)
	reason, err = d.runPrepared(in, p)
	d.logSizes.untrack(name)
	tail, tailErr := p.logs.tail()
	empty = p.started() && tailErr == nil && len(tail) == 0
	if err := errors.Join(err, tailErr, d.cleanUp(p)); err != nil {
		in.log.Warn("instance was not cleaned up", "err", err)
	}
	return reason, tail, empty
}

// prune deletes old logs after an instance has ended.
func (d *Driver) prune(in *instance) {
	live := func() map[invocation.CID]bool { return d.liveCIDs(in.key) }
	if err := pruneLogs(d.config.DataDir, in.key, live); err != nil {
		in.log.Warn("old logs could not be deleted", "err", err)
	}
}

// runPrepared starts the processes and returns when they have been reaped. An
// error says that one could not be reaped.
func (d *Driver) runPrepared(in *instance, p *prepared) (reason string, err error) {
	if in.stopped() {
		return reasonStopped, nil
	}
	d.forker.do(func() { err = p.start(d.limiter) })
	if d.groups != nil && p.function.Process != nil {
		d.groups.Started(in.spec, p.group())
		defer d.groups.Ended(in.spec)
	}
	if err != nil {
		return err.Error(), p.reapAfterKill()
	}
	d.setCreated(in, time.Now())
	in.log.Info("instance started", "addr", loopbackAddr(p.port))
	return p.supervise(in.stop, d.killed, d.config.StopGrace)
}

func (in *instance) stopped() bool {
	select {
	case <-in.stop:
		return true
	default:
		return false
	}
}

// processEnd says that a process has ended and how to reap it.
type processEnd struct {
	event event
	reap  func() (*os.ProcessState, error)
}

// supervise watches both processes until they have ended, ends what they leave
// behind, and reaps them.
func (p *prepared) supervise(stop, kill <-chan struct{}, grace time.Duration) (reason string, err error) {
	endings := make(chan processEnd, 2)
	watch := func(e event, child *os.Process) { endings <- processEnd{e, awaitEnd(child)} }
	go watch(eventFunctionEnded, p.function.Process)
	go watch(eventAgentEnded, p.agent.Process)

	var l lifecycle
	timer := time.NewTimer(grace)
	timer.Stop()
	defer timer.Stop()
	var function syscall.WaitStatus
	var functionErr error
	var reapAgent func() (*os.ProcessState, error)
	for !l.over() {
		var now event
		select {
		case <-stop:
			stop = nil
			now = eventStop
		case <-kill:
			kill = nil
			now = eventGraceOver
		case <-timer.C:
			now = eventGraceOver
		case e := <-endings:
			now = e.event
			if now == eventAgentEnded {
				reapAgent = e.reap
				break
			}
			// The group keeps its number: the agent, even dead, is in it.
			function, functionErr = status(e.reap)
		}
		for _, a := range l.handle(now) {
			if a == notifyAgent {
				p.notifyAgent("the function " + describe(function))
				continue
			}
			p.act(a, timer, grace)
		}
	}
	p.signalGroup(syscall.SIGKILL)
	agent, agentErr := status(reapAgent)
	return l.reason(function, agent), errors.Join(functionErr, agentErr)
}

// notifyAgent reports to the agent how the function ended, and writes it into the function's
// log.
func (p *prepared) notifyAgent(how string) {
	tail, err := p.logs.tail()
	if err != nil {
		tail = nil // how it ended is worth more than what it wrote
	}
	// First, so that the receiver of the agent's answer finds it in the log.
	p.logs.appendNote(how)
	// It fails only if the agent has ended, which is an event of its own.
	_, _ = io.WriteString(p.endings, strings.Join(append([]string{how}, tail...), "\n"))
	_ = p.endings.Close()
}

func (p *prepared) act(a action, timer *time.Timer, grace time.Duration) {
	switch a {
	case startGrace:
		timer.Reset(grace)
	case termAgent:
		// It fails only if the agent has ended, which is an event of its own.
		_ = p.agent.Process.Signal(syscall.SIGTERM)
	case termGroup:
		p.signalGroup(syscall.SIGTERM)
	case killGroup:
		p.signalGroup(syscall.SIGKILL)
		// A child may have left the group.
		_ = p.function.Process.Kill()
		_ = p.agent.Process.Kill()
	}
}

// reapAfterKill ends what an incomplete start has left.
func (p *prepared) reapAfterKill() error {
	if p.function.Process == nil {
		return nil
	}
	p.signalGroup(syscall.SIGKILL)
	_, err := status(awaitEnd(p.function.Process))
	return err
}

func status(reap func() (*os.ProcessState, error)) (syscall.WaitStatus, error) {
	state, err := reap()
	if err != nil {
		return 0, err
	}
	return state.Sys().(syscall.WaitStatus), nil
}
