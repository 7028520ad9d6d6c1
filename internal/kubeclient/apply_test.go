package kubeclient

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// withWords is a change of the function f whose code goes into a ConfigMap.
func withWords(t *testing.T, words string) *Change {
	t.Helper()
	change, err := Prepare(withCode("python3.13", "main.handle", folder(t, map[string]string{"main.py": "x", "words.py": words})))
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// onFunctions is called instead of each request that applies a Function, which do sends.
func onFunctions(kube client.WithWatch, call func(do func() error) error) client.WithWatch {
	return interceptor.NewClient(kube, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			do := func() error { return c.Apply(ctx, o, options...) }
			if of, ok := o.(interface{ GetKind() string }); ok && of.GetKind() == v1alpha1.KindFunction {
				return call(do)
			}
			return do()
		},
	})
}

// hasCode reports whether the ConfigMap of a change exists.
func hasCode(t *testing.T, kube client.Client, change *Change) bool {
	t.Helper()
	name := change.function.Spec.Template.Code.ConfigMapRef.Name
	err := kube.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func TestTheCodeOfANewFunctionGoesOnlyIfTheFunctionWasRefused(t *testing.T) {
	lost := &url.Error{Op: "Patch", URL: "https://api", Err: errors.New("http2: client connection lost")}
	invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.KindFunction).GroupKind(), "f", nil)
	for name, tt := range map[string]struct {
		stored bool
		answer error
		kept   bool
	}{
		"the answer is lost":               {true, lost, true},
		"the request may be under way":     {false, lost, true},
		"a load balancer gives up":         {true, apierrors.NewGenericServerResponse(504, "PATCH", schema.GroupResource{}, "f", "", 0, true), true},
		"refused":                          {false, invalid, false},
		"refused, and another has made it": {true, invalid, true},
		"the user stops waiting":           {true, context.Canceled, true},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(Scheme()).Build()
			c := NewWith(Deps{Context: "test", Kube: onFunctions(kube, func(do func() error) error {
				if tt.stored {
					if err := do(); err != nil {
						t.Error(err)
					}
				}
				return tt.answer
			})})
			change := withWords(t, "1")
			if _, err := c.Apply(t.Context(), change, Options{}); !errors.Is(err, tt.answer) {
				t.Errorf("the error is %v", err)
			}
			if has := hasCode(t, kube, change); has != tt.kept {
				t.Errorf("the code exists: %t", has)
			}
		})
	}
}

// aged is a cluster whose ConfigMaps were made some time ago.
func aged(kube client.WithWatch, age time.Duration) client.WithWatch {
	return interceptor.NewClient(kube, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if of, ok := list.(*corev1.ConfigMapList); ok {
				for i := range of.Items {
					of.Items[i].CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
				}
			}
			return err
		},
	})
}

func deployed(t *testing.T, kube client.Client, change *Change) {
	t.Helper()
	if _, err := NewWith(Deps{Context: "test", Kube: kube}).Apply(t.Context(), change, Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestDeploysAtTheSameTimeLeaveEachOthersCode(t *testing.T) {
	kube := aged(fake.NewClientBuilder().WithScheme(Scheme()).Build(), time.Minute)
	first, second, third := withWords(t, "1"), withWords(t, "2"), withWords(t, "3")
	deployed(t, kube, first)
	deployed(t, onFunctions(kube, func(do func() error) error {
		deployed(t, kube, second)
		return do()
	}), third)
	if !hasCode(t, kube, third) {
		t.Error("both have succeeded, and the code of the last one is gone")
	}
}

func TestOldCodeGoesWithALaterDeploy(t *testing.T) {
	kube := aged(fake.NewClientBuilder().WithScheme(Scheme()).Build(), 2*time.Hour)
	first, second, third := withWords(t, "1"), withWords(t, "2"), withWords(t, "3")
	for _, change := range []*Change{first, second, third} {
		deployed(t, kube, change)
	}
	if hasCode(t, kube, first) || !hasCode(t, kube, second) || !hasCode(t, kube, third) {
		t.Errorf("the code exists: %t, %t, %t", hasCode(t, kube, first), hasCode(t, kube, second), hasCode(t, kube, third))
	}
}

func TestOldCodeThatCannotBeRemovedIsANote(t *testing.T) {
	kube := interceptor.NewClient(aged(fake.NewClientBuilder().WithScheme(Scheme()).Build(), 2*time.Hour), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, o.GetName(), errors.New("no"))
		},
	})
	c := NewWith(Deps{Context: "test", Kube: kube})
	var last Applied
	first := withWords(t, "1")
	for _, change := range []*Change{first, withWords(t, "2"), withWords(t, "3")} {
		var err error
		if last, err = c.Apply(t.Context(), change, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if last.Result != Configured || !strings.Contains(last.Note, first.function.Spec.Template.Code.ConfigMapRef.Name) {
		t.Errorf("the function is %s, and the note is %q", last.Result, last.Note)
	}
}
