package process

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/secretfile"
)

// prepared is an instance that is ready to start, with its resources.
type prepared struct {
	function, agent *exec.Cmd
	limits          limits
	logs            *logs
	workDir         string
	port            int
	// listener is the agent's, at port; nil if the function listens there.
	listener *os.File
	// endings is the pipe that reports the function's end to the agent, which reads from
	// agentEndings.
	endings, agentEndings *os.File
}

// prepare gathers all that an instance needs; checkNames must have passed. If
// it fails, nothing is held.
func (d *Driver) prepare(spec provisioner.InstanceSpec) (_ *prepared, err error) {
	p := &prepared{
		limits:  limitsOf(spec.Function.Spec.Template.Resources.Limits),
		workDir: workDir(d.config.DataDir, spec),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.cleanUp(p))
		}
	}()
	if err := os.MkdirAll(p.workDir, 0o700); err != nil {
		return nil, preparing(err)
	}
	if p.logs, err = openLogs(d.config.DataDir, spec.Function.Key(), spec.CID); err != nil {
		return nil, preparing(err)
	}
	if err := d.acquirePort(p, spec.Function.Spec.Template.Protocol == v1alpha1.ProtocolLambdaRuntime); err != nil {
		return nil, preparing(err)
	}
	if p.agentEndings, p.endings, err = os.Pipe(); err != nil {
		return nil, preparing(err)
	}
	prog, err := programOf(spec.Function, p.workDir, d.launcher)
	if err != nil {
		return nil, err
	}
	if prog.secrets, err = secretfile.Environ(d.config.DataDir, spec.Function); err != nil {
		return nil, err
	}
	if prog.keys, err = secretfile.Keys(d.config.DataDir, spec.Function); err != nil {
		return nil, err
	}
	parent := os.Environ()
	p.function = command(prog.path, prog.argv, prog.dir, p.logs.function)
	p.function.Env = functionEnv(parent, spec, p.port, prog)
	p.agent = command(d.config.AgentPath, []string{filepath.Base(d.config.AgentPath)}, p.workDir, p.logs.agent)
	p.agent.Env = agentEnv(parent, spec, p.port, d.config)
	p.agent.ExtraFiles = []*os.File{p.agentEndings} // agentenv.EndFD
	if p.listener != nil {
		p.agent.ExtraFiles = append(p.agent.ExtraFiles, p.listener) // agentenv.ListenerFD
	}
	return p, nil
}

// acquirePort takes a port, and listens there if the agent will. If another program of this
// machine listens there first, it takes another port.
func (d *Driver) acquirePort(p *prepared, listens bool) error {
	for attempt := 1; ; attempt++ {
		port, err := d.ports.acquire()
		if err != nil {
			return err
		}
		if listens {
			p.listener, err = listen(port)
		}
		if err == nil {
			p.port = port
			return nil
		}
		d.ports.release(port)
		if attempt == portAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
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

// cleanUp gives back what p holds. Its processes must have been reaped.
func (d *Driver) cleanUp(p *prepared) error {
	p.closeInherited()
	if p.endings != nil {
		_ = p.endings.Close() // or it was when the agent was told
	}
	if p.logs != nil {
		p.logs.close()
	}
	if p.port != 0 {
		d.ports.release(p.port)
	}
	return os.RemoveAll(p.workDir)
}

// listen listens at port, so that clients wait for the process that inherits the listener,
// however late it starts.
func listen(port int) (*os.File, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(loopback), Port: port})
	if err != nil {
		return nil, err
	}
	file, err := l.File() // of its own
	return file, errors.Join(err, l.Close())
}

// closeInherited closes the files that only the agent keeps: when the agent ends, no process
// may listen any more.
func (p *prepared) closeInherited() {
	for _, inherited := range []*os.File{p.listener, p.agentEndings} {
		if inherited != nil {
			// It fails only if it was closed before.
			_ = inherited.Close()
		}
	}
}

// start starts both processes. It must run on the forker's thread. If the
// agent cannot be started, the function runs all the same.
func (p *prepared) start(l *limiter) error {
	p.function.SysProcAttr = childAttr(0)
	if err := l.start(p.function, p.limits); err != nil {
		return withRemedy(err, p.function.Path)
	}
	// The group exists until the function is reaped, even if it has ended.
	p.agent.SysProcAttr = childAttr(p.group())
	if err := p.agent.Start(); err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	p.closeInherited()
	return nil
}

// started reports whether both processes were started. The agent is the second.
func (p *prepared) started() bool { return p.agent.Process != nil }

// withRemedy adds a remedy to the error of a program that cannot be started, where the error
// alone does not suggest one.
func withRemedy(err error, path string) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: make the program executable: chmod +x %s", err, path)
	case errors.Is(err, exec.ErrNotFound) && len(strings.Fields(path)) > 1:
		return fmt.Errorf("%w: it looks like a command line in one word: write the words apart, as in -- %s", err, path)
	}
	return err
}

// group is the process group of both.
func (p *prepared) group() int { return p.function.Process.Pid }

func (p *prepared) signalGroup(signal syscall.Signal) {
	// It fails only when the group has no process left.
	_ = syscall.Kill(-p.group(), signal)
}
