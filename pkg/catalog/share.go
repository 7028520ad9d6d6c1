package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// mostLists is how many lists of resources are remembered. Functions have few that differ; more than
// that are somebody's play, and are forgotten.
const mostLists = 1024

// Lists lets functions with equal lists of resources share one: a map of two quantities takes more
// memory than the rest of a small function. Nobody changes what a catalog holds, so nobody notices.
// The zero value is ready.
type Lists struct {
	mu    sync.Mutex
	known map[string]corev1.ResourceList
}

// Share lets a template have the lists that others with equal ones have.
func (l *Lists) Share(t *v1alpha1.FunctionTemplate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Resources.Requests, t.Resources.Limits = l.shared(t.Resources.Requests), l.shared(t.Resources.Limits)
}

func (l *Lists) shared(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	text := textOf(list)
	if one, known := l.known[text]; known {
		return one
	}
	if l.known == nil || len(l.known) >= mostLists {
		l.known = make(map[string]corev1.ResourceList)
	}
	l.known[text] = list
	return list
}

// textOf is the same for lists that are equal, and for no others.
func textOf(list corev1.ResourceList) string {
	var text strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(list), cmp.Compare[corev1.ResourceName]) {
		quantity := list[name]
		text.WriteString(string(name) + "=" + quantity.String() + "\n")
	}
	return text.String()
}

// ShareTemplate lets a function have the template of the revision that it made, which is equal, so
// that there is one of them. The function must not be shared yet.
func ShareTemplate(f *v1alpha1.Function, revisions []*v1alpha1.FunctionRevision) {
	for _, r := range slices.Backward(revisions) {
		if reflect.DeepEqual(f.Spec.Template, r.Spec.Template) {
			f.Spec.Template = r.Spec.Template
			return
		}
	}
}
