package cli

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

const pluginName = "kubectl-windlass"

// isPlugin says whether kubectl has started this program, or could have.
func isPlugin(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == pluginName
}

// commandLine is a command about a Windlass in a text for people, and localLine one that runs
// something on this machine, which the plugin does not have.
var (
	commandLine = regexp.MustCompile(`\bwindlass (deploy|diff|delete|list|describe|doctor|edit|explain|invoke|logs|keys|check|rollout|scale|set|top|validate)\b`)
	localLine   = regexp.MustCompile(`\bwindlass (up|init|dev|demo|sim|bench)\b`)
)

// callName is what this user types to run this program again: its name, if a shell
// finds it under that, or else the path that it was started by.
func callName(program string) string {
	name := filepath.Base(program)
	found, err := exec.LookPath(name)
	if err != nil {
		return program
	}
	self, selfErr := os.Stat(program)
	other, err := os.Stat(found)
	if selfErr == nil && err == nil && !os.SameFile(self, other) {
		return program
	}
	return name
}

// rewriteCommands makes the commands in a text those that this user types to reach the same
// Windlass.
func (f *finder) rewriteCommands(text string) string {
	name := typed(cmp.Or(f.program, "windlass"))
	if f.dataDir != "" {
		name += " --data-dir " + typed(f.dataDir)
	}
	if f.plugin {
		name = "kubectl windlass"
	} else {
		text = replaceProgram(localLine, text, name)
	}
	for _, flag := range []struct{ name, value string }{{"kubeconfig", f.flags.kubeconfig}, {"context", f.flags.context}} {
		if flag.value != "" {
			name += " --" + flag.name + " " + typed(flag.value)
		}
	}
	return replaceProgram(commandLine, text, name)
}

// replaceProgram puts a name with flags in the place of windlass.
func replaceProgram(line *regexp.Regexp, text, name string) string {
	return line.ReplaceAllString(text, strings.ReplaceAll(name, "$", "$$")+" $1")
}

// asPlugin makes the texts of the commands those of a kubectl plugin.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl windlass"}
	root.Long = `Windlass runs serverless functions on Kubernetes. Instances pull calls from a
queue. The commands talk to the Windlass in the cluster of the kubeconfig's context.

  kubectl windlass deploy --name hello --image example.com/team/hello:1.0
  kubectl windlass invoke hello

` + exitCodes
	rewriteCommandsBelow(root)
}

// rewriteCommandsBelow does that for the texts of all commands below one.
func rewriteCommandsBelow(above *cobra.Command) {
	for _, cmd := range above.Commands() {
		cmd.Long = commandLine.ReplaceAllString(cmd.Long, "kubectl windlass $1")
		cmd.Example = commandLine.ReplaceAllString(cmd.Example, "kubectl windlass $1")
		rewriteCommandsBelow(cmd)
	}
}
