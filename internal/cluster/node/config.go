package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// Config has the settings of a node agent.
type Config struct {
	role.Common
	// WireListen is where instances of the node come.
	WireListen string
	// CgroupRoot is where the node's control groups are mounted, and JournalDir a folder that
	// outlives the node agent.
	CgroupRoot, JournalDir string
	// CallOrder is the order in which calls compute while the node is busy, and Slice how long
	// each of them may before it yields.
	CallOrder, Slice string
	// Preempt lets short calls take the tickets of long ones.
	Preempt bool
	// Cores is the number of core tickets; 0 means as many as the node has processors.
	Cores int
	// LatencyCritical are the namespaces whose functions may have that class; "*" stands for all.
	LatencyCritical []string
	// CoLocation keeps functions of class Batch back while those of class LatencyCritical wait for cores.
	CoLocation bool
	// BatchNamespaces are the namespaces whose pods may ask to get what others leave, by an annotation; "*"
	// stands for all. Without any, pods are not read.
	BatchNamespaces []string
	// NodeName is the node's name, which its pods have.
	NodeName string
	// Watched says that another process restores what this one leaves.
	Watched bool
}

// NewCommand is the role node as a command.
func NewCommand() *cobra.Command {
	var c Config
	cmd := role.NewCommand("node", "Run the node agent of a node of a cluster", func(ctx context.Context) error { return Run(ctx, c) })
	flags := cmd.Flags()
	c.ServingFlags(flags)
	usual := callorder.DefaultParams(1)
	flags.StringVar(&c.WireListen, "wire-listen", ":9443", "`address` for the instances of the node")
	flags.StringVar(&c.CgroupRoot, "cgroup-root", "/host/sys/fs/cgroup", "`folder` at which the control groups of the node are mounted, so that they can be written")
	flags.StringVar(&c.JournalDir, "journal-dir", "/run/windlass/node", "`folder` for the list of the pods in the low band, which outlives the container")
	flags.StringVar(&c.CallOrder, "call-order", string(usual.Order), "`order` in which calls compute while the node is busy: "+orderNames())
	flags.StringVar(&c.Slice, "slice", usual.Slice.String(), "processor `time` after which a call yields: auto, sfs, p95, off, or a duration such as 50ms")
	flags.BoolVar(&c.Preempt, "preempt", usual.Preempt, "let calls take the core of one that has twice as much left, with the order serpt")
	flags.IntVar(&c.Cores, "cores", 0, "`number` of calls that compute at a time while the node is busy; 0 means its processors")
	flags.StringSliceVar(&c.LatencyCritical, "latency-critical-namespaces", nil, "`namespaces` whose functions may have the class LatencyCritical; * means all")
	flags.BoolVar(&c.CoLocation, "co-location", false, "keep functions of the class Batch off cores, or stop them, while those of the class LatencyCritical wait for cores")
	flags.StringSliceVar(&c.BatchNamespaces, "batch-namespaces", nil, "`namespaces` whose pods may ask to get what others leave, by the annotation "+wellknown.AnnotationClass+": Batch; * means all")
	flags.StringVar(&c.NodeName, "node-name", "", "`name` of the node, for --batch-namespaces")
	flags.BoolVar(&c.Watched, "watched", false, "run the node agent in this process; without it, another one is started and watched")
	_ = flags.MarkHidden("watched")
	return cmd
}

func orderNames() string {
	var names []string
	for _, o := range callorder.Orders() {
		names = append(names, string(o))
	}
	return strings.Join(names, ", ")
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	errs := append(c.ValidateServing(), role.Address("--wire-listen", c.WireListen)...)
	for flag, folder := range map[string]string{"--cgroup-root": c.CgroupRoot, "--journal-dir": c.JournalDir} {
		if !filepath.IsAbs(folder) {
			errs = append(errs, fmt.Errorf("%s %q is not the absolute path of a folder: write for example /host/sys/fs/cgroup", flag, folder))
		}
	}
	if c.CoLocation && len(c.LatencyCritical) == 0 {
		errs = append(errs, errors.New("--co-location needs --latency-critical-namespaces, because no function is latency-critical without: name their namespaces, or write * for all"))
	}
	if len(c.BatchNamespaces) > 0 && c.NodeName == "" {
		errs = append(errs, errors.New("--batch-namespaces needs --node-name: the node agent follows the pods of its own node alone"))
	}
	_, err := c.agent()
	return errors.Join(append(errs, err)...)
}

// agent is the configuration of the node agent itself.
func (c Config) agent() (nodeagent.Config, error) {
	var errs []error
	cores := c.Cores
	if cores == 0 {
		cores = runtime.NumCPU()
	}
	if cores < 0 {
		errs = append(errs, fmt.Errorf("--cores %d must not be negative: write 0 for all processors of the node", c.Cores))
	}
	order, err := callorder.ParseOrder(c.CallOrder)
	if err != nil {
		errs = append(errs, fmt.Errorf("--call-order %q is not known; write one of %s", c.CallOrder, orderNames()))
	}
	slice, err := callorder.ParseSlice(c.Slice)
	if err != nil {
		errs = append(errs, fmt.Errorf("--slice: %w", err))
	}
	settings := nodeagent.DefaultConfig(cores)
	settings.Calls.Order, settings.Calls.Slice, settings.Calls.Preempt = order, slice, c.Preempt
	settings.Calls.Unasked = callorder.UnaskedOfPods()
	settings.LatencyCritical = c.LatencyCritical
	return settings, errors.Join(errs...)
}
