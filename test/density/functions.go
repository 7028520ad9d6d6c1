package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// makers is how many functions are written at a time.
const makers = 16

// functionName is the name of a function.
func functionName(i int) string { return fmt.Sprintf("function-%05d", i) }

// function is a small function: it has a command, a variable, and requests.
func function(i int) *v1alpha1.Function {
	f := &v1alpha1.Function{}
	f.Name = functionName(i)
	f.Spec.Template.Command = []string{"./server", "--verbose"}
	f.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "STAGE", Value: "production"}}
	f.Spec.Template.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
	}
	return f
}

// writeFunctions writes so many functions to a folder. A store writes one after the other, to the
// disk itself, so each maker has its own one, with other functions. All are opened before the first
// writes, since a store that is opened removes what it takes for unfinished.
func writeFunctions(ctx context.Context, dir string, n int) error {
	var stores [makers]*file.Store
	for i := range stores {
		var err error
		if stores[i], err = file.Open(dir); err != nil {
			return err
		}
	}
	numbers, errs := make(chan int), make(chan error, makers)
	for _, store := range stores {
		go func() {
			var err error
			for i := range numbers {
				if err == nil && ctx.Err() == nil {
					err = prove(store, function(i))
				}
			}
			errs <- err
		}()
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	var err error
	for range makers {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, ctx.Err())
}

// prove keeps a function whose revision has started before: otherwise its scheduler would start an
// instance to see whether it does.
func prove(store *file.Store, f *v1alpha1.Function) error {
	if _, err := store.Apply(f); err != nil {
		return err
	}
	v1alpha1.Default(f)
	entry, ok := store.Catalog().Get(f.Key())
	if !ok || len(entry.Units) != 1 {
		return fmt.Errorf("function %s has no revision", f.Name)
	}
	return store.Observe(f.Key(), map[string]rollout.Observation{
		entry.Units[0].FunctionRevisionName(): {Observed: true, Started: true},
	})
}

// addFunctions registers all functions, with the same identities for both.
func (s *site) addFunctions(ctx context.Context) error {
	if err := writeFunctions(ctx, functionsDir(s.dir), s.options.functions); err != nil {
		return err
	}
	var asking sync.WaitGroup
	var errs [2]error
	for i, c := range []*child{s.scheduler, s.gateway} {
		asking.Go(func() {
			n := 0
			if errs[i] = c.ask(ctx, http.MethodPost, "/functions", &n); errs[i] == nil && n != s.options.functions {
				errs[i] = fmt.Errorf("the %s has %d functions instead of %d", c.name, n, s.options.functions)
			}
		})
	}
	asking.Wait()
	return errors.Join(errs[0], errs[1])
}
