package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// completion lists what a shell offers for a flag or an argument.
type completion = cobra.CompletionFunc

func oneOf(values ...string) completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// completer says what a shell offers.
type completer struct {
	*finder
	programs Programs
}

// finishCompletion gives each flag of a command and of those below it what a shell offers
// for it: the values that are known, files where files are meant, and else nothing.
func (c *completer) finishCompletion(cmd *cobra.Command) {
	visit := func(flag *pflag.Flag) {
		if _, known := cmd.GetFlagCompletionFunc(flag.Name); known || flag.Value.Type() == "bool" {
			return
		}
		if offered := c.completionFor(flag); offered != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, offered) // It fails for unknown flags only.
		}
	}
	cmd.PersistentFlags().VisitAll(visit)
	cmd.LocalNonPersistentFlags().VisitAll(visit)
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.HasSubCommands() && cmd.Name() != "deploy" {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		switch cmd.Name() {
		case "sim":
			cmd.ValidArgsFunction = oneOf(c.experimentNames()...)
		case "bench":
			cmd.ValidArgsFunction = oneOf(c.programs.suiteNames()...)
		}
	}
	for _, below := range cmd.Commands() {
		c.finishCompletion(below)
	}
}

// completionFor is the completion of a flag; nil means files.
func (c *completer) completionFor(flag *pflag.Flag) completion {
	switch flag.Name {
	case "namespace", "windlass-namespace":
		return c.completeNamespaces
	case "context":
		return c.completeContexts
	case "runtime":
		return oneOf(runtimes.Names()...)
	case "protocol":
		return oneOf(string(v1alpha1.ProtocolHTTP), string(v1alpha1.ProtocolLambdaRuntime))
	case "algorithm":
		return oneOf(autoscaler.Names()...)
	case "node-scheduling":
		return oneOf(append([]string{"auto", "off"}, orderNames()...)...)
	}
	name, usage := pflag.UnquoteUsage(flag)
	switch strings.ToLower(name) {
	case "file", "folder", "path":
		return nil
	}
	if values := choices(usage); len(values) > 0 {
		return oneOf(values...)
	}
	return cobra.NoFileCompletions
}

var choiceList = regexp.MustCompile(`: ((?:[A-Za-z0-9]+, )+[A-Za-z0-9]+(?: or [A-Za-z0-9]+)?|[A-Za-z0-9]+ or [A-Za-z0-9]+)\b`)

// choices are the values that the usage of a flag lists, as in "format: table or json", or
// "slice: auto, off, or a time".
func choices(usage string) []string {
	found := choiceList.FindStringSubmatch(usage)
	if found == nil {
		return nil
	}
	return strings.Split(strings.Replace(strings.TrimSuffix(found[1], ", or"), " or ", ", ", 1), ", ")
}

func (c *completer) experimentNames() (names []string) {
	for _, e := range c.programs.Experiments {
		names = append(names, e.Name)
	}
	return names
}

func (c *completer) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	t, err := c.target(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := t.List(ctx, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

func (c *completer) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return kubeclient.Contexts(kubeclient.Config{Kubeconfig: c.flags.kubeconfig, Files: c.kubeconfigFiles()}), cobra.ShellCompDirectiveNoFileComp
}
