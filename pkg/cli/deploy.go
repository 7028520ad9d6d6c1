package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/control"
)

func (a *app) deployCommand() *cobra.Command {
	var files []string
	var from functionFlags
	cmd := &cobra.Command{
		Use:   "deploy (-f FILE|FOLDER|- ... | --name NAME [flags] [-- COMMAND ...])",
		Short: "Create or change functions",
		Long: `Make functions exist as manifests or flags describe them.

A relative code path starts at the manifest's folder, or with flags at the
current folder. A folder stands for the Functions in all *.yaml, *.yml and
*.json files below it, without hidden folders, node_modules and .venv.

A command is started as it is, without a shell, in the folder --code, which is
the current one if it is left out. It must serve HTTP on $PORT.`,
		Example: `  windlass deploy -f function.yaml
  windlass deploy --name hello -- python3 app.py
  windlass deploy --name greet --runtime python3 --handler main.handle --code ./greet`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			manifests, err := a.deployed(cmd, files, from, args)
			if err != nil {
				return err
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			return a.deploy(cmd.Context(), client, manifests)
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`file` or folder with manifests, or - for the standard input; repeatable")
	from.add(cmd)
	a.namespaceFlag(cmd)
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

// deploy applies one function after the other, and stops at the first that
// fails.
func (a *app) deploy(ctx context.Context, client *control.Client, manifests []manifest) error {
	for i, m := range manifests {
		fn := m.function.DeepCopy()
		fn.Namespace = cmp.Or(fn.Namespace, v1alpha1.DefaultNamespace)
		applied, err := client.Apply(ctx, fn)
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

// printApplied says what became of a function, and with try how to call it.
func (a *app) printApplied(applied control.Applied, try bool) {
	fn := applied.Function
	fmt.Fprintf(a.Out, "function %s %s\n", fn.Key(), applied.Result)
	if fn.Status.URL == "" {
		return
	}
	fmt.Fprintf(a.Out, "  url  %s\n", fn.Status.URL)
	if try {
		fmt.Fprintf(a.Out, "  try  windlass invoke %s\n       curl %s\n", short(fn.Key()), fn.Status.URL)
	}
}
