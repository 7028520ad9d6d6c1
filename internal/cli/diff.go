package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func (d *deployer) diffCommand() *cobra.Command {
	var flags deployFlags
	cmd := &cobra.Command{
		Use:   "diff (-f FILE|FOLDER|- ... | --name NAME [flags] [-- COMMAND ...])",
		Short: "Show what deploy would change",
		Long: `Show what windlass deploy would change with the same flags, including the values
of environment variables. It changes nothing.

The exit code is 1 if anything would change, and 0 if not.`,
		Example: `  windlass diff -f function.yaml`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			t, manifests, err := d.wanted(cmd, flags, args)
			if err != nil {
				return err
			}
			return d.diff(cmd.Context(), t, manifests)
		}),
	}
	flags.add(d.finder, cmd)
	return cmd
}

func (d *deployer) diff(ctx context.Context, t *target, manifests []manifest) error {
	applies, err := prepare(t, manifests)
	if err != nil {
		return err
	}
	differ := 0
	for _, apply := range applies {
		preview, err := apply(ctx, true)
		if err != nil {
			return err
		}
		if d.printPreview(preview, true) {
			differ++
		}
	}
	if differ > 0 {
		return functionErrorf("%d of %d functions would change; windlass deploy does it", differ, len(manifests))
	}
	return nil
}
