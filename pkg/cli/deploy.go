package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/control"
)

func (a *app) deployCommand() *cobra.Command {
	var files []string
	var from functionFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "deploy (-f FILE|FOLDER|- ... | --name NAME [flags] [-- COMMAND ...])",
		Short: "Create or change functions",
		Long: `Make functions exist as manifests or flags describe them.

A relative code path starts at the manifest's folder, or with flags at the
current folder. A folder stands for the Functions in all *.yaml, *.yml and
*.json files below it, without hidden folders, node_modules and .venv.

On this machine a command is started as it is, without a shell, in the folder
--code, which is the current one if it is left out. It must serve HTTP on $PORT.

A cluster takes an image, or the code of a runtime: a file, or a folder of a few
text files. Only the fields that are given are sent, so that what others set
stays as it is.`,
		Example: `  windlass deploy -f function.yaml
  windlass deploy --name hello -- python3 app.py
  windlass deploy --name greet --runtime python3 --handler main.handle --code ./greet
  windlass deploy --name resize --image example.com/team/resize:1.0 --wait`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			manifests, err := a.deployed(cmd, files, from, args)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("wait") && wait <= 0 {
				return usagef("--wait=%s must be more than 0; leave it out to wait for nothing", wait)
			}
			t, err := a.target(cmd.Context())
			if err != nil {
				return err
			}
			if err := t.clusterOnly("force-conflicts", a.flags.forceConflicts); err != nil {
				return err
			}
			a.tellContext(t)
			return a.deploy(cmd.Context(), t, manifests, wait)
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`file` or folder with manifests, or - for the standard input; repeatable")
	from.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until it is known whether the functions are ready, for each as long as `time` (30s if none is given)")
	cmd.Flags().Lookup("wait").NoOptDefVal = defaultReadyTime.String()
	cmd.Flags().BoolVar(&a.flags.forceConflicts, "force-conflicts", false, "take over fields that others have set (in a cluster)")
	return cmd
}

// deployed are the functions that files or flags describe.
func (a *app) deployed(cmd *cobra.Command, files []string, from functionFlags, args []string) ([]manifest, error) {
	given := from.given(cmd)
	switch {
	case len(files) > 0 && len(given) > 0:
		return nil, usagef("-f and --%s exclude each other: write it into the manifest, or leave out -f", given[0])
	case len(files) > 0 && len(args) > 0 && cmd.ArgsLenAtDash() < 0:
		return nil, usagef("%q is too much: repeat -f before every file", args[0])
	case len(files) > 0 && len(args) > 0:
		return nil, usagef("-f and a command exclude each other: write it into the manifest, or leave out -f")
	case len(files) > 0:
		manifests, err := readManifests(files, a.In)
		if err != nil {
			return nil, err
		}
		return manifests, a.enforceNamespace(manifests)
	case len(args) > 0 && cmd.ArgsLenAtDash() != 0:
		return nil, usagef("%q stands alone: write -f %s for a manifest, --name %s for a name, or -- before a command", args[0], args[0], args[0])
	}
	fn, err := from.function(cmd, a.namespace, args)
	if err != nil {
		return nil, err
	}
	manifests := []manifest{{source: "flags", function: fn}}
	for _, err := range check(manifests) {
		return nil, usagef("%w", err)
	}
	return manifests, nil
}

// enforceNamespace puts manifests without a namespace into that of the flag,
// and refuses those with another one.
func (a *app) enforceNamespace(manifests []manifest) error {
	if a.namespace == "" {
		return nil
	}
	for _, m := range manifests {
		if m.function.Namespace == "" {
			m.function.Namespace = a.namespace
		}
		if m.function.Namespace != a.namespace {
			return usagef("%s: function %s is in the namespace %s, but --namespace says %s; remove one of the two",
				m.source, m.function.Name, m.function.Namespace, a.namespace)
		}
	}
	return nil
}

// deploy prepares all functions and applies one after the other. It stops at the
// first that fails.
func (a *app) deploy(ctx context.Context, t *target, manifests []manifest, wait time.Duration) error {
	var applies []apply
	var errs []error
	for _, m := range manifests {
		fn := m.function.DeepCopy()
		fn.Namespace = cmp.Or(fn.Namespace, t.namespace)
		prepared, err := t.Prepare(fn)
		if err != nil {
			errs = append(errs, err)
		}
		applies = append(applies, prepared)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, apply := range applies {
		applied, err := apply(ctx)
		if err == nil && wait > 0 {
			fmt.Fprintf(a.Err, "function %s %s, waiting until it is ready\n", applied.Function.Key(), applied.Result)
			applied.Function, err = a.awaitReady(ctx, t, applied.Function, wait)
		}
		if err != nil {
			if left := len(manifests) - i; left > 1 {
				return fmt.Errorf("%w\n%d of %d functions were not applied; correct this one and deploy again", err, left, len(manifests))
			}
			return err
		}
		a.printApplied(applied, len(manifests) == 1)
	}
	return nil
}

// tellContext says which cluster is about to be changed, if nobody has named it.
func (a *app) tellContext(t *target) {
	if a.byDefault {
		fmt.Fprintf(a.Err, "using the cluster of the context %s, because no Windlass runs on this machine\n", t.context)
	}
}

// printApplied says what became of a function, and with try how to call it.
func (a *app) printApplied(applied control.Applied, try bool) {
	fn := applied.Function
	fmt.Fprintf(a.Out, "function %s %s\n", fn.Key(), applied.Result)
	if fn.Status.URL != "" {
		fmt.Fprintf(a.Out, "  url  %s\n", fn.Status.URL)
	}
	if !try || (fn.Status.URL == "" && !a.inCluster) {
		return
	}
	fmt.Fprintf(a.Out, "  try  %s\n", a.retell("windlass invoke "+a.short(fn.Key())))
	// The URL of a cluster may mean nothing to this machine.
	if !a.inCluster {
		fmt.Fprintf(a.Out, "       curl %s\n", fn.Status.URL)
	}
}
