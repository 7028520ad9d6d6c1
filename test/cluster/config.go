package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
)

// DefaultState is the state folder of a cluster that names none.
const DefaultState = "/var/lib/windlass-cluster"

const (
	// maxNodes is what the addresses of one cluster suffice for.
	maxNodes = 30
	// maxSocketPath is the kernel's limit, in bytes.
	maxSocketPath = 107
)

// Config says what to start. The zero value of every field but Nodes is usable.
type Config struct {
	// State is the absolute path of the folder for everything the cluster writes;
	// DefaultState if empty. It must be absent, empty, or left by a cluster that has ended.
	State string
	// Programs is the folder that binaries.sh has filled; ProgramsFolder() if empty.
	Programs string
	// Nodes are one to thirty.
	Nodes []Node
	// Detach lets the cluster outlive the process that starts it.
	Detach bool
	// Log hears of every step; nil is silent.
	Log *slog.Logger
}

// Node describes one node.
type Node struct {
	// Name is a host name of at most 32 bytes.
	Name string `json:"name"`
	// MilliCPU is how much CPU pods may request, in 1/1000 of a core; 0 means all
	// the machine has, and more than that has no effect.
	MilliCPU int `json:"milliCPU,omitempty"`
	// MemoryMiB is how much memory pods may request; 0 means all the machine has.
	MemoryMiB int `json:"memoryMiB,omitempty"`
	// MaxPods is 1 to 1000; 0 means 250.
	MaxPods int `json:"maxPods,omitempty"`
	// Labels are added to those that a kubelet sets itself.
	Labels map[string]string `json:"labels,omitempty"`
}

// Nodes returns n nodes of the machine's size, node-1 to node-n.
func Nodes(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("node-%d", i+1)
	}
	return nodes
}

var hostName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// Validate reports every field that cannot work, with its remedy.
func (c Config) Validate() error {
	var errs []error
	state := c.state()
	if !filepath.IsAbs(state) || filepath.Clean(state) != state {
		errs = append(errs, fmt.Errorf("state folder %q: give a clean absolute path", state))
	} else if filepath.Dir(state) == "/" {
		errs = append(errs, fmt.Errorf("state folder %q: give a folder below this one; it is removed at the end", state))
	}
	if len(c.Nodes) < 1 || len(c.Nodes) > maxNodes {
		errs = append(errs, fmt.Errorf("nodes: %d given, want 1 to %d", len(c.Nodes), maxNodes))
	}
	seen := map[string]bool{}
	for _, n := range c.Nodes {
		errs = append(errs, n.validate())
		if over := len(layout{state}.socket(n.Name)) - maxSocketPath; over > 0 {
			errs = append(errs, fmt.Errorf("state folder %q: the path of a socket below it is %d bytes too long: give a shorter one", state, over))
		}
		if seen[n.Name] {
			errs = append(errs, fmt.Errorf("nodes: two have the name %q", n.Name))
		}
		seen[n.Name] = true
	}
	return errors.Join(errs...)
}

func (n Node) validate() error {
	if !hostName.MatchString(n.Name) {
		return fmt.Errorf("nodes: name %q: use 1 to 32 of a-z, 0-9 and -", n.Name)
	}
	if n.MilliCPU < 0 || n.MemoryMiB < 0 || n.MaxPods < 0 || n.MaxPods > 1000 {
		return fmt.Errorf("nodes: %s: MilliCPU, MemoryMiB and MaxPods must not be negative, and MaxPods at most 1000", n.Name)
	}
	return nil
}

func (n Node) maxPods() int {
	if n.MaxPods == 0 {
		return 250
	}
	return n.MaxPods
}

func (c Config) state() string {
	if c.State == "" {
		return DefaultState
	}
	return c.State
}

func (c Config) programs() string {
	if c.Programs == "" {
		return ProgramsFolder()
	}
	return c.Programs
}

func (c Config) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

// ProgramsFolder is where binaries.sh puts the programs unless told otherwise:
// $WINDLASS_KUBERNETES_BIN, or a folder in the user's cache.
func ProgramsFolder() string {
	if dir := os.Getenv("WINDLASS_KUBERNETES_BIN"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		// There is no home: a program that looks there learns what is missing.
		cache = os.TempDir()
	}
	return filepath.Join(cache, "windlass", "kubernetes-v1.34.4")
}
