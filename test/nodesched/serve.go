package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/local"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// policy is a way to share the core.
type policy struct {
	name  string
	order callorder.Order // empty for none: the kernel alone decides
	slice callorder.Slice
	// filter says that the harness runs SFS as it was published, with the real-time class.
	filter bool
	// placed says that the harness puts instances on nodes of its own, with node agents of theirs.
	placed bool
}

// onNodes is the policy of a Windlass that leaves all about nodes to the harness.
var onNodes = policy{name: "on-nodes", placed: true}

var policies = []policy{
	{name: "off"},
	{name: "sfs", filter: true},
	{name: "fifo-sfs", order: callorder.FIFO, slice: callorder.Slice{Rule: callorder.SliceSFS}},
	{name: "bands", order: callorder.None, slice: callorder.Slice{Rule: callorder.SliceSFS}},
	{name: "fifo", order: callorder.FIFO, slice: callorder.Slice{Rule: callorder.SliceOff}},
	{name: "sept", order: callorder.SEPT, slice: callorder.Slice{Rule: callorder.SliceOff}},
	{name: "eect", order: callorder.EECT, slice: callorder.Slice{Rule: callorder.SliceOff}},
	{name: "fair-choice", order: callorder.FairChoice, slice: callorder.Slice{Rule: callorder.SliceOff}},
	{name: "serpt", order: callorder.SERPT, slice: callorder.Slice{Rule: callorder.SliceAuto}},
}

func policyByName(name string) (policy, error) {
	var names []string
	for _, p := range append(policies, onNodes) {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return policy{}, fmt.Errorf("there is no policy %q; use some of %s", name, strings.Join(names, ", "))
}

// serve runs a Windlass with functions, "name=instances", whose programs are in a folder, prints
// the URLs of its gateway and its metrics, and stops it when nothing more can be read.
func serve(p policy, dir string, functions []string, until io.Reader, out io.Writer) error {
	config := local.DefaultConfig()
	config.DataDir = filepath.Join(dir, "data")
	config.AgentPath = filepath.Join(dir, "podagent")
	if p.placed {
		config.AgentPath = filepath.Join(dir, "placed")
	}
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	config.Capacity.MilliCPU *= 100
	config.NodeScheduling = local.NodeScheduling{Order: p.order, Slice: p.slice}
	w, stop, err := local.Start(config, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return errors.Join(err, stop())
	}
	for _, f := range functions {
		name, n, _ := strings.Cut(f, "=")
		instances, err := strconv.Atoi(n)
		if err != nil {
			return errors.Join(err, stop())
		}
		fn := burning(self, name, int32(instances))
		if p.placed {
			fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: pinnedVariable, Value: "true"}, {Name: notesVariable, Value: filepath.Join(dir, notesFolder)}}
		}
		if _, err := w.Store().Apply(fn); err != nil {
			return errors.Join(err, stop())
		}
	}
	fmt.Fprintln(out, w.GatewayURL(), w.OpsURL())
	_, _ = io.Copy(io.Discard, until)
	return stop()
}

// burning is a function of this program that has so many instances all the time.
func burning(self, name string, instances int32) *v1alpha1.Function {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: name}}
	fn.Spec.Template.Command = []string{self, "-burn"}
	if path := os.Getenv(filterVariable); path != "" {
		fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: filterVariable, Value: path}}
	}
	fn.Spec.Scaling.MinInstances, fn.Spec.Scaling.MaxInstances = instances, &instances
	v1alpha1.Default(fn)
	return fn
}
