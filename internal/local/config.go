package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/internal/webguard"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// overcommit is how much more CPU instances may request in all than there is:
// on one's own machine most of them idle.
const overcommit = 4

// Config is what local mode needs to know.
type Config struct {
	// DataDir holds the functions, the logs and the control socket. It
	// belongs to one Windlass at a time.
	DataDir string
	// Listen is the gateway's address and OpsListen that of health checks
	// and metrics; port 0 takes a free one.
	Listen    string
	OpsListen string
	// Pprof serves profiles of this process at OpsListen.
	Pprof bool
	// AgentPath is the agent's program.
	AgentPath string
	// DrainTimeout is how long calls in flight may take to finish when
	// Windlass stops.
	DrainTimeout time.Duration
	// Capacity is what instances may request in all.
	Capacity placement.Amount

	// RequireKeys makes the gateway reject callers without an API key.
	RequireKeys bool

	// WebGuard says whose web pages may call functions while no keys are required, whose may
	// read their answers, and read the metrics.
	WebGuard webguard.Guard

	// Tracing selects the calls to record as traces, and the collector.
	Tracing tracing.Config
	// NodeScheduling says how calls share the cores while they are busy.
	NodeScheduling NodeScheduling
	// NoMetrics counts neither calls nor decisions: it is for measuring what
	// counting costs.
	NoMetrics bool

	Gateway   gateway.Config
	Scheduler scheduler.Config
}

// DefaultConfig is the configuration of windlass up without flags, but for the
// data folder.
func DefaultConfig() Config {
	calls := gateway.DefaultConfig()
	// A development server of this machine may stand in front.
	calls.TrustedProxies = gateway.Loopback()
	return Config{
		Listen:       localapi.DefaultListen,
		OpsListen:    localapi.DefaultOpsListen,
		AgentPath:    agentBeside(),
		DrainTimeout: time.Minute,
		Capacity:     machineCapacity(),
		Tracing:      tracing.DefaultConfig(),
		Gateway:      calls,
		Scheduler:    scheduler.DefaultConfig(),
	}
}

// agentBeside is where the agent is installed: beside this program.
func agentBeside() string {
	self, err := os.Executable()
	if err != nil {
		return "podagent"
	}
	return filepath.Join(filepath.Dir(self), "podagent")
}

// machineCapacity is three quarters of the memory, and every core several times.
func machineCapacity() placement.Amount {
	return placement.Amount{
		MilliCPU: int64(runtime.NumCPU()) * 1000 * overcommit,
		Memory:   totalMemory() / 4 * 3,
	}
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("local: DataDir is empty: name a folder with --data-dir"))
	}
	if err := webguard.CheckListen(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("--listen %w", err))
	}
	if err := webguard.CheckListen(c.OpsListen); err != nil {
		errs = append(errs, fmt.Errorf("--ops-listen %w", err))
	}
	if c.DrainTimeout < 0 {
		errs = append(errs, fmt.Errorf("local: DrainTimeout is %v: must not be negative", c.DrainTimeout))
	}
	if err := c.WebGuard.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--allow-origin %w", err))
	}
	errs = append(errs, c.Tracing.Validate())
	return errors.Join(errs...)
}

// unusable says in plain words why a data folder cannot be used, and what to do.
func unusable(dir string, err error) error {
	place, why := dir, err.Error()
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		place, why = at.Path, at.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		why = "you have no permission to write there"
	case errors.Is(err, syscall.EROFS):
		why = "its file system is read-only"
	case errors.Is(err, syscall.ENOTDIR):
		why = "there is a file where a folder should be"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		why = "no space is left there"
	case errors.Is(err, fs.ErrNotExist):
		why = "no folder can be made there"
	}
	return fmt.Errorf("--data-dir %s: Windlass cannot make %s: %s; choose a folder that you can write with --data-dir", dir, place, why)
}
