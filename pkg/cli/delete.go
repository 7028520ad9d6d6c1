package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

func (a *app) deleteCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "delete (NAME ... | -f FILE|FOLDER|- ...)",
		Short: "Remove functions",
		Long:  "Remove functions and end their instances, by name or as the manifests name them.",
		Example: `  windlass delete hello
  windlass delete -f function.yaml`,
		ValidArgsFunction: a.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			keys, err := a.deleted(args, files)
			if err != nil {
				return err
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			var errs []error
			for _, key := range keys {
				if err := client.Delete(cmd.Context(), key); err != nil {
					errs = append(errs, explain(cmd.Context(), client, key, err))
					continue
				}
				fmt.Fprintf(a.Out, "function %s deleted\n", key)
			}
			return errors.Join(errs...)
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`file` or folder with manifests, or - for the standard input; repeatable")
	a.namespaceFlag(cmd)
	return cmd
}

// deleted are the functions to delete.
func (a *app) deleted(names, files []string) ([]invoke.FunctionKey, error) {
	switch {
	case len(names) > 0 && len(files) > 0:
		return nil, usagef("NAME and -f exclude each other; remove one of the two")
	case len(names)+len(files) == 0:
		return nil, usagef("NAME of the function is missing; windlass list shows the names")
	}
	var keys []invoke.FunctionKey
	for _, name := range names {
		key, err := a.key(name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(files) == 0 {
		return keys, nil
	}
	manifests, err := readManifests(files, a.In)
	if err != nil {
		return nil, err
	}
	if err := a.enforceNamespace(manifests); err != nil {
		return nil, err
	}
	for _, m := range manifests {
		keys = append(keys, defaulted(m.function).Key())
	}
	return keys, nil
}
