package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/spelling"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// key reads NAME or NAMESPACE/NAME next to the namespace flag. Without either
// there is no namespace, which is then the target's.
func (f *finder) key(name string) (invocation.FunctionKey, error) {
	return parseKey(name, f.namespace)
}

func parseKey(arg, namespaceFlag string) (invocation.FunctionKey, error) {
	key := invocation.FunctionKey{Namespace: namespaceFlag, Name: arg}
	if namespace, name, ok := strings.Cut(arg, "/"); ok {
		if namespaceFlag != "" && namespace != namespaceFlag {
			return key, usagef("%s is in the namespace %s, but --namespace says %s; remove one of the two", arg, namespace, namespaceFlag)
		}
		key = invocation.FunctionKey{Namespace: namespace, Name: name}
		if namespace == "" {
			return key, usagef("%q is not a name of a function: write NAMESPACE before the slash, or leave the slash out", arg)
		}
	}
	for _, part := range []string{cmp.Or(key.Namespace, v1alpha1.DefaultNamespace), key.Name} {
		if len(validation.IsDNS1123Label(part)) > 0 {
			return key, usagef("%q is not a name of a function: NAME and NAMESPACE/NAME are made of lower-case letters, digits and hyphens", arg)
		}
	}
	return key, nil
}

// enforceNamespace puts manifests without a namespace into that of the flag,
// and refuses those with another one.
func (f *finder) enforceNamespace(manifests []manifest) error {
	if f.namespace == "" {
		return nil
	}
	for _, m := range manifests {
		if m.function.Namespace == "" {
			m.function.Namespace = f.namespace
		}
		if m.function.Namespace != f.namespace {
			return usagef("%s: function %s is in the namespace %s, but --namespace says %s; remove one of the two",
				m.source, m.function.Name, m.function.Namespace, f.namespace)
		}
	}
	return nil
}

// shortName is how people name a function in the next command.
func (f *finder) shortName(key invocation.FunctionKey) string {
	if key.Namespace == f.home {
		return key.Name
	}
	return key.String()
}

// explainNotFound adds to a not-found error which functions of a similar name exist.
func (f *finder) explainNotFound(ctx context.Context, r registry, key invocation.FunctionKey, err error) error {
	if !isNotFound(err) {
		return err
	}
	next := "see windlass list --all-namespaces"
	if list, listErr := r.List(ctx, ""); listErr == nil {
		if len(list.Items) == 0 {
			next = "none is deployed yet; see windlass deploy --help"
		} else if near := f.nearest(key, list.Items); len(near) > 0 {
			next = "did you mean " + strings.Join(near, " or ") + "? " + next
		}
	}
	return fmt.Errorf("there is no function %s; %s", key, next)
}

func isNotFound(err error) bool {
	return kubeclient.Is(err, kubeclient.ReasonNotFound) || isReason(err, localapi.ReasonNotFound)
}

// isReason reports whether a local Windlass has answered with an error of a kind.
func isReason(err error, reason localapi.Reason) bool {
	var problem *localapi.Error
	return errors.As(err, &problem) && problem.Reason == reason
}

// maxNear is how many names are suggested at most.
const maxNear = 3

// nearest are the functions that someone who wrote key may have meant: those of
// that name in other namespaces, and those with nearly or more than that name;
// first those of key's namespace, which it more likely meant than another
// tenant's, then those that are written most like it.
func (f *finder) nearest(key invocation.FunctionKey, functions []v1alpha1.Function) []string {
	elsewhere := func(fn invocation.FunctionKey) int {
		if fn.Namespace == key.Namespace {
			return 0
		}
		return 1
	}
	var near []invocation.FunctionKey
	for i := range functions {
		if fn := functions[i].Key(); spelling.Distance(key.Name, fn.Name) <= max(1, len(key.Name)/3) || strings.HasPrefix(fn.Name, key.Name) {
			near = append(near, fn)
		}
	}
	slices.SortFunc(near, func(x, y invocation.FunctionKey) int {
		return cmp.Or(
			cmp.Compare(elsewhere(x), elsewhere(y)),
			cmp.Compare(spelling.Distance(key.Name, x.Name), spelling.Distance(key.Name, y.Name)),
			cmp.Compare(x.String(), y.String()),
		)
	})
	var names []string
	for _, fn := range near[:min(len(near), maxNear)] {
		names = append(names, f.shortName(fn))
	}
	return names
}

// completionTimeout bounds a shell's completion.
const completionTimeout = time.Second

// completeNames offers the names of functions to a shell.
func (f *finder) completeNames(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	several := cmd.Name() == "list" || cmd.Name() == "delete"
	if len(args) > 0 && !several {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	t, err := f.target(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := t.List(ctx, f.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range list.Items {
		// Who has begun to write a namespace wants it in the name.
		name := f.shortName(list.Items[i].Key())
		if strings.Contains(begun, "/") {
			name = list.Items[i].Key().String()
		}
		if !slices.Contains(args, name) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// oneName is for commands that take the NAME of one function.
func oneName(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("NAME of the function is missing; windlass list shows the names")
	case 1:
		return nil
	default:
		if err := valueApart(cmd, args); err != nil {
			return err
		}
		return usagef("%d arguments were given where one NAME belongs; quote what is one word", len(args))
	}
}
