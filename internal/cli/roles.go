package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// roleCommands are the programs of a cluster. They take none of the flags that say
// which Windlass a verb is about: they are one.
func (a *app) roleCommands() []*cobra.Command {
	for _, role := range a.programs.Roles {
		start := role.RunE
		role.RunE = run(func(cmd *cobra.Command, args []string) error {
			var foreign string
			cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
				if f.Changed {
					foreign = f.Name
				}
			})
			if foreign != "" {
				return usagef("--%s means nothing to %s; remove it, and set KUBECONFIG to run outside of a cluster", foreign, cmd.Name())
			}
			return start(cmd, args)
		})
	}
	return a.programs.Roles
}
