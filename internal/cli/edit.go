package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func (m *modifier) editCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edit NAME",
		Short: "Change a function in an editor",
		Long: `Open a function's manifest in $VISUAL or $EDITOR (default: vi), and apply what you
save. If that is not valid, the editor opens again with the errors on top. If you
save no change, nothing happens.`,
		Example:           `  EDITOR=nano windlass edit hello`,
		Args:              oneName,
		ValidArgsFunction: m.completeNames,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			key, err := m.key(args[0])
			if err != nil {
				return err
			}
			t, err := m.target(cmd.Context())
			if err != nil {
				return err
			}
			m.noteContext(t)
			return m.edit(cmd.Context(), t, t.key(key))
		}),
	}
}

// edit opens a function's manifest until what was saved can be applied, or nothing new
// was saved.
func (m *modifier) edit(ctx context.Context, t *target, key invocation.FunctionKey) error {
	fn, err := t.Get(ctx, key)
	if err != nil {
		return m.explainNotFound(ctx, t, key, err)
	}
	text, err := v1alpha1.Encode(authored(fn))
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "windlass-"+key.Name+"-*.yaml")
	if err != nil {
		return inputError(fmt.Errorf("cannot make a file to edit: %w", err))
	}
	path, shown := file.Name(), text
	if err := file.Close(); err != nil {
		return err
	}
	for {
		saved, err := m.openEditor(ctx, path, shown)
		switch {
		case err != nil:
			return keepEdited(path, text, err)
		case bytes.Equal(saved, shown) && bytes.Equal(shown, text):
			fmt.Fprintf(m.Out, "function %s is as it was\n", key)
			return os.Remove(path)
		case bytes.Equal(saved, shown):
			return inputError(fmt.Errorf("function %s was not changed, because its errors are not corrected; the text is in %s", key, path))
		}
		err = m.applyEdited(ctx, t, fn, saved)
		if err == nil {
			return os.Remove(path)
		}
		var known *exitError
		if !errors.As(classify(err), &known) || known.code != exitUsage {
			return keepEdited(path, text, err)
		}
		shown = withErrors(saved, err)
	}
}

// keepEdited adds to an error where the text is that was edited. A file without any edits is removed.
func keepEdited(path string, read []byte, err error) error {
	if left, readErr := os.ReadFile(path); readErr == nil && bytes.Equal(left, read) {
		return errors.Join(err, os.Remove(path))
	}
	return fmt.Errorf("%w\nyour text is in %s", err, path)
}

// openEditor opens the user's editor on a text and returns what was saved.
func (m *modifier) openEditor(ctx context.Context, path string, text []byte) ([]byte, error) {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, inputError(fmt.Errorf("cannot write the file to edit: %w", err))
	}
	editor := cmp.Or(m.getenv("VISUAL"), m.getenv("EDITOR"), "vi")
	words, err := splitWords(editor)
	if err != nil {
		return nil, inputError(fmt.Errorf("the editor %q is no command: %w", editor, err))
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = m.In, m.Out, m.Err
	// Ctrl-C on this terminal is for the editor, or a command that it runs. Signals that are ignored, the
	// editor would inherit; those that are caught, not.
	forEditor := make(chan os.Signal, 1)
	signal.Notify(forEditor, os.Interrupt, syscall.SIGQUIT)
	defer signal.Stop(forEditor)
	if err := cmd.Run(); err != nil {
		return nil, inputError(fmt.Errorf("the editor %s failed: %w; nothing was changed. Name another with $EDITOR", words[0], err))
	}
	return os.ReadFile(path)
}

// applyEdited applies what was saved, unless the function has changed since it was read.
func (m *modifier) applyEdited(ctx context.Context, t *target, read *v1alpha1.Function, saved []byte) error {
	functions, err := v1alpha1.Decode(saved, "edited")
	if err != nil {
		return inputError(err)
	}
	if len(functions) != 1 || defaulted(functions[0]).Key() != read.Key() {
		return inputError(fmt.Errorf("edited: it must be the one function %s; deploy others with windlass deploy -f", read.Key()))
	}
	edited := functions[0]
	if err := checkFor(t, []manifest{{source: "edited", function: edited}}, true); err != nil {
		return err
	}
	applied, err := t.Change(ctx, read.Key(), func(fn *v1alpha1.Function) error {
		if fn.UID != read.UID || fn.Generation != read.Generation {
			return fmt.Errorf("function %s was changed by somebody else meanwhile; edit it again", read.Key())
		}
		fn.Spec, fn.Labels, fn.Annotations = edited.Spec, edited.Labels, edited.Annotations
		return nil
	}, false)
	if err != nil {
		return err
	}
	m.printApplied(applied, false)
	return nil
}

// authored is what of a function its author writes.
func authored(fn *v1alpha1.Function) *v1alpha1.Function {
	written := &v1alpha1.Function{Spec: *fn.Spec.DeepCopy()}
	written.ObjectMeta = metav1.ObjectMeta{Namespace: fn.Namespace, Name: fn.Name, Labels: fn.Labels, Annotations: fn.Annotations}
	return written
}

const errorMark = "# ERROR: "

// withErrors puts an error into comments above a text, in the place of those before.
func withErrors(text []byte, err error) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(err.Error()) {
		out.WriteString(errorMark + strings.TrimRight(line, "\n") + "\n")
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte(errorMark)) {
			out.Write(line)
		}
	}
	return out.Bytes()
}
