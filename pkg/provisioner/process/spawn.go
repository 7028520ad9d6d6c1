package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// prepared is an instance that is ready to be started, with what it holds.
type prepared struct {
	function, agent *exec.Cmd
	limits          limits
	logs            *logs
	workDir         string
	port            int
	// listener is the agent's, at port; nil if the function listens there.
	listener *os.File
}

// prepare gathers all that an instance needs; checkNames must have passed. If
// it fails, nothing is held.
func (r *Runtime) prepare(spec provisioner.InstanceSpec) (_ *prepared, err error) {
	p := &prepared{
		limits:  limitsOf(spec.Function.Spec.Resources.Limits),
		workDir: workDir(r.config.DataDir, spec),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.release(p))
		}
	}()
	if err := os.MkdirAll(p.workDir, 0o700); err != nil {
		return nil, preparing(err)
	}
	if p.logs, err = openLogs(r.config.DataDir, spec.Function.Key(), spec.CID); err != nil {
		return nil, preparing(err)
	}
	if p.port, err = r.ports.take(); err != nil {
		return nil, preparing(err)
	}
	if spec.Function.Spec.Protocol == v1alpha1.ProtocolLambdaRuntime {
		if p.listener, err = listen(p.port); err != nil {
			return nil, preparing(err)
		}
	}
	prog, err := programOf(spec.Function, p.workDir, r.launcher)
	if err != nil {
		return nil, fmt.Errorf("starting the function: %w", err)
	}
	parent := os.Environ()
	p.function = command(prog.path, prog.argv, prog.dir, p.logs.function)
	p.function.Env = functionEnv(parent, spec, p.port, prog)
	p.agent = command(r.config.AgentPath, []string{filepath.Base(r.config.AgentPath)}, p.workDir, p.logs.agent)
	p.agent.Env = agentEnv(parent, spec, p.port, r.config.SchedulerAddr)
	if p.listener != nil {
		p.agent.ExtraFiles = []*os.File{p.listener} // agentenv.ListenerFD
	}
	return p, nil
}

func preparing(err error) error { return fmt.Errorf("preparing the instance: %w", err) }

// command is a program whose whole output goes to log: it writes there itself,
// so no goroutine copies and nothing is lost when Windlass is killed.
func command(path string, argv []string, dir string, log *os.File) *exec.Cmd {
	cmd := exec.Command(path)
	cmd.Args = argv
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

// release gives back what p holds. Its processes must have been reaped.
func (r *Runtime) release(p *prepared) error {
	p.handOver()
	if p.logs != nil {
		p.logs.close()
	}
	if p.port != 0 {
		r.ports.release(p.port)
	}
	return os.RemoveAll(p.workDir)
}

// listen listens at port, so that whoever calls there waits for the one who will
// inherit the listener, however late that is.
func listen(port int) (*os.File, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(loopback), Port: port})
	if err != nil {
		return nil, err
	}
	file, err := l.File() // of its own
	return file, errors.Join(err, l.Close())
}

// handOver leaves the listener to the agent alone: when the agent ends, nobody
// shall listen any more.
func (p *prepared) handOver() {
	if p.listener != nil {
		// It fails only if it was closed before.
		_ = p.listener.Close()
	}
}

// start starts both processes. It must run on the forker's thread. If the
// agent cannot be started, the function runs all the same.
func (p *prepared) start(l *limiter) error {
	p.function.SysProcAttr = childAttr(0)
	if err := p.function.Start(); err != nil {
		return fmt.Errorf("starting the function: %w", err)
	}
	l.apply(p.function.Process.Pid, p.limits)
	// The group exists until the function is reaped, even if it has ended.
	p.agent.SysProcAttr = childAttr(p.group())
	if err := p.agent.Start(); err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	p.handOver()
	return nil
}

// group is the process group of both.
func (p *prepared) group() int { return p.function.Process.Pid }

func (p *prepared) signalGroup(signal syscall.Signal) {
	// It fails only when nobody is left to be signalled.
	_ = syscall.Kill(-p.group(), signal)
}
