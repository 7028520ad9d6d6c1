package cli

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/internal/runtimes"
)

// scaffolds are the files of new functions, by what these run.
//
//go:embed scaffold
var scaffolds embed.FS

// kinds are what a new function can run: the runtimes that have a scaffold, and a command.
var kinds = append(slices.DeleteFunc(runtimes.Names(), func(name string) bool {
	_, err := fs.Stat(scaffolds, path.Join("scaffold", name))
	return err != nil
}), "command")

// scaffolder writes the files of new functions.
type scaffolder struct{ *finder }

func (s *scaffolder) initCommand() *cobra.Command {
	kind, name := kinds[0], ""
	cmd := &cobra.Command{
		Use:   "init [--runtime " + strings.Join(kinds, "|") + "] [--name NAME] FOLDER",
		Short: "Create the files of a new function",
		Long: `Create the files of a new function: its manifest, its code, an event to call it
with, and a README. With --runtime command, the code is an HTTP server in Go.

It does not change files that exist.`,
		Example: `  windlass init hello
  windlass init --runtime nodejs22.x services/greeter`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("write the one FOLDER to create the function in, or . for this one")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: run(func(_ *cobra.Command, args []string) error {
			if err := s.localOnly("init"); err != nil {
				return err
			}
			return s.initFunction(args[0], kind, name)
		}),
	}
	cmd.Flags().StringVar(&kind, "runtime", kind, "`language`: "+strings.Join(kinds[:len(kinds)-1], ", ")+" or command")
	_ = cmd.RegisterFlagCompletionFunc("runtime", oneOf(kinds...)) // It fails for unknown flags only.
	cmd.Flags().StringVar(&name, "name", "", "`name` of the function (default: the folder's)")
	return cmd
}

// initFunction writes all files of a function, or none.
func (s *scaffolder) initFunction(folder, kind, name string) error {
	if !slices.Contains(kinds, kind) {
		return usagef("--runtime %q is not known; write %s", kind, strings.Join(kinds, ", "))
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if name == "" {
		name = nameFrom(filepath.Base(absolute))
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return usagef("%q is not a name of a function: write --name with lower-case letters, digits and hyphens", name)
	}
	files, err := scaffold(kind, name)
	if err != nil {
		return err
	}
	if err := writeNew(folder, files); err != nil {
		return inputError(err)
	}
	for _, file := range files {
		fmt.Fprintf(s.Out, "created %s\n", filepath.Join(folder, file.name))
	}
	manifest := filepath.Join(folder, "function.yaml")
	fmt.Fprintf(s.Out, "deploy it:  %s\ncall it:    %s\n", s.rewriteCommands("windlass deploy -f "+typed(manifest)),
		s.rewriteCommands("windlass invoke "+name+" -f "+typed(filepath.Join(folder, "event.json"))))
	return nil
}

// writeNew writes all files into a folder, or none. It changes no file that exists.
func writeNew(folder string, files []scaffolded) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot create the folder: %w; choose another", err)
	}
	var written []string
	for _, file := range files {
		path := filepath.Join(folder, file.name)
		err := writeFile(path, file.text)
		if err == nil {
			written = append(written, path)
			continue
		}
		for _, path := range written {
			_ = os.Remove(path)
		}
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is there already: choose another folder, or remove it", path)
		}
		return fmt.Errorf("cannot create the function: %w; choose another folder", err)
	}
	return nil
}

// writeFile writes a file that does not exist, or nothing.
func writeFile(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// notInNames are runs of what names of functions cannot have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameFrom is a name of a function like that of a folder.
func nameFrom(folder string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(folder), "-"), "-")
	return strings.Trim(name[:min(len(name), validation.DNS1123LabelMaxLength)], "-")
}

// scaffolded is a file of a new function.
type scaffolded struct {
	name string
	text []byte
}

func scaffold(kind, name string) ([]scaffolded, error) {
	root := "scaffold/" + kind
	entries, err := scaffolds.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var files []scaffolded
	for _, entry := range entries {
		t, err := template.ParseFS(scaffolds, root+"/"+entry.Name())
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, struct{ Name string }{name}); err != nil {
			return nil, err
		}
		files = append(files, scaffolded{strings.TrimSuffix(entry.Name(), ".tmpl"), text.Bytes()})
	}
	return files, nil
}
