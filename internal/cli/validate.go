package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func validateCommand(streams Streams) *cobra.Command {
	var files []string
	var where string
	cmd := &cobra.Command{
		Use:        "validate -f FILE|FOLDER|- ... [--for local|cluster]",
		SuggestFor: []string{"lint"},
		Short:      "Check manifests without a running Windlass",
		Long: `Check manifests. This needs neither a running Windlass nor a cluster. With --for, also check that the functions can run there.

The exit code is 1 if something is wrong.`,
		Example: `  windlass validate -f functions/ --for cluster`,
		Args:    noArgs,
		RunE: run(func(*cobra.Command, []string) error {
			validate := v1alpha1.Validate
			switch where {
			case "":
			case "local":
				validate = validateLocal
			case "cluster":
				validate = validateCluster
			default:
				return usagef("--for %q is not known; write local or cluster", where)
			}
			if len(files) == 0 {
				return usagef("-f is missing; name a file or folder with manifests, or - for the standard input")
			}
			manifests, err := readManifests(files, streams.In)
			if err == nil {
				err = errors.Join(validateManifests(manifests, validate)...)
			}
			if err != nil {
				return functionErrorf("%w", err)
			}
			for _, m := range manifests {
				fmt.Fprintf(streams.Out, "%s: function %s is valid\n", m.source, m.function.Name)
			}
			return nil
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`file` or folder with manifests, or - for the standard input; repeatable")
	cmd.Flags().StringVar(&where, "for", "", "`place` where the functions will run: local or cluster (default: check what holds in both)")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"local", "cluster"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
