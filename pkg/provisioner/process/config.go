package process

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// DefaultStopGrace is the StopGrace of a Config that names none.
const DefaultStopGrace = 5 * time.Second

// Config is what a Driver needs to know.
type Config struct {
	// DataDir is a folder for logs and for the instances' own folders. Only
	// one Driver can use it at a time.
	DataDir string
	// AgentPath is the agent's program. Without a slash it is looked up on
	// PATH.
	AgentPath string
	// SchedulerAddr is where agents find the scheduler, host:port.
	SchedulerAddr string
	// NodeAddr is where agents find the node agent, host:port; empty for none.
	NodeAddr string
	// CA is the certificate authority of schedulers and gateways, in PEM, and TLSDomain what
	// the names in their certificates end in. Without them the agents' connections are not
	// encrypted.
	CA, TLSDomain string
	// StopGrace is how long an instance may take to end by itself before it
	// is killed, from the first of its processes that ends or from Stop. 0
	// means DefaultStopGrace.
	StopGrace time.Duration
}

// Validate names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("process: DataDir is empty: name a folder that can be written"))
	}
	if c.AgentPath == "" {
		errs = append(errs, errors.New("process: AgentPath is empty: name the agent's program"))
	}
	if _, _, err := net.SplitHostPort(c.SchedulerAddr); err != nil {
		errs = append(errs, fmt.Errorf("process: SchedulerAddr %q is not host:port: %w", c.SchedulerAddr, err))
	}
	if (c.CA == "") != (c.TLSDomain == "") {
		errs = append(errs, errors.New("process: CA and TLSDomain go together: give both or neither"))
	}
	if c.StopGrace < 0 {
		errs = append(errs, fmt.Errorf("process: StopGrace is %v: it must not be negative", c.StopGrace))
	}
	return errors.Join(errs...)
}

// Launcher returns the program that runs the handler of a language runtime.
type Launcher interface {
	// Launch may write below the request's WorkDir. It is called by several
	// goroutines at a time.
	Launch(runtimes.Request) (runtimes.Launched, error)
}

// LauncherFunc is a function as a Launcher.
type LauncherFunc func(runtimes.Request) (runtimes.Launched, error)

// Launch calls f.
func (f LauncherFunc) Launch(r runtimes.Request) (runtimes.Launched, error) { return f(r) }

// Deps are the collaborators of a Driver.
type Deps struct {
	// Launcher is needed by functions that have a runtime.
	Launcher Launcher
	// Groups hears of the functions' processes; nil if nobody has to.
	Groups Groups
	// Logger records when an instance starts and ends.
	Logger *slog.Logger
}

// Groups puts the functions' processes into groups. It must not wait.
type Groups interface {
	// Started hears of the process of a function that has just begun.
	Started(spec provisioner.InstanceSpec, pid int)
	// Ended says that no process of that function's instance is left.
	Ended(spec provisioner.InstanceSpec)
}

func (d Deps) validate() error {
	if d.Launcher == nil || d.Logger == nil {
		return errors.New("process: Deps needs both a Launcher and a Logger")
	}
	return nil
}
