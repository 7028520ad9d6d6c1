package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// groups are those of the commands in the help, with the names of what is in them.
var groups = []struct {
	id, title string
	commands  []string
}{
	{"develop", "Develop:", []string{"up", "init", "dev", "deploy", "validate", "diff", "edit", "set", "scale", "rollout", "invoke", "delete"}},
	{"observe", "Observe:", []string{"list", "describe", "explain", "top", "logs"}},
	{"administer", "Administer:", []string{"keys", "check", "doctor"}},
	{"learn", "Learn:", []string{"demo", "sim", "bench"}},
}

// finishHelp sorts the commands into groups, and finishes what cobra adds by itself.
func finishHelp(root *cobra.Command) {
	for _, g := range groups {
		used := false
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID, used = g.id, true
			}
		}
		if used {
			root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		}
	}
	// With a shorthand of its own, -v would mean two things.
	root.Flags().Bool("version", false, "print the version of this command")
	root.InitDefaultCompletionCmd("completion")
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usagef("shell %q is not known; write bash, zsh, fish or powershell", args[0])
				}
				return cmd.Help()
			}
		}
	}
}
