package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// remover deletes functions.
type remover struct{ *finder }

func (d *remover) deleteCommand() *cobra.Command {
	var files []string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:        "delete (NAME ... | -f FILE|FOLDER|- ...)",
		SuggestFor: []string{"rm", "remove"},
		Short:      "Remove functions",
		Long: `Remove functions and end their instances, by name or as the manifests name them.
A function in a cluster is gone when its last instance has ended: this waits for
that.`,
		Example: `  windlass delete hello
  windlass delete -f function.yaml`,
		ValidArgsFunction: d.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if err := valueApart(cmd, args); err != nil {
				return err
			}
			keys, err := d.keysToDelete(args, files)
			if err != nil {
				return err
			}
			if timeout <= 0 {
				return usagef("--timeout %s must be more than 0; --wait=false waits for nothing", timeout)
			}
			t, err := d.target(cmd.Context())
			if err != nil {
				return err
			}
			d.noteContext(t)
			if !wait {
				timeout = 0
			}
			return d.delete(cmd.Context(), t, keys, timeout)
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`file` or folder with manifests, or - for the standard input; repeatable")
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until the functions are gone")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultGoneTime, "longest `time` to wait for each function")
	return cmd
}

// delete removes functions and waits until they are gone, unless limit is 0.
// What goes wrong with one keeps none of the others.
func (d *remover) delete(ctx context.Context, t *target, keys []invocation.FunctionKey, limit time.Duration) error {
	var errs []error
	var going []invocation.FunctionKey
	for _, key := range keys {
		key = t.key(key)
		if err := t.Delete(ctx, key); err != nil {
			errs = append(errs, d.explainNotFound(ctx, t, key, err))
			continue
		}
		going = append(going, key)
	}
	for _, key := range going {
		word := "deleted"
		switch {
		case !t.inCluster():
		case limit == 0:
			word = "is being deleted"
		default:
			if err := d.awaitGone(ctx, t, key, limit); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		fmt.Fprintf(d.Out, "function %s %s\n", key, word)
	}
	return errors.Join(errs...)
}

// keysToDelete are the functions that arguments or files name.
func (d *remover) keysToDelete(names, files []string) ([]invocation.FunctionKey, error) {
	switch {
	case len(names) > 0 && len(files) > 0:
		return nil, usagef("NAME and -f exclude each other; remove one of the two")
	case len(names)+len(files) == 0:
		return nil, usagef("NAME of the function is missing; windlass list shows the names")
	}
	var keys []invocation.FunctionKey
	for _, name := range names {
		key, err := d.key(name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(files) == 0 {
		return keys, nil
	}
	manifests, err := readManifests(files, d.In)
	if err != nil {
		return nil, err
	}
	if err := d.enforceNamespace(manifests); err != nil {
		return nil, err
	}
	for _, m := range manifests {
		keys = append(keys, m.function.Key())
	}
	return keys, nil
}
