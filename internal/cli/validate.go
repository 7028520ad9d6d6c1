package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// validator checks manifests.
type validator struct{ *finder }

func (v *validator) validateCommand() *cobra.Command {
	var files []string
	var where string
	cmd := &cobra.Command{
		Use:        "validate -f FILE|FOLDER|- ... [--for local|cluster]",
		SuggestFor: []string{"lint"},
		Short:      "Check manifests without a running Windlass",
		Long: `Check manifests. This needs neither a running Windlass nor a cluster. With --for, also check that the functions can run there.

The exit code is 1 if something is wrong with a manifest, and 2 if it cannot be read.`,
		Example: `  windlass validate -f functions/ --for cluster`,
		Args:    noArgs,
		RunE: run(func(*cobra.Command, []string) error {
			if err := v.offline("validate"); err != nil {
				return err
			}
			validate, err := validationFor(where)
			if err != nil {
				return err
			}
			if len(files) == 0 {
				return usagef("-f is missing; name a file or folder with manifests, or - for the standard input")
			}
			manifests, err := readManifests(files, v.In)
			var unread *unreadableError
			switch {
			case errors.As(err, &unread):
				return err
			case err != nil:
				return functionErrorf("%w", err)
			}
			if err := v.enforceNamespace(manifests); err != nil {
				return err
			}
			if problems := validateManifests(manifests, validate); len(problems) > 0 {
				return functionErrorf("%w", errors.Join(problems...))
			}
			for _, m := range manifests {
				fmt.Fprintf(v.Out, "%s: function %s is valid\n", m.source, m.function.Name)
			}
			return nil
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`file` or folder with manifests, or - for the standard input; repeatable")
	cmd.Flags().StringVar(&where, "for", "", "`place` where the functions will run: local or cluster (default: check what holds in both)")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"local", "cluster"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// validationFor is what a place requires of functions, or both do.
func validationFor(place string) (func(*v1alpha1.Function) field.ErrorList, error) {
	switch place {
	case "":
		return v1alpha1.Validate, nil
	case "local":
		return validateLocal, nil
	case "cluster":
		return validateCluster, nil
	}
	return nil, usagef("--for %q is not known; write local or cluster", place)
}
